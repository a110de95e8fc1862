"""The operators and intrinsics of the scalar language on Python numbers, as the contract says.

Floats are Python's (f64) and never raise: a pole gives an infinity, no answer gives NaN. Ints
are unbounded here; whoever stores them wraps them. Used for constants and as an oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import copysign, inf, isnan, nan
from typing import Any

Number = Any


def _total(f: Callable[..., float], pole: float = nan) -> Callable[..., float]:
    """Return f with an infinity where it overflows, and `pole` where it has no value."""

    def run(*args: Number) -> float:
        try:
            return f(*args)
        except OverflowError:
            return inf
        except ValueError:
            return nan if any(map(isnan, args)) else pole

    return run


def _log(f: Callable[[float], float], pole: float) -> Callable[[float], float]:
    def run(x: float) -> float:
        if x == pole:
            return -inf
        if x < pole or isnan(x):
            return nan
        return f(x)

    return run


def _divide(a: float, b: float) -> float:
    if b != 0:
        return float(a) / float(b)
    return nan if a == 0 or isnan(a) else copysign(inf, a) * copysign(1.0, b)


def _is_float(*xs: Number) -> bool:
    return any(isinstance(x, float) for x in xs)


def remainder(a: Number, b: Number) -> Number:
    """Return a modulo b with the sign of b; integers by zero give 0."""
    if not _is_float(a, b):
        return a % b if b else 0
    if b == 0 or math.isinf(a) or isnan(a) or isnan(b):
        return nan
    return float(a) % b if not math.isinf(b) or a == 0 or (a < 0) == (b < 0) else b


def floor_divide(a: Number, b: Number) -> Number:
    """Return the quotient that goes with `remainder`; integers by zero give 0."""
    if not _is_float(a, b):
        return a // b if b else 0
    if b == 0:
        return _divide(a, b)
    r = math.fmod(a, b) if math.isfinite(a) and not isnan(b) else nan
    quotient = (a - r) / b
    if r and (r < 0) != (b < 0):
        quotient -= 1
    if isnan(quotient) or math.isinf(quotient):
        return quotient
    if not quotient:
        return copysign(0.0, _divide(a, b))
    down = float(math.floor(quotient))
    return down + 1.0 if quotient - down > 0.5 else down


def fmod(a: Number, b: Number) -> Number:
    """Return a modulo b with the sign of a; integers by zero give 0."""
    if _is_float(a, b):
        return _total(math.fmod)(a, b)
    return int(copysign(abs(a) % abs(b), a)) if b else 0


def power(a: Number, b: Number) -> Number:
    """Return a to the power b; a negative power of an integer is 0 except of 1 and -1."""
    if not _is_float(a, b):
        if b >= 0:
            return a**b
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    try:
        return math.pow(a, b)
    except OverflowError:
        return -inf if a < 0 and b == int(b) and int(b) % 2 else inf
    except ValueError:
        if a == 0:
            return copysign(inf, a) if b == int(b) and int(b) % 2 else inf
        return nan


def _extreme(pick: Callable[[Number, Number], bool]) -> Callable[[Number, Number], Number]:
    def run(a: Number, b: Number) -> Number:
        if a != a or (b == b and pick(a, b)):
            return a
        return b

    return run


def _sinh(f: Callable[[float], float]) -> Callable[[float], float]:
    def run(x: float) -> float:
        try:
            return f(x)
        except OverflowError:
            return copysign(inf, x)

    return run


def _rounded(f: Callable[[float], float]) -> Callable[[float], float]:
    def run(x: float) -> float:
        return copysign(float(f(x)), x) if math.isfinite(x) else x

    return run


def _periodic(f: Callable[[float], float]) -> Callable[[float], float]:
    def run(x: float) -> float:
        return f(x) if math.isfinite(x) else nan

    return run


def _floored(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) and x else x


def _add(a: Number, b: Number) -> Number:
    return (a or b) if isinstance(a, bool) and isinstance(b, bool) else a + b


def _mul(a: Number, b: Number) -> Number:
    return (a and b) if isinstance(a, bool) and isinstance(b, bool) else a * b


def _invert(a: Number) -> Number:
    return (not a) if isinstance(a, bool) else ~a


PYTHON: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": lambda a, b: a - b, "mul": _mul, "div": _divide,
    "floordiv": floor_divide, "mod": remainder, "pow": power, "neg": lambda a: -a,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "invert": _invert, "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "not": lambda a: not a, "where": lambda c, a, b: a if c else b,
    "maximum": _extreme(lambda a, b: a >= b), "minimum": _extreme(lambda a, b: a <= b),
    "exp": _total(math.exp), "expm1": _total(math.expm1), "log": _log(math.log, 0),
    "log1p": _log(math.log1p, -1), "log2": _log(math.log2, 0), "log10": _log(math.log10, 0),
    "sqrt": _total(math.sqrt), "sin": _periodic(math.sin), "cos": _periodic(math.cos),
    "tan": _periodic(math.tan), "sinh": _sinh(math.sinh), "cosh": _total(math.cosh),
    "tanh": math.tanh, "asin": _total(math.asin), "acos": _total(math.acos),
    "atan": math.atan, "asinh": math.asinh, "acosh": _total(math.acosh),
    "atanh": lambda x: copysign(inf, x) if abs(x) == 1 else _total(math.atanh)(x),
    "erf": math.erf, "abs": abs, "floor": _floored, "ceil": _rounded(math.ceil),
    "trunc": _rounded(math.trunc), "round": _rounded(round), "atan2": math.atan2,
    "hypot": math.hypot, "fmod": fmod,
}  # fmt: skip
"""Every operator and intrinsic but `cast`, which needs to know how a dtype stores a number."""
