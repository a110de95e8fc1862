"""Reductions over dims: sums, products, extremes, truth, moments and norms.

`ufunc.reduce` is called directly; numpy's functions of the same purpose cost three times as much
on small arrays.
"""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from burn_flex.kernels.cast import converted
from burn_flex.kernels.precision import (
    BF16,
    BOOL,
    F32,
    I64,
    U8,
    Array,
    Fn,
    compute_dtype,
    is_float,
    is_half,
)  # fmt: skip
from burn_flex.table import NATIVE, maker
from burn_std import DType

Dims = tuple[int, ...] | None
# Arguments go by position: keywords cost a fifth of the call on small arrays.
_add: Fn = np.add.reduce
_multiply: Fn = np.multiply.reduce
_maximum: Fn = np.maximum.reduce
_minimum: Fn = np.minimum.reduce

# numpy adds pairwise along the innermost axis only, elsewhere one by one: longer axes are split,
# so that the error hardly grows with the length.
_RUN = 64


def count_of(shape: tuple[int, ...], dims: Dims) -> int:
    """Return how many elements one result of a reduction comes from."""
    if dims is None or not shape:
        return product(shape)
    return product(shape[d] for d in dims)


def total(x: Array, dims: Dims, keepdim: bool, dtype: np.dtype[Any]) -> Any:
    """Return the sum over dims, added in `dtype`."""
    if not x.ndim:
        return x.astype(dtype)
    if x.size > 4096 and dtype.kind == "f" and dims is not None:
        for d in dims:
            while x.shape[d] > 2 * _RUN and abs(x.strides[d]) > x.itemsize and x.ndim > 1:
                x = _folded(x, d, x.shape[d], dtype)
    return _add(x, dims, dtype, None, keepdim)


def _folded(x: Array, d: int, n: int, dtype: np.dtype[Any]) -> Array:
    runs = n // _RUN
    head, tail = np.split(x, [runs * _RUN], d)
    shape = (*x.shape[:d], runs, _RUN, *x.shape[d + 1 :])
    parts = [_add(head.reshape(shape), d + 1, dtype)]
    if tail.shape[d]:
        parts.append(_add(tail, d, dtype, None, True))
    return np.concatenate(parts, d)


def _summed(native: np.dtype[Any], accumulate: Fn) -> Fn:
    """Make a sum or product of `native` that answers in the dtype of the contract."""
    if is_half(native):
        return lambda x, dims, keepdim: accumulate(x, dims, keepdim, F32).astype(native)
    answer = native if is_float(native) else I64
    return lambda x, dims, keepdim: accumulate(x, dims, keepdim, answer)


def _as(dtype: DType, x: Array, dims: Dims, keepdim: bool, accumulate: Fn) -> Any:
    """Accumulate in a dtype that the user chose; x converts first, as in PyTorch."""
    target = NATIVE[dtype]
    if is_half(target):
        exact = x if is_half(x.dtype) and x.dtype == target else converted(x, dtype)
        return accumulate(exact, dims, keepdim, F32).astype(target)
    return accumulate(converted(x, dtype), dims, keepdim, target)


def _multiplied(x: Array, dims: Dims, keepdim: bool, dtype: np.dtype[Any]) -> Any:
    if not x.ndim:
        return x.astype(dtype)
    return _multiply(x, dims, dtype, None, keepdim)


def _reduction(accumulate: Fn) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        plain = _summed(native, accumulate)

        def reduced(x: Array, dims: Dims, keepdim: bool, dtype: DType | None) -> Any:
            if dtype is None:
                return plain(x, dims, keepdim)
            return _as(dtype, x, dims, keepdim, accumulate)

        return reduced

    return make


maker("sum", checked=True)(_reduction(total))
maker("prod", checked=True)(_reduction(_multiplied))


def average(x: Array, dims: Dims, keepdim: bool) -> Any:
    """Return the mean in the compute dtype of x; of nothing it is NaN."""
    out = total(x, dims, keepdim, compute_dtype(x.dtype))
    out /= count_of(x.shape, dims)
    return out


@maker("mean", checked=True)
def mean(native: np.dtype[Any]) -> Fn:
    """Sum over count; halves are added and divided in f32."""

    def averaged(x: Array, dims: Dims, keepdim: bool, dtype: DType | None) -> Any:
        if dtype is not None:
            x = converted(x, dtype)
        out = average(x, dims, keepdim)
        return out if out.dtype == x.dtype else out.astype(x.dtype)

    return averaged


def _extreme(reduce: Fn) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        def reduced(x: Array, dims: Dims, keepdim: bool) -> Any:
            if not x.ndim:
                return x
            if not x.size and not count_of(x.shape, dims):
                raise ValueError("an empty axis has no extreme")
            return reduce(x, dims, None, None, keepdim)

        if native == BF16:  # exact, and quiet where ml_dtypes' loops are not
            return lambda x, dims, keepdim: reduced(x.astype(F32), dims, keepdim).astype(BF16)
        return reduced

    return make


