"""Rules of elementwise arithmetic. `g` is the cotangent, `out` the result, `f'` the factor.

Rules whose factor can be infinite or NaN multiply by `mul_no_nan`, so that a branch that a `where`
did not take leaks nothing (numerics contract, "Edges").
"""

from __future__ import annotations

from math import inf, log as ln, pi, sqrt as root

from burn_autodiff.rules.pieces import drop_where, keep_where, one_minus, zeros_like
from burn_autodiff.rules.table import Call, Grads, Tensor, rule

# ---- exponentials and roots ---------------------------------------------------------------------


@rule("exp", saves="out")
def exp(c: Call, g: Tensor, out: Tensor) -> Grads:
    """exp'(x) = exp(x)."""
    return c.ops.mul_no_nan(g, out)


@rule("expm1", saves="out")
def expm1(c: Call, g: Tensor, out: Tensor) -> Grads:
    """expm1'(x) = expm1(x) + 1."""
    return c.ops.mul_no_nan(g, c.ops.add(out, 1.0))


@rule("log", saves="x")
def log(c: Call, g: Tensor, x: Tensor) -> Grads:
    """log'(x) = 1 / x."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(x))


@rule("log1p", saves="x")
def log1p(c: Call, g: Tensor, x: Tensor) -> Grads:
    """log1p'(x) = 1 / (1 + x)."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(c.ops.add(x, 1.0)))


@rule("log2", saves="x")
def log2(c: Call, g: Tensor, x: Tensor) -> Grads:
    """log2'(x) = 1 / (x ln 2)."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(c.ops.mul(x, ln(2.0))))


@rule("log10", saves="x")
def log10(c: Call, g: Tensor, x: Tensor) -> Grads:
    """log10'(x) = 1 / (x ln 10)."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(c.ops.mul(x, ln(10.0))))


@rule("sqrt", saves="out")
def sqrt(c: Call, g: Tensor, out: Tensor) -> Grads:
    """sqrt'(x) = 1 / (2 sqrt(x)), +inf at 0."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(c.ops.mul(out, 2.0)))


@rule("rsqrt", saves="out")
def rsqrt(c: Call, g: Tensor, out: Tensor) -> Grads:
    """(x^-1/2)' = -out^3 / 2."""
    cube = c.ops.mul(c.ops.square(out), out)
    return c.ops.mul_no_nan(g, c.ops.mul(cube, -0.5))


@rule("reciprocal", saves="out")
def reciprocal(c: Call, g: Tensor, out: Tensor) -> Grads:
    """(1 / x)' = -out^2."""
    return c.ops.mul_no_nan(g, c.ops.neg(c.ops.square(out)))


# ---- trigonometry -------------------------------------------------------------------------------


@rule("sin", saves="x")
def sin(c: Call, g: Tensor, x: Tensor) -> Grads:
    """sin'(x) = cos(x)."""
    return c.ops.mul_no_nan(g, c.ops.cos(x))


@rule("cos", saves="x")
def cos(c: Call, g: Tensor, x: Tensor) -> Grads:
    """cos'(x) = -sin(x)."""
    return c.ops.mul_no_nan(g, c.ops.neg(c.ops.sin(x)))


@rule("tan", saves="out")
def tan(c: Call, g: Tensor, out: Tensor) -> Grads:
    """tan'(x) = 1 + tan(x)^2."""
    return c.ops.mul_no_nan(g, c.ops.add(c.ops.square(out), 1.0))


@rule("sinh", saves="x")
def sinh(c: Call, g: Tensor, x: Tensor) -> Grads:
    """sinh'(x) = cosh(x)."""
    return c.ops.mul_no_nan(g, c.ops.cosh(x))


@rule("cosh", saves="x")
def cosh(c: Call, g: Tensor, x: Tensor) -> Grads:
    """cosh'(x) = sinh(x)."""
    return c.ops.mul_no_nan(g, c.ops.sinh(x))


