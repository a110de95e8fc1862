"""Transcendental functions of float64, in which most of those of float32 are computed as well.

Reductions and coefficients of exp, log, sin, cos and atan are those of fdlibm (Sun); erf rests on
Chebyshev fits of our own. Sine, cosine and tangent reduce their argument in three parts, which
keeps their digits up to about 2^45.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.polynomial import INF, NAN, horner, log_edges
from burn_cube.lowering.power import power_edges
from burn_cube.mathematics import copysign, sqrt
from burn_std.dtypes import float64, int64

LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10

_MAGIC64 = 6755399441055744.0  # 1.5 * 2^52


def _nearest64(x: Val) -> tuple[Val, Val]:
    shifted = x + _MAGIC64
    return shifted - _MAGIC64, bitcast(shifted, int64) - 0x4338000000000000


def _scale64(value: Val, n: Val) -> Val:
    half = n >> 1
    first = bitcast((half + 1023) << 52, float64)
    second = bitcast((n - half + 1023) << 52, float64)
    return value * first * second


def _expm1_reduced(x: Val) -> tuple[Val, Val]:
    """Return expm1 of the remainder, and the power of two, of a bounded argument."""
    n, k = _nearest64(x * 1.44269504088896338700)
    hi = fma(n, -LN2_HI, x)
    r = fma(n, -LN2_LO, hi)
    # What the last subtraction rounded away.
    c = (hi - r) - n * LN2_LO
    factorials = [1.0 / math.factorial(i) for i in range(13, 1, -1)]
    p = horner(r, *factorials)
    return fma(r * r, p, fma(r, c, c)) + r, k


def _exp64(x: Val) -> Val:
    x = select(x > 710.0, 710.0, select(x < -746.0, -746.0, x))
    p, k = _expm1_reduced(x)
    return _scale64(p + 1.0, k)


def _expm1_64(x: Val) -> Val:
    bounded = select(x > 710.0, 710.0, select(x < -40.0, -40.0, x))
    p, k = _expm1_reduced(bounded)
    # 2^k itself overflows at 1024: half of everything, then twice.
    power = bitcast((k - 1 + 1023) << 52, float64)
    made = fma(power, p, power - 0.5) * 2.0
    tiny = abs(x) < 1e-300
    return select(tiny, x, made)


def _log64(x: Val) -> Val:
    return log_edges(x, _log_finite(x))


def _log_finite(x: Val) -> Val:
    small = x < 2.2250738585072014e-308
    scaled = select(small, x * 18014398509481984.0, x)
    bits = bitcast(scaled, int64)
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = bitcast(bits - (k << 52), float64) - 1.0
    e = cast(k, float64) - select(small, 54.0, 0.0)
    s = f / (f + 2.0)
    z = s * s
    r = z * horner(
        z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
        2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
        6.666666666666735130e-01,
    )  # fmt: skip
    half = f * f * 0.5
    return e * LN2_HI - ((half - (s * (half + r) + e * LN2_LO)) - f)


def _log1p64(x: Val) -> Val:
    u = x + 1.0
    made = _log64(u)
    # What the addition lost, to first order.
    lost = (x - (u - 1.0)) / u
    made = select((u > 0.0) & (u < INF), made + lost, made)
    return select(abs(x) < 1e-300, x, made)


def _log2_64(x: Val) -> Val:
    bits = bitcast(x, int64)
    exact = bitcast((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000, float64)
    power = cast((bits >> 52) - 1023, float64)
    whole = (exact == 1.0) & (x > 2.3e-308) & (x < INF)
    hi = 1.4426950408889634
    y = _log64(x)
    return select(whole, power, fma(y, hi, y * 2.0355273740931033e-17))


def _log10_64(x: Val) -> Val:
    y = _log64(x)
    return fma(y, 0.4342944819032518, y * 1.098319650216765e-17)


def _pi_reduced(x: Val) -> tuple[Val, Val]:
    """Return the remainder by pi/2 and the quadrant; only its low two bits are meant."""
    n, k = _nearest64(x * 0.63661977236758134308)
    r = fma(n, -1.57079632679489655800e00, x)
    r = fma(n, -6.12323399573676603587e-17, r)
    r = fma(n, 1.49738490485916985e-33, r)
    # Far beyond what three parts reduce, at least the result stays a sine.
    return select(abs(r) < 1.0, r, 0.0), k


def _sin_kernel(r: Val) -> Val:
    z = r * r
    p = horner(
        z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
        -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01,
    )  # fmt: skip
    return fma(p * z, r, r)


def _cos_kernel(r: Val) -> Val:
    z = r * r
    p = horner(
        z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
        2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02,
    )  # fmt: skip
    half = z * 0.5
    w = 1.0 - half
    return w + (((1.0 - w) - half) + z * z * p)


def _sin64(x: Val, quarter: int = 0) -> Val:
    r, k = _pi_reduced(x)
    k = k + quarter
    made = select((k & 1) == 0, _sin_kernel(r), _cos_kernel(r))
    made = select((k & 2) == 0, made, -made)
    if not quarter:
        made = select(x == 0.0, x, made)  # the reduction loses the sign of -0.0
    return select(abs(x) < INF, made, NAN)


def _tan64(x: Val) -> Val:
    r, k = _pi_reduced(x)
    s, c = _sin_kernel(r), _cos_kernel(r)
    odd = (k & 1) == 1
    made = select(odd, -c, s) / select(odd, s, c)
    made = select(x == 0.0, x, made)
    return select(abs(x) < INF, made, NAN)


_ATAN_HI = (4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01,
            1.57079632679489655800e00)  # fmt: skip
_ATAN_LO = (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17,
            6.12323399573676603587e-17)  # fmt: skip


def _atan64(x: Val) -> Val:
    t = abs(x)
    # (t - c) / (1 + c t) for c = 0, 1/2, 1, 3/2 and infinity.
    top, bottom, hi, lo = t, t * 0 + 1.0, t * 0, t * 0
    for limit, num, den, at in (
        (0.4375, 2.0 * t - 1.0, t + 2.0, 0),
        (0.6875, t - 1.0, t + 1.0, 1),
        (1.1875, t - 1.5, fma(t, 1.5, t * 0 + 1.0), 2),
        (2.4375, t * 0 - 1.0, t, 3),
    ):
        past = t >= limit
        top, bottom = select(past, num, top), select(past, den, bottom)
        hi, lo = select(past, _ATAN_HI[at], hi), select(past, _ATAN_LO[at], lo)
    r = top / bottom
    r = select(t < INF, r, 0.0)
    z = r * r
    w = z * z
    odd = z * horner(
        w, 1.62858201153657823623e-02, 4.97687799461593236017e-02, 6.66107313738753120669e-02,
        9.09088713343650656196e-02, 1.42857142725034663711e-01, 3.33333333333329318027e-01,
    )  # fmt: skip
    even = w * horner(
        w, -3.65315727442169155270e-02, -5.83357013379057348645e-02, -7.69187620504482999495e-02,
        -1.11111104054623557880e-01, -1.99999999998764832476e-01,
    )  # fmt: skip
    made = hi - ((r * (odd + even) - lo) - r)
    made = select(t == INF, _ATAN_HI[3], made)
    return copysign(select(x != x, x, made), x)


def _atan2_64(y: Val, x: Val) -> Val:
    a, b = abs(y), abs(x)
    steep = a > b
    ratio = select(steep, b, a) / select(steep, a, b)
    ratio = select((a == b) & ((a == INF) | (a == 0.0)), select(a == 0.0, 0.0, 1.0), ratio)
    angle = _atan64(ratio)
    angle = select(steep, 1.5707963267948966 - (angle - 6.123233995736766e-17), angle)
    negative = bitcast(x, int64) < 0
    angle = select(negative, 3.141592653589793 - (angle - 1.2246467991473532e-16), angle)
    made = copysign(angle, y)
    return select((x != x) | (y != y), NAN, made)


def _asin64(x: Val) -> Val:
    t = abs(x)
    made = copysign(_atan64(t / (1.0 + sqrt((1.0 - t) * (1.0 + t)))) * 2.0, x)
    return select(t <= 1.0, made, NAN)


def _acos64(x: Val) -> Val:
    made = _atan64(sqrt((1.0 - x) / (1.0 + x))) * 2.0
    made = select(x == -1.0, 3.141592653589793, made)
    return select(abs(x) <= 1.0, made, NAN)


def _sinh64(x: Val) -> Val:
    t = abs(x)
    e = _expm1_64(select(t > 40.0, 40.0, t))
    small = (e + e / (e + 1.0)) * 0.5
    half = _exp64(t * 0.5)
    made = select(t > 22.0, half * 0.5 * half, small)
    return copysign(select(x != x, x, made), x)


def _cosh64(x: Val) -> Val:
    t = abs(x)
    e = _exp64(select(t > 40.0, 40.0, t))
    half = _exp64(t * 0.5)
    made = select(t > 22.0, half * 0.5 * half, e * 0.5 + 0.5 / e)
    return select(x != x, x, made)


def _tanh64(x: Val) -> Val:
    t = abs(x)
    e = _expm1_64(select(t > 22.0, 22.0, t) * 2.0)
    made = select(t > 1.0, 1.0 - 2.0 / (e + 2.0), e / (e + 2.0))
    return copysign(select(x != x, x, made), x)


def _asinh64(x: Val) -> Val:
    t = abs(x)
    big = t > 1e150
    z = select(big, 1.0, t)
    small = _log1p64(z + z * z / (1.0 + sqrt(z * z + 1.0)))
    made = select(big, _log64(t) + 0.6931471805599453, small)
    return copysign(select(x != x, x, made), x)


def _acosh64(x: Val) -> Val:
    big = x > 1e150
    t = select(big, 1.0, x - 1.0)
    made = _log1p64(t + sqrt(t * 2.0 + t * t))
    made = select(big, _log64(x) + 0.6931471805599453, made)
    return select(x >= 1.0, made, NAN)


def _atanh64(x: Val) -> Val:
    t = abs(x)
    made = _log1p64(2.0 * t / (1.0 - t)) * 0.5
    made = copysign(select(t == 1.0, INF, made), x)
    return select(t <= 1.0, made, NAN)


_ERF_SMALL = (
    5.9571761477489114044e-11, -1.137284885679167367e-9, 1.4659775274047435814e-8,
    -1.6350312701054695011e-7, 1.6461000484121368033e-6, -0.000014925595266831181565,
    0.00012055331111642710923, -0.00085483269808337899052, 0.0052239776248180144673,
    -0.026866170645076793248, 0.11283791670954878666, -0.37612638903183748056,
    0.1283791670955125738,
)  # fmt: skip
# erfc(x) exp(x^2) on [1, 6] in t = (x - 2.25) / (x + 2.25); the fit is good to 1.5e-19.
_ERFC = (
    2.3700107432404742068e-7, -2.5894333852425098996e-7, -1.2308500336451543617e-6,
    -2.6754103210407406921e-7, 5.1030690492527417541e-6, 7.767212791505312832e-6,
    -0.000016615104086333238535, -0.000058241739327512393539, 0.000045552931812811416329,
    0.00038142173303889993942, -0.00018635041413921222212, -0.002767949854824336702,
    0.0033932430530621796841, 0.021688775765698424526, -0.10505063893636877196,
    0.2496614424274305792, -0.39818926263937120959, 0.23108725873039186997,
)  # fmt: skip


def _erf64(x: Val) -> Val:
    s = x * x
    small = fma(horner(s, *_ERF_SMALL), x, x)
    t = abs(x)
    t = select(t > 6.0, 6.0, select(t < 1.0, 1.0, t))
    u = (t - 2.25) / (t + 2.25)
    made = copysign(1.0 - _exp64(-t * t) * horner(u, *_ERFC), x)
    # NaN takes the polynomial; see `_erf32` for why x is not chosen behind the copy of its sign.
    return select(abs(x) >= 1.0, made, small)


def _hypot64(x: Val, y: Val) -> Val:
    a, b = abs(x), abs(y)
    high, low = select(a > b, a, b), select(a > b, b, a)
    ratio = select(high == 0.0, 0.0, low / high)
    made = high * sqrt(fma(ratio, ratio, ratio * 0 + 1.0))
    made = select((x != x) | (y != y), NAN, made)
    return select((a == INF) | (b == INF), INF, made)


def _rsqrt64(x: Val) -> Val:
    return 1.0 / sqrt(x)


def _log_double(x: Val) -> tuple[Val, Val]:
    """Return log(x) of a positive finite x as a sum of two, good to about 1e-20 relative."""
    small = x < 2.2250738585072014e-308
    scaled = select(small, x * 18014398509481984.0, x)
    bits = bitcast(scaled, int64)
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = bitcast(bits - (k << 52), float64)
    e = cast(k, float64) - select(small, 54.0, 0.0)
    # s = (m - 1) / (m + 1) in two parts.
    num, den = m - 1.0, m + 1.0
    den_lo = m - (den - 1.0)
    s = num / den
    s_lo = fma(-s, den, num)
    s_lo = (s_lo - s * den_lo) / den
    z = s * s
    # log m = 2 s + 2 s^3 / 3 + ..., the cubic term in two parts as well.
    tail = z * z * s * horner(z, *[2.0 / i for i in range(23, 3, -2)])
    z_lo = fma(s, s, -z) + 2.0 * s * s_lo
    cube = z * s
    cube_lo = fma(z, s, -cube) + z * s_lo + z_lo * s
    third = 0.6666666666666666
    c = cube * third
    c_lo = fma(cube, third, -c) + cube * 3.700743415417188e-17 + cube_lo * third
    hi = s * 2.0
    total = hi + c
    lo = (hi - total) + c + (s_lo * 2.0 + c_lo + tail)
    base = e * LN2_HI
    high = base + total
    low = (base - high) + total + fma(e, LN2_LO, lo)
    out = high + low
    return out, (high - out) + low


def _pow64(x: Val, y: Val) -> Val:
    a = abs(x)
    inside = (a > 0.0) & (a < INF)
    log_hi, log_lo = _log_double(select(inside, a, 1.0))
    hi = log_hi * y
    lo = fma(log_hi, y, -hi) + log_lo * y
    finite = abs(hi) < 1e4
    bounded = select(finite, hi, copysign(hi * 0 + 1e4, hi))
    lo = select(finite, lo, 0.0)
    small = _exp64(bounded)
    made = select((small < INF) & (small > 0.0), fma(small, lo, small), small)
    return power_edges(x, y, made, bitcast(x, int64) < 0, 53)


def _exp2_64(x: Val) -> Val:
    x = select(x > 1025.0, 1025.0, select(x < -1076.0, -1076.0, x))
    n, k = _nearest64(x)
    f = x - n
    r = f * 0.6931471805599453
    lo = fma(f, 0.6931471805599453, -r) + f * 2.3190468138462996e-17
    p = horner(r, *[1.0 / math.factorial(i) for i in range(13, 1, -1)])
    return _scale64(fma(r * r, p, lo + r) + 1.0, k)


WIDE: dict[str, Callable[..., Val]] = {
    "exp": _exp64, "exp2": _exp2_64, "expm1": _expm1_64, "log": _log64,
    "log2": _log2_64, "log10": _log10_64, "log1p": _log1p64, "rsqrt": _rsqrt64, "sin": _sin64,
    "cos": lambda x: _sin64(x, 1), "tan": _tan64, "asin": _asin64, "acos": _acos64,
    "atan": _atan64, "sinh": _sinh64, "cosh": _cosh64, "tanh": _tanh64, "asinh": _asinh64,
    "acosh": _acosh64, "atanh": _atanh64, "erf": _erf64, "hypot": _hypot64, "pow": _pow64,
    "atan2": _atan2_64,
}  # fmt: skip
