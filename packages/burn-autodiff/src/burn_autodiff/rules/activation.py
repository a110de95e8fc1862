"""Rules of activations. Comparisons are written so that a NaN passes its cotangent on."""

from __future__ import annotations

from math import pi, sqrt

from burn_autodiff.rules.pieces import drop_where, keep_where, one_minus
from burn_autodiff.rules.table import Call, Grads, Tensor, rule

# The constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@rule("sigmoid", saves="out", wide=True)
def sigmoid(c: Call, g: Tensor, out: Tensor) -> Grads:
    """s'(x) = s (1 - s)."""
    return c.ops.mul(g, c.ops.mul(one_minus(c, out), out))


@rule("softsign", saves="x out", wide=True)
def softsign(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """(x / (1 + |x|))' = 1 / (1 + |x|)^2, NaN where the function is."""
    ops = c.ops
    slope = ops.square(ops.reciprocal(ops.add(ops.abs(x), 1.0)))
    return ops.mul(g, ops.where(ops.isnan(out), out, slope))


@rule("tanhshrink", saves="x")
def tanhshrink(c: Call, g: Tensor, x: Tensor) -> Grads:
    """(x - tanh(x))' = tanh(x)^2."""
    return c.ops.mul(g, c.ops.square(c.ops.tanh(x)))


def _exponential_unit(
    c: Call, g: Tensor, x: Tensor, scale: float, alpha: float, rate: float
) -> Tensor:
    """Return g f' with f = scale x for x > 0, else scale alpha (exp(rate x) - 1)."""
    ops = c.ops
    decay = ops.mul(ops.exp(x if rate == 1.0 else ops.mul(x, rate)), scale * alpha * rate)
    return ops.where(ops.le(x, 0.0), ops.mul_no_nan(g, decay), ops.mul(g, scale))


@rule("selu", saves="x", wide=True)
def selu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """S for x > 0, else s a exp(x)."""
    return _exponential_unit(c, g, x, _SELU_SCALE, _SELU_ALPHA, 1.0)


@rule("elu", saves="x", wide=True)
def elu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 for x > 0, else alpha exp(x)."""
    return _exponential_unit(c, g, x, 1.0, c.attrs[0], 1.0)


@rule("celu", saves="x", wide=True)
def celu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 for x > 0, else exp(x / alpha)."""
    return _exponential_unit(c, g, x, 1.0, c.attrs[0], 1.0 / c.attrs[0])


@rule("silu", saves="x", wide=True)
def silu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """(x s)' = s (1 + x (1 - s)), s = sigmoid(x)."""
    ops = c.ops
    s = ops.sigmoid(x)
    return ops.mul(g, ops.mul(s, ops.add(ops.mul(x, one_minus(c, s)), 1.0)))


@rule("mish", saves="x", wide=True)
def mish(c: Call, g: Tensor, x: Tensor) -> Grads:
    """(x t)' = t + x s (1 - t^2), t = tanh(softplus(x)), s = sigmoid(x)."""
    ops = c.ops
    t = ops.tanh(ops.softplus(x, 1.0, 20.0))
    rest = ops.mul(ops.mul(x, ops.sigmoid(x)), one_minus(c, ops.square(t)))
    return ops.mul(g, ops.add(t, rest))


@rule("logsigmoid", saves="x", wide=True)
def logsigmoid(c: Call, g: Tensor, x: Tensor) -> Grads:
    """log(s)' = sigmoid(-x)."""
    return c.ops.mul(g, c.ops.sigmoid(c.ops.neg(x)))


@rule("softplus", saves="x", wide=True)
def softplus(c: Call, g: Tensor, x: Tensor) -> Grads:
    """sigmoid(beta x), 1 where beta x > threshold."""
    ops = c.ops
    beta, threshold = c.attrs
    z = ops.mul(x, beta)
    return ops.where(ops.gt(z, threshold), g, ops.mul(g, ops.sigmoid(z)))


@rule("gelu", saves="x", wide=True)
def gelu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """(x Phi(x))' = Phi(x) + x phi(x); of the tanh form, with u = k (x + a x^3):

    (1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2, u' = k (1 + 3 a x^2).
    """
    ops = c.ops
    if c.attrs[0] == "none":
        phi = ops.mul(ops.exp(ops.mul(ops.square(x), -0.5)), 1.0 / sqrt(2.0 * pi))
        cdf = ops.mul(ops.add(ops.erf(ops.mul(x, sqrt(0.5))), 1.0), 0.5)
        return ops.mul(g, ops.add(cdf, ops.mul(x, phi)))
    k, a = sqrt(2.0 / pi), 0.044715
    square = ops.square(x)
    t = ops.tanh(ops.mul(ops.mul(x, k), ops.add(ops.mul(square, a), 1.0)))
    slope = ops.add(ops.mul(square, 3.0 * a * k), k)
    right = ops.mul(ops.mul(x, slope), one_minus(c, ops.square(t)))
    return ops.mul(g, ops.mul(ops.add(ops.add(t, 1.0), right), 0.5))


# ---- piecewise linear ---------------------------------------------------------------------------


@rule("relu", saves="out")
def relu(c: Call, g: Tensor, out: Tensor) -> Grads:
    """1 for x > 0, else 0."""
    return drop_where(c, c.ops.le(out, 0.0), g)


def _between(c: Call, g: Tensor, out: Tensor, low: float, high: float) -> Tensor:
    outside = c.ops.logical_or(c.ops.le(out, low), c.ops.ge(out, high))
    return drop_where(c, outside, g)


@rule("relu6", saves="out")
def relu6(c: Call, g: Tensor, out: Tensor) -> Grads:
    """1 for 0 < x < 6, else 0."""
    return _between(c, g, out, 0.0, 6.0)


@rule("hardtanh", saves="out")
def hardtanh(c: Call, g: Tensor, out: Tensor) -> Grads:
    """1 for low < x < high, else 0."""
    return _between(c, g, out, *c.attrs)


# PyTorch's slope of hardsigmoid: 1/6 as a float32, in float64 as well.
_SIXTH = 0.16666667163372039794921875


@rule("hardsigmoid", saves="x")
def hardsigmoid(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1/6 for -3 < x < 3, else 0, also where x is NaN."""
    inside = c.ops.logical_and(c.ops.gt(x, -3.0), c.ops.lt(x, 3.0))
    return keep_where(c, inside, c.ops.mul(g, _SIXTH))


@rule("hardswish", saves="x", wide=True)
def hardswish(c: Call, g: Tensor, x: Tensor) -> Grads:
    """0 for x <= -3, x / 3 + 1/2 between, 1 for x >= 3."""
    ops = c.ops
    ramp = ops.mul(g, ops.add(ops.mul(x, 1.0 / 3.0), 0.5))
    return drop_where(c, ops.le(x, -3.0), ops.where(ops.ge(x, 3.0), g, ramp))


@rule("leaky_relu", saves="x")
def leaky_relu(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 for x > 0, else slope."""
    return c.ops.where(c.ops.gt(x, 0.0), g, c.ops.mul(g, c.attrs[0]))


@rule("prelu", saves="x weight")
def prelu(c: Call, g: Tensor, x: Tensor, weight: Tensor) -> Grads:
    """dx 1 for x > 0, else weight; dweight 0 for x > 0, else x."""
    ops = c.ops
    positive = ops.gt(x, 0.0)
    gx = ops.where(positive, g, ops.mul(g, weight)) if c.need[0] else None
    return gx, drop_where(c, positive, ops.mul(g, x)) if c.need[1] else None


@rule("threshold", saves="x")
def threshold(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 for x > threshold, else 0."""
    return drop_where(c, c.ops.le(x, c.attrs[0]), g)


def shrunk(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 for |x| > lambd, else 0."""
    return drop_where(c, c.ops.le(c.ops.abs(x), c.attrs[0]), g)


for _name in ("hardshrink", "softshrink"):
    rule(_name, saves="x")(shrunk)