@rule("tanh", saves="out")
def tanh(c: Call, g: Tensor, out: Tensor) -> Grads:
    """tanh'(x) = 1 - tanh(x)^2."""
    return c.ops.mul(g, one_minus(c, c.ops.square(out)))


@rule("asin", saves="x")
def asin(c: Call, g: Tensor, x: Tensor) -> Grads:
    """asin'(x) = 1 / sqrt(1 - x^2)."""
    return c.ops.mul_no_nan(g, c.ops.rsqrt(one_minus(c, c.ops.square(x))))


@rule("acos", saves="x")
def acos(c: Call, g: Tensor, x: Tensor) -> Grads:
    """acos'(x) = -1 / sqrt(1 - x^2)."""
    return c.ops.mul_no_nan(g, c.ops.neg(c.ops.rsqrt(one_minus(c, c.ops.square(x)))))


@rule("atan", saves="x")
def atan(c: Call, g: Tensor, x: Tensor) -> Grads:
    """atan'(x) = 1 / (1 + x^2)."""
    return c.ops.div(g, c.ops.add(c.ops.square(x), 1.0))


@rule("asinh", saves="x")
def asinh(c: Call, g: Tensor, x: Tensor) -> Grads:
    """asinh'(x) = 1 / sqrt(x^2 + 1)."""
    return c.ops.mul(g, c.ops.rsqrt(c.ops.add(c.ops.square(x), 1.0)))


@rule("acosh", saves="x")
def acosh(c: Call, g: Tensor, x: Tensor) -> Grads:
    """acosh'(x) = 1 / sqrt(x^2 - 1)."""
    return c.ops.mul_no_nan(g, c.ops.rsqrt(c.ops.sub(c.ops.square(x), 1.0)))


@rule("atanh", saves="x")
def atanh(c: Call, g: Tensor, x: Tensor) -> Grads:
    """atanh'(x) = 1 / (1 - x^2)."""
    return c.ops.mul_no_nan(g, c.ops.reciprocal(one_minus(c, c.ops.square(x))))


@rule("erf", saves="x")
def erf(c: Call, g: Tensor, x: Tensor) -> Grads:
    """erf'(x) = 2 / sqrt(pi) exp(-x^2)."""
    bell = c.ops.exp(c.ops.neg(c.ops.square(x)))
    return c.ops.mul(g, c.ops.mul(bell, 2.0 / root(pi)))


# ---- one tensor, other maps ---------------------------------------------------------------------


@rule("neg")
def neg(c: Call, g: Tensor) -> Grads:
    """(-x)' = -1."""
    return c.ops.neg(g)


@rule("abs", saves="x")
def abs_(c: Call, g: Tensor, x: Tensor) -> Grads:
    """|x|' = sign(x), 0 at 0."""
    return c.ops.mul(g, c.ops.sign(x))


@rule("square", saves="x")
def square(c: Call, g: Tensor, x: Tensor) -> Grads:
    """(x^2)' = 2 x."""
    return c.ops.mul(g, c.ops.mul(x, 2.0))


def flat(c: Call, g: Tensor) -> Grads:
    """F' = 0: the function is a step between its jumps."""
    return zeros_like(c, 0)


for _name in ("sign", "floor", "ceil", "trunc", "round"):
    rule(_name)(flat)


@rule("cast")
def cast(c: Call, g: Tensor) -> Grads:
    """cast(x)' = 1: g in x's dtype."""
    return c.ops.cast(g, c.dtypes[0])


@rule("nan_to_num", saves="x")
def nan_to_num(c: Call, g: Tensor, x: Tensor) -> Grads:
    """1 where x is finite, else 0."""
    return keep_where(c, c.ops.isfinite(x), g)


# ---- two tensors --------------------------------------------------------------------------------


@rule("add")
def add(c: Call, g: Tensor) -> Grads:
    """d(x + y) = dx + dy."""
    return g if c.need[0] else None, g if c.need[1] else None


