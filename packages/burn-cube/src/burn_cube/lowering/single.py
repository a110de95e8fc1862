"""Transcendental functions of float32 that are computed in float32.

Sources: Cephes (Moshier) for exp, log and tanh; N. Juffa's single precision erf.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube.frontend.values import Val
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.polynomial import horner, log_edges
from burn_cube.mathematics import copysign, sqrt
from burn_std.dtypes import float32, int32

_MAGIC32 = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer in the low bits


def _nearest32(x: Val) -> tuple[Val, Val]:
    """Return the nearest integer as a float and as an int32; no NaN reaches a conversion."""
    shifted = x + _MAGIC32
    return shifted - _MAGIC32, bitcast(shifted, int32) - 0x4B400000


def _scale32(value: Val, n: Val) -> Val:
    """Return value * 2^n in two steps, so that the result may be subnormal or overflow."""
    half = n >> 1
    first = bitcast((half + 127) << 23, float32)
    second = bitcast((n - half + 127) << 23, float32)
    return value * first * second


def _exp32(x: Val) -> Val:
    x = select(x > 89.0, 89.0, select(x < -104.0, -104.0, x))
    n, k = _nearest32(x * 1.44269504088896341)
    r = fma(n, -0.693359375, x)
    r = fma(n, 2.12194440e-4, r)
    p = horner(
        r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )  # fmt: skip
    return _scale32(fma(p, r * r, r) + 1.0, k)


def _exp2_32(x: Val) -> Val:
    x = select(x > 129.0, 129.0, select(x < -151.0, -151.0, x))
    n, k = _nearest32(x)
    r = x - n
    p = horner(
        r, 1.535336188319500e-4, 1.339887440266574e-3, 9.618437357674640e-3,
        5.550332471162809e-2, 2.402264791363012e-1, 6.931472028550421e-1, 1.0,
    )  # fmt: skip
    return _scale32(p, k)


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


def _tanh32(x: Val) -> Val:
    t = abs(x)
    z = x * x
    p = horner(
        z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
        -3.33332819422e-1,
    )  # fmt: skip
    small = fma(p * z, t, t)
    e = _exp_bounded32(select(t > 10.0, 10.0, t) * 2.0)
    # On the magnitude, so that -0.0 keeps its sign.
    return copysign(select(t < 0.625, small, 1.0 - 2.0 / (e + 1.0)), x)


def _exp_bounded32(x: Val) -> Val:
    """Return exp(x) of arguments up to 80 in magnitude, where one scaling is enough."""
    n, k = _nearest32(x * 1.44269504088896341)
    r = fma(n, -0.693359375, x)
    r = fma(n, 2.12194440e-4, r)
    p = horner(
        r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )  # fmt: skip
    return (fma(p, r * r, r) + 1.0) * bitcast((k + 127) << 23, float32)


def _erf32(x: Val) -> Val:
    t = abs(x)
    t = select(t > 4.0, 4.0, t)
    s = x * x
    r = horner(t, -1.72853470e-5, 3.83197126e-4)
    u = horner(t, -3.88396438e-3, 2.42546219e-2)
    r = fma(r, t * t, u)
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = fma(r, t, c)
    large = copysign(1.0 - _exp_bounded32(fma(r, t, -t)), x)
    p = horner(
        s, -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1,
        1.28379166e-1,
    )  # fmt: skip
    # NaN takes the polynomial. A choice of x behind the copy of its sign would be one masked
    # `vpternlog`, which LLVM 20 gets wrong.
    return select(abs(x) >= 0.927734375, large, fma(p, x, x))


NARROW: dict[str, Callable[[Val], Val]] = {
    "exp": _exp32,
    "exp2": _exp2_32,
    "log": _log32,
    "tanh": _tanh32,
    "erf": _erf32,
    "rsqrt": lambda x: 1.0 / sqrt(x),
}