amax = _extreme(_maximum)
amin = _extreme(_minimum)
maker("amax", checked=True, quiet=True)(amax)
maker("amin", checked=True, quiet=True)(amin)


def _truth(reduce: Fn) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        def reduced(x: Array, dims: Dims, keepdim: bool) -> Any:
            if not x.ndim:
                return x.astype(BOOL)
            return reduce(x, dims, None, None, keepdim)

        if native == U8:
            return lambda x, dims, keepdim: reduced(x, dims, keepdim).astype(U8)
        if native == BF16:
            return lambda x, dims, keepdim: reduced(x.astype(BOOL), dims, keepdim)
        return reduced

    return make


maker("any", checked=True, quiet=True)(_truth(np.logical_or.reduce))
maker("all", checked=True, quiet=True)(_truth(np.logical_and.reduce))


@maker("count_nonzero", checked=True, quiet=True)
def count_nonzero(native: np.dtype[Any]) -> Fn:
    """How many are not zero; NaN counts."""

    def counted(x: Array, dims: Dims, keepdim: bool) -> Any:
        if dims is None and not keepdim:
            return np.int64(np.count_nonzero(x))
        return total(x.astype(BOOL), dims, keepdim, I64)

    return counted


# ---- one dim -----------------------------------------------------------------------------------


def arg_extreme(name: str, x: Array, dim: int | None, keepdim: bool) -> Any:
    """Return the index of the first maximum or minimum; NaN wins (argmax, argmin of numpy)."""
    if not x.ndim:
        return np.zeros((), I64)
    if x.dtype == BF16:
        x = x.astype(F32)
    return getattr(x, name)(dim, keepdims=keepdim)


def _arg(name: str) -> Fn:
    return lambda native: lambda x, dim, keepdim: arg_extreme(name, x, dim, keepdim)


maker("argmax", checked=True, quiet=True)(_arg("argmax"))
maker("argmin", checked=True, quiet=True)(_arg("argmin"))


def _pair(name: str, extreme: Fn) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        values = extreme(native)

        def both(x: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
            if not x.ndim:
                return x, np.zeros((), I64)
            return values(x, (dim,), keepdim), arg_extreme(name, x, dim, keepdim)

        return both

    return make


maker("max_dim", checked=True, quiet=True)(_pair("argmax", amax))
maker("min_dim", checked=True, quiet=True)(_pair("argmin", amin))

# ---- moments and norms of floats ---------------------------------------------------------------


@maker("var", checked=True)
def var(native: np.dtype[Any]) -> Fn:
    """Two passes: the mean, then the squares of what differs from it."""

    def spread(x: Array, dims: Dims, keepdim: bool, correction: float) -> Any:
        calm = x.astype(compute_dtype(native), copy=False)
        away = np.subtract(calm, average(calm, dims, True))
        away *= away
        out = total(np.asarray(away), dims, keepdim, calm.dtype)
        out /= max(0, count_of(x.shape, dims) - correction)
        return out.astype(native, copy=False)

    return spread


@maker("logsumexp", checked=True)
def logsumexp(native: np.dtype[Any]) -> Fn:
    """log(sum(exp(x - m))) + m, m the maximum where it is finite: rows of one infinity work."""

    def logged(x: Array, dims: Dims, keepdim: bool) -> Any:
        calm = x.astype(compute_dtype(native), copy=False)
        if not x.ndim:
            return x
        top = _maximum(calm, dims, None, None, True, -np.inf)
        top = np.where(np.isfinite(top), top, calm.dtype.type(0))
        t = np.subtract(calm, top)
        np.exp(t, t)
        out = np.log(total(t, dims, keepdim, t.dtype))
        out += top if keepdim else top.reshape(out.shape)
        return out.astype(native, copy=False)

    return logged


def _norm(x: Array, dims: Dims, keepdim: bool, order: float) -> Any:
    if order == 2:
        return np.sqrt(total(np.square(x), dims, keepdim, x.dtype))
    if order == 0:
        return total(x.astype(BOOL), dims, keepdim, x.dtype)
    size = np.abs(x)
    if order in (np.inf, -np.inf):
        reduce = _maximum if order > 0 else _minimum
        return reduce(size, dims, None, None, keepdim) if x.ndim else size
    if order == 1:
        return total(size, dims, keepdim, x.dtype)
    return np.power(total(np.power(size, order), dims, keepdim, x.dtype), 1 / order)


@maker("vector_norm")
def vector_norm(native: np.dtype[Any]) -> Fn:
    """(sum |x|^ord)^(1/ord); ord 0 counts, the infinities take extremes."""

    def normed(x: Array, dims: Dims, keepdim: bool, ord: float) -> Any:
        out = _norm(x.astype(compute_dtype(native), copy=False), dims, keepdim, ord)
        return out.astype(native, copy=False)

    return normed
