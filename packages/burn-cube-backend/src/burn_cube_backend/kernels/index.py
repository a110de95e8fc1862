"""Reading at indices, and what depends on data.

A read outside its dim reads the nearest element; it is noted and raised at the next sync, when
validation is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
)
from burn_cube_backend.kernels.index_rows import read_rows
from burn_cube_backend.kernels.maps import copied
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


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
    site = engine.site(op, dim, size)
    if not out.size:
        return out
    if engine.client.name == "cpu":
        extents, (own, walk) = collapse(shape, [strides, steps])
        target = (site, size, hop)
        read_rows(engine, out, x, [index], [target], (extents, [own, walk]), False)
        return out
    places = engine.index_dtype(x, index, out, count=out.size)
    args = [
        out.buf, x.buf, index.buf, engine.record(), out.size, size, hop,
        site, x.offset, index.offset, *shape, *strides, *steps,
    ]  # fmt: skip
    engine.run(gather_kernel, (x.dtype, index.dtype, len(shape), places), out.size, args)
    return out


@kernel("gather")
def gather(engine: Engine, x: CubeTensor, index: CubeTensor, dim: int) -> CubeTensor:
    """x at index along dim."""
    return taken(engine, "gather", x, index, dim)


# ---- numpy's indexing --------------------------------------------------------------------------


def index_kernel(
    dtype: DType, kinds: tuple[DType, ...], negative: bool, rank: int, index: DType
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
            place, _ = watch.inside(raw, sizes[k], sites[k], negative)
            at = at + place * hops[k]
        out[i] = x[at]
    return code.finish()


class Window:
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


def read_at(
    engine: Engine, op: str, x: CubeTensor, indices: Sequence[CubeTensor], dims: Ints,
    negative: bool,
) -> CubeTensor:  # fmt: skip
    """Return x at integer arrays on dims; `negative` ones count from the end."""
    w = Window(x.shape, indices, dims)
    out = engine.empty(w.shape, x.dtype)
    if not out.size:
        return out
    # Dims that every operand walks in one stride are one dim: rows of a table are two in all.
    own = (0,) * len(w.rest)
    operands = [
        w.spread([x.strides[k] for k in w.rest], (0,) * len(w.window)),
        *[w.spread(own, i) for i in w.indices],
    ]
    extents, (strides, *steps) = collapse(w.shape, operands)
    sites = [engine.site(op, k, x.shape[k], negative) for k in dims]
    if engine.client.name == "cpu":
        targets = [(site, x.shape[k], x.strides[k]) for site, k in zip(sites, dims, strict=True)]
        read_rows(engine, out, x, indices, targets, (extents, [strides, *steps]), negative)
        return out
    kinds = tuple(i.dtype for i in indices)
    places = engine.index_dtype(x, out, *indices, count=out.size)
    args = [
        out.buf, x.buf, *[i.buf for i in indices], engine.record(), out.size, *sites,
        *[x.shape[k] for k in dims], *[x.strides[k] for k in dims], *[i.offset for i in indices],
        x.offset, *extents, *strides, *[s for step in steps for s in step],
    ]  # fmt: skip
    engine.run(index_kernel, (x.dtype, kinds, negative, len(extents), places), out.size, args)
    return out


@kernel("index")
def index(engine: Engine, x: CubeTensor, indices: Sequence[CubeTensor], dims: Ints) -> CubeTensor:
    """numpy's integer-array indexing."""
    return read_at(engine, "index", x, indices, dims, True)


@kernel("index_select")
def index_select(engine: Engine, x: CubeTensor, index: CubeTensor, dim: int) -> CubeTensor:
    """Slices of x along a dim."""
    flat = index.view((index.size,), index.strides or (1,))
    if not x.shape:
        picked = read_at(engine, "index_select", x.view((1,), (1,)), [flat], (0,), False)
        return picked.view((), ())
    return read_at(engine, "index_select", x, [flat], (dim,), False)


@kernel("embedding")
def embedding(
    engine: Engine, weight: CubeTensor, index: CubeTensor, padding_idx: int | None
) -> CubeTensor:
    """Rows of a table; padding_idx concerns the gradient alone."""
    return read_at(engine, "embedding", weight, [index], (0,), False)


def one_hot_kernel(kind: DType, rank: int, index: DType) -> Kernel:
    """Write 1 where the number of the class is the index, else 0."""
    code = Code("one_hot", index)
    out, at = code.buffer("out", d.int64), code.buffer("index", kind)
    watch = Watch(code)
    count, classes, start = code.place("count"), code.place("classes"), code.place("start")
    site = code.scalar("site", d.int32)
    extents, steps = code.places("extent", rank), code.places("step", rank)
    with code.each(count) as i:
        element = i // classes
        raw = at[code.walk(start, code.coords(element, extents), steps)]
        place, good = watch.inside(raw, classes, site, False)
        out[i] = (good & place.eq(i - element * classes)).cast(d.int64)
    return code.finish()


@kernel("one_hot")
def one_hot(engine: Engine, index: CubeTensor, num_classes: int) -> CubeTensor:
    """1 at the index, else 0."""
    out = engine.empty((*index.shape, num_classes), d.int64)
    if out.size:
        places = engine.index_dtype(index, out, count=out.size)
        site = engine.site("one_hot", len(index.shape), num_classes)
        shape, strides = index.shape or (1,), index.strides or (0,)
        args = [
            out.buf, index.buf, engine.record(), out.size, num_classes, index.offset, site,
            *shape, *strides,
        ]  # fmt: skip
        engine.run(one_hot_kernel, (index.dtype, len(shape), places), out.size, args)
    return out


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
