"""Scans on the cpu: some rows at a time, so that none waits for its own sum, or panels of columns.

A line is one chain of steps, whose results nobody can wait for faster; lines side by side are
independent of each other. Every line is scanned in order, as by one unit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import size_of
from burn_cube_backend.kernels.reduction import first_value, merged
from burn_cube_backend.lanes import LANES
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Lines that a unit scans at a time, and vectors of a panel of columns.
GROUP, PANEL = 4, 2
# What a step of one line costs, in the operations that the runtime counts.
STEP = 8.0


class Scan(NamedTuple):
    """What a kernel depends on.

    Attributes:
        op: `sum`, `prod`, `max` or `min`.
        source: dtype of the elements.
        acc: dtype of the state.
        out: dtype of the results.
        ordered: places of extremes are wanted too; among equals the last one counts.
        columns: lines lie side by side, and a unit takes `width` vectors of them.
        width: lines that a unit takes at a time, or vectors.
        rank: dims of the lines.
        places: dtype of places.
    """

    op: str
    source: DType
    acc: DType
    out: DType
    ordered: bool
    columns: bool
    width: int
    rank: int
    places: DType


class _State:
    """What one line, or a vector of them, has come to."""

    def __init__(self, code: Code, s: Scan) -> None:
        self.code, self.s = code, s
        kind: Any = Vector(s.acc, LANES) if s.columns else s.acc
        place: Any = Vector(d.int64, LANES) if s.columns else d.int64
        self.value = code.b.slot(kind)
        code.b.set(self.value, code.const(first_value(s.op, s.acc), kind).op)
        self.place = code.b.slot(place) if s.ordered else None
        if self.place is not None:
            code.b.set(self.place, code.const(0, place).op)

    def step(self, value: Val, place: Val) -> tuple[Val, Val | None]:
        """Take an element; return what there is then."""
        b = self.code.b
        now = Val(self.code, b.get(self.value))
        if self.place is None:
            made = merged(self.s.op, now, value)
            b.set(self.value, made.op)
            return made, None
        if value.dtype.is_bool:
            late = (value | ~now) if self.s.op == "max" else (now | ~value)
        else:
            late = value >= now if self.s.op == "max" else value <= now
        if value.dtype.is_float:
            late = late | value.call("isnan")
        at = Val(self.code, b.get(self.place))
        made, where = late.pick(value, now), late.pick(place, at)
        b.set(self.value, made.op)
        b.set(self.place, where.op)
        return made, where


def scan_kernel(s: Scan) -> Kernel:
    """Write the scan of lines; parameters are results, operand, lines or columns, and so on."""
    code = Code(f"{s.op}_scan", s.places, 1)
    out = code.buffer("out", s.out)
    order = code.buffer("order", d.int64) if s.ordered else None
    x = code.buffer("x", s.source)
    count, length = code.place("count"), code.place("length")
    offset, hop, step = code.place("offset"), code.place("hop"), code.place("step")
    extents = code.places("extent", s.rank)
    strides, steps = code.places("stride", s.rank), code.places("out_stride", s.rank)
    unit, size = code.special("cube_pos"), s.width * (LANES if s.columns else 1)
    parts = (count + (size - 1)) // size
    outer = unit // parts
    # The last group ends with the last line and may overlap the one before: both write the same.
    first = ((unit - outer * parts) * size).call("min", count - size)
    heads: list[tuple[Val, Val]] = []
    for line in range(s.width):
        number = first + line * (LANES if s.columns else 1)
        coords = [*code.coords(outer, extents[:-1]), number] if s.rank > 1 else [number]
        heads.append((code.walk(offset, coords, strides), code.walk(code.at(0), coords, steps)))
    states = [_State(code, s) for _ in heads]
    with code.loop(code.at(0), length) as k:
        place = k.cast(d.int64)
        if s.columns:
            place = Val(code, code.b.splat(place.op, LANES))
        for (from_, to), state in zip(heads, states, strict=True):
            lanes = LANES if s.columns else 1
            value = Val(code, code.b.load(x.op, (from_ + k * hop).op, lanes)).cast(s.acc)
            made, where = state.step(value, place)
            at = (to + k * step).op
            code.b.store(out.op, at, made.cast(s.out).op)
            if order is not None and where is not None:
                code.b.store(order.op, at, where.op)
    return code.finish()


def scanned(
    engine: Engine, op: str, x: CubeTensor, dim: int, out: DType, acc: DType,
    ordered: bool = False, long: int = 0,
) -> list[CubeTensor] | None:  # fmt: skip
    """Return the scan of a tensor along a dim, and the places; None where lines are better cut.

    Args:
        engine: the cpu.
        op: what is scanned.
        x: the operand, neither empty nor without dims.
        dim: along which.
        out: dtype of the results.
        acc: dtype in which they are computed.
        ordered: places of extremes are wanted.
        long: lines above this length are cut where they are rows, or too few; 0 for never.
    """
    length, last = x.shape[dim], len(x.shape) - 1
    threads: int = engine.client.runtime.threads  # type: ignore[attr-defined]  # of the cpu runtime
    columns = dim != last and x.strides[last] == 1 and x.shape[last] >= LANES
    rest = [k for k in range(len(x.shape)) if k != dim]
    extents = [x.shape[k] for k in rest] or [1]
    count, others = extents[-1], size_of(extents[:-1])
    width = 1
    if columns:
        width = PANEL if count >= 2 * PANEL * LANES * threads else 1
    elif count >= 2 * GROUP * threads or (count * others >= 2 * GROUP * threads and count >= GROUP):
        width = GROUP
    size = width * (LANES if columns else 1)
    units = -(-count // size) * others
    if long and length > long and (not columns or units < threads):
        return None
    made = [engine.empty(x.shape, out)]
    if ordered:
        made.append(engine.empty(x.shape, d.int64))
    places = engine.index_dtype(x, made[0], count=x.size)
    spec = Scan(op, x.dtype, acc, out, ordered, columns, width, len(extents), places)
    program = engine.loaded(scan_kernel, (spec,))
    program.cost = STEP * length * size  # type: ignore[attr-defined]
    args = [
        *[m.buf for m in made], x.buf, count, length, x.offset, x.strides[dim],
        made[0].strides[dim], *extents, *([x.strides[k] for k in rest] or [0]),
        *([made[0].strides[k] for k in rest] or [0]),
    ]  # fmt: skip
    engine.start(program, (units, 1, 1), args)
    return made
