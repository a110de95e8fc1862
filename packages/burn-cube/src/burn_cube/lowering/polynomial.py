"""What the polynomials of both float types share."""

from __future__ import annotations

import math

from burn_cube.frontend.values import Val
from burn_cube.language import fma
from burn_cube.lowering.choice import select

INF, NAN = math.inf, math.nan


def horner(x: Val, *coefficients: float) -> Val:
    """Return the polynomial with the coefficients from the highest power down."""
    first, second, *rest = coefficients
    made = fma(x, first, x * 0 + second) if not rest else fma(x * 0 + first, x, second)
    for c in rest:
        made = fma(made, x, c)
    return made


def log_edges(x: Val, made: Val) -> Val:
    """Return a logarithm with its results for 0, negative numbers and infinity."""
    made = select(x == 0.0, -INF, made)
    made = select(x < 0.0, NAN, made)
    # Infinity and NaN give themselves.
    return select(x < INF, made, x)
