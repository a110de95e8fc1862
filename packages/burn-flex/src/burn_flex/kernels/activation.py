"""Elementwise kernels of activation functions; all stable for any finite input.

Scalars arrive as Python numbers and are weak, so f32 stays f32; halves compute in f32.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from burn_flex.kernels.choose import choose
from burn_flex.kernels.erf import erf
from burn_flex.kernels.precision import BF16, F16, F32, Array, Fn, dimensioned, is_float, widened
from burn_flex.table import maker

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946
_SQRT_HALF = 0.70710678118654752440
_SQRT_2_OVER_PI = 0.79788456080286535588


@dimensioned
def _elu(x: Array, alpha: float) -> Any:
    t = np.minimum(x, 0)
    np.expm1(t, t)
    t *= alpha
    return choose(np.greater(x, 0), x, t)


@dimensioned
def _celu(x: Array, alpha: float) -> Any:
    t = np.minimum(x, 0)
    t /= alpha
    np.expm1(t, t)
    t *= alpha
    return choose(np.greater(x, 0), x, t)


def _selu(x: Array) -> Any:
    return np.multiply(_elu(x, _SELU_ALPHA), _SELU_SCALE)


@dimensioned
def _silu(x: Array) -> Array:
    t = np.negative(x)
    np.exp(t, t)
    t += 1
    return np.divide(x, t, t)


@dimensioned
def _mish(x: Array) -> Array:
    # tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); from x = 20 on it is 1 in every dtype, and
    # the bound keeps e * e finite.
    e = np.minimum(x, 20)
    np.exp(e, e)
    n = e + 2
    n *= e
    np.add(n, 2, e)
    n /= e
    n *= x
    return n


@dimensioned
def log_sigmoid_of(x: Array) -> Array:
    """log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|)) of f32 or f64."""
    t = np.abs(x)
    np.negative(t, t)
    np.exp(t, t)
    np.log1p(t, t)
    return np.subtract(np.minimum(x, 0), t, t)


@dimensioned
def _softplus(x: Array, beta: float, threshold: float) -> Any:
    z = np.multiply(x, beta)
    linear = np.greater(z, threshold)
    # Beyond the threshold exp may overflow; that branch is not taken.
    np.exp(z, z)
    np.log1p(z, z)
    z /= beta
    return choose(linear, x, z)


def _hardsigmoid(x: Array) -> Any:
    t = np.add(x, 3)
    return np.divide(np.minimum(np.maximum(t, 0), 6), 6)


def _hardswish(x: Array) -> Any:
    t = np.add(x, 3)
    return np.divide(np.multiply(x, np.minimum(np.maximum(t, 0), 6)), 6)


def _leaky_relu(x: Array, slope: float) -> Any:
    bent = np.multiply(x, slope)
    if 0 < slope <= 1:
        return np.maximum(x, bent)
    return choose(np.greater(x, 0), x, bent)


def _hardshrink(x: Array, lambd: float) -> Any:
    # Asked this way round NaN stays, as in PyTorch.
    return choose(np.less_equal(np.abs(x), lambd), x.dtype.type(0), x)


def _softshrink(x: Array, lambd: float) -> Any:
    return np.subtract(x, np.minimum(np.maximum(x, -lambd), lambd))


_ACTIVATIONS: dict[str, Fn] = {
    "selu": _selu, "silu": _silu, "mish": _mish, "logsigmoid": log_sigmoid_of,
    "hardsigmoid": _hardsigmoid, "hardswish": _hardswish, "elu": _elu, "celu": _celu,
    "leaky_relu": _leaky_relu, "softplus": _softplus, "hardshrink": _hardshrink,
    "softshrink": _softshrink,
}  # fmt: skip
for _name, _fn in _ACTIVATIONS.items():
    maker(_name, checked=True)(partial(widened, _fn))


@dimensioned
def _gelu_erf(x: Array) -> Any:
    t = erf(np.multiply(x, _SQRT_HALF))
    t += 1
    t *= 0.5
    t *= x
    return t


@dimensioned
def _gelu_tanh(x: Array) -> Array:
    t = np.square(x)
    t *= 0.044715
    t += 1
    t *= x
    t *= _SQRT_2_OVER_PI
    np.tanh(t, t)
    t += 1
    t *= 0.5
    t *= x
    return t


def gelu_of(x: Array, approximate: str) -> Any:
    """x Phi(x) of f32 or f64; approximate is none or tanh."""
    return _gelu_tanh(x) if approximate == "tanh" else _gelu_erf(x)


maker("gelu", checked=True)(partial(widened, gelu_of))


@maker("relu", checked=True, quiet=True)
def relu(dtype: np.dtype[Any]) -> Fn:
    """max(x, 0); this order of operands keeps -0.0, as far as numpy's loops have one."""
    if dtype == BF16:
        return widened(relu(F32), dtype)
    zero = np.zeros((), dtype)
    if dtype == F16:
        return lambda x: np.maximum(x, zero)
    return partial(np.maximum, zero)


@maker("relu6", checked=True, quiet=True)
def relu6(dtype: np.dtype[Any]) -> Fn:
    """clamp(x, 0, 6)."""
    if dtype == BF16:
        return widened(relu6(F32), dtype)
    six = np.array(6, dtype)
    bottom = relu(dtype)
    return lambda x: np.minimum(bottom(x), six)


def number_of(dtype: np.dtype[Any]) -> Fn:
    """Return the function that brings a Python number to `dtype`; integers saturate."""
    if is_float(dtype) or dtype.kind == "b":
        return dtype.type
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)

    def whole(value: float) -> Any:
        if isinstance(value, float):
            if value != value:
                return dtype.type(0)
            value = low if value <= low else high if value >= high else int(value)
        return dtype.type(min(max(value, low), high))

    return whole


@maker("hardtanh", checked=True)
def hardtanh(dtype: np.dtype[Any]) -> Fn:
    """clamp(x, low, high) with numbers as bounds."""
    if dtype == BF16:
        return widened(hardtanh(F32), dtype)
    number = number_of(dtype)
    return lambda x, low, high: np.minimum(np.maximum(x, number(low)), number(high))


@maker("threshold", checked=True)
def threshold_(dtype: np.dtype[Any]) -> Fn:
    """value where x <= threshold, else x: NaN stays, as in PyTorch."""
    if dtype == BF16:
        return widened(threshold_(F32), dtype)
    number = number_of(dtype)
    weak: Fn = number if is_float(dtype) else (lambda value: value)
    return lambda x, threshold, value: choose(np.less_equal(x, weak(threshold)), number(value), x)


def _prelu(x: Array, weight: Array) -> Any:
    return choose(np.greater(x, 0), x, np.multiply(weight, x))


maker("prelu", checked=True)(partial(widened, _prelu, arity=2))
