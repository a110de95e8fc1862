"""Recorded programs: text, specification, wire form."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from burn_ir import (
    CATALOG,
    External,
    Op,
    Program,
    Runtime,
    Spec,
    axis_classes,
    check_program,
    program_from_wire,
    program_to_wire,
    runtime_from_wire,
    runtime_to_wire,
)
from burn_ir.wire import VERSION
from burn_std import GraphError, quantized
from burn_std.dtypes import bool_, float32, float64, int64


def code(name: str, *parts: Any) -> tuple[Any, ...]:
    return (CATALOG[name].code, *parts)


def sample() -> tuple[Program, Runtime]:
    """A segment as the recorder hands it over: a list input, an absent optional, several outputs,
    run-time extents and scalars, axis classes."""
    x, w = Spec((4, 3), float32), Spec((2, 3), float32)
    codes = [
        code("linear", -1, -2, None, (2, 2)),  # %0 [4, 2]
        code("full", float32, ()),  # %1 [], a scalar operand
        code("mul", 0, 1),  # %2
        code("max_dim", 2, 1, False),  # %3, %4
        (-1, 1),
        code("cat", (3, 3), 0),  # %5 [8]
        code("reshape", 5, (2, 2)),  # %6 [2, 4]
        code("clamp", 6, None, 1),  # %7
        code("cast", 4, float64),  # %8
    ]
    runtime = {1: ((), 0.5), 6: ((2, 4),)}
    return Program.from_segment(codes, [x, w], runtime, [8, 7])


def test_text_of_a_segment() -> None:
    program, runtime = sample()
    assert program.text() == "\n".join(
        [
            "e0 = float32[n, n]",
            "e1 = float32[n, n]",
            "%0 = linear(e0, e1, None)",
            "%1 = full(dtype=float32)",
            "%2 = mul(%0, %1)",
            "%3, %4 = max_dim(%2, dim=1, keepdim=False)",
            "%5 = cat([%3, %3], dim=0)",
            "%6 = reshape(%5)",
            "%7 = clamp(%6, None, %1)",
            "%8 = cast(%4, dtype=float64)",
            "live %7 %8",
        ]
    )
    late = program.text(runtime)
    assert "e0 = float32[4, 3]" in late
    assert "%1 = full(dtype=float32, shape=(), value=0.5)" in late


def test_specs_of_a_segment() -> None:
    program, runtime = sample()
    specs = check_program(program, runtime)
    assert len(specs) == program.slots == 9
    assert specs[6] == Spec((2, 4), float32)
    assert specs[8] == Spec((4,), float64)


def test_program_is_equal_whatever_varies_at_run_time() -> None:
    program, _ = sample()
    again, _ = sample()
    assert program == again and hash(program) == hash(again)
    x = External(float32, (2,))
    ops = [Op("sum", (-1,), ((0,), False, None))]
    assert Program(ops, [x], [0]) == Program(ops, [External(float32, (2,))], [0])
    assert Program(ops, [x], [0]) != Program(ops, [External(float32, (1,))], [0])
    assert Program(ops, [x], [0]) != Program(ops, [x], [])
    norm = [Op("vector_norm", (-1,), ((0,), False, order)) for order in (1, 1.0, True)]
    assert len({Program([n], [x], [0]) for n in norm}) == 3


def test_from_segment_refuses_what_is_no_code() -> None:
    for bad in ([(10**6, 0)], [(-1, 1)], [code("neg")], [code("neg", -1, (), 1)]):
        with pytest.raises(GraphError):
            Program.from_segment(bad, [Spec((1,), float32)], {})


def one(op: Op, *specs: Spec, values: tuple[Any, ...] = ()) -> tuple[Program, Runtime]:
    externals = [External(s.dtype, axis_classes(s.shape)) for s in specs]
    runtime = Runtime([s.shape for s in specs], {0: values} if values else {})
    return Program([op], externals, range(op.outputs)), runtime


F = Spec((4, 3), float32)


@pytest.mark.parametrize(
    ("op", "specs", "values", "node", "rule"),
    [
        (Op("nop", (-1,)), [F], (), "%0 nop", "no such operation"),
        (Op("add", (-1,)), [F], (), "%0 add", "takes 2 inputs"),
        (Op("neg", (0,)), [F], (), "%0 neg", "defined before it is read"),
        (Op("neg", (-2,)), [F], (), "%0 neg", "defined before it is read"),
        (Op("neg", (None,)), [F], (), "%0 neg", "input x is a slot"),
        (Op("neg", ((-1,),)), [F], (), "%0 neg", "input x is a slot"),
        (Op("cat", (-1,), (0,)), [F], (), "%0 cat", "input xs is a list"),
        (Op("sum", (-1,), (None,)), [F], (), "%0 sum", "static and 0 run-time"),
        (Op("elu", (-1,)), [F], (), "%0 elu", "0 static and 1 run-time"),
        (Op("neg", (-1,)), [F], (1,), "%0 neg", "0 static and 0 run-time"),
        (Op("sum", (-1,), ([0], False, None)), [F], (), "%0 sum", "dims is normalised"),
        (Op("add", (-1, -2)), [F, Spec((3,), int64)], (), "%0 add", "one dtype"),
        (Op("exp", (-1,)), [Spec((3,), int64)], (), "%0 exp", "cast to a float"),
        (Op("add", (-1, -2)), [F, Spec((4,), float32)], (), "%0 add", "broadcast"),
        (Op("neg", (-1,)), [Spec((3,), bool_)], (), "%0 neg", "dtype must be"),
        (Op("softmax", (-1,), (7, None)), [F], (), "%0 softmax", "dim must be in"),
        (Op("softmax", (-1,), ("x", None)), [F], (), "%0 softmax", "attributes are normalised"),
        (Op("max_dim", (-1,), (0, False)), [F], (), "%0 max_dim", "fills 2 slots"),
        (Op("neg", (-1,), (), 1, (2, 1)), [F], (), "%0 neg", "axis classes"),
        (Op("nonzero", (-1,)), [F], (), "%0 nonzero", "depends on data"),
    ],
)
def test_checker_names_node_and_rule(
    op: Op, specs: list[Spec], values: tuple[Any, ...], node: str, rule: str
) -> None:
    program, runtime = one(op, *specs, values=values)
    with pytest.raises(GraphError) as caught:
        check_program(program, runtime)
    assert caught.value.op == node
    assert rule in caught.value.rule


def test_checker_compares_externals_live_and_values() -> None:
    neg = Op("neg", (-1,))
    x = External(float32, (2,))
    for program, runtime in (
        (Program([neg], [x], [0]), Runtime()),
        (Program([neg], [x], [0]), Runtime([(1,)])),
        (Program([neg], [x], [0]), Runtime([(-3,)])),
        (Program([neg], [x], [0]), Runtime([(3, 3)])),
        (Program([neg], [External(float32, (3,))], [0]), Runtime([(3,)])),
        (Program([neg], [x], [1]), Runtime([(3,)])),
        (Program([neg, neg], [x], [1, 0]), Runtime([(3,)])),
        (Program([neg], [x], [0]), Runtime([(3,)], {4: (1,)})),
    ):
        with pytest.raises(GraphError):
            check_program(program, runtime)


# ---- wire --------------------------------------------------------------------------------------


def test_wire_round_trip_through_json() -> None:
    program, runtime = sample()
    data = json.loads(json.dumps(program_to_wire(program)))
    assert program_from_wire(data) == program
    late = json.loads(json.dumps(runtime_to_wire(runtime)))
    assert runtime_from_wire(late) == runtime


@pytest.mark.parametrize(
    "value", [None, True, 3, -1.5, 2.0, float("inf"), "mean", float64, ((1, -1), None),
              quantized(8, block=32)],
)  # fmt: skip
def test_wire_keeps_the_type_of_attributes(value: Any) -> None:
    program = Program([Op("bernoulli", (-1,)), Op("gelu", (0,), (value,))], [], [])
    data = json.loads(json.dumps(program_to_wire(program), allow_nan=False))
    data["externals"] = [["float32", []]]
    got = program_from_wire(data).ops[1].static[0]
    assert got == value and type(got) is type(value)


def test_wire_keeps_nan_in_runtime() -> None:
    runtime = Runtime([], {3: (float("nan"), -0.0)})
    back = runtime_from_wire(json.loads(json.dumps(runtime_to_wire(runtime), allow_nan=False)))
    assert back == runtime


def test_unknown_operation_is_refused_by_name() -> None:
    program, _ = sample()
    data = program_to_wire(program)
    data["ops"][2]["op"] = "mypkg::muul"
    with pytest.raises(GraphError, match=r"%2 mypkg::muul: no such operation here"):
        program_from_wire(data)


def test_newer_version_is_refused() -> None:
    data = program_to_wire(sample()[0]) | {"version": VERSION + 1}
    with pytest.raises(GraphError, match="wire versions up to"):
        program_from_wire(data)


@pytest.mark.parametrize(
    "data",
    [
        None, [], "x", 3, {}, {"version": 1}, {1: 2},
        {"version": 1, "externals": [], "ops": [], "live": [0]},
        {"version": 1, "externals": [], "ops": [], "live": [], "more": 1},
        {"version": True, "externals": [], "ops": [], "live": []},
        {"version": 1, "externals": [["float32"]], "ops": [], "live": []},
        {"version": 1, "externals": [["float99", []]], "ops": [], "live": []},
        {"version": 1, "externals": [["float32", [3]]], "ops": [], "live": []},
        {"version": 1, "externals": [["float32", [2] * 65]], "ops": [], "live": []},
        {"version": 1, "externals": [], "ops": [{}], "live": []},
        {"version": 1, "externals": [], "ops": [], "live": [[]]},
        {"version": 10**400, "externals": [], "ops": [], "live": []},
    ],
)  # fmt: skip
def test_data_that_is_no_program_is_refused(data: Any) -> None:
    with pytest.raises(GraphError):
        program_from_wire(data)


JUNK: list[Any] = [
    None, True, -1, 0, 1, 2, 10**30, 1.5, float("nan"), "", "add", "x" * 1000, [], {}, [[]],
    [0], [-1, -1], {"dtype": "float32"}, {"dtype": 3}, {"float": "inf"}, {"float": []},
    [[[[[[[1]]]]]]], {"a": 1}, list(range(100)), "float32", "qint8_sym_block1", [None],
]  # fmt: skip


def mutated(data: Any, rng: random.Random) -> Any:
    """Return the data with one thing in it replaced, dropped or doubled."""
    if isinstance(data, (dict, list)) and data and rng.random() < 0.85:
        out: Any = data.copy()
        key = rng.choice(list(out)) if isinstance(out, dict) else rng.randrange(len(out))
        kind = rng.random()
        if kind < 0.1:
            del out[key]
        elif kind < 0.2 and isinstance(out, list):
            out.insert(key, out[key])
        else:
            out[key] = mutated(out[key], rng)
        return out
    return rng.choice(JUNK)


@pytest.mark.parametrize("seed", range(20))
def test_hostile_programs_raise_graph_errors_only(seed: int) -> None:
    rng = random.Random(seed)
    program, runtime = sample()
    data, late = program_to_wire(program), runtime_to_wire(runtime)
    read = 0
    for _ in range(200):
        a, b = data, late
        for _ in range(rng.randint(1, 3)):
            if rng.random() < 0.7:
                a = mutated(a, rng)
            else:
                b = mutated(b, rng)
        try:
            check_program(program_from_wire(a), runtime_from_wire(b))
            read += 1
        except GraphError as error:
            assert str(error)
    assert read < 200


@pytest.mark.parametrize("entry", [e for e in CATALOG if "::" not in e.name], ids=lambda e: e.name)
def test_junk_attributes_raise_graph_errors_only(entry: Any) -> None:
    rng = random.Random(entry.code)
    attrs: list[Any] = [
        None, True, 0, 1, -1, 7, 10**12, 1.5, "x", "mean", float32, (), (0,), (1, 1), (-1,),
        ((0, 1),), ((1, 1), (1, 1)), (10**12, 10**12), (None,), ("a",),
    ]  # fmt: skip
    specs = [Spec((), float32), F, Spec((2, 3, 4, 4), float32), Spec((0,), float32)]
    specs += [Spec((3,), int64), Spec((2, 2), bool_), Spec((1, 2, 3), float64)]
    for _ in range(60):
        chosen = [rng.choice(specs) for _ in range(3)]
        inputs: list[Any] = []
        for i in entry.inputs:
            slot = -1 - rng.randrange(3)
            inputs.append((slot, slot) if i.many else None if i.optional and slot == -1 else slot)
        static = [rng.choice(attrs) for a in entry.attrs if a.kind == "static"]
        values = tuple(rng.choice(attrs) for a in entry.attrs if a.kind != "static")
        outputs = 1 if entry.outputs == ("list",) else len(entry.outputs)
        op = Op(entry.name, tuple(inputs), tuple(static), outputs)
        try:
            check_program(*one(op, *chosen, values=values))
        except GraphError as error:
            assert error.op == f"%0 {entry.name}"
