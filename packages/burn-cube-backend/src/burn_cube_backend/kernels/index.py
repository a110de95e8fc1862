"""Reading and writing at indices.

A read outside its dim reads the nearest element, a write is dropped; both are noted and raised at
the next sync, when validation is on. Writers walk the positions that may meet in one element one
after the other, in one unit: duplicates all count, the last of several assignments wins, and the
order of additions is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    size_of,
)
from burn_cube_backend.kernels.maps import HALVES, converted, copied
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


class Watch:
    """The fault record of a kernel that takes indices."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.record = code.buffer("record", d.int32)

    def inside(self, raw: Val, size: Val, site: Val, negative: bool) -> tuple[Val, Val]:
        """Return the place of an index and whether it is inside; the place is clamped."""
        code = self.code
        at = raw.cast(d.int64)
        size = size.cast(d.int64)
        if negative:
            at = (at < 0).pick(at + size, at)
        good = (at >= 0) & (at < size)
        with code.when(~good & (site > 0)):
            self._note(raw, site)
        place = at.call("min", size - 1).call("max", 0).cast(code.index)
        return place, good

    def _note(self, raw: Val, site: Val) -> None:
        code, b = self.code, self.code.b
        zero = code.const(0, d.int32)
        old = Val(code, b.atomic_cas(self.record.op, code.at(0).op, zero.op, site.op))
        with code.when(old.eq(0)):
            far = raw.cast(d.int64).call("min", 2**31 - 1).call("max", -(2**31))
            self.record[code.at(1)] = far.cast(d.int32)


def gather_kernel(dtype: DType, kind: DType, rank: int, index: DType) -> Kernel:
    """Write `out[c] = x[c with index[c] on dim]`; `hop` is the stride of dim."""
    code = Code("gather", index)
    out, x, at = code.buffer("out", dtype), code.buffer("x", dtype), code.buffer("index", kind)
    watch = Watch(code)
    count, size, hop = code.place("count"), code.place("size"), code.place("hop")
    site = code.scalar("site", d.int32)
    offset, start = code.place("offset"), code.place("start")
    extents = code.places("extent", rank)
    strides, steps = code.places("stride", rank), code.places("step", rank)
    with code.each(count) as i:
        coords = code.coords(i, extents)
        raw = at[code.walk(start, coords, steps)]
        place, _ = watch.inside(raw, size, site, False)
        out[i] = x[code.walk(offset, coords, strides) + place * hop]
    return code.finish()


def taken(engine: Engine, op: str, x: CubeTensor, index: CubeTensor, dim: int) -> CubeTensor:
    """Return x at index along dim, in the shape of the index."""
    out = engine.empty(index.shape, x.dtype)
    if not x.shape:
        x = x.view((1,), (0,))
    size, hop = x.shape[dim], x.strides[dim]
    shape = index.shape or (1,)
    steps = index.strides or (0,)
    strides = [0 if k == dim else s for k, s in enumerate(x.strides)][: len(shape)]
    places = engine.index_dtype(x, index, out, count=out.size)
    args = [
        out.buf, x.buf, index.buf, engine.record(), out.size, size, hop,
        engine.site(op, dim, size), x.offset, index.offset, *shape, *strides, *steps,
    ]  # fmt: skip
    if out.size:
        engine.run(gather_kernel, (x.dtype, index.dtype, len(shape), places), out.size, args)
    return out


@kernel("gather")
def gather(engine: Engine, x: CubeTensor, index: CubeTensor, dim: int) -> CubeTensor:
    """x at index along dim."""
    return taken(engine, "gather", x, index, dim)


# ---- numpy's indexing --------------------------------------------------------------------------


def index_kernel(
    dtype: DType, kinds: tuple[DType, ...], kept: int, rank: int, index: DType
) -> Kernel:
    """Write x at integer arrays on some dims: result dims are kept ones and those of the window.

    Parameters after the buffers: count; per index its site, size, stride of x, offset; then the
    offset of x; extents of result dims; strides of x along them; strides of each index.
    """
    code = Code("index", index)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(kinds)]
    watch = Watch(code)
    count = code.place("count")
    sites = [code.scalar(f"site{k}", d.int32) for k in range(len(kinds))]
    sizes, hops = code.places("size", len(kinds)), code.places("hop", len(kinds))
    starts = code.places("start", len(kinds))
    offset = code.place("offset")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    steps = [code.places(f"step{k}_", rank) for k in range(len(kinds))]
    with code.each(count) as i:
        coords = code.coords(i, extents)
        at = code.walk(offset, coords, strides)
        for k, buffer in enumerate(buffers):
            raw = buffer[code.walk(starts[k], coords, steps[k])]
            place, _ = watch.inside(raw, sizes[k], sites[k], True)
            at = at + place * hops[k]
        out[i] = x[at]
    return code.finish()


