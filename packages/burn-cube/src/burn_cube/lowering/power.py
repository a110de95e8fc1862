"""Powers: what both float types share of their edges, and x to the y of float32 in float32.

x^y = 2^(y log2 x), where the logarithm and its product with y are sums of two floats: a power of
2^127 takes seven bits of the exponent's digits away.
"""

from __future__ import annotations

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.polynomial import INF, NAN, exp2_fraction, horner, nearest32, scale32
from burn_cube.mathematics import floor
from burn_std.dtypes import float32, int32


def power_edges(x: Val, y: Val, made: Val, negative: Val, digits: int) -> Val:
    """Return x^y from |x|^y, good for |x| inside its range, with the results of all edges.

    Args:
        x: base.
        y: exponent.
        made: |x|^y where |x| is neither 0 nor infinite, and y is finite.
        negative: whether the sign of x is set.
        digits: bits of a float's digits; what has more is an even integer.
    """
    a = abs(x)
    # |x| of 0 and infinity.
    grows = y > 0.0
    made = select(a == 0.0, select(grows, 0.0, INF), made)
    made = select(a == INF, select(grows, INF, 0.0), made)
    # |y| of infinity.
    large = (a > 1.0) ^ (y < 0.0)
    made = select(abs(y) == INF, select(a == 1.0, 1.0, select(large, INF, 0.0)), made)
    # The sign: only odd integers keep it, and only integers take a negative base.
    half = y * 0.5
    whole = floor(y) == y
    odd = whole & (floor(half) != half) & (abs(y) < 2.0**digits)
    made = select(negative & odd, -made, made)
    bad = (x < 0.0) & ~whole & (a < INF)
    made = select(bad, NAN, made)
    made = select((x != x) | (y != y), NAN, made)
    return select((y == 0.0) | (x == 1.0), 1.0, made)


def _log2_pair(x: Val) -> tuple[Val, Val]:
    """Return log2(x) of a positive finite x as a sum of two, good to about 2^-37 relative."""
    small = x < 1.17549435e-38
    bits = bitcast(select(small, x * 33554432.0, x), int32)
    k = (bits - 0x3F3504F3) >> 23
    m = bitcast(bits - (k << 23), float32)
    e = cast(k, float32) - select(small, 25.0, 0.0)
    # s = (m - 1) / (m + 1) in two parts.
    num, den = m - 1.0, m + 1.0
    den_lo = m - (den - 1.0)
    inverse = 1.0 / den
    s = num * inverse
    s_lo = (fma(-s, den, num) - s * den_lo) * inverse
    # log2 m = 2 / ln 2 (s + s^3 / 3 + ...), the first two terms in two parts.
    z = s * s
    z_lo = fma(s, s, -z) + 2.0 * s * s_lo
    cube = z * s
    cube_lo = fma(z, s, -cube) + z * s_lo + z_lo * s
    tail = z * cube * horner(z, 2.6230818925e-1, 3.2059889797e-1, 4.1219858311e-1, 5.7707801636e-1)
    one, one_lo = 2.885390043258667, 3.851926067000022e-08
    third, third_lo = 0.9617967009544373, -7.028461812552678e-09
    line, bend = s * one, cube * third
    line_lo = fma(s, one, -line) + fma(s, one_lo, s_lo * one)
    bend_lo = fma(cube, third, -bend) + fma(cube, third_lo, cube_lo * third)
    hi = line + bend
    lo = (line - hi) + bend + (line_lo + (bend_lo + tail))
    top = e + hi
    low = (e - top) + hi + lo
    out = top + low
    return out, (top - out) + low


def pow32(x: Val, y: Val) -> Val:
    """Return x to the power y."""
    a = abs(x)
    inside = (a > 0.0) & (a < INF)
    log_hi, log_lo = _log2_pair(select(inside, a, 1.0))
    hi = log_hi * y
    lo = fma(log_hi, y, -hi) + log_lo * y
    bounded = select(hi > 160.0, 160.0, select(hi < -160.0, -160.0, hi))
    lo = select(abs(hi) < 160.0, lo, 0.0)
    n, k = nearest32(bounded)
    made = scale32(exp2_fraction((bounded - n) + lo), k)
    return power_edges(x, y, made, bitcast(x, int32) < 0, 24)
