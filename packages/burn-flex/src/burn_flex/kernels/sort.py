"""Order: sort, topk, median, and what follows from sorted values.

NaN is the largest value, equal values keep the order of their positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_flex.kernels.index import along
from burn_flex.kernels.precision import BF16, BOOL, F32, I64, U8, Array, Fn, is_float
from burn_flex.table import kernel


def _comparable(x: Array) -> Array:
    """Return x in a dtype that numpy sorts natively; the order stays."""
    if x.dtype == BF16:
        return x.astype(F32)
    return x.view(U8) if x.dtype == BOOL else x


def order_of(x: Array, dim: int, descending: bool) -> Any:
    """Return the stable order along a dim; descending keeps the lowest index first on ties."""
    key = _comparable(x)
    if not descending:
        return key.argsort(dim, kind="stable")
    # Stable from the far end, then read backwards: NaN comes first, ties by position.
    back = (slice(None),) * dim + (slice(None, None, -1),)
    order = key[back].argsort(dim, kind="stable")[back]
    return np.subtract(x.shape[dim] - 1, order)


@kernel("sort", checked=True, quiet=True)
def sort(x: Array, dim: int, descending: bool) -> tuple[Any, Any]:
    """(values, indices), stable."""
    if not x.ndim:
        return x, np.zeros((), I64)
    order = order_of(x, dim, descending)
    return along(x, order, dim), order


def _leading(x: Array, k: int, largest: bool) -> Array | None:
    """Return the positions of the k leading values along the last dim, in order of position.

    One selection instead of a sort. None where NaN makes comparisons useless.
    """
    key = _comparable(x)
    if is_float(x.dtype) and np.isnan(key).any():
        return None
    n = key.shape[-1]
    at = n - k if largest else k - 1
    edge = np.partition(key, at, -1)[..., at : at + 1]
    better = key > edge if largest else key < edge
    equal = key == edge
    room = k - np.add.reduce(better, -1, I64, keepdims=True)
    # Of the values equal to the last one that fits, the lowest positions.
    better |= equal & (np.add.accumulate(equal, -1, I64) <= room)
    return np.nonzero(better)[-1].reshape(*x.shape[:-1], k)


@kernel("topk", quiet=True)
def topk(x: Array, dim: int, largest: bool, ordered: bool, k: int) -> tuple[Any, Any]:
    """(values, indices) of the k largest or smallest, in order even where that is not asked."""
    if not x.ndim:
        shape = () if k else (0,)
        return x.reshape(1)[:k].reshape(shape), np.zeros(shape, I64)
    n = x.shape[dim]
    if 0 < k < n // 4 and n >= 256:
        last = np.moveaxis(x, dim, -1)
        found = _leading(last, k, largest)
        if found is not None:
            values = along(last, found, last.ndim - 1)
            order = order_of(values, last.ndim - 1, largest)
            values, found = (along(a, order, last.ndim - 1) for a in (values, found))
            return np.moveaxis(values, -1, dim), np.moveaxis(found, -1, dim)
    order = order_of(x, dim, largest)[(slice(None),) * dim + (slice(k),)]
    return along(x, order, dim), order


@kernel("median_dim", quiet=True)
def median_dim(x: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """(values, indices) of the lower median; the first NaN where there is one."""
    if not x.ndim:
        return x, np.zeros((), I64)
    middle = (slice(None),) * dim + (slice((x.shape[dim] - 1) // 2, (x.shape[dim] + 1) // 2),)
    index = order_of(x, dim, False)[middle]
    if is_float(x.dtype):
        nan = np.isnan(x)
        index = np.where(nan.any(dim, keepdims=True), nan.argmax(dim, keepdims=True), index)
    values = along(x, index, dim)
    if keepdim:
        return values, index
    return values.squeeze(dim), index.squeeze(dim)


@kernel("searchsorted", quiet=True)
def searchsorted(ordered: Array, values: Array, right: bool) -> Any:
    """Where values would be inserted to keep the order: on the left, or right of equal ones."""
    ordered, values = _comparable(ordered), _comparable(values)
    if ordered.ndim == 1:
        return ordered.searchsorted(values, "right" if right else "left")
    # All rows at once: bisection with one step per bit of the length.
    low = np.zeros(values.shape, I64)
    high = np.full(values.shape, ordered.shape[-1], I64)
    rest = values.ndim - 1
    for _ in range(ordered.shape[-1].bit_length()):
        open_ = low < high
        middle = (low + high) >> 1
        at = along(ordered, np.where(open_, middle, 0), rest)
        # Written as "not beyond", so that NaN goes to the end.
        beyond = at > values if right else at >= values
        low = np.where(open_ & ~beyond, middle + 1, low)
        high = np.where(open_ & beyond, middle, high)
    return low


@kernel("unique", checked=True, quiet=True)
def unique(x: Array, return_inverse: bool, return_counts: bool) -> list[Any]:
    """Sorted distinct values, then the inverse and the counts where asked; NaN equals nothing."""
    distinct: Fn = np.unique
    found = distinct(
        _comparable(x), return_inverse=return_inverse, return_counts=return_counts, equal_nan=False
    )
    out = list(found) if isinstance(found, tuple) else [found]
    out[0] = out[0].astype(x.dtype, copy=False)
    if return_inverse:
        out[1] = out[1].reshape(x.shape)
    return out