class _Window:
    """Where the window of integer arrays stands among the dims of the result."""

    def __init__(self, shape: Ints, indices: Sequence[CubeTensor], dims: Ints) -> None:
        self.rest = [k for k in range(len(shape)) if k not in dims]
        adjacent = all(b == a + 1 for a, b in pairwise(dims))
        self.at = dims[0] if adjacent and dims else 0
        self.window = broadcast_shape([i.shape for i in indices])
        kept = [shape[k] for k in self.rest]
        self.shape = (*kept[: self.at], *self.window, *kept[self.at :])
        self.indices = [broadcast_strides(i.shape, i.strides, self.window) for i in indices]

    def spread(self, own: Sequence[int], window: Sequence[int]) -> Ints:
        """Return one number per result dim from those of the kept dims and of the window."""
        return (*own[: self.at], *window, *own[self.at :])


@kernel("index")
def index(engine: Engine, x: CubeTensor, indices: Sequence[CubeTensor], dims: Ints) -> CubeTensor:
    """numpy's integer-array indexing."""
    w = _Window(x.shape, indices, dims)
    out = engine.empty(w.shape, x.dtype)
    if not out.size:
        return out
    zeros, rank = (0,) * len(w.window), max(len(w.shape), 1)
    own = (0,) * len(w.rest)
    strides = w.spread([x.strides[k] for k in w.rest], zeros) or (0,)
    steps = [s for i in w.indices for s in (w.spread(own, i) or (0,))]
    kinds = tuple(i.dtype for i in indices)
    places = engine.index_dtype(x, out, *indices, count=out.size)
    args = [
        out.buf, x.buf, *[i.buf for i in indices], engine.record(), out.size,
        *[engine.site("index", k, x.shape[k], True) for k in dims],
        *[x.shape[k] for k in dims], *[x.strides[k] for k in dims], *[i.offset for i in indices],
        x.offset, *(w.shape or (1,)), *strides, *steps,
    ]  # fmt: skip
    engine.run(index_kernel, (x.dtype, kinds, len(w.rest), rank, places), out.size, args)
    return out


# ---- writers -----------------------------------------------------------------------------------


def put_kernel(
    mode: str, dtype: DType, source: DType, kinds: tuple[DType, ...], negative: bool, lines: int,
    rank: int, index: DType,
) -> Kernel:  # fmt: skip
    """Write the combination of a source with x at indices.

    Each unit owns one line: what no other unit writes. It walks the positions of the source that
    fall into its line in order. Parameters after the buffers: count of lines, length of a line;
    per index its site, size, stride of out, offset; offset of the source; extents of lines, strides
    of out, source and each index along them; the same for the positions.
    """
    code = Code(f"put_{mode}", index)
    out, src = code.buffer("out", dtype), code.buffer("source", source)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(kinds)]
    watch = Watch(code)
    n = len(kinds)
    count, length = code.place("count"), code.place("length")
    sites = [code.scalar(f"site{k}", d.int32) for k in range(n)]
    sizes, hops = code.places("size", n), code.places("hop", n)
    starts = code.places("start", n)
    offset = code.place("offset")
    outer = code.places("line", lines)
    out_outer, src_outer = code.places("out_line", lines), code.places("src_line", lines)
    index_outer = [code.places(f"index_line{k}_", lines) for k in range(n)]
    inner = code.places("position", rank)
    out_inner, src_inner = code.places("out_step", rank), code.places("src_step", rank)
    index_inner = [code.places(f"index_step{k}_", rank) for k in range(n)]
    with code.each(count) as i:
        line = code.coords(i, outer)
        base = code.walk(code.at(0), line, out_outer)
        from_ = code.walk(offset, line, src_outer)
        heads = [code.walk(starts[k], line, index_outer[k]) for k in range(n)]
        with code.loop(0, length) as p:
            coords = code.coords(p, inner)
            at = code.walk(base, coords, out_inner)
            good: Val | None = None
            for k, buffer in enumerate(buffers):
                raw = buffer[code.walk(heads[k], coords, index_inner[k])]
                place, fine = watch.inside(raw, sizes[k], sites[k], negative)
                at = at + place * hops[k]
                good = fine if good is None else good & fine
            value = src[code.walk(from_, coords, src_inner)].cast(dtype)
            if good is None:
                _combine(out, at, value, mode)
            else:
                with code.when(good):
                    _combine(out, at, value, mode)
    return code.finish()


def _combine(out: Buf, at: Val, value: Val, mode: str) -> None:
    if mode == "assign":
        out[at] = value
        return
    old = out[at]
    if value.dtype.is_bool:
        name = "or" if mode in ("add", "amax") else "and"
    else:
        name = {"add": "add", "multiply": "mul", "amin": "min", "amax": "max"}[mode]
    out[at] = old.call(name, value)


def combining(engine: Engine, x: CubeTensor, mode: str) -> tuple[CubeTensor, DType]:
    """Return a copy of x to combine into: halves combine in float32 and round once."""
    dtype = d.float32 if mode != "assign" and x.dtype in HALVES else x.dtype
    return copied(engine, x, dtype), dtype


