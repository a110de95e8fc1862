"""Rules of special functions."""

from __future__ import annotations

from math import inf, pi, sqrt as root

from burn_autodiff.rules.pieces import at
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


@rule("logcumsumexp", saves="x out")
def logcumsumexp(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """dx_j = exp(x_j - out_j) A_j, A_j = sum over i >= j of g_i exp(out_j - out_i), 0 at -inf.

    The sums grow by doubling; out never falls, so no factor exceeds 1, and all is linear in g.
    """
    ops, dim = c.ops, c.attrs[0]
    total, step = g, 1
    n = x.shape[dim] if x.shape else 1
    while step < n:
        gap = _gap(c, at(c, out, dim, 0, n - step), at(c, out, dim, step, n))
        more = ops.mul(ops.exp(gap), at(c, total, dim, step, n))
        joined = ops.add(at(c, total, dim, 0, n - step), more)
        total = ops.cat([joined, at(c, total, dim, n - step, n)], dim)
        step *= 2
    share = ops.where(ops.eq(out, -inf), ops.scalar(0.0, x.dtype), ops.exp(_gap(c, x, out)))
    return ops.mul(total, share)


def _gap(c: Call, low: Tensor, high: Tensor) -> Tensor:
    """Return low - high; equal infinities have no distance."""
    ops = c.ops
    same = ops.logical_and(ops.eq(low, high), ops.isinf(low))
    return ops.where(same, ops.scalar(0.0, low.dtype), ops.sub(low, high))
