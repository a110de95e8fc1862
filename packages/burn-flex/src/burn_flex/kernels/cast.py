"""Conversions between dtypes, and of values that are not finite."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from burn_flex.kernels.activation import number_of
from burn_flex.kernels.precision import BF16, F32, F64, Array, Fn, is_float, is_half
from burn_flex.table import NATIVE, maker
from burn_std import DType


def _converter(source: np.dtype[Any], target: np.dtype[Any]) -> Fn:
    if source == target:
        return lambda x: x
    if source == F64 and is_half(target):  # through float32, as on every device and in PyTorch
        return lambda x: x.astype(F32).astype(target)
    if target.kind not in "iu" or not is_float(source):
        return lambda x: x.astype(target)  # integers wrap, NaN is True
    return _saturating(source, target)


def _saturating(source: np.dtype[Any], target: np.dtype[Any]) -> Fn:
    """NaN becomes 0, what is out of range the nearest bound, the rest truncates."""
    convert = _clipping(source, target)
    info = np.iinfo(target)
    lowest, highest = np.minimum.reduce, np.maximum.reduce
    bottom, end = float(info.min), float(info.max) + (1 if info.bits <= 32 else 0)

    def tried(x: Array) -> Any:
        # Most arrays lie inside the range, and two reductions say so; NaN says no. The end itself
        # is outside: the largest integer, or for 64 bits the first float above it.
        if x.size and float(lowest(x, None)) >= bottom and float(highest(x, None)) < end:
            return x.astype(target)
        return convert(x)

    if source == BF16:  # ml_dtypes' reductions warn of NaN
        return lambda x: tried(x.astype(F32))
    return tried


def _clipping(source: np.dtype[Any], target: np.dtype[Any]) -> Fn:
    info = np.iinfo(target)
    if info.bits <= 32:
        # f64 holds both bounds exactly; f32 does for 8 and 16 bits.
        middle = F64 if source == F64 or info.bits == 32 else F32
        low, high = middle.type(info.min), middle.type(info.max)

        def narrow(x: Array) -> Any:
            x = x.astype(middle)
            x = np.minimum(np.maximum(x, low), high)
            return np.where(np.isnan(x), middle.type(0), x).astype(target)

        return narrow
    middle = F32 if is_half(source) else source
    # 2^63 or 2^64: the first float above the range; the largest below it converts as it is.
    above = middle.type(2.0 ** (64 if target.kind == "u" else 63))
    low, top = middle.type(info.min), np.nextafter(above, middle.type(0))
    most = target.type(info.max)

    def full(x: Array) -> Any:
        x = x.astype(middle)
        over = np.greater_equal(x, above)
        x = np.minimum(np.maximum(x, low), top)
        inside = np.where(np.isnan(x), middle.type(0), x).astype(target)
        return np.where(over, most, inside)

    return full


@maker("cast", checked=True)
def cast(source: np.dtype[Any]) -> Fn:
    """x in another dtype."""
    converters = {d: _converter(source, n) for d, n in NATIVE.items()}
    return lambda x, dtype: converters[dtype](x)


def converted(x: Array, dtype: DType) -> Any:
    """Return an array in another dtype, by the rules of `cast`."""
    return _converter(x.dtype, NATIVE[dtype])(x)


def element(value: Any, target: np.dtype[Any]) -> Any:
    """Return a Python number as an element: ints wrap into integers, floats saturate.

    Example:
        >>> element(300, np.dtype("uint8")), element(-1.25, np.dtype("uint8"))
        (44, 0)
    """
    if target.kind not in "iu":
        return value
    low, high = int(np.iinfo(target).min), int(np.iinfo(target).max)
    if isinstance(value, float):
        if value != value:
            return 0
        return low if value <= low else high if value >= high else int(value)
    return (int(value) - low) % (high - low + 1) + low


@maker("nan_to_num", checked=True)
def nan_to_num(dtype: np.dtype[Any]) -> Fn:
    """NaN, inf and -inf as given numbers; None is 0 for NaN, else the dtype's largest."""
    if not is_float(dtype):
        return lambda x, nan, posinf, neginf: x
    limits: Fn = ml_dtypes.finfo  # knows bf16 and numpy's own
    largest = float(limits(dtype).max)
    number = number_of(dtype)
    inf = number(np.inf)

    def replaced(x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
        x = np.where(np.isnan(x), number(0.0 if nan is None else nan), x)
        x = np.where(np.equal(x, inf), number(largest if posinf is None else posinf), x)
        return np.where(np.equal(x, -inf), number(-largest if neginf is None else neginf), x)

    return replaced
