"""Elementwise kernels: arithmetic, functions of floats, comparisons, bits.

Where numpy's ufunc says exactly what the contract says, the kernel is the ufunc itself: that is
the fastest call there is, and it takes `out=`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from burn_flex.kernels.choose import choose
from burn_flex.kernels.erf import erf as _erf
from burn_flex.kernels.precision import (
    BF16,
    BOOL,
    F32,
    Array,
    Fn,
    compute_dtype,
    dimensioned,
    is_float,
    widened,
)  # fmt: skip
from burn_flex.table import kernel, maker


def _same(x: Array, *_: Any) -> Array:
    return x


# ---- functions of one float --------------------------------------------------------------------

# ml_dtypes computes these in f32 too, but some of them raise flags of their own making, and
# numpy's f32 loops are vectorised: halves take the detour.
_OF_FLOATS: dict[str, Fn] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
}  # fmt: skip
for _name, _ufunc in _OF_FLOATS.items():
    maker(_name, checked=True)(partial(widened, _ufunc))


def _rsqrt(x: Array) -> Any:
    return np.reciprocal(np.sqrt(x))


def _softsign(x: Array) -> Any:
    t = np.abs(x)
    t += 1
    return np.divide(x, t)


def _tanhshrink(x: Array) -> Any:
    return np.subtract(x, np.tanh(x))


@dimensioned
def sigmoid_of(x: Array) -> Array:
    """1 / (1 + exp(-x)) of f32 or f64; where exp overflows the answer is 0, as it should be."""
    t = np.negative(x)
    np.exp(t, t)
    t += 1
    return np.reciprocal(t, t)


_MADE_OF_SEVERAL: dict[str, Fn] = {
    "rsqrt": _rsqrt, "erf": _erf, "sigmoid": sigmoid_of, "softsign": _softsign,
    "tanhshrink": _tanhshrink,
}  # fmt: skip
for _name, _fn in _MADE_OF_SEVERAL.items():
    maker(_name, checked=True)(partial(widened, _fn))

# ---- same dtype in and out ---------------------------------------------------------------------

kernel("neg", checked=True, quiet=True)(np.negative)
kernel("abs", checked=True, quiet=True)(np.abs)
kernel("square", checked=True)(np.square)


@maker("sign", checked=True, quiet=True)
def sign(dtype: np.dtype[Any]) -> Fn:
    """numpy gives NaN for NaN; the contract says 0, which two comparisons give for free."""
    if dtype == BOOL:
        return _same
    if not is_float(dtype):
        return np.sign
    if dtype == BF16:
        of_f32 = sign(F32)
        return lambda x: of_f32(x.astype(F32)).astype(BF16)
    zero = np.zeros((), dtype)
    return lambda x: np.subtract(np.greater(x, zero), np.less(x, zero), dtype=dtype)


def _whole(ufunc: Fn) -> Fn:
    return lambda dtype: ufunc if is_float(dtype) else _same


maker("floor", checked=True, quiet=True)(_whole(np.floor))
maker("ceil", checked=True, quiet=True)(_whole(np.ceil))
maker("trunc", checked=True, quiet=True)(_whole(np.trunc))
kernel("bitwise_not", checked=True, quiet=True)(np.invert)


def _round_floats(x: Array, decimals: int) -> Any:
    if decimals == 0:
        return np.rint(x)
    # PyTorch's order of steps: the power of ten is exact, its reciprocal would not be.
    power = x.dtype.type(10.0 ** abs(decimals))
    if decimals > 0:
        return np.divide(np.rint(np.multiply(x, power)), power)
    return np.multiply(np.rint(np.divide(x, power)), power)


def _round_ints(x: Array, decimals: int) -> Any:
    return x if decimals >= 0 else np.round(x, decimals)


@maker("round", checked=True)
def round_(dtype: np.dtype[Any]) -> Fn:
    """Halves to even."""
    return widened(_round_floats, dtype) if is_float(dtype) else _round_ints


# ---- to bool -----------------------------------------------------------------------------------

kernel("isnan", checked=True, quiet=True)(np.isnan)
kernel("isinf", checked=True, quiet=True)(np.isinf)
kernel("isfinite", checked=True, quiet=True)(np.isfinite)
kernel("logical_not", checked=True, quiet=True)(np.logical_not)


def exact(ufunc: Fn, *, result_half: bool) -> Fn:
    """Make a binary ufunc that only compares, so that bf16 takes numpy's loops of f32.

    ml_dtypes' own comparisons raise the invalid flag for NaN; the detour is exact and quiet.
    """

    def make(dtype: np.dtype[Any]) -> Fn:
        if dtype != BF16:
            return ufunc
        if result_half:
            return lambda x, y: ufunc(x.astype(F32), y.astype(F32)).astype(BF16)
        return lambda x, y: ufunc(x.astype(F32), y.astype(F32))

    return make


_COMPARISONS: dict[str, Fn] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip
for _name, _ufunc in _COMPARISONS.items():
    maker(_name, checked=True, quiet=True)(exact(_ufunc, result_half=False))
maker("maximum", checked=True, quiet=True)(exact(np.maximum, result_half=True))
maker("minimum", checked=True, quiet=True)(exact(np.minimum, result_half=True))

# ---- arithmetic --------------------------------------------------------------------------------

# One operation in f32 rounded to 16 bits is what the loops of f16 and bf16 do themselves.
kernel("add", checked=True)(np.add)
kernel("sub", checked=True)(np.subtract)
kernel("mul", checked=True)(np.multiply)
kernel("div", checked=True)(np.divide)
# numpy gives 0 for an integer divided by 0 and wraps INT_MIN // -1, without a trap.
maker("floor_divide", checked=True)(partial(widened, np.floor_divide, arity=2))
maker("remainder", checked=True)(partial(widened, np.remainder, arity=2))
maker("fmod", checked=True)(partial(widened, np.fmod, arity=2))
maker("atan2", checked=True)(partial(widened, np.arctan2, arity=2))
maker("hypot", checked=True)(partial(widened, np.hypot, arity=2))
maker("logaddexp", checked=True)(partial(widened, np.logaddexp, arity=2))
kernel("bitwise_and", checked=True, quiet=True)(np.bitwise_and)
kernel("bitwise_or", checked=True, quiet=True)(np.bitwise_or)
kernel("bitwise_xor", checked=True, quiet=True)(np.bitwise_xor)
# numpy reads the count as unsigned and gives 0, or the sign, from the width on.
kernel("bitwise_left_shift", checked=True, quiet=True)(np.left_shift)
kernel("bitwise_right_shift", checked=True, quiet=True)(np.right_shift)


def _trunc_floats(x: Array, y: Array) -> Any:
    return np.trunc(np.divide(x, y))


def _trunc_ints(x: Array, y: Array) -> Any:
    # Without its remainder x divides exactly, so the direction of rounding is no matter.
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


@maker("div_trunc", checked=True)
def div_trunc(dtype: np.dtype[Any]) -> Fn:
    """Division rounded towards 0."""
    if is_float(dtype):
        return widened(_trunc_floats, dtype, arity=2)
    return np.floor_divide if dtype.kind == "u" else _trunc_ints


# Exponents that are one or two roundings of exact steps, as PyTorch computes them.
_POWERS: dict[float, Fn] = {
    2.0: np.square,
    1.0: np.positive,
    3.0: lambda x: np.multiply(np.square(x), x),
    0.5: np.sqrt,
    -1.0: np.reciprocal,
    -2.0: lambda x: np.reciprocal(np.square(x)),
    -0.5: _rsqrt,
}


def _pow_floats(x: Array, y: Array) -> Any:
    if y.ndim == 0:
        known = _POWERS.get(y.item())
        if known is not None:
            return known(x)
    return np.power(x, y)


def _pow_signed(x: Array, y: Array) -> Any:
    negative = np.less(y, 0)
    if not negative.any():
        return np.power(x, y)
    # 1 / x^|y| as an integer: only 1 and -1 leave something.
    power = np.power(x, np.where(negative, 0, y).astype(y.dtype))
    parity = np.where(np.bitwise_and(y, 1) == 1, x, 1)
    inverse = np.where(x == 1, 1, np.where(x == -1, parity, 0))
    return np.where(negative, inverse, power).astype(x.dtype)


@maker("pow", checked=True)
def pow_(dtype: np.dtype[Any]) -> Fn:
    """x to the power y; integers wrap."""
    if is_float(dtype):
        return widened(_pow_floats, dtype, arity=2)
    return np.power if dtype.kind == "u" else _pow_signed


@maker("mul_no_nan", checked=True)
def mul_no_nan(dtype: np.dtype[Any]) -> Fn:
    """g * factor, and 0 where g is exactly 0 whatever the factor."""
    zero = np.zeros((), dtype)

    def masked(g: Array, factor: Array) -> Any:
        return choose(np.equal(g, zero), zero, np.multiply(g, factor))

    return masked


def _lerp(x: Array, end: Array, weight: Array) -> Any:
    # From the nearer end, so that weight 1 gives `end` exactly (PyTorch's formula).
    span = np.subtract(end, x)
    if weight.ndim == 0:
        if weight.item() < 0.5:
            return np.add(x, np.multiply(weight, span))
        return np.subtract(end, np.multiply(span, np.subtract(1, weight)))
    near = np.add(x, np.multiply(weight, span))
    return choose(np.less(weight, 0.5), near, end - span * (1 - weight))


maker("lerp", checked=True)(partial(widened, _lerp, arity=3))


@kernel("where", checked=True, quiet=True)
def where(cond: Array, x: Array, y: Array) -> Any:
    """x where cond, else y; numpy would read any dtype as a condition."""
    if cond.dtype.kind != "b":
        raise TypeError("the condition must be bool")
    return choose(cond, x, y)


@maker("clamp", checked=True, quiet=True)
def clamp(dtype: np.dtype[Any]) -> Fn:
    """min(max(x, min), max), each bound optional; NaN anywhere gives NaN."""
    calm = compute_dtype(dtype) if dtype == BF16 else dtype

    def bounded(x: Array, low: Array | None, high: Array | None) -> Any:
        if low is not None:
            x = np.maximum(x, low)
        if high is not None:
            x = np.minimum(x, high)
        return x

    if calm == dtype:
        return bounded

    def detour(x: Array, low: Array | None, high: Array | None) -> Any:
        return bounded(
            x.astype(F32),
            None if low is None else low.astype(F32),
            None if high is None else high.astype(F32),
        ).astype(dtype)

    return detour
