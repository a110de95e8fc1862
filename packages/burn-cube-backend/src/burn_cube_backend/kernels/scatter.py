"""Writing at indices: scatter, index_put, index_add and the adjoint of a table.

A write outside its dim is dropped, noted and raised at the next sync. One unit walks all positions
that may meet in one element, one after the other: duplicates all count, the last of several
assignments wins, and the order of additions is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_strides, collapse, size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.index import Window, taken
from burn_cube_backend.kernels.maps import HALVES, combine, converted, copied, wide, write
from burn_cube_backend.kernels.writers import Target, Walk, put
from burn_cube_backend.late import Late
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


def combining(engine: Engine, x: CubeTensor, mode: str) -> tuple[CubeTensor, DType]:
    """Return a copy of x to combine into: halves combine in float32 and round once."""
    dtype = d.float32 if mode != "assign" and x.dtype in HALVES else x.dtype
    return copied(engine, x, dtype), dtype


@kernel("scatter")
def scatter(
    engine: Engine, x: CubeTensor, index: CubeTensor, src: CubeTensor, dim: int, mode: str
) -> CubeTensor:
    """x with src combined at index along dim."""
    out, _ = combining(engine, x, mode)
    if not index.size or not x.size:
        if index.size:
            _watch_all(engine, "scatter", index, dim, x.shape[dim])
        return converted(engine, out, x.dtype)
    shape, steps = index.shape or (1,), index.strides or (0,)
    places, sources = out.strides or (0,), src.strides or (0,)
    size = x.shape[dim] if x.shape else 1
    rest = [k for k in range(len(shape)) if k != dim]

    def along(strides: Ints) -> Ints:
        return tuple(strides[k] for k in rest) or (0,)

    lines = Walk(
        tuple(shape[k] for k in rest) or (1,), along(places), along(sources), [along(steps)]
    )
    inner = Walk((shape[dim],), (0,), (sources[dim],), [(steps[dim],)])
    target = Target(index, engine.site("scatter", dim, size), size, places[dim])
    put(engine, out, src, [target], lines, inner, mode, False)
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
    lines, (own, outer) = collapse(
        [out.shape[k] for k in w.rest], [[out.strides[k] for k in w.rest], src_outer]
    )
    window, (inner, *steps) = collapse(w.window, [strides[w.at : end], *w.indices])
    targets = [
        Target(i, engine.site(op, k, out.shape[k], negative), out.shape[k], out.strides[k])
        for i, k in zip(indices, dims, strict=True)
    ]
    still = [(0,) * len(lines) for _ in indices]
    put(
        engine, out, value, targets, Walk(lines, own, outer, still),
        Walk(window, (0,) * len(window), inner, list(steps)), mode, negative,
    )  # fmt: skip


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
    # A number that changes from run to run decides nothing here.
    if isinstance(alpha, Late) or alpha != 1:
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
