"""Quantisation: scales from the range of a tensor or of blocks along its last dim."""

from __future__ import annotations

import numpy as np

from burn_backend import QuantizedArray
from burn_flex.kernels.halves import HALVES, Array, up
from burn_flex.table import kernel, native
from burn_std import DType, QDType


def _blocks(x: Array, block: int) -> tuple[Array, Array]:
    """Return (min, max) of every block of the last dim, or of the whole tensor for block 0."""
    if not x.size:
        shape = (*x.shape[:-1], -(-x.shape[-1] // block)) if block and x.ndim else ()
        return np.zeros(shape, x.dtype), np.zeros(shape, x.dtype)
    if not block:
        return np.asarray(x.min()), np.asarray(x.max())
    x = np.atleast_1d(x)
    starts = np.arange(0, x.shape[-1], block)
    return np.minimum.reduceat(x, starts, axis=-1), np.maximum.reduceat(x, starts, axis=-1)


def _per_element(values: Array, shape: tuple[int, ...], block: int) -> Array:
    """Return scales or zero points as an array that broadcasts against the tensor."""
    if not block or not values.ndim:
        return values
    return np.repeat(values, block, axis=-1)[..., : shape[-1] if shape else 1].reshape(shape)


@kernel("quantize")
def quantize(x: Array, scale: Array | None, zero: Array | None, dtype: QDType) -> QuantizedArray:
    """q = clamp(round half even(x / scale) + zero, qmin..qmax).

    Symmetric: scale = max|x| / qmax, 0 becomes 1. Affine: the range is widened to contain 0,
    scale = (high - low) / (qmax - qmin), zero = round(qmin - low / scale).
    """
    x = up(x)
    if scale is None:
        low, high = _blocks(x, dtype.block)
        if dtype.symmetric:
            scale = np.maximum(-low, high) / x.dtype.type(dtype.qmax)
        else:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            scale = (high - low) / x.dtype.type(dtype.qmax - dtype.qmin)
        scale = np.where(scale == 0, 1, scale).astype(x.dtype)
        if not dtype.symmetric:
            zero = np.clip(np.rint(dtype.qmin - low / scale), dtype.qmin, dtype.qmax)
    else:
        scale = np.array(up(scale))
    if dtype.symmetric:
        zero = None
    else:
        zero = np.zeros(scale.shape, np.int8) if zero is None else np.asarray(zero).astype(np.int8)
    q = np.rint(x / _per_element(scale, x.shape, dtype.block))
    if zero is not None:
        q = q + _per_element(zero, x.shape, dtype.block)
    # NaN has no integer; the contract of casts makes it 0 before clamping.
    q = np.clip(np.nan_to_num(q, nan=0.0, posinf=np.inf, neginf=-np.inf), dtype.qmin, dtype.qmax)
    return QuantizedArray(np.asarray(q.astype(np.int8)), scale, zero, dtype)


@kernel("dequantize")
def dequantize(q: QuantizedArray, dtype: DType) -> Array:
    """(q - zero) * scale, computed in the scales' dtype or wider, rounded once."""
    target = native(dtype)
    work = np.result_type(q.scale.dtype, np.float32 if target in HALVES else target)
    values: Array = q.values.astype(work)
    if q.zero is not None:
        values -= _per_element(q.zero, q.shape, q.dtype.block)
    values *= _per_element(q.scale, q.shape, q.dtype.block)
    return values.astype(target, copy=False)
