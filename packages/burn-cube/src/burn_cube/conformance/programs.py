# ruff: noqa: D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of whole small programs: control flow in every nesting, calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_cube.conformance.case import Collection
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    Array,
    Float,
    Generic,
    LocalArray,
    cast,
)
from burn_std.dtypes import float32, float64, int32, int64

F = Float
T, S = Generic("T"), Generic("S")
PROGRAMS = Collection()
case = PROGRAMS.case


def numbers(n: int = 32, dtype: str = "i4") -> Any:
    return np.arange(n).astype(dtype)


def both(n: int = 32, dtype: str = "i4") -> list[Any]:
    return [numbers(n, dtype), np.zeros(n, dtype)]


# ---- loops and jumps -----------------------------------------------------------------------------


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [sum(b for a in range(v) for b in range(a)) for v in x], "i4")})  # fmt: skip
@cube
def triangles(x: Array[int32], out: Array[int32]):
    total = int32(0)
    for a in range(x[ABSOLUTE_POS]):
        for b in range(a):
            total += b
    out[ABSOLUTE_POS] = total


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [sum(min(a, 4) for a in range(v)) for v in x], "i4")})  # fmt: skip
@cube
def break_leaves_one_loop(x: Array[int32], out: Array[int32]):
    total = int32(0)
    for a in range(x[ABSOLUTE_POS]):
        for b in range(10):
            if b == a or b == 4:
                break
            total += 1
    out[ABSOLUTE_POS] = total


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [sum(a for a in range(1, v + 1) if a % 3) for v in x], "i4")})  # fmt: skip
@cube
def continue_in_while(x: Array[int32], out: Array[int32]):
    total, a = int32(0), int32(0)
    while a < x[ABSOLUTE_POS]:
        a += 1
        if a % 3 == 0:
            continue
        total += a
    out[ABSOLUTE_POS] = total


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [next(d for d in range(2, 40) if v % d) for v in x + 1], "i4")})  # fmt: skip
@cube
def return_out_of_while(x: Array[int32], out: Array[int32]):
    divisor = int32(2)
    while True:
        if (x[ABSOLUTE_POS] + 1) % divisor != 0:
            out[ABSOLUTE_POS] = divisor
            return
        divisor += 1


@cube
def first_pair(total, limit):
    for a in range(1, limit):
        for b in range(a, limit):
            if a * a + b * b == total:
                return a * 100 + b
    return -1


@case(lambda: [numbers(60), np.zeros(60, "i4")], expect=lambda x, o: {1: np.array([next(
    (a * 100 + b for a in range(1, 9) for b in range(a, 9) if a * a + b * b == v), -1)
    for v in x], "i4")})  # fmt: skip
@cube
def return_out_of_two_loops(x: Array[int32], out: Array[int32]):
    out[ABSOLUTE_POS] = cast(first_pair(x[ABSOLUTE_POS], int32(9)), int32)


@case(lambda: [numbers(8), np.full(8, 7, "i4")], expect=lambda x, o: {1: np.full(8, 7, "i4")})
@cube
def loops_that_do_not_run(x: Array[int32], out: Array[int32]):
    for _ in range(5, 5):
        out[ABSOLUTE_POS] = 1
    for _ in range(5, x[0]):
        out[ABSOLUTE_POS] = 2
    for _ in range(x[0], 5, -1):
        out[ABSOLUTE_POS] = 3
    while x[ABSOLUTE_POS] < 0:
        out[ABSOLUTE_POS] = 4


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [sum(range(v, -1, -2)) for v in x], "i4")})  # fmt: skip
@cube
def down_by_two(x: Array[int32], out: Array[int32]):
    total = int32(0)
    for k in range(x[ABSOLUTE_POS], -1, -2):
        total += k
    out[ABSOLUTE_POS] = total


