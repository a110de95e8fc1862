"""The wire form of programs: plain dicts, lists and numbers, ready for JSON.

Operations go by name. What comes in is bounded and checked before anything is built from it;
whatever is wrong with it is a `GraphError`.
"""

from __future__ import annotations

from math import inf, isfinite, nan
from typing import Any

from burn_ir.entry import CATALOG, MAX_RANK
from burn_ir.program import External, Op, Program, Runtime
from burn_std import DType, GraphError, nearest, parse_dtype

VERSION = 1

# What a program may hold at most: far above any real one, far below what hurts a server.
MAX_OPS = 1 << 16
MAX_SLOTS = 1 << 20
MAX_ITEMS = 1 << 16
MAX_DEPTH = 4
MAX_TEXT = 128
MAX_INT = 1 << 64

_WORDS = {"inf": inf, "-inf": -inf, "nan": nan}


def program_to_wire(program: Program) -> dict[str, Any]:
    """Return a program as a dict that `json` can write.

    Example:
        >>> from burn_std.dtypes import float32
        >>> program = Program([Op("neg", (-1,))], [External(float32, (2,))], [0])
        >>> program_to_wire(program)["ops"]
        [{'op': 'neg', 'in': [-1], 'static': [], 'out': 1}]
        >>> program_from_wire(program_to_wire(program)) == program
        True
    """
    return {
        "version": max([1, *(o.entry.since for o in program.ops)]),
        "externals": [[e.dtype.name, list(e.classes)] for e in program.externals],
        "ops": [_op_to_wire(o) for o in program.ops],
        "live": list(program.live),
    }


def _op_to_wire(op: Op) -> dict[str, Any]:
    out = {
        "op": op.name,
        "in": [list(i) if isinstance(i, tuple) else i for i in op.inputs],
        "static": [_value_to_wire(v) for v in op.static],
        "out": op.outputs,
    }
    if op.classes is not None:
        out["classes"] = _value_to_wire(op.classes)
    return out


def _value_to_wire(value: Any) -> Any:
    """Return an attribute: tuples as lists, dtypes and floats as dicts, the rest as it is."""
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return [_value_to_wire(v) for v in value]
    if isinstance(value, float):
        # A float that happens to be whole must not come back as an int.
        return {"float": repr(value) if not isfinite(value) else value}
    return value


def runtime_to_wire(runtime: Runtime) -> dict[str, Any]:
    """Return run-time values as a dict that `json` can write."""
    return {
        "shapes": [list(s) for s in runtime.shapes],
        "values": [
            [slot, _value_to_wire(values)] for slot, values in sorted(runtime.values.items())
        ],
    }


# ---- reading -----------------------------------------------------------------------------------


def _refuse(where: str, rule: str, got: Any) -> GraphError:
    return GraphError(where, rule, got=repr(got)[:80])


