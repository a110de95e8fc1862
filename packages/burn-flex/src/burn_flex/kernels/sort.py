"""Order: sort, topk, median, and what follows from sorted values.

NaN is the largest value, equal values keep the order of their positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_flex.kernels.index import along
from burn_flex.kernels.precision import BF16, BOOL, F32, I64, U8, U32, U64, Array, Fn, is_float
from burn_flex.table import kernel

# Below this many elements numpy's stable sort is quicker than making keys.
_FEW = 1024
_LOW = np.array(0xFFFFFFFF, U64)
_HIGH = np.array(32, U64)


def _comparable(x: Array) -> Array:
    """Return x in a dtype that numpy sorts natively; the order stays."""
    if x.dtype == BF16:
        return x.astype(F32)
    return x.view(U8) if x.dtype == BOOL else x


def _ordered_bits(x: Array) -> Array:
    """Return u32 values in the order of x, a dtype of at most 32 bits; NaN is the largest."""
    if not is_float(x.dtype):
        if x.dtype.kind == "i":
            return x.astype(np.int32).view(U32) ^ np.uint32(1 << 31)
        return x.astype(U32)
    bits: Array = np.where(np.isnan(x), F32.type(np.nan), x.astype(F32) + F32.type(0)).view(U32)
    # Negative floats order backwards: all their bits flip, of positive ones only the sign.
    flips = (bits.view(np.int32) >> 31).view(U32)
    flips |= np.uint32(1 << 31)
    bits ^= flips
    return bits


def _packed(x: Array, dim: int, descending: bool) -> Array | None:
    """Return distinct u64 keys, the value above the position, whose plain order is the stable one.

    numpy sorts and selects them with vector instructions, ten times as fast as it sorts stably.
    None where that does not pay or 64-bit values leave no room for the position.
    """
    if x.size < _FEW or x.dtype.itemsize > 4 or x.shape[dim] >= 1 << 32:
        return None
    bits = _ordered_bits(x)
    keys = (~bits if descending else bits).astype(U64)
    keys <<= _HIGH
    keys |= np.arange(x.shape[dim], dtype=U64).reshape((-1,) + (1,) * (x.ndim - dim - 1))
    return keys


def _position(keys: Array) -> Array:
    keys &= _LOW
    return keys.view(I64)


def _stable_order(x: Array, dim: int, descending: bool) -> Any:
    key = _comparable(x)
    if not descending:
        return key.argsort(dim, kind="stable")
    # Stable from the far end, then read backwards: NaN comes first, ties by position.
    back = (slice(None),) * dim + (slice(None, None, -1),)
    order = key[back].argsort(dim, kind="stable")[back]
    return np.subtract(x.shape[dim] - 1, order)


@kernel("sort", checked=True, quiet=True)
def sort(x: Array, dim: int, descending: bool) -> tuple[Any, Any]:
    """(values, indices), stable; descending keeps the lowest index first among equals."""
    if not x.ndim:
        return x, np.zeros((), I64)
    keys = _packed(x, dim, descending)
    if keys is None:
        order = _stable_order(x, dim, descending)
    else:
        keys.sort(dim)
        order = _position(keys)
    return along(x, order, dim), order


@kernel("topk", quiet=True)
def topk(x: Array, dim: int, largest: bool, ordered: bool, k: int) -> tuple[Any, Any]:
    """(values, indices) of the k largest or smallest, in order even where that is not asked."""
    if not x.ndim:
        shape = () if k else (0,)
        return x.reshape(1)[:k].reshape(shape), np.zeros(shape, I64)
    first = (slice(None),) * dim + (slice(k),)
    keys = _packed(x, dim, largest)
    if keys is None or not k:
        order = _stable_order(x, dim, largest)[first]
    else:
        keys.partition(k - 1, dim)
        keys = keys[first]
        keys.sort(dim)
        order = _position(keys)
    return along(x, order, dim), order


@kernel("median_dim", quiet=True)
def median_dim(x: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """(values, indices) of the lower median; the first NaN where there is one."""
    if not x.ndim:
        return x, np.zeros((), I64)
    at = (x.shape[dim] - 1) // 2
    middle = (slice(None),) * dim + (slice(at, at + 1),)
    keys = _packed(x, dim, False)
    if keys is None:
        index = _stable_order(x, dim, False)[middle]
    else:
        keys.partition(at, dim)
        index = _position(keys[middle])
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