@case(lambda: both(), expect=lambda x, o: {1: x})
@cube
def the_bound_is_read_once(x: Array[int32], out: Array[int32]):
    limit, steps = x[ABSOLUTE_POS] + 0, int32(0)
    for _ in range(limit):
        limit += 5
        steps += 1
    out[ABSOLUTE_POS] = steps


@case(lambda: [numbers() + 1, np.zeros(32, "i4")], expect=lambda x, o: {
    1: np.gcd(x, 36).astype("i4")})  # fmt: skip
@cube
def greatest_divisor(x: Array[int32], out: Array[int32]):
    a, b = x[ABSOLUTE_POS], int32(36)
    while b != 0:
        a, b = b, a % b
    out[ABSOLUTE_POS] = a


@case(lambda: [numbers(200), np.zeros(200, "i4")], expect=lambda x, o: {1: np.array(
    [v > 1 and all(v % d for d in range(2, v)) for v in x], "i4")})  # fmt: skip
@cube
def primes(x: Array[int32], out: Array[int32]):
    v, prime, d = x[ABSOLUTE_POS], x[ABSOLUTE_POS] > 1, int32(2)
    while prime and d * d <= v:
        if v % d == 0:
            prime = False
        d += 1
    out[ABSOLUTE_POS] = int32(1) if prime else 0


@case(lambda: [np.arange(32) ** 3, np.zeros(32, "i8")], expect=lambda x, o: {
    1: np.floor(np.sqrt(x)).astype("i8")})  # fmt: skip
@cube
def whole_roots(x: Array[int64], out: Array[int64]):
    low, high = int64(0), x[ABSOLUTE_POS] + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * middle <= x[ABSOLUTE_POS]:
            low = middle
        else:
            high = middle
    out[ABSOLUTE_POS] = low


@case(lambda: [np.linspace(0.5, 100, 40), np.zeros(40)], ulps=1,
      expect=lambda x, o: {1: np.sqrt(x)})  # fmt: skip
@cube
def newton(x: Array[float64], out: Array[float64]):
    guess = x[ABSOLUTE_POS]
    for _ in range(40):
        guess = 0.5 * (guess + x[ABSOLUTE_POS] / guess)
    out[ABSOLUTE_POS] = guess


