"""Softmax and the normalisations; halves compute in float32, statistics of halves stay there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burn_flex.kernels.halves import HALVES, Array, up, wide
from burn_flex.table import kernel, native
from burn_std import DType

Ints = tuple[int, ...]


def _softmax_input(x: Array, dtype: DType | None) -> tuple[Array, np.dtype[np.generic]]:
    """Return x in the dtype to compute in, and the dtype of the result."""
    target = x.dtype if dtype is None else native(dtype)
    return x.astype(np.float32 if target in HALVES else target, copy=False), target


def shifted(x: Array, dim: int) -> Array:
    """Return a fresh x - max(x); a row of -inf gives NaN, as the formula says."""
    out: Array = x - x.max(axis=dim, keepdims=True)
    return out


@kernel("softmax")
def softmax(x: Array, dim: int, dtype: DType | None) -> Array:
    """exp(x - max) / sum along dim; a row of -inf is NaN."""
    work, target = _softmax_input(x, dtype)
    if not work.size:
        return work.astype(target)
    rows = work.reshape(1) if work.ndim == 0 else work
    out = shifted(rows, dim)
    np.exp(out, out=out)
    out /= out.sum(axis=dim, keepdims=True)
    return out.reshape(work.shape).astype(target, copy=False)


@kernel("log_softmax")
def log_softmax(x: Array, dim: int, dtype: DType | None) -> Array:
    """x - max - log(sum(exp(x - max))) along dim."""
    work, target = _softmax_input(x, dtype)
    if not work.size:
        return work.astype(target)
    rows = work.reshape(1) if work.ndim == 0 else work
    out = shifted(rows, dim)
    out -= np.log(np.exp(out).sum(axis=dim, keepdims=True))
    return out.reshape(work.shape).astype(target, copy=False)


def _mean(x: Array, axes: Ints, dtype: Any = None) -> Array:
    """Return the mean over axes, kept as 1; NaN over nothing (ndarray.mean would warn)."""
    total: Array = x.sum(axis=axes, keepdims=True, dtype=dtype)
    total /= prod(x.shape[a] for a in axes)
    return total


def _moments(x: Array, axes: Ints) -> tuple[Array, Array, Array]:
    """Return (x - mean, mean, biased variance), the last two in float64 when float32 overflows.

    Squares of values beyond 1.8e19 are inf in float32; the rare case is found by its result and
    computed again.
    """
    mean = _mean(x, axes)
    centred = x - mean
    var = _mean(np.square(centred), axes)
    if x.dtype == np.float32 and x.size and not np.isfinite(var).all() and np.isfinite(x).all():
        mean = _mean(x, axes, np.float64)
        centred = x - mean
        var = _mean(np.square(centred), axes)
    return centred, mean, var


def _normalised(x: Array, axes: Ints, eps: float) -> tuple[Array, Array, Array, Array]:
    """Return a fresh (x - mean) * rstd, mean, rstd and variance, all in x's dtype."""
    centred, mean, var = _moments(x, axes)
    rstd = 1 / np.sqrt(var + eps)
    centred *= rstd
    same = [a.astype(x.dtype, copy=False) for a in (centred, mean, rstd, var)]
    return same[0], same[1], same[2], same[3]


def _affine(out: Array, weight: Array | None, bias: Array | None) -> Array:
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out


@wide("layer_norm", keep=(1, 2))
def layer_norm(
    x: Array, weight: Array | None, bias: Array | None, dims: int, eps: float
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) over the last dims; biased variance; (out, mean, rstd)."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    out, mean, rstd, _ = _normalised(x, axes, eps)
    return _affine(out, weight, bias), mean, rstd


@wide("rms_norm", keep=(1,))
def rms_norm(x: Array, weight: Array | None, dims: int, eps: float) -> tuple[Array, Array]:
    """X / sqrt(mean(x^2) + eps) * weight over the last dims; (out, rstd)."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    square = _mean(np.square(x), axes)
    if x.dtype == np.float32 and x.size and not np.isfinite(square).all():
        square = _mean(np.square(x, dtype=np.float64), axes)
    rstd = (1 / np.sqrt(square + eps)).astype(x.dtype, copy=False)
    return _affine(x * rstd, weight, None), rstd


@wide("group_norm", keep=(1, 2))
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """x [N, C, *] normalised over groups of channels; (out, mean [N, G], rstd [N, G])."""
    n, channels = x.shape[:2]
    grouped = x.reshape(n, groups, channels // groups, *x.shape[2:])
    out, mean, rstd, _ = _normalised(grouped, tuple(range(2, grouped.ndim)), eps)
    out = _affine(out.reshape(x.shape), _channels(weight, x.ndim), _channels(bias, x.ndim))
    return out, mean.reshape(n, groups), rstd.reshape(n, groups)


def _channels(values: Array | None, rank: int) -> Array | None:
    """Return [C] as [C, 1, ...], ready for [N, C, *]."""
    return None if values is None else values.reshape(-1, *(1,) * (rank - 2))


@kernel("batch_norm")
def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array | None, var: Array | None,
    training: bool, eps: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """x [N, C, *] per channel; (out, mean [C], biased variance [C]), of the batch or as given.

    Parameters may have another float dtype than x; the result has x's.
    """
    if x.ndim < 2:
        # PyTorch lets the empty vector through; it has no channels.
        nothing = np.zeros(0, up(x).dtype)
        return x, nothing, nothing
    work = up(x)
    scale, shift = (_channels(_in(p, work.dtype), x.ndim) for p in (weight, bias))
    if training or mean is None or var is None:
        axes = (0, *range(2, x.ndim))
        out, used_mean, _, used_var = _normalised(work, axes, eps)
        out = _affine(out, scale, shift)
    else:
        used_mean = up(mean).astype(work.dtype, copy=False)
        used_var = up(var).astype(work.dtype, copy=False)
        factor = _channels(1 / np.sqrt(used_var + eps), x.ndim)
        out = work - _channels(used_mean, x.ndim)
        out = _affine(out, factor if scale is None else factor * scale, shift)
    # Copies, so that no output shares memory with the running statistics.
    stats = tuple(np.array(s).reshape(x.shape[1]) for s in (used_mean, used_var))
    return out.astype(x.dtype, copy=False), stats[0], stats[1]


@kernel("batch_norm_backward")
def batch_norm_backward(
    g: Array, x: Array, weight: Array | None, mean: Array, var: Array, training: bool, eps: float
) -> tuple[Array, Array, Array]:
    """Gradients of batch_norm by x, weight and bias; the last two in the dtype of statistics."""
    work, slope, rank = up(x), up(g), x.ndim
    if rank < 2:
        nothing = np.zeros(0, work.dtype)
        return x, nothing, nothing
    axes, channels = (0, *range(2, rank)), x.shape[1]
    centre, spread, scale = (_channels(_in(p, work.dtype), rank) for p in (mean, var, weight))
    assert centre is not None and spread is not None  # noqa: S101 - statistics are always given
    rstd = 1 / np.sqrt(spread + eps)
    xhat = (work - centre) * rstd
    gweight, gbias = (slope * xhat).sum(axes), slope.sum(axes)
    if training:
        n = work.size // max(channels, 1)
        slope = slope - _channels(gbias / n, rank) - xhat * _channels(gweight / n, rank)
    out = _affine(slope * rstd, scale, None)
    return out.astype(x.dtype, copy=False), gweight, gbias


def _in(values: Array | None, dtype: np.dtype[np.generic]) -> Array | None:
    return None if values is None else up(values).astype(dtype, copy=False)
