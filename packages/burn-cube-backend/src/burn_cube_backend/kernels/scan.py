"""Cumulative sums and products along one dim.

Each unit walks a line; long lines are cut in pieces whose totals are scanned first, so that every
piece can start from what came before it. Floats scan in the next wider dtype: a step adds its
rounding to all that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels import scan_cpu
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import HALVES, converted, copied, wide
from burn_cube_backend.kernels.reduction import merged
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel, maker
from burn_std import DType, dtypes as d

Spec = tuple[str, DType, DType, DType | None, bool, int, DType]
# Lines from this length on are cut into pieces of PIECE.
LONG = 4096
PIECE = 256


def wider(engine: Engine, dtype: DType) -> DType:
    """Return the dtype in which a scan of this dtype accumulates."""
    if dtype in HALVES:
        return d.float32
    return (
        d.float64 if dtype is d.float32 and d.float64 in engine.client.properties.dtypes else dtype
    )


def scan_kernel(
    op: str, source: DType, acc: DType, out: DType | None, carried: bool, rank: int, index: DType
) -> Kernel:
    """Write the scan of one piece of a line by each unit; without `out` only its total.

    The scanned dim is the last one of x. With `carried` a piece starts from `carry`, the totals of
    all pieces up to the one before.
    """
    code = Code(f"{op}_scan", index)
    x = code.buffer("x", source)
    target = code.buffer("out", out) if out is not None else None
    carry = code.buffer("carry", acc) if carried or out is None else None
    count, pieces, piece = code.place("count"), code.place("pieces"), code.place("piece")
    length, offset, hop = code.place("length"), code.place("offset"), code.place("hop")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    with code.each(count) as i:
        line = i // pieces
        number = i - line * pieces
        start = number * piece
        stop = (start + piece).call("min", length)
        base = code.walk(offset, code.coords(line, extents), strides)
        total = code.local(acc, 0 if op == "sum" else 1)
        if carried and carry is not None:
            with code.when(number > 0):
                total.set(carry[i - 1])
        with code.loop(start, stop) as k:
            total.set(merged(op, total.get(), x[base + k * hop].cast(acc)))
            if target is not None and out is not None:
                target[line * length + k] = total.get().cast(out)
        if target is None and carry is not None:
            carry[i] = total.get()
    return code.finish()


def scanned(engine: Engine, op: str, x: CubeTensor, dim: int, out: DType, acc: DType) -> CubeTensor:
    """Return the scan of a tensor along a dim, in dtype `out`.

    In memory the dim stands last.
    """
    if not x.shape:
        return copied(engine, x, out)
    if engine.client.name == "cpu" and x.size:
        found = scan_cpu.scanned(engine, op, x, dim, out, acc, long=LONG)
        if found is not None:
            return found[0]
    rest = [k for k in range(len(x.shape)) if k != dim]
    outer = tuple(x.shape[k] for k in rest)
    made = engine.empty((*outer, x.shape[dim]), out)
    length = x.shape[dim]
    lines = made.size // length if length else 0
    back = sorted(range(len(x.shape)), key=[*rest, dim].__getitem__)
    result = made.view(tuple(x.shape), tuple(made.strides[k] for k in back))
    if not lines:
        return result
    pieces = -(-length // PIECE) if length > LONG else 1
    piece = PIECE if pieces > 1 else length
    extents = list(outer) or [1]
    strides = [x.strides[k] for k in rest] or [0]
    index = engine.index_dtype(x, made, count=made.size)
    tail = [lines * pieces, pieces, piece, length, x.offset, x.strides[dim], *extents, *strides]
    rank = len(extents)
    if pieces == 1:
        spec: Spec = (op, x.dtype, acc, out, False, rank, index)
        engine.run(scan_kernel, spec, lines, [x.buf, made.buf, *tail])
        return result
    totals = engine.empty((lines, pieces), acc)
    spec = (op, x.dtype, acc, None, False, rank, index)
    engine.run(scan_kernel, spec, lines * pieces, [x.buf, totals.buf, *tail])
    carry = scanned(engine, op, totals, 1, acc, acc)
    spec = (op, x.dtype, acc, out, True, rank, index)
    engine.run(scan_kernel, spec, lines * pieces, [x.buf, made.buf, carry.buf, *tail])
    return result


def _cumulative(op: str) -> Callable[..., Any]:
    def make(engine: Engine, source: DType) -> Any:
        default = source if source.is_float else d.int64

        def run(x: CubeTensor, dim: int, dtype: DType | None) -> CubeTensor:
            target = dtype or default
            x = converted(engine, engine.solid(x), target)
            if target.is_bool:
                return copied(engine, scanned(engine, op, x, dim, d.int64, d.int64), d.bool_)
            return scanned(engine, op, x, dim, target, wider(engine, target))

        return run

    return make


def _extreme(op: str) -> Callable[..., Sequence[CubeTensor]]:
    def run(engine: Engine, x: CubeTensor, dim: int) -> Sequence[CubeTensor]:
        """(values, indices) of the running extreme; the last of equal ones, and every NaN, wins."""
        if not x.size or not x.shape:
            return x, filled(engine, d.int64, x.shape, 0)
        found = scan_cpu.scanned(engine, op, x, dim, x.dtype, wide(x.dtype), ordered=True)
        assert found is not None  # noqa: S101 - no line is too long
        return found

    return run


for _op in ("max", "min"):
    kernel(f"cum{_op}", runtime="cpu")(_extreme(_op))
maker("cumsum")(_cumulative("sum"))
maker("cumprod")(_cumulative("prod"))
