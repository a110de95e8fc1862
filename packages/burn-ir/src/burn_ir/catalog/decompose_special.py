"""Special functions in operations: the steps of their scalar expressions, one after the other."""

from __future__ import annotations

from functools import cache
from math import factorial, pi
from typing import Any

from burn_ir.catalog.decompose import Ops, Tensor, in_f32, window
from burn_ir.entry import CATALOG
from burn_ir.scalar import Step, bind, parse, steps

_OPERATIONS = {"and": "bitwise_and"}
# Terms of the sum and Bernoulli numbers over factorials of the tail of the zeta function.
_DIRECT = 10
_TAIL = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000,
)  # fmt: skip


@cache
def _steps(name: str) -> tuple[Step, ...]:
    return steps(bind(parse(CATALOG[name].expr or "", name), {"floating": True}))


@in_f32()
def _computed(ops: Ops, x: Tensor, name: str) -> Tensor:
    """Return the expression of an entry of one input."""
    found: list[Any] = []
    for step in _steps(name):
        args = [found[k] for k in step.args]
        if step.op == "name":
            value = x
        elif step.op == "const":
            value = step.value
        elif step.op == "round":
            value = ops.round(args[0], 0)
        else:
            if step.op == "where" and not any(hasattr(a, "dtype") for a in args[1:]):
                args[1] = ops.full(x.dtype, (), args[1])
            value = getattr(ops, _OPERATIONS.get(step.op, step.op))(*args)
        found.append(value)
    return found[-1]


def lgamma(ops: Ops, x: Tensor) -> Tensor:
    """Return log|gamma(x)|."""
    return _computed(ops, x, "lgamma")


def digamma(ops: Ops, x: Tensor) -> Tensor:
    """Return the derivative of lgamma."""
    return _computed(ops, x, "digamma")


def erfinv(ops: Ops, x: Tensor) -> Tensor:
    """Return the inverse of the error function."""
    return _computed(ops, x, "erfinv")


def erfc(ops: Ops, x: Tensor) -> Tensor:
    """Return 1 - erf(x)."""
    return _computed(ops, x, "erfc")


@in_f32()
def polygamma(ops: Ops, x: Tensor, n: int) -> Tensor:
    """Return (-1)^(n + 1) n! zeta(n + 1, x), zeta by Euler and Maclaurin.

    Below 1/2 by reflection, (-1)^n polygamma(n, 1 - x) - pi d^n cot(pi x) / dx^n.
    """
    turned = ops.lt(x, 0.5)
    # Terms of one sign, the smallest first.
    t = ops.where(turned, ops.sub(1, x), x)
    value = _tail(ops, ops.add(t, _DIRECT), n + 1)
    for k in range(_DIRECT - 1, -1, -1):
        value = ops.add(value, _power(ops, ops.reciprocal(ops.add(t, k)), n + 1))
    sign = 1 if n % 2 else -1
    value = ops.mul(value, sign * float(factorial(n)))
    angle = ops.mul(ops.sub(x, ops.round(x, 0)), pi)
    cotangent = ops.div(ops.cos(angle), ops.sin(angle))
    bend = ops.mul(_cotangent(ops, cotangent, n), pi)
    return ops.where(turned, ops.sub(ops.mul(value, -sign), bend), value)


def _tail(ops: Ops, y: Tensor, s: int) -> Tensor:
    """Return the sum of (y + k)^-s over all k >= 0, for y of 10 and more."""
    r = ops.reciprocal(y)
    square = ops.mul(r, r)
    factors, rising = [], float(s)
    for k, b in enumerate(_TAIL):
        factors.append(b * rising)
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
    series: Any = factors[-1]
    for c in factors[-2::-1]:
        series = ops.add(ops.mul(square, series), c)
    inner = ops.add(ops.mul(r, series), 0.5)
    inner = ops.add(ops.mul(inner, r), 1 / (s - 1))
    return ops.mul(inner, _power(ops, r, s - 1))


def _power(ops: Ops, x: Tensor, n: int) -> Tensor:
    """Return x to the whole power n >= 1 by products."""
    out, base = None, x
    while n:
        if n & 1:
            out = base if out is None else ops.mul(out, base)
        n >>= 1
        if n:
            base = ops.mul(base, base)
    return out


def _cotangent(ops: Ops, c: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of cot(pi x) as a polynomial of c = cot(pi x)."""
    p = [0.0, 1.0]
    for _ in range(n):
        # dc/dx = -pi (1 + c^2)
        slope = [i * a for i, a in enumerate(p)][1:]
        p = [0.0] * (len(slope) + 2)
        for i, a in enumerate(slope):
            p[i] -= pi * a
            p[i + 2] -= pi * a
    out: Any = p[-1]
    for a in p[-2::-1]:
        out = ops.add(ops.mul(c, out), a)
    return out


@in_f32()
def logcumsumexp(ops: Ops, x: Tensor, dim: int) -> Tensor:
    """Return log(cumsum(exp(x))) by doubling: step s joins every element with the one s before."""
    if not x.shape:
        return ops.add(x, 0)
    n, step = x.shape[dim], 1
    while step < n:
        late = ops.logaddexp(window(ops, x, dim, step, n), window(ops, x, dim, 0, n - step))
        x = ops.cat((window(ops, x, dim, 0, step), late), dim)
        step *= 2
    return x