@rule("sub")
def sub(c: Call, g: Tensor) -> Grads:
    """d(x - y) = dx - dy."""
    return g if c.need[0] else None, c.ops.neg(g) if c.need[1] else None


@rule("mul", saves="x:y y:x")
def mul(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """d(x y) = y dx + x dy."""
    return (c.ops.mul(g, y) if c.need[0] else None, c.ops.mul(g, x) if c.need[1] else None)


@rule("div", saves="x:y y")
def div(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """d(x / y) = dx / y - (x / y) / y dy."""
    ops, gx, gy = c.ops, None, None
    if c.need[0]:
        gx = ops.mul_no_nan(g, ops.reciprocal(y))
    if c.need[1]:
        gy = ops.mul_no_nan(g, ops.neg(ops.div(ops.div(x, y), y)))
    return gx, gy


def stepped(c: Call, g: Tensor) -> Grads:
    """d trunc(x / y) = d floor(x / y) = 0."""
    return tuple(zeros_like(c, i) if c.need[i] else None for i in (0, 1))


rule("div_trunc")(stepped)
rule("floor_divide")(stepped)


@rule("remainder", saves="x y")
def remainder(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """d(x - floor(x / y) y) = dx - floor(x / y) dy."""
    gy = c.ops.neg(c.ops.mul(g, c.ops.floor_divide(x, y))) if c.need[1] else None
    return g if c.need[0] else None, gy


@rule("fmod", saves="x y")
def fmod(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """d(x - trunc(x / y) y) = dx - trunc(x / y) dy."""
    gy = c.ops.neg(c.ops.mul(g, c.ops.div_trunc(x, y))) if c.need[1] else None
    return g if c.need[0] else None, gy


@rule("pow", saves="x y")
def pow_(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """d(x^y) = y x^(y - 1) dx + x^y log(x) dy.

    The first factor is 0 where y = 0, the second 0 where x = 0 and y >= 0.
    """
    gx = _pow_base(c, g, x, y) if c.need[0] else None
    gy = _pow_exponent(c, g, x, y) if c.need[1] else None
    return gx, gy


def _pow_base(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    ops = c.ops
    # 0 x^0 and not 0 x^-1 where y = 0; the mask is of y's shape, which mostly is one number.
    lower = drop_where(c, ops.eq(y, 0.0), ops.sub(y, 1.0))
    return ops.mul_no_nan(g, ops.mul(ops.pow(x, lower), y))


def _pow_exponent(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    ops = c.ops
    known = ops.logical_and(ops.eq(x, 0.0), ops.ge(y, 0.0))
    # The logarithm of a safe base: what is masked must have a finite derivative too.
    safe = ops.where(known, ops.scalar(1.0, x.dtype), x)
    # x^y is computed again and not saved: exponents seldom want a gradient, bases mostly do.
    return ops.mul_no_nan(g, ops.mul(ops.pow(x, y), ops.log(safe)))


def _extreme(c: Call, g: Tensor, beaten: Tensor, tied: Tensor) -> Tensor:
    return drop_where(c, beaten, c.ops.where(tied, c.ops.mul(g, 0.5), g))


@rule("maximum", saves="x y")
def maximum(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """1 for the larger, 1/2 for each where equal; a NaN goes to both."""
    tied = c.ops.eq(x, y)
    return (
        _extreme(c, g, c.ops.lt(x, y), tied) if c.need[0] else None,
        _extreme(c, g, c.ops.gt(x, y), tied) if c.need[1] else None,
    )


@rule("minimum", saves="x y")
def minimum(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """1 for the smaller, 1/2 for each where equal; a NaN goes to both."""
    tied = c.ops.eq(x, y)
    return (
        _extreme(c, g, c.ops.gt(x, y), tied) if c.need[0] else None,
        _extreme(c, g, c.ops.lt(x, y), tied) if c.need[1] else None,
    )


@rule("atan2", saves="y x")
def atan2(c: Call, g: Tensor, y: Tensor, x: Tensor) -> Grads:
    """d atan2(y, x) = (x dy - y dx) / (x^2 + y^2), 0 at the origin."""
    ops = c.ops
    norm = ops.add(ops.square(x), ops.square(y))
    scale = drop_where(c, ops.eq(norm, 0.0), ops.reciprocal(norm))
    part = ops.mul(g, scale)
    return (
        ops.mul(part, x) if c.need[0] else None,
        ops.neg(ops.mul(part, y)) if c.need[1] else None,
    )


@rule("hypot", saves="x y out")
def hypot(c: Call, g: Tensor, x: Tensor, y: Tensor, out: Tensor) -> Grads:
    """d hypot(x, y) = (x dx + y dy) / hypot(x, y)."""
    ops = c.ops
    return (
        ops.mul_no_nan(g, ops.div(x, out)) if c.need[0] else None,
        ops.mul_no_nan(g, ops.div(y, out)) if c.need[1] else None,
    )


@rule("logaddexp", saves="x y out")
def logaddexp(c: Call, g: Tensor, x: Tensor, y: Tensor, out: Tensor) -> Grads:
    """d log(e^x + e^y) = sigmoid(x - y) dx + sigmoid(y - x) dy, 0 where both are -inf."""
    ops = c.ops
    nothing = ops.eq(out, -inf)
    gap = drop_where(c, nothing, ops.sub(x, y))
    return (
        drop_where(c, nothing, ops.mul(g, ops.sigmoid(gap))) if c.need[0] else None,
        drop_where(c, nothing, ops.mul(g, ops.sigmoid(ops.neg(gap)))) if c.need[1] else None,
    )


@rule("mul_no_nan", saves="g:factor factor:g")
def mul_no_nan(c: Call, g: Tensor, grad: Tensor, factor: Tensor) -> Grads:
    """d(g f) = f dg + g df, each 0 where its own cotangent is 0.

    The map is linear in its first input, so that input's derivative is f even where it is 0.
    """
    ops = c.ops
    return (
        ops.mul_no_nan(g, factor) if c.need[0] else None,
        ops.mul_no_nan(g, grad) if c.need[1] else None,
    )


@rule("lerp", saves="x end weight")
def lerp(c: Call, g: Tensor, x: Tensor, end: Tensor, weight: Tensor) -> Grads:
    """d(x + w (e - x)) = (1 - w) dx + w de + (e - x) dw."""
    ops = c.ops
    return (
        ops.mul(g, one_minus(c, weight)) if c.need[0] else None,
        ops.mul(g, weight) if c.need[1] else None,
        ops.mul(g, ops.sub(end, x)) if c.need[2] else None,
    )


# ---- three tensors ------------------------------------------------------------------------------


@rule("where", saves="cond")
def where(c: Call, g: Tensor, cond: Tensor) -> Grads:
    """1 for the value taken, exactly 0 for the other."""
    return (
        None,
        keep_where(c, cond, g) if c.need[1] else None,
        drop_where(c, cond, g) if c.need[2] else None,
    )


@rule("clamp", saves="x min max")
def clamp(c: Call, g: Tensor, x: Tensor, low: Tensor, high: Tensor) -> Grads:
    """1 for x where min <= x <= max, for min where x < min < max, for max where x or min > max."""
    ops, gx, glow, ghigh = c.ops, None, None, None
    if c.need[0]:
        inside = None if low is None else ops.ge(x, low)
        if high is not None:
            below = ops.le(x, high)
            inside = below if inside is None else ops.logical_and(inside, below)
        gx = g if inside is None else keep_where(c, inside, g)
    if c.need[1]:
        raised = ops.lt(x, low)
        if high is not None:
            raised = ops.logical_and(raised, ops.lt(low, high))
        glow = keep_where(c, raised, g)
    if c.need[2]:
        cut = ops.gt(x, high)
        if low is not None:
            cut = ops.logical_or(cut, ops.gt(low, high))
        ghigh = keep_where(c, cut, g)
    return gx, glow, ghigh
