"""Reductions and scans written in sum, prod, amax, argmax, sort and maps."""

from __future__ import annotations

from math import inf

from burn_ir.catalog.decompose import (
    Ints,
    Ops,
    Tensor,
    along,
    count_up,
    counted,
    in_f32,
    placed,
    to_dtype,
    wide_dtype,
    window,
    zero_of,
    zeros,
)
from burn_std import DType
from burn_std.dtypes import int64, uint8


def mean(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool, dtype: DType | None) -> Tensor:
    """Return sum / count; an empty axis gives 0 / 0."""
    out = dtype or x.dtype
    wide = wide_dtype(out)
    total = ops.sum(to_dtype(ops, x, wide), dims, keepdim, wide)
    return to_dtype(ops, ops.div(total, counted(x, dims)), out)


def _mirrored(ops: Ops, x: Tensor) -> Tensor:
    # Flipping the bits reverses the order of integers and cannot overflow as negation does.
    return ops.neg(x) if x.dtype.is_float else ops.bitwise_not(x)


def amin(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool) -> Tensor:
    """Return amax of the mirrored values, mirrored back."""
    return _mirrored(ops, ops.amax(_mirrored(ops, x), dims, keepdim))


def argmin(ops: Ops, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """Return argmax of the mirrored values; NaN stays NaN and wins."""
    return ops.argmax(_mirrored(ops, x), dim, keepdim)


def count_nonzero(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool) -> Tensor:
    """Return the sum of truths."""
    return ops.sum(ops.ne(x, zero_of(x)), dims, keepdim, int64)


def any_(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool) -> Tensor:
    """Return whether some element is not zero; u8 for u8."""
    found = ops.lt(0, count_nonzero(ops, x, dims, keepdim))
    return ops.cast(found, uint8) if x.dtype is uint8 else found


def all_(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool) -> Tensor:
    """Return whether no element is zero; u8 for u8."""
    missing = ops.sum(ops.eq(x, zero_of(x)), dims, keepdim, int64)
    held = ops.eq(missing, 0)
    return ops.cast(held, uint8) if x.dtype is uint8 else held


def _picked(ops: Ops, x: Tensor, index: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return x at `index`, which has extent 1 along dim, and the index."""
    values = ops.gather(x, index, dim)
    if keepdim or not x.shape:
        return values, index
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return ops.reshape(values, shape), ops.reshape(index, shape)


def _numbers(ops: Ops, x: Tensor) -> Tensor:
    return ops.cast(x, uint8) if x.dtype.is_bool else x


def max_dim(ops: Ops, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return x at its argmax, and the argmax."""
    return _picked(ops, x, ops.argmax(_numbers(ops, x), dim, True), dim, keepdim)


def min_dim(ops: Ops, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return x at its argmin, and the argmin."""
    return _picked(ops, x, ops.argmin(_numbers(ops, x), dim, True), dim, keepdim)


def median_dim(ops: Ops, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return the lower median by sorting; NaN sorts last and wins when there is one."""
    if not x.shape:
        return x, zeros(ops, int64, ())
    n = x.shape[dim]
    values, order = ops.sort(x, dim, False)
    nans = ops.sum(ops.isnan(x), (dim,), True, int64)
    place = ops.where(ops.lt(0, nans), ops.sub(n, nans), (n - 1) // 2)
    index = ops.gather(order, place, dim)
    value = ops.gather(values, place, dim)
    if keepdim:
        return value, index
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return ops.reshape(value, shape), ops.reshape(index, shape)


@in_f32()
def var(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool, correction: float) -> Tensor:
    """Return sum (x - mean)^2 / max(0, n - correction)."""
    n = counted(x, dims)
    centre = ops.div(ops.sum(x, dims, True, x.dtype), n)
    total = ops.sum(ops.square(ops.sub(x, centre)), dims, keepdim, x.dtype)
    return ops.div(total, max(0, n - correction))


@in_f32()
def logsumexp(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool) -> Tensor:
    """Return log(sum(exp(x - m))) + m for the maximum m; an infinite m is not subtracted."""
    if counted(x, dims) == 0:
        return ops.log(ops.sum(ops.exp(x), dims, keepdim, x.dtype))
    peak = ops.amax(x, dims, True)
    peak = ops.where(ops.isfinite(peak), peak, 0.0)
    total = ops.log(ops.sum(ops.exp(ops.sub(x, peak)), dims, keepdim, x.dtype))
    return ops.add(total, ops.reshape(peak, total.shape))


@in_f32()
def vector_norm(ops: Ops, x: Tensor, dims: Ints | None, keepdim: bool, ord: float) -> Tensor:
    """Return (sum |x|^ord)^(1/ord), or the largest, the smallest or the number of non-zeros."""
    if ord == 0:
        return ops.sum(ops.cast(ops.ne(x, 0), x.dtype), dims, keepdim, x.dtype)
    size = ops.abs(x)
    if ord == inf:
        return ops.amax(size, dims, keepdim)
    if ord == -inf:
        return ops.amin(size, dims, keepdim)
    if ord == 1:
        return ops.sum(size, dims, keepdim, x.dtype)
    if ord == 2:
        return ops.sqrt(ops.sum(ops.square(x), dims, keepdim, x.dtype))
    return ops.pow(ops.sum(ops.pow(size, ord), dims, keepdim, x.dtype), 1 / ord)


def _running(ops: Ops, x: Tensor, dim: int, wins: str) -> tuple[Tensor, Tensor]:
    """Return a running extreme by doubling: step s joins every element with the one s before.

    The later element wins ties and, being NaN, everything; an earlier NaN wins over numbers.
    """
    if not x.shape:
        return x, zeros(ops, int64, ())
    n, rank = x.shape[dim], len(x.shape)
    index = ops.expand(placed(ops, count_up(ops, n), dim, rank), x.shape)
    values, step = x, 1
    while step < n:
        before = window(ops, values, dim, 0, n - step)
        before_at = window(ops, index, dim, 0, n - step)
        late = window(ops, values, dim, step, n)
        late_at = window(ops, index, dim, step, n)
        keep = ops.bitwise_or(getattr(ops, wins)(late, before), ops.isnan(late))
        joined = ops.where(keep, late, before)
        joined_at = ops.where(keep, late_at, before_at)
        values = ops.cat((window(ops, values, dim, 0, step), joined), dim)
        index = ops.cat((window(ops, index, dim, 0, step), joined_at), dim)
        step *= 2
    return values, index


def cummax(ops: Ops, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the running maximum and its last index."""
    return _running(ops, x, dim, "ge")


def cummin(ops: Ops, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the running minimum and its last index."""
    return _running(ops, x, dim, "le")


def topk(
    ops: Ops, x: Tensor, dim: int, largest: bool, sorted: bool, k: int
) -> tuple[Tensor, Tensor]:
    """Return the first k of a stable sort."""
    if not x.shape:
        return (x, zeros(ops, int64, ()))
    values, order = ops.sort(x, dim, largest)
    return window(ops, values, dim, 0, k), window(ops, order, dim, 0, k)


def softmax(ops: Ops, x: Tensor, dim: int, dtype: DType | None) -> Tensor:
    """Return exp(x - max) over its sum; a row of all -inf gives NaN."""
    out = dtype or x.dtype
    x = to_dtype(ops, x, wide_dtype(out))
    if 0 in x.shape:
        return to_dtype(ops, x, out)
    dims = along(x, dim)
    e = ops.exp(ops.sub(x, ops.amax(x, dims, True)))
    return to_dtype(ops, ops.div(e, ops.sum(e, dims, True, e.dtype)), out)


def log_softmax(ops: Ops, x: Tensor, dim: int, dtype: DType | None) -> Tensor:
    """Return x - max - log(sum(exp(x - max)))."""
    out = dtype or x.dtype
    x = to_dtype(ops, x, wide_dtype(out))
    if 0 in x.shape:
        return to_dtype(ops, x, out)
    dims = along(x, dim)
    low = ops.sub(x, ops.amax(x, dims, True))
    total = ops.sum(ops.exp(low), dims, True, low.dtype)
    return to_dtype(ops, ops.sub(low, ops.log(total)), out)
