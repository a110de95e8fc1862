"""Reductions: sums, products, extremes, truth, and the places of extremes.

Three strategies: one unit per result where results are many or rows are short; one cube per
result, whose units meet in shared memory; and two stages where few results read much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_backend import STAGED
from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, collapse, dense, size_of
from burn_cube_backend.kernels import reduce_cpu, reduce_gpu
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.kernels.reduction import Reducer, State, element, first_value
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel, maker
from burn_std import DType, dtypes as d

Dims = tuple[int, ...] | None
# Rows from this length on are worth a cube each, when there are not results enough.
LONG = 1024
# Results above this number keep every device busy with a unit each.
MANY = 1 << 14
# Elements of a row that one cube of the first of two stages reads.
PIECE = 1 << 15


def unit_kernel(r: Reducer, kept: int, reduced: int, index: DType) -> Kernel:
    """Write the reduction of one row by each unit."""
    code = Code(f"{r.op}_unit", index)
    out, x = code.buffer("out", r.out), code.buffer("x", r.source)
    count, length, offset = code.place("count"), code.place("length"), code.place("offset")
    outer, steps = code.places("extent", kept), code.places("stride", kept)
    inner, hops = code.places("length_", reduced), code.places("hop", reduced)
    with code.each(count) as o:
        base = code.walk(offset, code.coords(o, outer), steps)
        state = State(code, r, index)
        with code.loop(0, length) as k:
            at = code.walk(base, code.coords(k, inner), hops)
            state.step(element(x[at], r), k)
        state.store(out, o)
    return code.finish()


def cube_kernel(r: Reducer, kept: int, reduced: int, index: DType) -> Kernel:
    """Write the reduction of one piece of a row by each cube."""
    code = Code(f"{r.op}_cube", index)
    out, x = code.buffer("out", r.out), code.buffer("x", r.source)
    pieces, piece = code.place("pieces"), code.place("piece")
    length, offset = code.place("length"), code.place("offset")
    outer, steps = code.places("extent", kept), code.places("stride", kept)
    inner, hops = code.places("length_", reduced), code.places("hop", reduced)
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    o = cube // pieces
    start = (cube - o * pieces) * piece
    base = code.walk(offset, code.coords(o, outer), steps)
    state = State(code, r, index)
    stop = (start + piece).call("min", length)
    with code.loop(start + unit, stop, code.at(UNITS)) as k:
        at = code.walk(base, code.coords(k, inner), hops)
        state.step(element(x[at], r), k)
    state.shelf(UNITS).halve(unit, state)
    with code.when(unit.eq(0)):
        state.store(out, cube)
    return code.finish()


def normal_dims(shape: Ints, dims: Dims) -> Ints:
    """Return the dims that are reduced, in order."""
    if dims is None or not shape:
        return tuple(range(len(shape)))
    return tuple(sorted(dims))


def reduce(engine: Engine, r: Reducer, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Return the reduction of a tensor over dims."""
    key = reduce_gpu.key_of(r, x, dims, keepdim)
    engine.label = r.op
    seen = reduce_cpu.planned(engine, key, x) or reduce_gpu.planned(engine, key, x)
    if seen is not None:
        return seen
    gone = normal_dims(x.shape, dims)
    kept = [k for k in range(len(x.shape)) if k not in gone]
    full = tuple(1 if k in gone else n for k, n in enumerate(x.shape))
    shape = full if keepdim else tuple(x.shape[k] for k in kept)
    ahead = reduce_cpu.first_dims(engine, r, x, gone)
    if ahead:
        part = reduce(engine, r._replace(out=r.acc), x, ahead, True)
        last = r._replace(source=r.acc, middle=r.acc)
        rest = tuple(k for k in gone if k not in ahead)
        return reduce(engine, last, part, rest, True).view(shape, dense(shape))
    count, length = size_of(shape), size_of([x.shape[k] for k in gone])
    if not count:
        return engine.empty(shape, r.out)
    outer, (steps,) = collapse([x.shape[k] for k in kept], [[x.strides[k] for k in kept]])
    inner, (hops,) = collapse([x.shape[k] for k in gone], [[x.strides[k] for k in gone]])
    if length:
        made = reduce_gpu.reduced(engine, r, x, shape, (outer, steps), (inner, hops), key)
        if made is not None:
            return made
    out = engine.empty(shape, r.out)
    start = first_value(r.op, r.acc)
    if reduce_cpu.reduced(engine, r, start, x, out, (outer, steps), (inner, hops), key):
        return out
    index = engine.index_dtype(x, out, count=max(count, length))
    spec = (r, len(outer), len(inner), index)
    tail = [length, x.offset, *outer, *steps, *inner, *hops]
    if length < LONG or count > MANY:
        engine.run(unit_kernel, spec, count, [out.buf, x.buf, count, *tail])
        return out
    pieces = -(-length // PIECE)
    if r.op.startswith("arg") or pieces == 1 or count * pieces > MANY:
        engine.cubes(cube_kernel, spec, count, [out.buf, x.buf, 1, length, *tail])
        return out
    part = engine.empty((count, pieces), r.acc)
    first = r._replace(out=r.acc)
    args = [part.buf, x.buf, pieces, PIECE, *tail]
    engine.cubes(cube_kernel, (first, *spec[1:]), count * pieces, args)
    last = Reducer(r.op, r.acc, r.acc, r.acc, r.out)
    return reduce(engine, last, part, (1,), False).view(shape, dense(shape))


def first_stage(
    engine: Engine, x: CubeTensor, dims: Ints, keepdim: bool, dtype: DType | None, stage: str
) -> CubeTensor:
    """Return what a sum over the first dim and some last ones has after the first of its launches.

    The sum over all these dims of what it returns is the same, bit for bit, as that of x.

    Args:
        engine: the device, a processor.
        x: the operand, floats that are summed in their dtype.
        dims: the last dims; those that are reduced here keep an extent of 1.
        keepdim: True.
        dtype: of the sum.
        stage: `STAGED`.
    """
    r = reducer("sum", x.dtype, dtype)
    assert r is not None and keepdim and stage == STAGED  # noqa: S101 - as the recorder says
    x = engine.solid(x)
    ahead = reduce_cpu.first_dims(engine, r, x, (0, *dims))
    return reduce(engine, r._replace(out=r.acc), x, ahead, True) if ahead else x


# ---- the entries -------------------------------------------------------------------------------


def reducer(name: str, source: DType, dtype: DType | None = None) -> Reducer | None:
    """Return what a reduction of the catalogue does, None for one of another kind.

    Args:
        name: the entry.
        source: dtype of the elements.
        dtype: the attribute of that name.
    """
    if name in ("sum", "prod"):
        target = dtype or (source if source.is_float else d.int64)
        if target.is_bool:  # a sum of bools as a bool is whether there is one
            return Reducer("any" if name == "sum" else "all", source, target, d.bool_, target)
        return Reducer(name, source, target, wide(target), target)
    if name in ("amax", "amin"):
        return Reducer(name[1:], source, source, wide(source), source)
    if name in ("any", "all"):
        out = source if source is d.uint8 else d.bool_
        return Reducer(name, source, source, d.bool_, out)
    if name in ("argmax", "argmin"):
        acc = d.uint8 if source.is_bool else wide(source)
        return Reducer(name, source, acc, acc, d.int64)
    return None


def _accumulated(op: str) -> Callable[..., Any]:
    def make(engine: Engine, source: DType) -> Any:
        known: dict[DType | None, Any] = {}

        def reduced(x: CubeTensor, dims: Dims, keepdim: bool, dtype: DType | None) -> CubeTensor:
            r: Any = known.get(dtype) or known.setdefault(dtype, reducer(op, source, dtype))
            return reduce(engine, r, engine.solid(x), dims, keepdim)

        return reduced

    return make


maker("sum")(_accumulated("sum"))
maker("prod")(_accumulated("prod"))


def _made(engine: Engine, name: str, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    r = reducer(name, x.dtype)
    assert r is not None  # noqa: S101 - names below are those that it knows
    return reduce(engine, r, x, dims, keepdim)


def extreme(engine: Engine, op: str, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Return the maxima or minima over dims."""
    return _made(engine, f"a{op}", x, dims, keepdim)


@kernel("amax")
def amax(engine: Engine, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Maxima; NaN wins."""
    return extreme(engine, "max", x, dims, keepdim)


@kernel("amin")
def amin(engine: Engine, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Minima; NaN wins."""
    return extreme(engine, "min", x, dims, keepdim)


@kernel("any")
def any_(engine: Engine, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Whether an element is not zero."""
    return _made(engine, "any", x, dims, keepdim)


@kernel("all")
def all_(engine: Engine, x: CubeTensor, dims: Dims, keepdim: bool) -> CubeTensor:
    """Whether every element is not zero."""
    return _made(engine, "all", x, dims, keepdim)


def place_of(engine: Engine, op: str, x: CubeTensor, dim: int | None, keepdim: bool) -> CubeTensor:
    """Return the index of the first extreme along a dim, or in the flat tensor for None."""
    r = reducer(op, x.dtype)
    assert r is not None  # noqa: S101 - the catalogue has both
    return reduce(engine, r, x, None if dim is None else (dim,), keepdim)


@kernel("argmax")
def argmax(engine: Engine, x: CubeTensor, dim: int | None, keepdim: bool) -> CubeTensor:
    """Index of the first maximum; NaN wins."""
    return place_of(engine, "argmax", x, dim, keepdim)


@kernel("argmin")
def argmin(engine: Engine, x: CubeTensor, dim: int | None, keepdim: bool) -> CubeTensor:
    """Index of the first minimum; NaN wins."""
    return place_of(engine, "argmin", x, dim, keepdim)


def pair(engine: Engine, op: str, x: CubeTensor, dim: int, keepdim: bool) -> Sequence[CubeTensor]:
    """Return extremes along a dim and their first places."""
    dims = (dim,)
    return extreme(engine, op, x, dims, keepdim), place_of(engine, f"arg{op}", x, dim, keepdim)


@kernel("max_dim")
def max_dim(engine: Engine, x: CubeTensor, dim: int, keepdim: bool) -> Sequence[CubeTensor]:
    """Maxima along a dim and their lowest indices."""
    return pair(engine, "max", x, dim, keepdim)


@kernel("min_dim")
def min_dim(engine: Engine, x: CubeTensor, dim: int, keepdim: bool) -> Sequence[CubeTensor]:
    """Minima along a dim and their lowest indices."""
    return pair(engine, "min", x, dim, keepdim)
