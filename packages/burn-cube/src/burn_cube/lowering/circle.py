"""Sine, cosine and tangent of float32 for arguments of any size.

The quarters of a turn are counted in float64 as Payne and Hanek do it: of 2 / pi only those digits
matter that do not make whole turns of the argument, and four runs of them serve every exponent.
The remainder is exact to its float32 digits, and the polynomials are those of Cephes (Moshier).
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.polynomial import horner
from burn_cube.mathematics import rint
from burn_std.dtypes import float32, float64, int32, int64

# The digits of 2 / pi from 2^-start on, for arguments from 2^(32 k): two runs of 29 bits, whose
# products with a float32 are exact, and what follows.
_DIGITS = (
    (0.0, 0.636619770899415, 1.4681663246252086e-09, 2.276010073078396e-18),
    (2.0**32, 0.003807272354606539, 1.2974804038242901e-11, 2.6290565170974656e-20),
    (2.0**64, 2.418782371388286e-13, 2.5736426420755207e-21, 5.778727033816148e-30),
    (2.0**96, 3.2543805834646035e-23, 2.5670069622001645e-31, 1.0490494448130901e-39),
)
_MAGIC64 = 6755399441055744.0  # 1.5 * 2^52


def _quarters(x: Val) -> tuple[Val, Val]:
    """Return the remainder of an angle by quarters of a turn, and how many, in their low bits."""
    wide = cast(x, float64)
    size = abs(wide)
    _, *digits = _DIGITS[0]
    parts = [wide * 0.0 + digit for digit in digits]
    for limit, *digits in _DIGITS[1:]:
        parts = [select(size >= limit, new, old) for new, old in zip(digits, parts, strict=True)]
    # Whole turns are taken away, exactly.
    first, second = (fma(rint(t * 0.25), -4.0, t) for t in (wide * part for part in parts[:2]))
    rest = wide * parts[2]
    shifted = (first + second + rest) + _MAGIC64
    n = shifted - _MAGIC64
    turn = ((first - n) + second) + rest
    k = cast(bitcast(shifted, int64) & 3, int32)
    return cast(turn * 1.5707963267948966, float32), k


def _sine(r: Val) -> Val:
    z = r * r
    p = horner(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
    return fma(p * z, r, r)


def _cosine(r: Val) -> Val:
    z = r * r
    p = horner(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
    return fma(p * z, z, fma(z, -0.5, z * 0.0 + 1.0))


def sin32(x: Val, quarter: int = 0) -> Val:
    """Return the sine of an angle that so many quarters of a turn are added to."""
    r, k = _quarters(x)
    k = k + quarter
    made = select((k & 1) == 0, _sine(r), _cosine(r))
    made = select((k & 2) == 0, made, -made)
    # The reduction loses the sign of -0.0.
    return made if quarter else select(x == 0.0, x, made)


def cos32(x: Val) -> Val:
    """Return the cosine."""
    return sin32(x, 1)


def tan32(x: Val) -> Val:
    """Return the tangent."""
    r, k = _quarters(x)
    s, c = _sine(r), _cosine(r)
    odd = (k & 1) == 1
    made = select(odd, -c, s) / select(odd, s, c)
    return select(x == 0.0, x, made)


# Functions of float32 that need float64 for a part of the way.
MIXED: dict[str, Callable[..., Val]] = {"sin": sin32, "cos": cos32, "tan": tan32}
