"""References of reductions, scans and sorts."""

from __future__ import annotations

from functools import cmp_to_key
from math import isnan
from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle

Dims = tuple[int, ...] | None


def _axes(x: Array, dims: Dims) -> Dims:
    return dims if x.ndim or not dims else ()


def _wide(x: Array, dtype: Any) -> Array:
    if dtype is not None and dtype.is_float:
        return x.astype(np.float64)
    return x if x.dtype.kind == "f" else x.astype(np.int64)


@oracle("sum")
def sum_(x: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    """Integers in int64."""
    return np.asarray(_wide(x, dtype).sum(_axes(x, dims), keepdims=keepdim))


@oracle("prod")
def prod(x: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    """Integers in int64."""
    return np.asarray(_wide(x, dtype).prod(_axes(x, dims), keepdims=keepdim))


@oracle("amax")
def amax(x: Array, dims: Dims, keepdim: bool) -> Array:
    """NaN wins."""
    return np.asarray(x.max(_axes(x, dims), keepdims=keepdim))


@oracle("argmax")
def argmax(x: Array, dim: int | None, keepdim: bool) -> Array:
    """The first NaN, else the lowest index of the largest."""
    if dim is None or not x.ndim:
        found = np.array(x.reshape(-1).argmax())
        return found.reshape((1,) * x.ndim) if keepdim else found
    return np.asarray(x.argmax(dim, keepdims=keepdim))


@oracle("cumsum")
def cumsum(x: Array, dim: int, dtype: Any) -> Array:
    """Integers in int64."""
    wide = _wide(x, dtype)
    return wide.cumsum(dim) if x.ndim else wide


@oracle("cumprod")
def cumprod(x: Array, dim: int, dtype: Any) -> Array:
    """Integers in int64."""
    wide = _wide(x, dtype)
    return wide.cumprod(dim) if x.ndim else wide


@oracle("sort")
def sort(x: Array, dim: int, descending: bool) -> list[Array]:
    """By Python's own stable sort, NaN above everything."""
    if not x.ndim:
        return [x, np.array(0)]
    rows = np.moveaxis(x, dim, -1)
    order = np.empty(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()

        def compare(i: int, j: int, row: list[Any] = row) -> int:
            a, b = row[i], row[j]
            if isinstance(a, float) and (isnan(a) or isnan(b)):
                sign = int(isnan(a)) - int(isnan(b))
            else:
                sign = int(a > b) - int(a < b)
            return -sign if descending else sign

        order[at] = sorted(range(len(row)), key=cmp_to_key(compare))
    order = np.moveaxis(order, -1, dim)
    return [np.take_along_axis(x, order, dim), order]
