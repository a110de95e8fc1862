"""The functions of the math table, one name each for scalars and vectors.

They take run-time floats; `minimum`, `maximum`, `absolute` and `sign` take every number. All keep
the rules of the framework: NaN propagates through minimum and maximum, shifts and divisions never
trap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube.frontend.values import Val, Waiting, binary, builder_of, describe, is_number, plain
from burn_cube.language import cast
from burn_cube.operations import MATH
from burn_std.dtypes import DType


def _unary(name: str, value: Any) -> Val:
    builder = builder_of(name)
    value = plain(value)
    if isinstance(value, Waiting):
        value.settle()
    if not isinstance(value, Val):
        if not is_number(value):
            raise builder.error(name, "takes a number", describe(value), types=True)
        dtype = _default()
        value = cast(float(value), dtype)
    return Val(builder.op(name, value.op))


def _default() -> DType:
    from burn_std.dtypes import float32

    return float32


def _function(name: str, text: str) -> Callable[[Any], Val]:
    def function(value: Any) -> Val:
        return _unary(name, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


exp = _function("exp", "Return e ** x.")
exp2 = _function("exp2", "Return 2 ** x.")
expm1 = _function("expm1", "Return e ** x - 1, exact near 0.")
log = _function("log", "Return the natural logarithm.")
log2 = _function("log2", "Return the logarithm to base 2.")
log10 = _function("log10", "Return the logarithm to base 10.")
log1p = _function("log1p", "Return log(1 + x), exact near 0.")
sqrt = _function("sqrt", "Return the square root.")
rsqrt = _function("rsqrt", "Return 1 / sqrt(x).")
sin = _function("sin", "Return the sine of radians.")
cos = _function("cos", "Return the cosine of radians.")
tan = _function("tan", "Return the tangent of radians.")
asin = _function("asin", "Return the arc sine in radians.")
acos = _function("acos", "Return the arc cosine in radians.")
atan = _function("atan", "Return the arc tangent in radians.")
sinh = _function("sinh", "Return the hyperbolic sine.")
cosh = _function("cosh", "Return the hyperbolic cosine.")
tanh = _function("tanh", "Return the hyperbolic tangent.")
asinh = _function("asinh", "Return the inverse hyperbolic sine.")
acosh = _function("acosh", "Return the inverse hyperbolic cosine.")
atanh = _function("atanh", "Return the inverse hyperbolic tangent.")
erf = _function("erf", "Return the error function.")
floor = _function("floor", "Return the greatest integer not above, as a float.")
ceil = _function("ceil", "Return the least integer not below, as a float.")
trunc = _function("trunc", "Return the value without its fraction.")
rint = _function("round", "Return the nearest integer, halves to even, as a float.")
isnan = _function("isnan", "Return whether the value is NaN.")
isinf = _function("isinf", "Return whether the value is infinite.")
isfinite = _function("isfinite", "Return whether the value is finite.")
absolute = _function("abs", "Return the magnitude; the least integer wraps to itself.")
sign = _function("sign", "Return -1, 0 or 1; 0 for NaN.")
popcount = _function("popcount", "Return the number of set bits of an integer.")
leading_zeros = _function("leading_zeros", "Return the zero bits above the highest set one.")


def minimum(a: Any, b: Any) -> Val:
    """Return the smaller; NaN propagates."""
    return binary("min", a, b)


def maximum(a: Any, b: Any) -> Val:
    """Return the greater; NaN propagates."""
    return binary("max", a, b)


def atan2(y: Any, x: Any) -> Val:
    """Return the angle of the point (x, y) in radians."""
    return binary("atan2", y, x)


def hypot(a: Any, b: Any) -> Val:
    """Return sqrt(a * a + b * b)."""
    return binary("hypot", a, b)


def copysign(a: Any, b: Any) -> Val:
    """Return the magnitude of a with the sign of b."""
    return binary("copysign", a, b)


def rem(a: Any, b: Any) -> Val:
    """Return the remainder with the sign of the dividend; 0 for a zero integer divisor."""
    return binary("rem", a, b)


def truncdiv(a: Any, b: Any) -> Val:
    """Return the integer quotient without its fraction; 0 for a zero divisor."""
    return binary("truncdiv", a, b)


def mulhi(a: Any, b: Any) -> Val:
    """Return the high half of the product of two unsigned integers of 32 or 64 bits."""
    return binary("mulhi", a, b)


FUNCTIONS = {name: globals()["rint" if name == "round" else name] for name in MATH}
