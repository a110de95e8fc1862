"""What the polynomials of both float types share."""

from __future__ import annotations

import math
from typing import Any

from burn_cube.frontend.values import Val
from burn_cube.language import fma
from burn_cube.lowering.choice import select

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
