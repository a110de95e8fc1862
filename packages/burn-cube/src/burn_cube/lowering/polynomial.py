"""What the polynomials share, those of both float types and those of float32."""

from __future__ import annotations

import math
from typing import Any

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, fma
from burn_cube.lowering.choice import select
from burn_std.dtypes import float32, int32

INF, NAN = math.inf, math.nan


def horner(x: Val, *coefficients: float) -> Val:
    """Return the polynomial with the coefficients from the highest power down."""
    first, second, *rest = coefficients
    made = fma(x, first, second)
    for c in rest:
        made = fma(made, x, c)
    return made


def estrin(x: Val, *coefficients: float) -> Val:
    """Return the same as `horner` with fewer operations that wait for each other."""
    terms: list[Any] = list(reversed(coefficients))
    while True:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [fma(x, b, a) for a, b in pairs] + terms[len(terms) & -2 :]
        if len(terms) == 1:
            made: Val = terms[0]
            return made
        x = x * x


def log_edges(x: Val, made: Val) -> Val:
    """Return a logarithm with its results for 0, negative numbers and infinity."""
    made = select(x == 0.0, -INF, made)
    made = select(x < 0.0, NAN, made)
    # Infinity and NaN give themselves.
    return select(x < INF, made, x)


MAGIC32 = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer in the low bits


def nearest32(x: Val) -> tuple[Val, Val]:
    """Return the nearest integer as a float and as an int32; no NaN reaches a conversion."""
    shifted = x + MAGIC32
    return shifted - MAGIC32, bitcast(shifted, int32) - 0x4B400000


def scale32(value: Val, n: Val) -> Val:
    """Return value * 2^n in two steps, so that the result may be subnormal or overflow."""
    half = n >> 1
    first = bitcast((half + 127) << 23, float32)
    second = bitcast((n - half + 127) << 23, float32)
    return value * first * second


def exp2_fraction(r: Val) -> Val:
    """Return 2^r for |r| of one half at most."""
    return horner(
        r, 1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3,
        5.550332471162809e-2, 2.402264791363012e-1, 6.931472028550421e-1, 1.0,
    )  # fmt: skip
