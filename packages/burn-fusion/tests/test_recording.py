"""Recording and planning over a fake fusion, without tensors or numpy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from burn_backend import Backend, Kernel
from burn_fusion import FusionBackend, Value
from burn_ir import CATALOG
from burn_std import DType, ExecutionError
from burn_std.dtypes import float32, int64


class Box:
    """A payload: numbers, shape, dtype."""

    def __init__(self, data: list[float], shape: tuple[int, ...], dtype: str = "f") -> None:
        self.data = data
        self.shape = shape
        self.dtype = dtype


def _map2(fn: Any) -> Any:
    def run(x: Box, y: Box) -> Box:
        a = x.data if x.shape else x.data * len(y.data)
        b = y.data if y.shape else y.data * len(x.data)
        return Box([fn(i, j) for i, j in zip(a, b, strict=True)], x.shape or y.shape, x.dtype)

    return run


def _reciprocal(x: Box) -> Box:
    return Box([1 / v for v in x.data], x.shape, x.dtype)


def _missing(*args: Any) -> Any:
    raise RuntimeError("the fake has no such kernel")


class FakeBackend(Backend):
    """Adds, multiplies, divides; everything else is missing on purpose."""

    name = "fake"

    def __init__(self) -> None:
        given = {
            "add": _map2(lambda a, b: a + b),
            "mul": _map2(lambda a, b: a * b),
            "matmul": lambda x, y: Box(x.data, x.shape, x.dtype),
            "reciprocal": _reciprocal,
            "full": lambda dtype, shape, value: Box([value], shape, self.native[dtype]),
            "sort": lambda x, dim, descending: (
                Box(sorted(x.data), x.shape),
                Box([0.0] * len(x.data), x.shape, "i"),
            ),
        }
        table = {e.name: Kernel(lambda d, e=e: given.get(e.name, _missing)) for e in CATALOG}
        super().__init__(table, {float32: "f", int64: "i"})

    def from_numpy(self, array: Any, copy: bool) -> Box:
        return array

    def to_numpy(self, payload: Box) -> list[float]:
        return payload.data

    def scalar(self, value: Any, dtype: DType) -> Box:
        return Box([value], (), self.native[dtype])


def test_a_permission_is_handed_on():
    heard = []
    inner = FakeBackend()
    inner.allow_tf32 = lambda: heard.append(inner)
    FusionBackend(inner).allow_tf32()
    assert heard == [inner]


def recording(fusion: FusionBackend, name: str):
    """Return a function of values made from the fragments of one operation."""
    entry = CATALOG[name]
    f = fusion.fragments(entry)
    names = [i.name for i in entry.inputs] + [a.name for a in entry.attrs]
    body = [f"{i.name}_v = {i.name}" for i in entry.inputs]
    body += [f"d_ = {entry.inputs[0].name}_v.dtype", *f.produce, "return r_"]
    source = f"def fn({', '.join(names)}):\n" + "\n".join(f"    {line}" for line in body)
    scope = dict(f.constants)
    exec(source, scope)
    return scope["fn"]


@pytest.fixture
def fusion() -> FusionBackend:
    return FusionBackend(FakeBackend())


def value(fusion: FusionBackend, *numbers: float) -> Value:
    return fusion.from_numpy(Box(list(numbers), (len(numbers),)), False)


def test_values_know_shape_and_dtype_before_anything_runs(fusion):
    add = recording(fusion, "add")
    x = value(fusion, 1.0, 2.0)
    y = add(add(x, x), x)
    assert y.shape == (2,)
    assert fusion.report() == {"plans": 0, "flushes": 0, "waiting": 2}
    assert fusion.to_numpy(y) == [3.0, 6.0]
    assert fusion.report() == {"plans": 1, "flushes": 1, "waiting": 0}


def test_a_known_program_makes_no_second_plan(fusion):
    mul = recording(fusion, "mul")
    for n in (2, 3, 5):
        x = value(fusion, *[2.0] * n)
        assert fusion.to_numpy(mul(x, fusion.scalar(n, x.dtype))) == [2.0 * n] * n
    assert fusion.report()["plans"] == 1


def test_several_outputs_take_consecutive_slots(fusion):
    values, indices = recording(fusion, "sort")(value(fusion, 3.0, 1.0), 0, False)
    assert (values.slot, indices.slot) == (0, 1)
    assert indices.op == (-1, 1)
    assert fusion.to_numpy(values) == [1.0, 3.0]
    assert indices.seg is None


def test_a_failure_is_typed_and_spares_what_does_not_depend_on_it(fusion):
    x = value(fusion, 0.0, 1.0)
    bad = recording(fusion, "reciprocal")(x)
    good = recording(fusion, "add")(x, x)
    with pytest.raises(ExecutionError, match="reciprocal"):
        fusion.to_numpy(bad)
    assert fusion.to_numpy(good) == [0.0, 2.0]
    with pytest.raises(ExecutionError):
        fusion.to_numpy(recording(fusion, "add")(bad, x))


def test_execute_runs_at_once(fusion):
    x = value(fusion, 1.0)
    recorded = recording(fusion, "add")(x, x)
    out = fusion.execute(CATALOG["mul"], [recorded, x], [])
    assert out.seg is None
    assert out.buf.data == [2.0]


def test_many_recorded_bytes_cut_a_program_at_places_of_its_content():
    lengths = []
    for budget in (64 * 40, 1 << 60):
        fusion = FusionBackend(FakeBackend(), budget=budget)
        matmul, add = recording(fusion, "matmul"), recording(fusion, "add")
        x = fusion.from_numpy(Box([1.0] * 9, (3, 3)), False)
        cuts, before = [], 0
        for k in range(120):
            y = add(matmul(x, x), x)
            waiting = fusion.report()["waiting"]
            if waiting < before:
                cuts.append(k)
            before = waiting
        assert y.shape == (3, 3)
        lengths.append(cuts)
    assert lengths[1] == []
    # The content repeats, and so do the cuts.
    rounds = [b - a for a, b in itertools.pairwise(lengths[0])]
    assert len(rounds) > 2 and len(set(rounds)) == 1


def test_a_step_that_a_signal_breaks_off_is_not_counted_on(fusion):
    recorder = fusion.recorder

    class Signalled:
        """A lock where a signal comes in once, right after what it guards was done."""

        def __init__(self, lock: Any) -> None:
            self.lock, self.comes = lock, True

        def __enter__(self) -> None:
            self.lock.__enter__()

        def __exit__(self, *about: object) -> None:
            self.lock.__exit__(*about)
            if self.comes and recorder.logs:
                self.comes = False
                raise KeyboardInterrupt

    recorder.lock = Signalled(recorder.lock)
    with pytest.raises(KeyboardInterrupt), fusion.step_log():
        pass
    assert (recorder.logs, recorder.tls.log) == (0, None)
    with fusion.step_log():
        assert recorder.logs == 1
    assert recorder.logs == 0