@case(lambda: [np.zeros(16 * 16, "i4")], cube_dim=256)
@cube
def escape_times(out: Array[int32]):
    i = ABSOLUTE_POS
    cx = cast(i % 16, float32) * 0.1875 - 2.0
    cy = cast(i // 16, float32) * 0.15625 - 1.25
    zx, zy, steps = float32(0), float32(0), int32(0)
    while zx * zx + zy * zy <= 4.0 and steps < 50:
        zx, zy = zx * zx - zy * zy + cx, 2.0 * zx * zy + cy
        steps += 1
    out[i] = steps


@case(lambda: [np.sort((np.arange(50) * 37 % 101).astype("f")), numbers(101, "f"),
               np.zeros(101, "i4")], cube_dim=101,
      expect=lambda x, v, o: {2: np.searchsorted(x, v).astype("i4")})  # fmt: skip
@cube
def binary_search(x: Array[F], values: Array[F], out: Array[int32]):
    low, high = int32(0), cast(len(x), int32)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < values[ABSOLUTE_POS]:
            low = middle + 1
        else:
            high = middle
    out[ABSOLUTE_POS] = low


@case(lambda: [(np.arange(24) * 7 % 24).astype("i4"), np.zeros(24, "i4")], cube_dim=3,
      expect=lambda x, o: {1: np.sort(x.reshape(3, 8), 1).reshape(-1)})  # fmt: skip
@cube
def bubble_sort(x: Array[int32], out: Array[int32]):
    own = LocalArray(int32, 8)
    for k in range(8):
        own[k] = x[ABSOLUTE_POS * 8 + k]
    for last in range(7, 0, -1):
        for k in range(last):
            if own[k] > own[k + 1]:
                held = own[k]
                own[k] = own[k + 1]
                own[k + 1] = held
    for k in range(8):
        out[ABSOLUTE_POS * 8 + k] = own[k]


@case(lambda: [numbers(), np.zeros(32, "i4")])
@cube
def every_assignment(x: Array[int32], out: Array[int32]):
    v = x[ABSOLUTE_POS]
    a = int32(1000)
    a += v
    a -= 3
    a *= 7
    a //= 2
    a %= 1013
    a &= 0xFF7
    a |= 0x10
    a ^= 0x55
    a <<= 3
    a >>= 1
    out[ABSOLUTE_POS] = a


@case(lambda: both(), expect=lambda x, o: {1: np.select(
    [x < 4, x < 8, x < 16], [x * 0 + 1, x * 0 + 2, x * 0 + 3], 4).astype("i4")})  # fmt: skip
@cube
def nested_choice(x: Array[int32], out: Array[int32]):
    v = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = 1 if v < 4 else (2 if v < 8 else (3 if v < 16 else int32(4)))


@case(lambda: both(), expect=lambda x, o: {1: np.array(
    [[0, 1, 1, 2][(v >> 1 & 1) + (v & 1) + (v % 4 == 3)] for v in x], "i4")})  # fmt: skip
@cube
def flags_in_names(x: Array[int32], out: Array[int32]):
    odd = x[ABSOLUTE_POS] % 2 == 1
    second = (x[ABSOLUTE_POS] >> 1) % 2 == 1
    some = odd or second
    every = odd and second
    total = int32(0)
    if some:
        total += 1
    if every:
        total += 1
    if not some and every:
        total = 99
    out[ABSOLUTE_POS] = total


# ---- calls ---------------------------------------------------------------------------------------


@cube
def clipped(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v


@case(lambda: both(), expect=lambda x, o: {1: np.clip(x * 3 - 20, 0, 50)})
@cube
def returns_in_branches(x: Array[int32], out: Array[int32]):
    out[ABSOLUTE_POS] = clipped(x[ABSOLUTE_POS] * 3 - 20, int32(0), int32(50))


@cube
def halved(v):
    return v // 2, v % 2


@case(lambda: both(), expect=lambda x, o: {1: (x // 2) * 10 + x % 2})
@cube
def several_results(x: Array[int32], out: Array[int32]):
    quotient, rest = halved(x[ABSOLUTE_POS])
    out[ABSOLUTE_POS] = quotient * 10 + rest


@cube
def powered(v, n):
    if n == 0:
        return v * 0 + 1
    if n % 2 == 1:
        return powered(v, n - 1) * v
    half = powered(v, n // 2)
    return half * half


@case(lambda: both(), n=13, expect=lambda x, o: {1: x**13})
@cube
def recursion_at_expansion(x: Array[int32], out: Array[int32], *, n):
    out[ABSOLUTE_POS] = powered(x[ABSOLUTE_POS], n)


@cube
def summed(part):
    total = 0.0
    for k in range(len(part)):
        total += part[k]
    return total


@case(lambda: [numbers(32, "f"), np.zeros(8, "f")], cube_dim=8,
      expect=lambda x, o: {1: x.reshape(8, 4).sum(1)})  # fmt: skip
@cube
def a_slice_is_handed_on(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    out[i] = summed(x[i * 4 : i * 4 + 4])


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: ((x + 1) * 2 - 3) * 4})
@cube
def functions_in_a_list(x: Array[F], out: Array[F]):
    v = x[ABSOLUTE_POS]
    for f in [lambda t: t + 1.0, lambda t: t * 2.0, lambda t: t - 3.0, lambda t: t * 4.0]:
        v = f(v)
    out[ABSOLUTE_POS] = v


@cube
def outer(v):
    def inner(w):
        return w * scale

    scale = v + 1
    return inner(v) + inner(scale)


@case(lambda: both(), expect=lambda x, o: {1: x * (x + 1) + (x + 1) ** 2})
@cube
def nested_functions(x: Array[int32], out: Array[int32]):
    out[ABSOLUTE_POS] = outer(x[ABSOLUTE_POS])
