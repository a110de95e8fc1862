"""Elementwise operations written in fewer elementwise operations."""

from __future__ import annotations

from math import inf, log as ln, pi, sqrt as root
from typing import Any

from burn_ir.catalog.decompose import Ops, Tensor, in_f32, zero_of
from burn_std.dtypes import bool_

_LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
}
# From here on asinh(x) = acosh(x) = log(2 x) to the last bit of f64; x * x would overflow in f32.
_HUGE = 2.0**28

# ---- functions of floats -----------------------------------------------------------------------


@in_f32()
def log2(ops: Ops, x: Tensor) -> Tensor:
    """Return log(x) / log(2)."""
    return ops.div(ops.log(x), ln(2.0))


@in_f32()
def log10(ops: Ops, x: Tensor) -> Tensor:
    """Return log(x) / log(10)."""
    return ops.div(ops.log(x), ln(10.0))


@in_f32()
def rsqrt(ops: Ops, x: Tensor) -> Tensor:
    """Return 1 / sqrt(x)."""
    return ops.div(1, ops.sqrt(x))


@in_f32()
def reciprocal(ops: Ops, x: Tensor) -> Tensor:
    """Return 1 / x."""
    return ops.div(1, x)


@in_f32()
def tan(ops: Ops, x: Tensor) -> Tensor:
    """Return sin(x) / cos(x)."""
    return ops.div(ops.sin(x), ops.cos(x))


@in_f32()
def sinh(ops: Ops, x: Tensor) -> Tensor:
    """Return sinh(x): expm1 keeps small x exact, squared halves keep large x finite."""
    size = ops.abs(x)
    e = ops.expm1(ops.minimum(size, 20))
    small = ops.mul(0.5, ops.add(e, ops.div(e, ops.add(e, 1))))
    half = ops.exp(ops.mul(0.5, size))
    value = ops.where(ops.le(size, 20), small, ops.mul(ops.mul(0.5, half), half))
    # x itself carries -0.0 and NaN.
    return ops.where(ops.eq(x, 0), x, ops.where(ops.lt(x, 0), ops.neg(value), value))


@in_f32()
def cosh(ops: Ops, x: Tensor) -> Tensor:
    """Return cosh(x) from exp(|x| / 2), which overflows later than exp(|x|)."""
    half = ops.exp(ops.mul(0.5, ops.abs(x)))
    return ops.add(ops.mul(ops.mul(0.5, half), half), ops.div(ops.div(0.5, half), half))


def _quarter(ops: Ops, x: Tensor) -> Tensor:
    return ops.sqrt(ops.mul(ops.sub(1, x), ops.add(1, x)))


@in_f32()
def asin(ops: Ops, x: Tensor) -> Tensor:
    """Return atan2(x, sqrt((1 - x)(1 + x)))."""
    return ops.atan2(x, _quarter(ops, x))


@in_f32()
def acos(ops: Ops, x: Tensor) -> Tensor:
    """Return atan2(sqrt((1 - x)(1 + x)), x)."""
    return ops.atan2(_quarter(ops, x), x)


@in_f32()
def atan(ops: Ops, x: Tensor) -> Tensor:
    """Return atan2(x, 1)."""
    return ops.atan2(x, 1)


@in_f32()
def asinh(ops: Ops, x: Tensor) -> Tensor:
    """Return asinh(x) by log1p near 0 and by log far away."""
    size = ops.abs(x)
    near = ops.minimum(size, _HUGE)
    square_ = ops.mul(near, near)
    grown = ops.div(square_, ops.add(1, ops.sqrt(ops.add(square_, 1))))
    value = ops.where(
        ops.lt(size, _HUGE), ops.log1p(ops.add(near, grown)), ops.add(ops.log(size), ln(2.0))
    )
    return ops.where(ops.eq(x, 0), x, ops.where(ops.lt(x, 0), ops.neg(value), value))


@in_f32()
def acosh(ops: Ops, x: Tensor) -> Tensor:
    """Return acosh(x) by log1p near 1 and by log far away; NaN below 1."""
    t = ops.sub(ops.minimum(x, _HUGE), 1)
    near = ops.log1p(ops.add(t, ops.sqrt(ops.mul(t, ops.add(t, 2)))))
    value = ops.where(ops.lt(x, _HUGE), near, ops.add(ops.log(x), ln(2.0)))
    return ops.where(ops.lt(x, 1), float("nan"), value)


