"""Indexing written in gather, scatter, index and index_put."""

from __future__ import annotations

from math import prod

from burn_ir.catalog.decompose import (
    Ints,
    Ops,
    Tensor,
    placed,
    to_dtype,
    window,
    zeros,
)
from burn_std.dtypes import bool_, float32, float64, int64


def _spread(ops: Ops, x: Tensor, index: Tensor, dim: int) -> Tensor:
    """Return a rank-1 index expanded so that `gather` takes whole slices."""
    n = prod(index.shape)
    flat = ops.reshape(index, (n,))
    shape = tuple(n if i == dim else e for i, e in enumerate(x.shape))
    return ops.expand(placed(ops, flat, dim, len(shape)), shape)


def index_select(ops: Ops, x: Tensor, index: Tensor, dim: int) -> Tensor:
    """Return gather with the index repeated over every other dim."""
    if not x.shape:
        flat = ops.index_select(ops.reshape(x, (1,)), index, 0)
        return ops.reshape(flat, ()) if flat.shape == (1,) else x
    return ops.gather(x, _spread(ops, x, index, dim), dim)


def index_add(ops: Ops, x: Tensor, index: Tensor, src: Tensor, dim: int, alpha: float) -> Tensor:
    """Return scatter-add of alpha * src with the index repeated over every other dim."""
    src = src if alpha == 1 else ops.mul(src, alpha)
    base = x if x.shape else ops.reshape(x, (1,))
    at = _spread(ops, base, index, dim)
    added = ops.scatter(base, at, ops.reshape(src, at.shape), dim, "add")
    return added if x.shape else ops.reshape(added, ())


def embedding(ops: Ops, weight: Tensor, index: Tensor, padding_idx: int | None) -> Tensor:
    """Return rows of weight, in the shape of the index."""
    flat = ops.reshape(index, (prod(index.shape),))
    rows = ops.index_select(weight, flat, 0)
    return ops.reshape(rows, (*index.shape, weight.shape[1]))


def embedding_backward(
    ops: Ops, g: Tensor, index: Tensor, padding_idx: int | None, rows: int
) -> Tensor:
    """Return rows of g added up per index in f32 or wider; the padding row gets nothing."""
    n, features = prod(index.shape), g.shape[-1]
    wide = float32 if g.dtype.is_float and g.dtype.bits == 16 else g.dtype
    flat, at = to_dtype(ops, ops.reshape(g, (n, features)), wide), ops.reshape(index, (n,))
    if padding_idx is not None:
        pads = ops.reshape(ops.eq(at, padding_idx), (n, 1))
        flat = ops.where(pads, 0.0, flat)
    total = ops.index_add(zeros(ops, wide, (rows, features)), at, flat, 0, 1)
    return to_dtype(ops, total, g.dtype)


def one_hot(ops: Ops, index: Tensor, num_classes: int) -> Tensor:
    """Return ones scattered into zeros, so that an index out of range is found."""
    at = ops.reshape(index, (*index.shape, 1))
    base = zeros(ops, int64, (*index.shape, num_classes))
    ones = ops.full(int64, at.shape, 1)
    return ops.scatter(base, at, ones, len(index.shape), "assign")


def searchsorted(ops: Ops, sorted: Tensor, values: Tensor, right: bool) -> Tensor:
    """Return how many elements come before each value; NaN comes after everything."""
    n, m = sorted.shape[-1], values.shape[-1] if values.shape else 1
    batch = tuple(sorted.shape[:-1])
    if not batch:
        shape = (*values.shape, 1)
        before = ops.reshape(sorted, (1,) * len(values.shape) + (n,))
    else:
        shape = (*batch, m, 1)
        before = ops.reshape(sorted, (*batch, 1, n))
    value = ops.reshape(values, shape)
    stays = ops.lt(value, before) if right else ops.le(value, before)
    return ops.sum(ops.bitwise_not(stays), (len(shape) - 1,), False, int64)


def bincount(ops: Ops, x: Tensor, weights: Tensor | None, length: int) -> Tensor:
    """Return ones, or the weights, added up per value."""
    if weights is None:
        src = ops.full(int64, x.shape, 1)
    else:
        src = to_dtype(ops, weights, weights.dtype if weights.dtype is float32 else float64)
    return ops.index_add(zeros(ops, src.dtype, (length,)), x, src, 0, 1)


def masked_select(ops: Ops, x: Tensor, mask: Tensor) -> Tensor:
    """Return x at the coordinates where mask is true."""
    if not x.shape:
        x, mask = ops.reshape(x, (1,)), ops.reshape(mask, (1,))
    found = ops.nonzero(to_dtype(ops, mask, bool_))
    count, rank = found.shape
    where = tuple(ops.reshape(window(ops, found, 1, d, d + 1), (count,)) for d in range(rank))
    return ops.index(x, where, tuple(range(rank)))


def max_pool_backward(
    ops: Ops, g: Tensor, indices: Tensor, kernel: Ints, stride: Ints, padding: Ints,
    dilation: Ints, shape: Ints,
) -> Tensor:  # fmt: skip
    """Return zeros of `shape` with g added at the flat indices of each plane."""
    batch, inner = tuple(shape[:2]), prod(shape[2:])
    n = prod(g.shape[2:])
    base = zeros(ops, g.dtype, (*batch, inner))
    flat = ops.reshape(g, (*batch, n))
    total = ops.scatter(base, ops.reshape(indices, (*batch, n)), flat, 2, "add")
    return ops.reshape(total, shape)


def pool_gather(ops: Ops, x: Tensor, indices: Tensor) -> Tensor:
    """Return x at the flat indices of each plane."""
    batch, n = tuple(x.shape[:2]), prod(indices.shape[2:])
    flat = ops.reshape(x, (*batch, prod(x.shape[2:])))
    found = ops.gather(flat, ops.reshape(indices, (*batch, n)), 2)
    return ops.reshape(found, indices.shape)
