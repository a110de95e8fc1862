"""Views, shifts, tiles, triangles and padding written in slices, index arithmetic and joins."""

from __future__ import annotations

from burn_ir.catalog.decompose import (
    Ints,
    Ops,
    Tensor,
    count_up,
    moved,
    placed,
    window,
    zero_of,
    zeros,
)

Pads = tuple[tuple[int, int], ...]


def squeeze(ops: Ops, x: Tensor, dims: Ints) -> Tensor:
    """Return x reshaped without the named dims."""
    return ops.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in dims))


def select(ops: Ops, x: Tensor, dim: int, index: int) -> Tensor:
    """Return a window of extent 1 without its dim."""
    return ops.squeeze(window(ops, x, dim, index, index + 1), (dim,))


def unsqueeze(ops: Ops, x: Tensor, dims: Ints) -> Tensor:
    """Return x reshaped with dims of size 1 at ascending positions."""
    shape = list(x.shape)
    for d in dims:
        shape.insert(d, 1)
    return ops.reshape(x, tuple(shape))


def flip(ops: Ops, x: Tensor, dims: Ints) -> Tensor:
    """Return a slice with negative steps."""
    if not x.shape:
        return ops.reshape(x, ())
    back = [i in dims for i in range(len(x.shape))]
    return ops.slice(
        x,
        tuple(-1 if b else 1 for b in back),
        tuple(n - 1 if b else 0 for b, n in zip(back, x.shape, strict=True)),
        tuple(-1 if b else n for b, n in zip(back, x.shape, strict=True)),
    )


def _diagonal_at(
    ops: Ops, shape: Ints, dim1: int, dim2: int, offset: int
) -> tuple[tuple[Tensor, Tensor], Ints, int]:
    """Return the indices of a diagonal, the two dims ascending, and where `index` puts it."""
    n, m = shape[dim1], shape[dim2]
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    rows = count_up(ops, length, max(0, -offset))
    columns = count_up(ops, length, max(0, offset))
    pair = (rows, columns) if dim1 < dim2 else (columns, rows)
    dims = (min(dim1, dim2), max(dim1, dim2))
    return pair, dims, dims[0] if dims[1] == dims[0] + 1 else 0


def diagonal(ops: Ops, x: Tensor, dim1: int, dim2: int, offset: int) -> Tensor:
    """Return x at (i, i + offset), moved to the last dim."""
    pair, dims, at = _diagonal_at(ops, x.shape, dim1, dim2, offset)
    found = ops.index(x, pair, dims)
    rank = len(found.shape)
    return ops.permute(found, moved(rank, at, rank - 1))


def diagonal_backward(
    ops: Ops, g: Tensor, dim1: int, dim2: int, shape: Ints, offset: int
) -> Tensor:
    """Return zeros of `shape` with g put on the diagonal."""
    pair, dims, at = _diagonal_at(ops, shape, dim1, dim2, offset)
    rank = len(g.shape)
    value = ops.permute(g, moved(rank, rank - 1, at))
    return ops.index_put(zeros(ops, g.dtype, shape), value, pair, dims, False)


