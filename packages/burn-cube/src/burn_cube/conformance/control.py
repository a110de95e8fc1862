# ruff: noqa: D101, D102, D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of control flow, locals, calls, compile-time values and structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from burn_cube.conformance.case import Case, ints, ramp
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    Array,
    Float,
    Generic,
    LocalArray,
    cast,
    index,
    local,
    select,
    unroll,
)
from burn_cube.mathematics import exp, maximum
from burn_std.dtypes import float32, int32

N = 100
F = Float
I = Generic("I")  # noqa: E741 - the generic of integers


@cube
def if_else(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        if x[i] > 2.0:
            out[i] = x[i] * 2.0
        elif x[i] > 0.0:
            out[i] = x[i] + 100.0
        else:
            out[i] = -x[i]


@cube
def early_return(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i >= len(x):
        return
    if x[i] < 0.0:
        out[i] = -1.0
        return
    out[i] = x[i]


@cube
def loop_sum(x: Array[F], out: Array[F], n: int32):
    i = ABSOLUTE_POS
    if i < len(out):
        acc = 0.0
        for k in range(n):
            acc += x[i] * cast(k, F)
        out[i] = acc


@cube
def loop_step(out: Array[I], start: int32, stop: int32):
    i = ABSOLUTE_POS
    if i < len(out):
        acc = int32(0)
        for k in range(stop, start, -3):
            acc = acc * 3 + k
        for k in range(start, stop, 2):
            acc += k
        out[i] = cast(acc, I) + cast(i, I)


@cube
def collatz(x: Array[I], out: Array[I]):
    i = ABSOLUTE_POS
    if i < len(x):
        value = x[i]
        steps = I(0)
        while value != 1:
            if value % 2 == 0:
                value = value // 2
            else:
                value = 3 * value + 1
            steps += 1
        out[i] = steps


@cube
def break_continue(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        acc = F(0)
        for k in range(20):
            if k % 3 == 1:
                continue
            if acc > x[i] * 4.0:
                break
            acc += cast(k, F)
        while True:
            acc = acc - 1.0
            if acc < 10.0:
                break
        out[i] = acc


@cube
def nested_loops(out: Array[I]):
    i = ABSOLUTE_POS
    if i < len(out):
        total = I(0)
        for a in range(5):
            for b in range(a, 7):
                if b == 4:
                    break
                for c in range(2):
                    if a == c:
                        continue
                    total += cast(a * b + c, I)
        out[i] = total + cast(i, I)


@cube
def first_above(x: Array[F], start: index, limit: F):
    for k in range(start, len(x)):
        if x[k] > limit:
            return k
    return len(x)


@cube
def search(x: Array[F], out: Array[I], limit: F):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = cast(first_above(x, i, limit), I)


@cube
def clamp_pair(a: F, b: F):
    if a > b:
        return b, a
    return a, b


@cube
def sort_pairs(x: Array[F]):
    i = ABSOLUTE_POS * 2
    if i + 1 < len(x):
        low, high = clamp_pair(x[i], x[i + 1])
        x[i] = low
        x[i + 1] = high


@cube
def polynomial(x: Array[F], out: Array[F], *, coefficients):
    i = ABSOLUTE_POS
    if i < len(x):
        acc = F(0)
        for c in coefficients:
            acc = acc * x[i] + c
        out[i] = acc


class Mode(Enum):
    DOUBLE = 1
    SQUARE = 2


@cube
def by_mode(x: Array[F], out: Array[F], *, mode, bias=None):
    i = ABSOLUTE_POS
    if i < len(x):
        if mode is Mode.DOUBLE:
            value = x[i] * 2.0
        else:
            value = x[i] * x[i]
        if bias is not None:
            value += bias
        out[i] = value


@dataclass(frozen=True)
class Complex:
    re: Any
    im: Any

    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    @cube
    def power(self, n):
        result = self
        for _ in unroll(range(n - 1)):
            result = result * self
        return result


@cube
def complex_power(re: Array[F], im: Array[F], *, n):
    i = ABSOLUTE_POS
    if i < len(re):
        z = Complex(re[i], im[i]).power(n)
        re[i] = z.re
        im[i] = z.im


@dataclass
class Welford:
    count: Any
    mean: Any
    m2: Any

    @cube
    def add(self, value):
        self.count += 1.0
        delta = value - self.mean
        self.mean += delta / self.count
        self.m2 += delta * (value - self.mean)


@cube
def variance(x: Array[F], out: Array[F], cols: int32):
    row = ABSOLUTE_POS
    if row < len(out):
        state = Welford(local(F(0)), local(F(0)), local(F(0)))
        for c in range(cols):
            state.add(x[row * cast(cols, index) + cast(c, index)])
        out[row] = state.m2 / state.count


@dataclass(frozen=True)
class Layer:
    """A struct of a launch: an array, a number, and a compile-time switch."""

    weights: Array[F]
    shift: F
    square: bool = False


@cube
def struct_argument(layer: Layer, x: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        value = x[i] * layer.weights[i % len(layer.weights)] + layer.shift
        x[i] = value * value if layer.square else value


@dataclass
class Best:
    value: Any
    place: Any


@cube
def argmax_row(x: Array[F], out: Array[I], cols: int32):
    row = ABSOLUTE_POS
    if row < len(out):
        best = Best(x[row * cast(cols, index)], int32(0))
        for c in range(1, cols):
            value = x[row * cast(cols, index) + cast(c, index)]
            if value > best.value:
                best.value = value
                best.place = c
        out[row] = cast(best.place, I)


@cube
def accumulators(x: Array[F], out: Array[F], *, ways):
    i = ABSOLUTE_POS
    if i < len(out):
        acc = [F(0) for _ in range(ways)]
        for k in range(len(x) // ways):
            for w in unroll(range(ways)):
                acc[w] = acc[w] + x[k * ways + w]
        total = acc[0]
        for part in acc[1:]:
            total = total + part
        out[i] = total + cast(i, F)


@cube
def logic(x: Array[F], out: Array[I]):
    i = ABSOLUTE_POS
    n = len(x)
    if (i < n and x[i] > 0.0) or i == 3:
        out[i] = 1
    elif i < n and not (x[i] < -1.0):
        out[i] = 2
    elif 0 <= i < n:
        out[i] = I(3) if x[i] < -2.0 else 4


@cube
def ternary(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    value = x[i] if i < len(x) else F(0)
    if i < len(out):
        out[i] = value if value > 1.0 else exp(value)


@cube
def closures(x: Array[F], out: Array[F], *, fns):
    i = ABSOLUTE_POS

    def twice(f, v):
        return f(f(v))

    if i < len(x):
        v = x[i]
        for f in fns:
            v = twice(f, v)
        out[i] = twice(lambda t: t + 1.0, v)


@cube
def swap_locals(out: Array[I]):
    i = ABSOLUTE_POS
    if i < len(out):
        a, b = I(0), I(1)
        for _ in range(i):
            a, b = b, a + b
        out[i] = a


@cube
def unrolled_jumps(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        acc = F(0)
        for k in [1, 2, 3, 4, 5]:
            if k == 2:
                continue
            if x[i] > k * 5.0:
                continue
            if acc > 6.0:
                break
            acc += k
        out[i] = acc


@cube
def local_table(out: Array[I], *, size):
    i = ABSOLUTE_POS
    table = LocalArray(int32, size)
    for k in range(size):
        table[k] = cast(k * k, int32)
    if i < len(out):
        out[i] = cast(table[i % size], I)


@cube
def branch_names(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        if x[i] > 0.0:
            scale = F(2)
            shift = 1.0
        else:
            scale = x[i]
            shift = 2.0
        out[i] = x[i] * scale + shift


@cube
def gelu(x):
    return 0.5 * x * (1.0 + select(x > 0.0, x, -x) / (1.0 + maximum(x, -x)))


@cube
def component(x: Array[F], out: Array[F], *, activation, dtype):
    i = ABSOLUTE_POS
    if i < len(x):
        out[i] = cast(activation(cast(x[i], dtype)), F)


def _case(name: str, kernel: Any, args: Any, expect: Any = None, **options: Any) -> Case:
    ulps = options.pop("ulps", 0)
    return Case(name, kernel, 4, args, expect, {"cube_dim": 32, **options}, ulps)


def _zeros(dtype: Any = np.float32, n: int = N) -> Any:
    return np.zeros(n, dtype)


def control_cases() -> Iterator[Case]:
    """Yield the cases of this module."""
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        yield _case(
            f"if_else_{name}", if_else, lambda d=dtype: [ramp(N, d), _zeros(d)],
            lambda x, o: {1: np.where(x > 2, x * 2, np.where(x > 0, x + 100, -x))},
        )  # fmt: skip
        yield _case(
            f"early_return_{name}", early_return, lambda d=dtype: [ramp(N, d), _zeros(d)],
            lambda x, o: {1: np.where(x < 0, x.dtype.type(-1), x)},
        )  # fmt: skip
        yield _case(
            f"loop_sum_{name}", loop_sum, lambda d=dtype: [ramp(N, d), _zeros(d), 7],
            lambda x, o, n: {1: x * 21},
        )  # fmt: skip
    for dtype in (np.int32, np.int64, np.uint32):
        name = np.dtype(dtype).name
        yield _case(f"loop_step_{name}", loop_step, lambda d=dtype: [_zeros(d), -5, 30])
        yield _case(f"collatz_{name}", collatz, lambda d=dtype: [
            np.arange(1, N + 1).astype(d), _zeros(d)])  # fmt: skip
        yield _case(f"nested_loops_{name}", nested_loops, lambda d=dtype: [_zeros(d)])
    yield _case("break_continue", break_continue, lambda: [ramp(N), _zeros()])
    yield _case("search", search, lambda: [ramp(N), _zeros(np.int32), 10.0])
    yield _case("sort_pairs", sort_pairs, lambda: [ints(N).astype(np.float32)])
    yield _case(
        "polynomial", polynomial, lambda: [ramp(N), _zeros()],
        lambda x, o: {1: (x * 0.5 + 2) * x - 1}, coefficients=(0.5, 2, -1.0),
    )  # fmt: skip
    for mode in Mode:
        yield _case(f"by_mode_{mode.name}", by_mode, lambda: [ramp(N), _zeros()], mode=mode)
    yield _case("by_mode_bias", by_mode, lambda: [ramp(N), _zeros()], mode=Mode.SQUARE, bias=3)
    yield _case("complex_power", complex_power, lambda: [ramp(N), ramp(N, shift=1)], n=3)
    yield _case(
        "variance", variance, lambda: [ramp(N * 8, scale=0.01), _zeros(), 8],
    )  # fmt: skip
    yield _case("argmax_row", argmax_row, lambda: [
        ints(N * 7).astype(np.float32), _zeros(np.int64), 7],
        lambda x, o, c: {1: x.reshape(-1, 7).argmax(1).astype(np.int64)})  # fmt: skip
    for ways in (1, 4):
        yield _case(f"accumulators_{ways}", accumulators, lambda: [ramp(64), _zeros()], ways=ways)
    yield _case("logic", logic, lambda: [ramp(N), _zeros(np.int32)])
    yield _case("ternary", ternary, lambda: [ramp(N - 5), _zeros()], ulps=4)
    yield _case("closures", closures, lambda: [ramp(N), _zeros()],
                lambda x, o: {1: (x * 4 - 2) + 2}, fns=(lambda v: v * 2.0, lambda v: v - 1.0)
                )  # fmt: skip
    yield _case("swap_locals", swap_locals, lambda: [_zeros(np.int64, 60)])
    yield _case("unrolled_jumps", unrolled_jumps, lambda: [ramp(N), _zeros()])
    yield _case("local_table", local_table, lambda: [_zeros(np.int32)],
                lambda o: {0: ((np.arange(N) % 9) ** 2).astype(np.int32)}, size=9)  # fmt: skip
    yield _case("branch_names", branch_names, lambda: [ramp(N), _zeros()],
                lambda x, o: {1: np.where(x > 0, x * 2 + 1, x * x + 2)})  # fmt: skip
    yield _case("component", component, lambda: [ramp(N), _zeros()], activation=gelu,
                dtype=float32)  # fmt: skip
