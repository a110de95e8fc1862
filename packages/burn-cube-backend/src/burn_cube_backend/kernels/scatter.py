"""Writing at indices: scatter, index_put, index_add and the adjoint of a table.

A write outside its dim is dropped, noted and raised at the next sync. One unit walks all positions
that may meet in one element, one after the other: duplicates all count, the last of several
assignments wins, and the order of additions is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_strides, collapse, size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.index import Watch, Window, taken
from burn_cube_backend.kernels.maps import HALVES, combine, converted, copied, wide, write
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


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


def put_at(
    engine: Engine, op: str, out: CubeTensor, value: CubeTensor, indices: Sequence[CubeTensor],
    dims: Ints, mode: str, negative: bool,
) -> None:  # fmt: skip
    """Combine a value, broadcast to the window, into a dense tensor that nobody else reads."""
    w = Window(out.shape, indices, dims)
    if not size_of(w.window) or not size_of([out.shape[k] for k in w.rest]) or not out.size:
        return
    strides = broadcast_strides(value.shape, value.strides, w.shape)
    end = w.at + len(w.window)
    src_outer = [*strides[: w.at], *strides[end:]]
    lines, (targets, outer) = collapse(
        [out.shape[k] for k in w.rest], [[out.strides[k] for k in w.rest], src_outer]
    )
    window, (inner, *steps) = collapse(w.window, [strides[w.at : end], *w.indices])
    count, length, n = size_of(lines), size_of(window), len(indices)
    places = engine.index_dtype(out, value, *indices, count=max(out.size, length))
    args = [
        out.buf, value.buf, *[i.buf for i in indices], engine.record(), count, length,
        *[engine.site(op, k, out.shape[k], negative) for k in dims],
        *[out.shape[k] for k in dims], *[out.strides[k] for k in dims],
        *[i.offset for i in indices], value.offset, *lines, *targets, *outer,
        *[0] * (n * len(lines)), *window, *[0] * len(window), *inner,
        *[s for step in steps for s in step],
    ]  # fmt: skip
    kinds = tuple(i.dtype for i in indices)
    spec = (mode, out.dtype, value.dtype, kinds, negative, len(lines), len(window), places)
    engine.run(put_kernel, spec, count, args)


@kernel("index_put")
def index_put(
    engine: Engine, x: CubeTensor, value: CubeTensor, indices: Sequence[CubeTensor], dims: Ints,
    accumulate: bool,
) -> CubeTensor:  # fmt: skip
    """x with value assigned or added at integer arrays on dims."""
    mode = "add" if accumulate else "assign"
    out, _ = combining(engine, x, mode)
    put_at(engine, "index_put", out, value, indices, dims, mode, True)
    return converted(engine, out, x.dtype)


@kernel("index_add")
def index_add(
    engine: Engine, x: CubeTensor, index: CubeTensor, src: CubeTensor, dim: int, alpha: float
) -> CubeTensor:
    """x with alpha * slices of src added along a dim."""
    out, dtype = combining(engine, x, "add")
    if alpha != 1:
        factor = filled(engine, dtype, (), alpha)
        src = combine(engine, "mul", converted(engine, src, dtype), factor)
    flat = index.view((index.size,), index.strides or (1,))
    target = out if x.shape else out.view((1,), (1,))
    source = src if src.shape else src.view((1,), (1,))
    put_at(engine, "index_add", target, source, [flat], (dim,), "add", False)
    return converted(engine, out, x.dtype)


@kernel("embedding_backward")
def embedding_backward(
    engine: Engine, g: CubeTensor, index: CubeTensor, padding_idx: int | None, rows: int
) -> CubeTensor:
    """Sums of the rows of g per index, [rows, features]; the padding row stays 0."""
    features = g.shape[-1]
    out = filled(engine, wide(g.dtype), (rows, features), 0)
    put_at(engine, "embedding_backward", out, g, [index], (0,), "add", False)
    if padding_idx is not None and out.size:
        row = out.view((features,), (1,), padding_idx * features)
        write(engine, row, filled(engine, out.dtype, (), 0))
    return converted(engine, out, g.dtype)