def _windows(ops: Ops, extent: int, size: int, step: int) -> Tensor:
    """Return the positions [windows, size] of sliding windows."""
    starts = count_up(ops, (extent - size) // step + 1, 0, step)
    return ops.add(placed(ops, starts, 0, 2), placed(ops, count_up(ops, size), 1, 2))


def unfold_dim(ops: Ops, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Return x at the positions of every window, the window moved to the last dim."""
    if not x.shape:
        return window(ops, ops.reshape(x, (1,)), 0, 0, size)
    found = ops.index(x, (_windows(ops, x.shape[dim], size, step),), (dim,))
    rank = len(found.shape)
    return ops.permute(found, moved(rank, dim + 1, rank - 1))


def unfold_dim_backward(ops: Ops, g: Tensor, dim: int, size: int, step: int, shape: Ints) -> Tensor:
    """Return zeros of `shape` with every window of g added at its positions."""
    if not shape:
        return ops.sum(g, None, False, g.dtype)
    rank = len(g.shape)
    value = ops.permute(g, moved(rank, rank - 1, dim + 1))
    at = _windows(ops, shape[dim], size, step)
    return ops.index_put(zeros(ops, g.dtype, shape), value, (at,), (dim,), True)


def slice_backward(
    ops: Ops, g: Tensor, steps: Ints, starts: Ints, stops: Ints, shape: Ints
) -> Tensor:
    """Return zeros of `shape` with g assigned to the window."""
    return ops.slice_assign(zeros(ops, g.dtype, shape), g, steps, starts, stops)


def roll(ops: Ops, x: Tensor, dims: Ints, shifts: Ints) -> Tensor:
    """Return x with its tail joined before its head, along each dim in turn."""
    for dim, shift in zip(dims, shifts, strict=True):
        n = x.shape[dim] if x.shape else 0
        cut = -shift % n if n else 0
        if cut:
            x = ops.cat((window(ops, x, dim, cut, n), window(ops, x, dim, 0, cut)), dim)
    return x


def repeat(ops: Ops, x: Tensor, repeats: Ints) -> Tensor:
    """Return x expanded along a new dim before each of its own, then flattened together."""
    shape = (1,) * (len(repeats) - len(x.shape)) + tuple(x.shape)
    apart: list[int] = []
    wide: list[int] = []
    for n, r in zip(shape, repeats, strict=True):
        apart += [1, n]
        wide += [r, n]
    tiled = ops.expand(ops.reshape(x, tuple(apart)), tuple(wide))
    return ops.reshape(tiled, tuple(n * r for n, r in zip(shape, repeats, strict=True)))


def _below(ops: Ops, x: Tensor, diagonal: int) -> Tensor:
    """Return the mask of the last two dims where column <= row + diagonal."""
    rows, columns = x.shape[-2:]
    row = placed(ops, count_up(ops, rows, diagonal), 0, 2)
    return ops.le(placed(ops, count_up(ops, columns), 1, 2), row)


def tril(ops: Ops, x: Tensor, diagonal: int) -> Tensor:
    """Return x on and below a diagonal, else 0."""
    return ops.where(_below(ops, x, diagonal), x, zero_of(x))


def triu(ops: Ops, x: Tensor, diagonal: int) -> Tensor:
    """Return x on and above a diagonal, else 0."""
    return ops.where(_below(ops, x, diagonal - 1), zero_of(x), x)


def _source(ops: Ops, mode: str, extent: int, before: int, after: int) -> Tensor:
    """Return, for every element of a padded dim, the element it copies."""
    if mode == "circular":
        # What is cropped is gone before anything wraps around.
        crop, kept = max(-before, 0), extent + min(before, 0) + min(after, 0)
        at = count_up(ops, extent + before + after, -max(before, 0))
        return ops.add(ops.remainder(at, kept), crop)
    at = count_up(ops, extent + before + after, -before)
    if mode == "replicate":
        return ops.clamp(at, 0, extent - 1)
    # Reflected at 0 by |i|, at the far end by the same about extent - 1.
    return ops.sub(extent - 1, ops.abs(ops.sub(extent - 1, ops.abs(at))))


def pad(ops: Ops, x: Tensor, mode: str, pads: Pads, value: float) -> Tensor:
    """Return x in a larger tensor of `value`, or x at the elements that each place copies."""
    if mode != "constant":
        for dim, (before, after) in enumerate(pads):
            if before or after:
                at = _source(ops, mode, x.shape[dim], before, after)
                x = ops.index(x, (at,), (dim,))
        return x
    ones = (1,) * len(pads)
    # A pad so negative that it crops past the other end leaves an empty window.
    starts = tuple(min(n, max(0, -a)) for n, (a, _) in zip(x.shape, pads, strict=True))
    stops = tuple(
        max(s, n - max(0, -b)) for s, n, (_, b) in zip(starts, x.shape, pads, strict=True)
    )
    inner = ops.slice(x, ones, starts, stops)
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True))
    if tuple(inner.shape) == shape:
        return inner
    offsets = tuple(min(max(0, a), n) for n, (a, _) in zip(shape, pads, strict=True))
    ends = tuple(o + n for o, n in zip(offsets, inner.shape, strict=True))
    base = ops.full(x.dtype, shape, bool(value) if x.dtype.is_bool else value)
    return ops.slice_assign(base, inner, ones, offsets, ends)


def pad_backward(ops: Ops, g: Tensor, mode: str, pads: Pads) -> Tensor:
    """Return the adjoint: crop for constant, else add every place to the element it copied."""
    if mode == "constant":
        return ops.pad(g, mode, tuple((-a, -b) for a, b in pads), 0)
    for dim, (before, after) in reversed(tuple(enumerate(pads))):
        if before or after:
            extent = g.shape[dim] - before - after
            at = _source(ops, mode, extent, before, after)
            shape = tuple(extent if i == dim else n for i, n in enumerate(g.shape))
            g = ops.index_put(zeros(ops, g.dtype, shape), g, (at,), (dim,), True)
    return g