@in_f32()
def atanh(ops: Ops, x: Tensor) -> Tensor:
    """Return log1p(2 |x| / (1 - |x|)) / 2 with the sign of x."""
    size = ops.abs(x)
    value = ops.mul(0.5, ops.log1p(ops.div(ops.mul(2, size), ops.sub(1, size))))
    return ops.where(ops.eq(x, 0), x, ops.where(ops.lt(x, 0), ops.neg(value), value))


def _tensors(ops: Ops, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return both operands as tensors; at least one is."""
    if not hasattr(x, "dtype"):
        x = ops.full(y.dtype, (), x)
    elif not hasattr(y, "dtype"):
        y = ops.full(x.dtype, (), y)
    return x, y


@in_f32()
def hypot(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return sqrt(x^2 + y^2) scaled by the larger side; an infinite side wins over NaN."""
    x, y = map(ops.abs, _tensors(ops, x, y))
    large, small = ops.maximum(x, y), ops.minimum(x, y)
    ratio = ops.div(small, ops.where(ops.eq(large, 0), 1, large))
    value = ops.mul(large, ops.sqrt(ops.add(1, ops.mul(ratio, ratio))))
    return ops.where(ops.bitwise_or(ops.eq(x, inf), ops.eq(y, inf)), inf, value)


@in_f32()
def logaddexp(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return max(x, y) + log1p(exp(-|x - y|)); equal infinities have difference 0."""
    gap = ops.where(ops.eq(x, y), 0.0, ops.sub(x, y))
    return ops.add(ops.maximum(x, y), ops.log1p(ops.exp(ops.neg(ops.abs(gap)))))


@in_f32()
def lerp(ops: Ops, x: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    """Return x + weight (end - x), from the nearer end as PyTorch does."""
    span = ops.sub(end, x)
    from_x = ops.add(x, ops.mul(weight, span))
    if isinstance(weight, (int, float)):
        return from_x if abs(weight) < 0.5 else ops.sub(end, ops.mul(span, 1 - weight))
    from_end = ops.sub(end, ops.mul(span, ops.sub(1, weight)))
    return ops.where(ops.lt(ops.abs(weight), 0.5), from_x, from_end)


def mul_no_nan(ops: Ops, g: Tensor, factor: Tensor) -> Tensor:
    """Return g * factor, and 0 where g is exactly 0."""
    return ops.where(ops.eq(g, 0), 0.0, ops.mul(g, factor))


# ---- activations -------------------------------------------------------------------------------


@in_f32()
def sigmoid(ops: Ops, x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return ops.div(1, ops.add(1, ops.exp(ops.neg(x))))


@in_f32()
def softsign(ops: Ops, x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return ops.div(x, ops.add(1, ops.abs(x)))


@in_f32()
def tanhshrink(ops: Ops, x: Tensor) -> Tensor:
    """Return x - tanh(x)."""
    return ops.sub(x, ops.tanh(x))


@in_f32()
def selu(ops: Ops, x: Tensor) -> Tensor:
    """Return the scaled ELU with the constants of self-normalising networks."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return ops.mul(scale, ops.where(ops.le(x, 0), _elu_left(ops, x, alpha), x))


def _elu_left(ops: Ops, x: Tensor, alpha: float) -> Tensor:
    return ops.mul(alpha, ops.expm1(ops.minimum(x, 0)))


@in_f32()
def elu(ops: Ops, x: Tensor, alpha: float) -> Tensor:
    """Return x where x > 0, else alpha (exp(x) - 1)."""
    return ops.where(ops.le(x, 0), _elu_left(ops, x, alpha), x)


@in_f32()
def celu(ops: Ops, x: Tensor, alpha: float) -> Tensor:
    """Return x where x > 0, else alpha (exp(x / alpha) - 1)."""
    left = ops.mul(alpha, ops.expm1(ops.div(ops.minimum(x, 0), alpha)))
    return ops.where(ops.le(x, 0), left, x)


@in_f32()
def silu(ops: Ops, x: Tensor) -> Tensor:
    """Return x / (1 + exp(-x))."""
    return ops.div(x, ops.add(1, ops.exp(ops.neg(x))))


def _softplus(ops: Ops, x: Tensor) -> Tensor:
    return ops.add(ops.maximum(x, 0), ops.log1p(ops.exp(ops.neg(ops.abs(x)))))


@in_f32()
def mish(ops: Ops, x: Tensor) -> Tensor:
    """Return x tanh(softplus(x))."""
    return ops.mul(x, ops.tanh(_softplus(ops, x)))


@in_f32()
def logsigmoid(ops: Ops, x: Tensor) -> Tensor:
    """Return min(x, 0) - log1p(exp(-|x|))."""
    return ops.sub(ops.minimum(x, 0), ops.log1p(ops.exp(ops.neg(ops.abs(x)))))


@in_f32()
def softplus(ops: Ops, x: Tensor, beta: float, threshold: float) -> Tensor:
    """Return log(1 + exp(beta x)) / beta without overflow, x where beta x > threshold."""
    scaled = ops.mul(x, beta)
    return ops.where(ops.lt(threshold, scaled), x, ops.div(_softplus(ops, scaled), beta))


@in_f32()
def hardsigmoid(ops: Ops, x: Tensor) -> Tensor:
    """Return clamp(x + 3, 0, 6) / 6."""
    return ops.div(ops.clamp(ops.add(x, 3), 0, 6), 6)


@in_f32()
def hardswish(ops: Ops, x: Tensor) -> Tensor:
    """Return x clamp(x + 3, 0, 6) / 6."""
    return ops.div(ops.mul(x, ops.clamp(ops.add(x, 3), 0, 6)), 6)


@in_f32()
def leaky_relu(ops: Ops, x: Tensor, slope: float) -> Tensor:
    """Return x where x > 0, else slope x."""
    return ops.where(ops.lt(0, x), x, ops.mul(x, slope))


@in_f32()
def prelu(ops: Ops, x: Tensor, weight: Tensor) -> Tensor:
    """Return x where x > 0, else weight x."""
    return ops.where(ops.lt(0, x), x, ops.mul(weight, x))


@in_f32()
def hardshrink(ops: Ops, x: Tensor, lambd: float) -> Tensor:
    """Return 0 where |x| <= lambd, else x."""
    return ops.where(ops.le(ops.abs(x), lambd), 0.0, x)


@in_f32()
def softshrink(ops: Ops, x: Tensor, lambd: float) -> Tensor:
    """Return x moved towards 0 by lambd; NaN stays."""
    return ops.sub(x, ops.clamp(x, -lambd, lambd))


@in_f32()
def gelu(ops: Ops, x: Tensor, approximate: str) -> Tensor:
    """Return x Phi(x), by erf or by its tanh approximation."""
    if approximate == "tanh":
        cubic = ops.mul(0.044715, ops.mul(x, ops.mul(x, x)))
        phi = ops.tanh(ops.mul(root(2.0 / pi), ops.add(x, cubic)))
    else:
        phi = ops.erf(ops.mul(x, root(0.5)))
    return ops.mul(ops.mul(0.5, x), ops.add(1, phi))


def relu(ops: Ops, x: Tensor) -> Tensor:
    """Return 0 where x <= 0, else x: NaN stays, the gradient at 0 is 0."""
    return ops.where(ops.le(x, 0), 0, x)


def _fitting(x: Tensor, value: float) -> float:
    """Return an attribute as a scalar that neither lifts integers to floats nor wraps."""
    if x.dtype.is_float:
        return value
    return int(value) if x.dtype.is_signed else max(int(value), 0)


def relu6(ops: Ops, x: Tensor) -> Tensor:
    """Return x within 0 and 6."""
    return hardtanh(ops, x, 0, 6)


def hardtanh(ops: Ops, x: Tensor, low: float, high: float) -> Tensor:
    """Return x within low and high; the bounds are constants, so their gradient is 0."""
    low, high = _fitting(x, low), _fitting(x, high)
    return ops.where(ops.le(x, low), low, ops.where(ops.le(high, x), high, x))


def threshold(ops: Ops, x: Tensor, threshold: float, value: float) -> Tensor:
    """Return value where x <= threshold, else x."""
    threshold, value = _fitting(x, threshold), _fitting(x, value)
    return ops.where(ops.le(x, threshold), value, x)


# ---- one tensor --------------------------------------------------------------------------------


def sign(ops: Ops, x: Tensor) -> Tensor:
    """Return (x > 0) - (x < 0)."""
    if x.dtype.is_bool:
        return ops.bitwise_or(x, x)
    return ops.sub(ops.cast(ops.lt(0, x), x.dtype), ops.cast(ops.lt(x, 0), x.dtype))


def square(ops: Ops, x: Tensor) -> Tensor:
    """Return x * x."""
    return ops.mul(x, x)


def ceil(ops: Ops, x: Tensor) -> Tensor:
    """Return -floor(-x)."""
    return ops.neg(ops.floor(ops.neg(x))) if x.dtype.is_float else ops.floor(x)


def trunc(ops: Ops, x: Tensor) -> Tensor:
    """Return ceil(x) below 0, else floor(x)."""
    if not x.dtype.is_float:
        return ops.floor(x)
    return ops.where(ops.lt(x, 0), ops.neg(ops.floor(ops.neg(x))), ops.floor(x))


def nan_to_num(
    ops: Ops, x: Tensor, nan: float | None, posinf: float | None, neginf: float | None
) -> Tensor:
    """Return x with NaN and infinities replaced; None stands for 0 and the dtype's largest."""
    if not x.dtype.is_float:
        return ops.bitwise_or(x, x)
    largest = _LARGEST[x.dtype.name]
    x = ops.where(ops.eq(x, inf), largest if posinf is None else posinf, x)
    x = ops.where(ops.eq(x, -inf), -largest if neginf is None else neginf, x)
    return ops.where(ops.eq(x, x), x, 0.0 if nan is None else nan)


def isnan(ops: Ops, x: Tensor) -> Tensor:
    """Return x != x."""
    return ops.bitwise_not(ops.eq(x, x))


def isinf(ops: Ops, x: Tensor) -> Tensor:
    """Return |x| == inf, False for all that is no float."""
    return ops.eq(ops.abs(x), inf) if x.dtype.is_float else ops.lt(x, x)


def isfinite(ops: Ops, x: Tensor) -> Tensor:
    """Return |x| < inf, True for all that is no float."""
    return ops.lt(ops.abs(x), inf) if x.dtype.is_float else ops.eq(x, x)


def logical_not(ops: Ops, x: Tensor) -> Tensor:
    """Return x == 0."""
    return ops.eq(x, zero_of(x))


# ---- two tensors -------------------------------------------------------------------------------


def ne(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return not (x == y); NaN differs from everything."""
    return ops.bitwise_not(ops.eq(x, y))


def gt(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return y < x."""
    return ops.lt(y, x)


def ge(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return y <= x."""
    return ops.le(y, x)


def _truth(ops: Ops, x: Any) -> Any:
    if isinstance(x, (bool, int, float)):
        return bool(x)
    return x if x.dtype.is_bool else ops.cast(x, bool_)


def logical_and(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return the truth of x and of y."""
    return ops.bitwise_and(_truth(ops, x), _truth(ops, y))


def logical_or(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return the truth of x or of y."""
    return ops.bitwise_or(_truth(ops, x), _truth(ops, y))


def logical_xor(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return whether exactly one of x and y is true."""
    return ops.bitwise_xor(_truth(ops, x), _truth(ops, y))


@in_f32()
def div_trunc(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return x / y rounded towards 0: integers lift the floor where signs differ."""
    x, y = _tensors(ops, x, y)
    if x.dtype.is_float:
        return ops.trunc(ops.div(x, y))
    down = ops.floor_divide(x, y)
    inexact = ops.ne(ops.remainder(x, y), 0)
    below = ops.lt(down, 0)
    return ops.add(down, ops.cast(ops.bitwise_and(inexact, below), down.dtype))


@in_f32()
def fmod(ops: Ops, x: Tensor, y: Tensor) -> Tensor:
    """Return x modulo y with the sign of x."""
    x, y = _tensors(ops, x, y)
    if x.dtype.is_float:
        size = ops.remainder(ops.abs(x), ops.abs(y))
        return ops.where(ops.lt(x, 0), ops.neg(size), size)
    r = ops.remainder(x, y)
    wrong = ops.bitwise_and(ops.ne(r, 0), ops.bitwise_xor(ops.lt(x, 0), ops.lt(y, 0)))
    return ops.where(wrong, ops.sub(r, y), r)


def clamp(ops: Ops, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return min(max(x, low), high)."""
    if low is not None:
        x = ops.maximum(x, low)
    return x if high is None else ops.minimum(x, high)
