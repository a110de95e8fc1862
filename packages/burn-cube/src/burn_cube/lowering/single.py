"""Transcendental functions of float32 that are computed in float32.

Sources: Cephes (Moshier) for exp, log and atan2. tanh and erf are made of 2^x - 1 without a branch:
tanh(x) = e / (e + 2) with e = exp(2x) - 1, and erf(x) = 1 - 2^-w(x) with a polynomial for w; the
coefficients are minimax fits.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.polynomial import (
    INF,
    MAGIC32,
    NAN,
    estrin,
    exp2_fraction,
    horner,
    log_edges,
    nearest32,
    scale32,
)
from burn_cube.lowering.power import pow32
from burn_cube.mathematics import copysign, sqrt
from burn_std.dtypes import float32, int32


def _exp32(x: Val) -> Val:
    x = select(x > 89.0, 89.0, select(x < -104.0, -104.0, x))
    n, k = nearest32(x * 1.44269504088896341)
    r = fma(n, -0.693359375, x)
    r = fma(n, 2.12194440e-4, r)
    p = horner(
        r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )  # fmt: skip
    return scale32(fma(p, r * r, r) + 1.0, k)


def _exp2_32(x: Val) -> Val:
    x = select(x > 129.0, 129.0, select(x < -151.0, -151.0, x))
    n, k = nearest32(x)
    return scale32(exp2_fraction(x - n), k)


def _log32(x: Val) -> Val:
    small = x < 1.17549435e-38
    scaled = select(small, x * 33554432.0, x)
    bits = bitcast(scaled, int32)
    # The exponent for which the mantissa lies in [sqrt(1/2), sqrt(2)).
    k = (bits - 0x3F3504F3) >> 23
    m = bitcast(bits - (k << 23), float32) - 1.0
    e = cast(k, float32) - select(small, 25.0, 0.0)
    z = m * m
    p = horner(
        m, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
        1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    )  # fmt: skip
    y = fma(e, -2.12194440e-4, p * m * z)
    y = fma(z, -0.5, y)
    made = fma(e, 0.693359375, m + y)
    return log_edges(x, made)


def _log1p32(x: Val) -> Val:
    u = x + 1.0
    made = _log32(u)
    # What the addition lost, to first order.
    lost = (x - (u - 1.0)) / u
    made = select((u > 0.0) & (u < INF), made + lost, made)
    return select(abs(x) < 1e-20, x, made)


def _atan2_32(y: Val, x: Val) -> Val:
    a, b = abs(y), abs(x)
    steep = a > b
    low, high = select(steep, b, a), select(steep, a, b)
    # Subnormal numbers are made normal; what is huge may not overflow in the sum below.
    scale = select(high < 1e-20, 2.0**60, select(high > 1e30, 2.0**-60, 1.0))
    low, high = low * scale, high * scale
    # Above tan(pi / 8) the angle of the ratio is pi / 4 less that of (high - low) / (high + low).
    past = low > high * 0.41421357
    ratio = select(past, low - high, low) / select(past, low + high, high)
    ratio = select((a == b) & ((a == INF) | (a == 0.0)), 0.0, ratio)
    z = ratio * ratio
    p = horner(z, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
    angle = fma(p * z, ratio, ratio)
    angle = select(past | ((a == b) & (a == INF)), 0.7853981852531433 + angle, angle)
    angle = select(steep, 1.5707963705062866 - (angle + 4.371139000186241e-08), angle)
    negative = bitcast(x, int32) < 0
    angle = select(negative, 3.1415927410125732 - (angle + 8.742278000372485e-08), angle)
    made = copysign(angle, y)
    return select((x != x) | (y != y), NAN, made)


def _power_less_one32(x: Val) -> Val:
    """Return 2^x - 1 of arguments up to 126 in magnitude, precise near 0 too."""
    # The number added puts the exponent of 2^n into the low bits, and n itself is exact.
    shifted = x + (MAGIC32 + 127.0)
    r = x - (shifted - (MAGIC32 + 127.0))
    scale = bitcast(bitcast(shifted, int32) << 23, float32)
    p = estrin(
        r, 1.5403510769829154e-4, 1.3390735257416964e-3, 9.618237614631653e-3,
        5.550357326865196e-2, 2.4022649228572845e-1, 6.931471824645996e-1,
    )  # fmt: skip
    return fma(p, r * scale, scale - 1.0)


def _tanh32(x: Val) -> Val:
    t = abs(x)
    e = _power_less_one32(select(t > 10.0, 10.0, t) * 2.8853900817779268)
    # On the magnitude, so that both signs have the same digits and -0.0 keeps its own.
    return copysign(e / (e + 2.0), x)


def _erf32(x: Val) -> Val:
    t = abs(x)
    t = select(t > 4.0, 4.0, t)
    # -log2(1 - erf(t)) / t, least in the error that it leaves in erf.
    w = estrin(
        t, -1.3356821000343189e-5, 1.697446423349902e-4, -9.130717953667045e-4,
        2.4051512591540813e-3, -2.3153124493546784e-4, -2.7631966397166252e-2,
        1.4827704429626465e-1, 9.184476137161255e-1, 1.6279070377349854,
    )  # fmt: skip
    return copysign(_power_less_one32(w * -t), x)


NARROW: dict[str, Callable[..., Val]] = {
    "exp": _exp32,
    "exp2": _exp2_32,
    "log": _log32,
    "tanh": _tanh32,
    "erf": _erf32,
    "log1p": _log1p32,
    "atan2": _atan2_32,
    "pow": pow32,
    "rsqrt": lambda x: 1.0 / sqrt(x),
}
