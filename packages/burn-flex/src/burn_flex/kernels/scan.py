"""Cumulative sums, products and extremes along one dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_flex.kernels.cast import converted
from burn_flex.kernels.precision import BF16, F32, F64, I64, Array, Fn, is_float, is_half
from burn_flex.table import DTYPE, NATIVE, maker
from burn_std import DType
from burn_std.dtypes import int64


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    # Every step adds its rounding to all that follow, so floats scan in the next wider dtype.
    if is_half(dtype):
        return F32
    return F64 if dtype == F32 else dtype


def _cumulative(ufunc: np.ufunc) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        default = DTYPE[native] if is_float(native) else int64

        def scanned(x: Array, dim: int, dtype: DType | None) -> Any:
            dtype = dtype or default
            target = NATIVE[dtype]
            x = converted(x, dtype)
            if not x.ndim:
                return x
            out = ufunc.accumulate(x, dim, _wider(target))
            return out.astype(target, copy=False)

        return scanned

    return make


maker("cumsum", checked=True)(_cumulative(np.add))
maker("cumprod", checked=True)(_cumulative(np.multiply))


def _running(ufunc: np.ufunc) -> Fn:
    def make(native: np.dtype[Any]) -> Fn:
        def scanned(x: Array, dim: int) -> tuple[Any, Any]:
            if not x.ndim:
                return x, np.zeros((), I64)
            calm = x.astype(F32) if native == BF16 else x
            values = ufunc.accumulate(calm, dim)
            # An element that equals the extreme so far takes over, and so does every NaN.
            taken = np.equal(calm, values)
            if is_float(native):
                taken |= np.isnan(calm)
            place = np.arange(x.shape[dim], dtype=I64)
            place = place.reshape((-1,) + (1,) * (x.ndim - dim - 1))
            indices = np.maximum.accumulate(np.where(taken, place, np.int64(0)), dim)
            return values.astype(native, copy=False), indices

        return scanned

    return make


maker("cummax", checked=True, quiet=True)(_running(np.maximum))
maker("cummin", checked=True, quiet=True)(_running(np.minimum))


@maker("logcumsumexp", checked=True)
def logcumsumexp(native: np.dtype[Any]) -> Fn:
    """log(cumsum(exp(x))) along a dim."""
    wider = _wider(native)

    def scanned(x: Array, dim: int) -> Any:
        if not x.ndim:
            return x
        return np.logaddexp.accumulate(x, dim, wider).astype(native, copy=False)

    return scanned
