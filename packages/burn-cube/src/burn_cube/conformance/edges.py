# ruff: noqa: D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of values at their edges: wrapping, division by zero, NaN, rounding, casts, vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import burn_cube.mathematics as m
from burn_cube.conformance.case import Collection
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    Array,
    Float,
    Generic,
    bitcast,
    cast,
    fma,
    local,
    select,
    splat,
    unroll,
    vector,
)
from burn_std.dtypes import (
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)

F = Float
T, S = Generic("T"), Generic("S")
EDGES = Collection()
case = EDGES.case
NAN, INF = float("nan"), float("inf")


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


# ---- integers ------------------------------------------------------------------------------------


@case(lambda: [np.arange(-128, 128).astype("i1"), np.zeros(256, "i1")], cube_dim=256,
      expect=lambda x, o: {1: x * x * x + x})  # fmt: skip
@cube
def wraps_in_8_bits(x: Array[int8], out: Array[int8]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = v * v * v + v


@case(lambda: [np.array([0, 1, 2**31, 2**32 - 1], "u4"), np.zeros(4, "u4")],
      expect=lambda x, o: {1: x - np.uint32(5)})  # fmt: skip
@cube
def below_zero_unsigned(x: Array[uint32], out: Array[uint32]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] - 5


@case(lambda: [i32(-(2**31), 5, -5, 0), np.zeros(4, "i4"), np.zeros(4, "i4")],
      expect=lambda x, a, b: {1: -x, 2: np.abs(x)})  # fmt: skip
@cube
def the_lowest_has_no_opposite(x: Array[int32], a: Array[int32], b: Array[int32]):
    a[ABSOLUTE_POS] = -x[ABSOLUTE_POS]
    b[ABSOLUTE_POS] = m.absolute(x[ABSOLUTE_POS])


@case(lambda: [i32(7, -7, 0, 2**31 - 1), np.zeros(16, "i4")],
      expect=lambda x, o: {1: np.zeros(16, "i4")})  # fmt: skip
@cube
def division_by_zero_is_zero(x: Array[int32], out: Array[int32]):
    v, zero = x[ABSOLUTE_POS], x[2]
    out[ABSOLUTE_POS * 4] = v // zero
    out[ABSOLUTE_POS * 4 + 1] = v % zero
    out[ABSOLUTE_POS * 4 + 2] = m.truncdiv(v, zero)
    out[ABSOLUTE_POS * 4 + 3] = m.rem(v, zero)


@case(lambda: [np.array([-(2**63)]), np.array([-1]), np.zeros(4, "i8")], cube_dim=1,
      expect=lambda x, y, o: {2: np.array([-(2**63), 0, -(2**63), 0])})  # fmt: skip
@cube
def the_lowest_over_minus_one(x: Array[int64], y: Array[int64], out: Array[int64]):
    out[0] = x[0] // y[0]
    out[1] = x[0] % y[0]
    out[2] = m.truncdiv(x[0], y[0])
    out[3] = m.rem(x[0], y[0])


@case(lambda: [i32(-7, 7, -8, 8), np.zeros(16, "i4")], expect=lambda x, o: {1: np.stack(
    [x // 3, x % 3, (x / 3).astype("i4"), np.fmod(x, 3)], 1).reshape(-1)})  # fmt: skip
@cube
def rounding_of_quotients(x: Array[int32], out: Array[int32]):
    v, at = x[ABSOLUTE_POS], ABSOLUTE_POS * 4
    out[at] = v // 3
    out[at + 1] = v % 3
    out[at + 2] = m.truncdiv(v, 3)
    out[at + 3] = m.rem(v, 3)


@case(lambda: [i32(0, 1, 31, 32, 33, 64, 100), np.zeros(7, "i4"), np.zeros(7, "i4")],
      expect=lambda n, a, b: {1: i32(5, 10, -(2**31), 0, 0, 0, 0),
                              2: i32(-5, -3, -1, -1, -1, -1, -1)})  # fmt: skip
@cube
def shifts_beyond_the_width(n: Array[int32], a: Array[int32], b: Array[int32]):
    a[ABSOLUTE_POS] = int32(5) << n[ABSOLUTE_POS]
    b[ABSOLUTE_POS] = int32(-5) >> n[ABSOLUTE_POS]


@case(lambda: [np.arange(64, dtype="u4") * 977, np.zeros(64, "u4")], cube_dim=64)
@cube
def mixed_bits(x: Array[uint32], out: Array[uint32]):
    h = x[ABSOLUTE_POS]
    h ^= h >> 16
    h *= 0x85EBCA6B
    h ^= h >> 13
    h *= 0xC2B2AE35
    out[ABSOLUTE_POS] = h ^ h >> 16


@case(lambda: [np.arange(1, 33, dtype="u8"), np.zeros(32, "u8")], expect=lambda x, o: {1: np.array(
    [(int(v) * 6364136223846793005 * 2**33 >> 64) % 2**64 for v in x], "u8")})  # fmt: skip
@cube
def high_half_of_a_product(x: Array[uint64], out: Array[uint64]):
    out[ABSOLUTE_POS] = m.mulhi(x[ABSOLUTE_POS] << 33, cast(6364136223846793005, uint64))


@case(lambda: [np.arange(32, dtype="u1") * 8, np.zeros(32, "u1")], expect=lambda x, o: {
    1: np.minimum(x.astype("i4") + 100, 255).astype("u1")})  # fmt: skip
@cube
def saturating_add(x: Array[uint8], out: Array[uint8]):
    out[ABSOLUTE_POS] = cast(m.minimum(cast(x[ABSOLUTE_POS], int32) + 100, 255), uint8)


@case(lambda: [np.array([2**63, 2**64 - 1, 5], "u8"), np.zeros(3, "?")],
      expect=lambda x, o: {1: np.array([True, True, False])})  # fmt: skip
@cube
def unsigned_order(x: Array[uint64], out: Array[bool_]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] > 6


@case(lambda: [np.array([True, False, True, False]), np.array([True, True, False, False]),
               np.zeros(4, "?")], expect=lambda a, b, o: {2: (a ^ b) | (a & ~b)})  # fmt: skip
@cube
def bits_of_bools(a: Array[bool_], b: Array[bool_], out: Array[bool_]):
    i = ABSOLUTE_POS
    out[i] = (a[i] ^ b[i]) | (a[i] & ~b[i])


@case(lambda: [np.array([-3, 100, -128], "i1"), i32(10**6, -5, 1), np.zeros(3, "i4")],
      expect=lambda a, b, o: {2: a + b})  # fmt: skip
@cube
def narrow_joins_wide(a: Array[int8], b: Array[int32], out: Array[int32]):
    out[ABSOLUTE_POS] = a[ABSOLUTE_POS] + b[ABSOLUTE_POS]


# ---- floats --------------------------------------------------------------------------------------


@case(lambda: [f32(NAN, 1, NAN, -0.0), f32(1, NAN, NAN, 0.0), np.zeros(4, "f"), np.zeros(4, "f")],
      expect=lambda x, y, a, b: {2: np.minimum(x, y), 3: np.maximum(x, y)})  # fmt: skip
@cube
def nan_wins(x: Array[F], y: Array[F], a: Array[F], b: Array[F]):
    i = ABSOLUTE_POS
    a[i] = m.minimum(x[i], y[i])
    b[i] = m.maximum(x[i], y[i])


@case(lambda: [f32(NAN, 1.0), np.zeros(2, "i4")], expect=lambda x, o: {1: i32(32, 7)})
@cube
def nan_is_unordered(x: Array[F], out: Array[int32]):
    v, bits = x[ABSOLUTE_POS], int32(0)
    if v == v:
        bits += 1
    if v <= 1.0:
        bits += 2
    if v >= 1.0:
        bits += 4
    if v < 1.0:
        bits += 8
    if v > 1.0:
        bits += 16
    if v != v:
        bits += 32
    out[ABSOLUTE_POS] = bits


@case(lambda: [f32(0.0, -0.0, 5.0, -5.0), np.zeros(4, "i4")],
      expect=lambda x, o: {1: (x * np.float32(-0.0)).view("i4")})  # fmt: skip
@cube
def zero_keeps_its_sign(x: Array[F], out: Array[int32]):
    out[ABSOLUTE_POS] = bitcast(x[ABSOLUTE_POS] * -0.0, int32)


@case(lambda: [f32(1, -1, 0, INF), f32(0, 0, 0, INF), np.zeros(8, "f")], expect=lambda x, y, o: {
    2: np.stack([x / y, x - y * np.float32(INF)], 1).reshape(-1)})  # fmt: skip
@cube
def infinities(x: Array[F], y: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    out[2 * i] = x[i] / y[i]
    out[2 * i + 1] = x[i] - y[i] * F(float("inf"))


@case(lambda: [f32(NAN, 1e20, -1e20, 3.9, -3.9), np.zeros(5, "i4"), np.zeros(5, "u1"),
               np.zeros(5, "i8")],
      expect=lambda x, a, b, c: {1: i32(0, 2**31 - 1, -(2**31), 3, -3),
                                 2: np.array([0, 255, 0, 3, 0], "u1"),
                                 3: np.array([0, 2**63 - 1, -(2**63), 3, -3])})  # fmt: skip
@cube
def casts_saturate(x: Array[F], a: Array[int32], b: Array[uint8], c: Array[int64]):
    i = ABSOLUTE_POS
    a[i] = cast(x[i], int32)
    b[i] = cast(x[i], uint8)
    c[i] = cast(x[i], int64)


@case(lambda: [f32(0.5, 1.5, 2.5, -0.5, -1.5, 2.4999), np.zeros(6, "f")],
      expect=lambda x, o: {1: np.rint(x)})  # fmt: skip
@cube
def halves_to_even(x: Array[F], out: Array[F]):
    out[ABSOLUTE_POS] = m.rint(x[ABSOLUTE_POS])


@case(lambda: [f32(1 + 2**-12, 3, 1e-20), np.zeros(6, "f")], expect=lambda x, o: {1: np.stack(
    [(x.astype("f8") ** 2 - 1).astype("f"), x * x - np.float32(1)], 1).reshape(-1)})  # fmt: skip
@cube
def fused_only_where_written(x: Array[float32], out: Array[float32]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS * 2] = fma(v, v, -1.0)
    out[ABSOLUTE_POS * 2 + 1] = v * v - 1.0


@case(lambda: [np.array([2048, 1000, 0.1], "f2"), np.array([1, 0.3, 0.2], "f2"),
               np.zeros(3, "f2")], expect=lambda x, y, o: {2: (x + y) - x + y * y})  # fmt: skip
@cube
def halves_round_each_time(x: Array[float16], y: Array[float16], out: Array[float16]):
    i = ABSOLUTE_POS
    out[i] = (x[i] + y[i]) - x[i] + y[i] * y[i]


@case(lambda: [np.array([0.1, 3.0], "f2"), f32(0.1, 1e6), np.zeros(2, "f")],
      expect=lambda a, b, o: {2: a.astype("f") * b})  # fmt: skip
@cube
def half_joins_single(a: Array[float16], b: Array[float32], out: Array[float32]):
    out[ABSOLUTE_POS] = a[ABSOLUTE_POS] * b[ABSOLUTE_POS]


@case(lambda: [f32(1.0, 0.1, 3e38, 1e-40), np.zeros(4, "f")],
      expect=lambda x, o: {1: np.nextafter(x, np.float32(INF))})  # fmt: skip
@cube
def the_next_float(x: Array[float32], out: Array[float32]):
    out[ABSOLUTE_POS] = bitcast(bitcast(x[ABSOLUTE_POS], int32) + 1, float32)


@case(lambda: [f32(-7.5, 7.5, -7.5, 7.5), f32(2, -2, -2, 2), np.zeros(8, "f")],
      expect=lambda x, y, o: {2: np.stack([x % y, x // y], 1).reshape(-1)})  # fmt: skip
@cube
def remainder_of_floats(x: Array[F], y: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    out[2 * i] = x[i] % y[i]
    out[2 * i + 1] = x[i] // y[i]


@case(lambda: [f32(0, -2, -2, 2, INF, 1), f32(0, 3, 0.5, -INF, 0, NAN), np.zeros(6, "f")],
      expect=lambda x, y, o: {2: f32(1, -8, NAN, 0, 1, 1)})  # fmt: skip
@cube
def powers_at_the_edge(x: Array[F], y: Array[F], out: Array[F]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] ** y[ABSOLUTE_POS]


@case(lambda: [np.array([0.1, 0.2, 0.3] * 8), np.zeros(1)], cube_dim=1,
      expect=lambda x, o: {1: np.add.accumulate(x)[-1:]})  # fmt: skip
@cube
def literal_takes_the_dtype(x: Array[float64], out: Array[float64]):
    total = 0.0
    for k in range(len(x)):
        total += x[k]
    out[0] = total


@case(lambda: [f32(-4, 4), np.zeros(2, "f")], expect=lambda x, o: {1: f32(0, 2)})
@cube
def select_computes_both(x: Array[F], out: Array[F]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = select(v < 0.0, F(0), m.sqrt(v))


@case(lambda: [np.linspace(-3, 3, 64, dtype="f"), np.zeros(64, "i2"), np.zeros(64, "f")],
      cube_dim=64, expect=lambda x, q, o: {1: np.rint(x * 1000).astype("i2")})  # fmt: skip
@cube
def there_and_back(x: Array[float32], q: Array[int16], out: Array[float32]):
    i = ABSOLUTE_POS
    q[i] = cast(m.rint(x[i] * 1000.0), int16)
    out[i] = cast(q[i], float32) / 1000.0


# ---- vectors -------------------------------------------------------------------------------------


def _lanes(n: int = 64) -> list[Any]:
    return [np.linspace(-2, 3, n, dtype="f"), np.zeros(n, "f")]


@case(lambda: _lanes(), cube_dim=16, expect=lambda x, o: {1: x.reshape(-1, 4)[:, ::-1].reshape(-1)})
@cube
def lanes_turned(x: Array[F], out: Array[F]):
    v = x.load(ABSOLUTE_POS * 4, 4)
    out.store(ABSOLUTE_POS * 4, vector(v[3], v[2], v[1], v[0]))


@case(lambda: [np.arange(128, dtype="f"), np.zeros(8, "f")], cube_dim=8,
      expect=lambda x, o: {1: x.reshape(8, 16).sum(1)})  # fmt: skip
@cube
def sixteen_lanes_added(x: Array[F, 16], out: Array[F]):
    out[ABSOLUTE_POS] = sum(x[ABSOLUTE_POS])


@case(lambda: _lanes(), cube_dim=8, expect=lambda x, o: {1: np.where(x > 0.5, x, x * 0 - 1)})
@cube
def lanes_chosen(x: Array[F, 8], out: Array[F, 8]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = select(v > 0.5, v, splat(F(-1), 8))


@case(lambda: [np.arange(32, dtype="i4") * 123456789, np.zeros(32, "i4")], cube_dim=16,
      expect=lambda x, o: {1: (x << 3) ^ (x * 7 >> 5)})  # fmt: skip
@cube
def lanes_of_integers(x: Array[int32, 2], out: Array[int32, 2]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = (v << 3) ^ (v * 7 >> 5)


@case(lambda: _lanes(), cube_dim=16, expect=lambda x, o: {1: np.trunc(x * 10).astype("f") / 10})
@cube
def lanes_cast(x: Array[float32, 4], out: Array[float32, 4]):
    out[ABSOLUTE_POS] = cast(cast(x[ABSOLUTE_POS] * 10.0, int32), float32) / 10.0


@case(lambda: _lanes(), cube_dim=32, expect=lambda x, o: {
    1: (x.astype("f8") * x + np.float32(0.5)).astype("f")})  # fmt: skip
@cube
def lanes_fused(x: Array[float32, 2], out: Array[float32, 2]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = fma(v, v, splat(float32(0.5), 2))


@case(lambda: [f32(NAN, 1, -1, 5, NAN, NAN, 0, 2), np.zeros(8, "f")], cube_dim=2,
      expect=lambda x, o: {1: np.minimum(np.maximum(x, 0), 2)})  # fmt: skip
@cube
def lanes_clamped(x: Array[F, 4], out: Array[F, 4]):
    out[ABSOLUTE_POS] = m.minimum(m.maximum(x[ABSOLUTE_POS], 0.0), 2.0)


@case(lambda: _lanes(67), cube_dim=16, expect=lambda x, o: {1: np.concatenate(
    [x[1:65].reshape(16, 4).sum(1), np.zeros(51, "f")])}, ulps=2)  # fmt: skip
@cube
def loads_from_anywhere(x: Array[F], out: Array[F]):
    v = x.load(ABSOLUTE_POS * 4 + 1, 4)
    out[ABSOLUTE_POS] = (v[0] + v[1]) + v[2] + v[3]


@case(lambda: [np.arange(96, dtype="f"), np.zeros(8, "f")], cube_dim=1,
      expect=lambda x, o: {1: x.reshape(12, 8).sum(0)})  # fmt: skip
@cube
def lanes_in_a_loop(x: Array[F], out: Array[F]):
    total = local(splat(F(0), 8))
    for k in range(0, len(x), 8):
        total += x.load(k, 8)
    out.store(0, total)


@case(lambda: [np.arange(1, 33, dtype="f"), np.arange(33, 65, dtype="f"), np.zeros(32, "f")],
      cube_dim=16, expect=lambda x, y, o: {2: (x.view("c8") * y.view("c8")).view("f")})  # fmt: skip
@cube
def pairs_as_complex(x: Array[F, 2], y: Array[F, 2], out: Array[F, 2]):
    a, b = x[ABSOLUTE_POS], y[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = vector(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])


@case(lambda: _lanes(), cube_dim=16, expect=lambda x, o: {1: np.abs(x)})
@cube
def bits_of_lanes(x: Array[float32, 4], out: Array[float32, 4]):
    out[ABSOLUTE_POS] = bitcast(bitcast(x[ABSOLUTE_POS], int32) & 0x7FFFFFFF, float32)


@case(lambda: [np.arange(48, dtype="f").reshape(-1), np.zeros(16, "f")], cube_dim=1, width=4,
      expect=lambda x, o: {1: x[:16] + x[16:32] + x[32:]})  # fmt: skip
@cube
def rows_of_lanes(x: Array[F], out: Array[F], *, width):
    sums = [local(splat(F(0), width)) for _ in range(4)]
    for row in range(3):
        for k in unroll(range(4)):
            sums[k] += x.load(row * 16 + k * width, width)
    for k in unroll(range(4)):
        out.store(k * width, sums[k])


@case(lambda: _lanes(), cube_dim=64, width=1, expect=lambda x, o: {1: x + 2})
@cube
def one_lane_is_a_number(x: Array[F], out: Array[F], *, width):
    out.store(ABSOLUTE_POS * width, x.load(ABSOLUTE_POS * width, width) + splat(F(2), width))
