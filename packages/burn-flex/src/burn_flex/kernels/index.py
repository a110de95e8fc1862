"""Reading at indices: gather, index_select, integer-array indexing, tables, masks, counts.

An index outside its dim raises, naming operation, dim, index and size. Only `index` (and
`index_put`) count negative indices from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from burn_flex.kernels.precision import F32, F64, I64, U64, Array
from burn_flex.table import kernel
from burn_std import IndexRangeError


def out_of_range(
    op: str, dim: int, bad: int, size: int, *, negative: bool = False
) -> IndexRangeError:
    """Return the error that names operation, dim, index and size."""
    low = -size if negative else 0
    return IndexRangeError(
        op, f"indices along dim {dim} must be in [{low}, {size - 1}]",
        got=f"index {bad} for size {size}",
    )  # fmt: skip


def checked(op: str, index: Array, dim: int, size: int) -> Array:
    """Return the index as int64 with all values in [0, size), or raise."""
    if index.dtype != I64:
        if index.dtype == U64 and index.size and int(index.max()) >= size:
            raise out_of_range(op, dim, int(index.max()), size)
        index = index.astype(I64)
    # Read as unsigned, a negative index is too large: one reduction checks both bounds.
    if index.size and np.maximum.reduce(index.view(U64), None) >= size:
        wrong = index[(index < 0) | (index >= size)]
        raise out_of_range(op, dim, int(wrong[0]) if index.ndim else int(index), size)
    return index


def flat_index(shape: tuple[int, ...], index: Array, dim: int) -> Array:
    """Return positions, in a row-major array of `shape`, of what index names along dim.

    Off dim, an element of index stands for its own coordinates; there index may be smaller.
    """
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    flat = index * strides[dim]
    for d, n in enumerate(index.shape):
        if d != dim and n > 1:
            offsets = np.arange(0, n * strides[d], strides[d], dtype=I64) if strides[d] else 0
            flat += np.reshape(offsets, (-1,) + (1,) * (index.ndim - d - 1))
    return flat


def along(x: Array, index: Array, dim: int) -> Array:
    """Return x at a valid index along dim."""
    if x.ndim == 1:
        return x[index]
    return x.reshape(-1).take(flat_index(x.shape, index, dim))


@kernel("gather", quiet=True)
def gather(x: Array, index: Array, dim: int) -> Array:
    """x at index along dim."""
    if not index.size:
        return np.empty(index.shape, x.dtype)
    index = checked("gather", index, dim, x.shape[dim] if x.ndim else 1)
    if not x.ndim or not index.ndim:
        return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    return along(x, index, dim)


@kernel("index_select", quiet=True)
def index_select(x: Array, index: Array, dim: int) -> Array:
    """Slices of x along a dim."""
    if not x.ndim:
        checked("index_select", index, 0, 1)
        return x
    return x.take(checked("index_select", index, dim, x.shape[dim]).reshape(-1), dim)


@kernel("embedding", quiet=True)
def embedding(weight: Array, index: Array, padding_idx: int | None) -> Array:
    """Rows of a table; padding_idx concerns the gradient alone."""
    return weight.take(checked("embedding", index, 0, weight.shape[0]), 0)


@kernel("one_hot", quiet=True)
def one_hot(index: Array, num_classes: int) -> Array:
    """1 at the index, else 0."""
    index = checked("one_hot", index, index.ndim, num_classes)
    out = np.zeros((index.size, num_classes), I64)
    out[np.arange(index.size), index.reshape(-1)] = 1
    return out.reshape(*index.shape, num_classes)


def index_key(indices: Sequence[Array], dims: tuple[int, ...]) -> tuple[Any, ...]:
    """Return numpy's key with integer arrays on dims and everything elsewhere."""
    key: list[Any] = [slice(None)] * (max(dims) + 1 if dims else 0)
    for d, i in zip(dims, indices, strict=True):
        key[d] = i
    return tuple(key)


def check_wrapped(op: str, x: Array, indices: Sequence[Array], dims: tuple[int, ...]) -> None:
    """Raise for the first index outside [-size, size)."""
    for d, i in zip(dims, indices, strict=True):
        size = x.shape[d]
        wrong = (i >= size) | (i < -size) if i.dtype.kind == "i" else i >= size
        if np.any(wrong):
            raise out_of_range(op, d, int(np.asarray(i)[wrong][0]), size, negative=True)


@kernel("index", quiet=True)
def index(x: Array, indices: Sequence[Array], dims: tuple[int, ...]) -> Any:
    """numpy's integer-array indexing."""
    try:
        return x[index_key(indices, dims)]
    except IndexError:
        # numpy has checked already; only the words are missing.
        check_wrapped("index", x, indices, dims)
        raise


@kernel("nonzero", checked=True, quiet=True)
def nonzero(x: Array) -> Array:
    """Coordinates of elements that are not zero, [n, rank]."""
    if not x.ndim:
        return np.zeros((int(x.astype(bool)), 0), I64)
    return np.stack(x.nonzero(), 1)


@kernel("masked_select", checked=True, quiet=True)
def masked_select(x: Array, mask: Array) -> Array:
    """Elements of x where mask, [n]."""
    return x.reshape(-1)[mask.reshape(-1)]


@kernel("bincount", quiet=True)
def bincount(x: Array, weights: Array | None, length: int) -> Array:
    """How often each value below `length` occurs, or the sums of its weights."""
    x = checked("bincount", x, 0, length)
    if weights is None:
        return np.bincount(x, None, length)
    out = np.bincount(x, weights.astype(F64), length)
    return out.astype(F32) if weights.dtype == F32 else out
