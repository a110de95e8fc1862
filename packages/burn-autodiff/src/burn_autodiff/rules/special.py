"""Rules of special functions; logcumsumexp is differentiated through its parts."""

from __future__ import annotations

from math import pi, sqrt as root

from burn_autodiff.rules.table import Call, Grads, Tensor, rule


@rule("lgamma", saves="x")
def lgamma(c: Call, g: Tensor, x: Tensor) -> Grads:
    """lgamma'(x) = digamma(x)."""
    return c.ops.mul_no_nan(g, c.ops.digamma(x))


@rule("digamma", saves="x")
def digamma(c: Call, g: Tensor, x: Tensor) -> Grads:
    """digamma'(x) = polygamma(1, x)."""
    return c.ops.mul_no_nan(g, c.ops.polygamma(x, 1))


@rule("polygamma", saves="x")
def polygamma(c: Call, g: Tensor, x: Tensor) -> Grads:
    """polygamma(n, x)' = polygamma(n + 1, x)."""
    return c.ops.mul_no_nan(g, c.ops.polygamma(x, c.attrs[0] + 1))


@rule("erfinv", saves="out")
def erfinv(c: Call, g: Tensor, out: Tensor) -> Grads:
    """erfinv'(x) = sqrt(pi) / 2 exp(erfinv(x)^2)."""
    bell = c.ops.exp(c.ops.square(out))
    return c.ops.mul_no_nan(g, c.ops.mul(bell, root(pi) / 2))


@rule("erfc", saves="x")
def erfc(c: Call, g: Tensor, x: Tensor) -> Grads:
    """erfc'(x) = -2 / sqrt(pi) exp(-x^2)."""
    bell = c.ops.exp(c.ops.neg(c.ops.square(x)))
    return c.ops.mul(g, c.ops.mul(bell, -2.0 / root(pi)))