@kernel("scatter")
def scatter(
    engine: Engine, x: CubeTensor, index: CubeTensor, src: CubeTensor, dim: int, mode: str
) -> CubeTensor:
    """x with src combined at index along dim."""
    out, dtype = combining(engine, x, mode)
    if not index.size or not x.size:
        if index.size:
            _watch_all(engine, "scatter", index, dim, x.shape[dim])
        return converted(engine, out, x.dtype)
    shape = index.shape or (1,)
    steps = index.strides or (0,)
    targets = out.strides or (0,)
    sources = (src.strides or (0,))[: len(shape)]
    size = x.shape[dim] if x.shape else 1
    rest = [k for k in range(len(shape)) if k != dim]
    lines = [shape[k] for k in rest] or [1]
    zero = [0] if not rest else []
    places = engine.index_dtype(x, out, src, index, count=max(out.size, index.size))
    args = [
        out.buf, src.buf, index.buf, engine.record(), size_of(lines), shape[dim],
        engine.site("scatter", dim, size), size, targets[dim], index.offset, src.offset, *lines,
        *[targets[k] for k in rest], *zero, *[sources[k] for k in rest], *zero,
        *[steps[k] for k in rest], *zero, shape[dim], 0, sources[dim], steps[dim],
    ]  # fmt: skip
    spec = (mode, dtype, src.dtype, (index.dtype,), False, len(lines), 1, places)
    engine.run(put_kernel, spec, size_of(lines), args)
    return converted(engine, out, x.dtype)


def _watch_all(engine: Engine, op: str, index: CubeTensor, dim: int, size: int) -> None:
    """Note indices into a dim in which there is nothing to write."""
    nothing = engine.empty((max(size, 1),), d.uint8)
    taken(engine, op, nothing.view((size,), (1,)), index.view((index.size,), (1,)), 0)


@kernel("index_put")
def index_put(
    engine: Engine, x: CubeTensor, value: CubeTensor, indices: Sequence[CubeTensor], dims: Ints,
    accumulate: bool,
) -> CubeTensor:  # fmt: skip
    """x with value assigned or added at integer arrays on dims."""
    mode = "add" if accumulate else "assign"
    out, dtype = combining(engine, x, mode)
    w = _Window(x.shape, indices, dims)
    length, count = size_of(w.window), size_of([x.shape[k] for k in w.rest])
    if not length or not count or not out.size:
        return converted(engine, out, x.dtype)
    strides = broadcast_strides(value.shape, value.strides, w.shape)
    end = w.at + len(w.window)
    src_outer = [*strides[: w.at], *strides[end:]]
    src_inner = list(strides[w.at : end])
    lines, targets = [x.shape[k] for k in w.rest], [out.strides[k] for k in w.rest]
    if not lines:
        lines, targets, src_outer = [1], [0], [0]
    window, zeros = list(w.window), [0] * len(w.window)
    steps = [list(i) for i in w.indices]
    if not window:
        window, zeros, src_inner, steps = [1], [0], [0], [[0] for _ in steps]
    places = engine.index_dtype(x, out, value, *indices, count=max(out.size, length))
    args = [
        out.buf, value.buf, *[i.buf for i in indices], engine.record(), count, length,
        *[engine.site("index_put", k, x.shape[k], True) for k in dims],
        *[x.shape[k] for k in dims], *[out.strides[k] for k in dims],
        *[i.offset for i in indices], value.offset, *lines, *targets, *src_outer,
        *[0 for _ in indices for _ in lines], *window, *zeros, *src_inner,
        *[s for step in steps for s in step],
    ]  # fmt: skip
    kinds = tuple(i.dtype for i in indices)
    spec = (mode, dtype, value.dtype, kinds, True, len(lines), len(window), places)
    engine.run(put_kernel, spec, count, args)
    return converted(engine, out, x.dtype)


# ---- sizes that depend on data -----------------------------------------------------------------


def nonzero_kernel(rank: int, index: DType) -> Kernel:
    """Write the coordinates of flagged elements at the places that the running count gives."""
    code = Code("nonzero", index)
    out, flags, running = (
        code.buffer("out", d.int64), code.buffer("flags", d.bool_), code.buffer("running", d.int64)
    )  # fmt: skip
    count = code.place("count")
    extents = code.places("extent", rank)
    with code.each(count) as i, code.when(flags[i]):
        at = (running[i] - 1).cast(index) * rank
        for k, c in enumerate(code.coords(i, extents)):
            out[at + k] = c.cast(d.int64)
    return code.finish()


@kernel("nonzero", checked=True)
def nonzero(engine: Engine, x: CubeTensor) -> CubeTensor:
    """Coordinates of elements that are not zero, [n, rank]; waits for their number."""
    from burn_cube_backend.kernels.scan import scanned

    flags = copied(engine, x, d.bool_)
    if not x.size:
        return engine.empty((0, len(x.shape)), d.int64)
    flat = flags.view((x.size,), (1,))
    running = scanned(engine, "sum", flat, 0, d.int64, d.int64)
    n = int(engine.to_numpy(running.view((), (), running.offset + x.size - 1)))
    out = engine.empty((n, len(x.shape)), d.int64)
    if out.size:
        index = engine.index_dtype(x, out, count=x.size)
        args = [out.buf, flags.buf, running.buf, x.size, *x.shape]
        engine.run(nonzero_kernel, (len(x.shape), index), x.size, args)
    return out