def _dict(where: str, data: Any, *needed: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(data, dict) or not set(needed) <= set(data) <= {*needed, *optional}:
        raise _refuse(where, f"a dict with {', '.join(needed)}", data)
    return data


def _list(where: str, data: Any, limit: int) -> list[Any]:
    if not isinstance(data, list) or len(data) > limit:
        raise _refuse(where, f"a list of at most {limit} items", data)
    return data


def _int(where: str, data: Any, low: int, high: int) -> int:
    if type(data) is not int or not low <= data <= high:
        raise _refuse(where, f"an int in [{low}, {high}]", data)
    return data


def _text(where: str, data: Any) -> str:
    if not isinstance(data, str) or len(data) > MAX_TEXT:
        raise _refuse(where, f"a string of at most {MAX_TEXT} characters", data)
    return data


def _dtype(where: str, data: Any) -> DType:
    try:
        return parse_dtype(_text(where, data))
    except GraphError:
        raise
    except ValueError as error:
        raise _refuse(where, "a dtype by name", data) from error


def _value_from_wire(where: str, data: Any, depth: int = MAX_DEPTH) -> Any:
    if isinstance(data, list):
        if depth == 0:
            raise _refuse(where, f"nested at most {MAX_DEPTH} deep", data)
        items = _list(where, data, MAX_ITEMS)
        return tuple(_value_from_wire(where, v, depth - 1) for v in items)
    if isinstance(data, dict):
        return _marked(where, data)
    if isinstance(data, str):
        return _text(where, data)
    if data is None or isinstance(data, bool):
        return data
    return _int(where, data, -MAX_INT, MAX_INT)


def _marked(where: str, data: dict[Any, Any]) -> Any:
    if set(data) == {"dtype"}:
        return _dtype(where, data["dtype"])
    if set(data) == {"float"}:
        value = data["float"]
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        # Some writers of JSON drop the point of a whole float.
        if isinstance(value, float) or (type(value) is int and abs(value) <= MAX_INT):
            return float(value)
    raise _refuse(where, "a dict is {dtype: name} or {float: number}", data)


def program_from_wire(data: Any) -> Program:
    """Return the program of a wire dict; `check_program` then checks it with its shapes.

    Args:
        data: what `program_to_wire` made, or anything at all.

    Raises:
        GraphError: a newer version, an operation that is not known here (named), or data that
            is no program.
    """
    _dict("program", data, "version", "externals", "ops", "live")
    version = _int("program", data["version"], 1, 1 << 31)
    if version > VERSION:
        raise GraphError(
            "program", f"wire versions up to {VERSION} are read here", got=version,
            remedy="Upgrade burn-ir on this side.",
        )  # fmt: skip
    externals = [
        _external(f"e{k}", e) for k, e in enumerate(_list("program", data["externals"], MAX_SLOTS))
    ]
    ops, slots = [], 0
    for item in _list("program", data["ops"], MAX_OPS):
        ops.append(_op(f"%{slots}", item, slots, len(externals)))
        slots += ops[-1].outputs
    live = [_int("live", s, 0, slots - 1) for s in _list("live", data["live"], slots)]
    if live != sorted(set(live)):
        raise _refuse("live", "slots are ascending", live)
    return Program(ops, externals, live)


def _external(where: str, data: Any) -> External:
    pair = _list(where, data, 2)
    if len(pair) != 2:
        raise _refuse(where, "a dtype and axis classes", data)
    classes = tuple(_int(where, c, 0, 2) for c in _list(where, pair[1], MAX_RANK))
    return External(_dtype(where, pair[0]), classes)


def _op(where: str, data: Any, slots: int, externals: int) -> Op:
    _dict(where, data, "op", "in", "static", "out", optional=("classes",))
    name = _text(where, data["op"])
    entry = CATALOG.get(name)
    if entry is None:
        known = [e.name for e in CATALOG]
        raise GraphError(
            f"{where} {name}", "no such operation here", got=repr(name),
            remedy=nearest(name, known) or "Install the package that registers it on this side.",
        )  # fmt: skip
    where = f"{where} {name}"
    inputs: list[Any] = []
    for i in _list(where, data["in"], len(entry.inputs)):
        if isinstance(i, list):
            many = _list(where, i, MAX_ITEMS)
            inputs.append(tuple(_int(where, s, -externals, slots - 1) for s in many))
        else:
            inputs.append(None if i is None else _int(where, i, -externals, slots - 1))
    count = sum(a.kind == "static" for a in entry.attrs)
    static = _value_from_wire(where, _list(where, data["static"], count), MAX_DEPTH + 1)
    if len(inputs) != len(entry.inputs) or len(static) != count:
        raise _refuse(where, f"{len(entry.inputs)} inputs and {count} static attributes", data)
    outputs = _int(where, data["out"], 1, MAX_ITEMS)
    if entry.outputs != ("list",) and outputs != len(entry.outputs):
        raise _refuse(where, f"fills {len(entry.outputs)} slots", outputs)
    classes = data.get("classes")
    if classes is not None:
        classes = _value_from_wire(where, _list(where, classes, MAX_ITEMS), 2)
    return Op(name, tuple(inputs), static, outputs, classes)


def runtime_from_wire(data: Any) -> Runtime:
    """Return the run-time values of a wire dict.

    Raises:
        GraphError: the data is no run-time values.
    """
    _dict("runtime", data, "shapes", "values")
    shapes = [
        tuple(_int("runtime", n, 0, MAX_INT) for n in _list("runtime", s, MAX_RANK))
        for s in _list("runtime", data["shapes"], MAX_SLOTS)
    ]
    values: dict[int, tuple[Any, ...]] = {}
    for item in _list("runtime", data["values"], MAX_OPS):
        pair = _list("runtime", item, 2)
        if len(pair) != 2:
            raise _refuse("runtime", "a slot and its values", item)
        slot = _int("runtime", pair[0], 0, MAX_SLOTS)
        held = _list(f"%{slot}", pair[1], MAX_RANK)
        values[slot] = _value_from_wire(f"%{slot}", held, MAX_DEPTH + 1)
    return Runtime(shapes, values)
