# ruff: noqa: D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of arithmetic: every operator on every dtype, the math table, casts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import burn_cube.mathematics as m
from burn_cube.conformance.case import Case, floats, ints
from burn_cube.interpreter.numeric import NUMERIC
from burn_cube.kernel import cube
from burn_cube.language import ABSOLUTE_POS, Array, Generic, bitcast, cast, fma, select
from burn_std.dtypes import PLAIN

N = 300
T, S = Generic("T"), Generic("S")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")


@cube
def apply_one(x: Array[T], out: Array[S], *, fn):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = fn(x[ABSOLUTE_POS])


@cube
def apply_two(x: Array[T], y: Array[T], out: Array[S], *, fn):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = fn(x[ABSOLUTE_POS], y[ABSOLUTE_POS])


@cube
def fused(x: Array[T], y: Array[T], out: Array[T]):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = fma(x[i], y[i], out[i])


@cube
def convert(x: Array[T], out: Array[S]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = cast(x[ABSOLUTE_POS], out.dtype)


@cube
def reinterpret(x: Array[T], out: Array[S]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = bitcast(x[ABSOLUTE_POS], out.dtype)


@cube
def choose(x: Array[T], y: Array[T], out: Array[T]):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = select(x[i] > y[i], x[i] - y[i], y[i])


def _data(dtype: str, seed: int) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.arange(N) * (seed + 1) % 3 == 0
    return floats(N, kind, seed) if kind.kind == "f" else ints(N, kind, seed)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": m.minimum,
    "max": m.maximum,
    "rem": m.rem,
}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "shl": lambda a, b: a << (b % 67),
    "shr": lambda a, b: a >> (b % 67),
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _two(name: str, fn: Any, dtype: str, result: str | None = None, ulps: float = 0) -> Case:
    def expect(x: Any, y: Any, out: Any) -> dict[int, Any]:
        with np.errstate(all="ignore"):
            if name in SHIFTS:
                y = np.remainder(y, np.asarray(67, y.dtype))
            wide = x.dtype == np.float16
            a, b = (x.astype(np.float32), y.astype(np.float32)) if wide else (x, y)
            return {2: NUMERIC[name](a, b).astype(out.dtype)}

    return Case(
        f"{name}_{dtype}", apply_two, 3,
        lambda: [_data(dtype, 1), _data(dtype, 2), np.zeros(N, result or dtype)],
        expect, {"fn": fn, "cube_dim": 128}, ulps,
    )  # fmt: skip


# Accuracy of the own polynomials in units of the last place, where it is not 4.
def _one(name: str, dtype: str, ulps: float, low: float, high: float) -> Case:
    fn = m.FUNCTIONS.get(name) or getattr(m, name)

    def args() -> list[Any]:
        rng = np.random.default_rng(7)
        x = rng.uniform(low, high, N).astype(dtype)
        x[:5] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
        return [x, np.zeros(N, dtype)]

    def expect(x: Any, out: Any) -> dict[int, Any]:
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32) if x.dtype == np.float16 else x
            return {1: NUMERIC[name](wide).astype(out.dtype)}

    return Case(
        f"{name}_{dtype}", apply_one, 3, args, expect, {"fn": fn, "cube_dim": 128}, ulps
    )  # fmt: skip


RANGES = {
    "exp": (-90, 89), "exp2": (-130, 128), "expm1": (-20, 80), "log": (0, 1000),
    "log2": (0, 1000), "log10": (0, 1000), "log1p": (-1, 10), "sqrt": (0, 100),
    "rsqrt": (0, 100), "sin": (-300, 300), "cos": (-300, 300), "tan": (-30, 30),
    "asin": (-1, 1), "acos": (-1, 1), "atan": (-20, 20), "sinh": (-10, 10), "cosh": (-10, 10),
    "tanh": (-9, 9), "asinh": (-30, 30), "acosh": (1, 50), "atanh": (-1, 1), "erf": (-4, 4),
    "floor": (-9, 9), "ceil": (-9, 9), "trunc": (-9, 9), "round": (-9, 9),
}  # fmt: skip
EXACT = {"floor", "ceil", "trunc", "round", "sqrt"}


def arithmetic_cases() -> Iterator[Case]:
    """Yield the cases of this module."""
    for dtype in (*INTS, *FLOATS):
        for name, fn in OPERATORS.items():
            yield _two(name, fn, dtype, ulps=2 if dtype[0] == "f" and name in ("mod",) else 0)
        for name, fn in COMPARISONS.items():
            yield _two(name, fn, dtype, "bool")
    for dtype in INTS:
        for name, fn in BITWISE.items():
            yield _two(name, fn, dtype)
        yield _two("truncdiv", m.truncdiv, dtype)
    for dtype in ("int32", "uint32", "int64", "uint64", "int16"):
        for name, fn in SHIFTS.items():
            yield _two(name, fn, dtype)
    for dtype in ("uint32", "uint64"):
        yield _two("mulhi", m.mulhi, dtype)
    for dtype in ("float32", "float64"):
        yield _two("div", lambda a, b: a / b, dtype)
        yield _two("pow", lambda a, b: a**b, dtype, ulps=4)
        yield _two("atan2", m.atan2, dtype, ulps=4)
        yield _two("hypot", m.hypot, dtype, ulps=4)
        yield _two("copysign", m.copysign, dtype)
        for name, (low, high) in RANGES.items():
            yield _one(name, dtype, 0 if name in EXACT else 4, low, high)
    yield _one("exp", "float16", 1, -9, 9)
    yield _one("tanh", "float16", 1, -9, 9)
    yield from _unaries()
    yield from _conversions()


def _unaries() -> Iterator[Case]:
    names = {"neg": lambda a: -a, "abs": m.absolute, "sign": m.sign}
    for dtype in ("int8", "int64", "float32", "float64", "uint32"):
        for name, fn in names.items():
            yield _simple(name, fn, dtype, dtype)
    for dtype in ("int32", "uint64", "uint8"):
        yield _simple("popcount", m.popcount, dtype, dtype)
        yield _simple("leading_zeros", m.leading_zeros, dtype, dtype)
        yield _simple("not", lambda a: ~a, dtype, dtype)
    for name in ("isnan", "isinf", "isfinite"):
        yield _simple(name, getattr(m, name), "float32", "bool")
    yield Case(
        "fma_float32", fused, 3, lambda: [floats(N), floats(N, seed=3), floats(N, seed=4)],
        None, {"cube_dim": 128},
    )  # fmt: skip
    yield Case(
        "select_float64", choose, 3,
        lambda: [floats(N, np.float64), floats(N, np.float64, 3), np.zeros(N)],
        lambda x, y, out: {2: np.where(x > y, x - y, y)}, {"cube_dim": 128},
    )  # fmt: skip


def _simple(name: str, fn: Any, dtype: str, result: str) -> Case:
    def expect(x: Any, out: Any) -> dict[int, Any]:
        with np.errstate(all="ignore"):
            return {1: NUMERIC[name](x).astype(out.dtype)}

    return Case(
        f"{name}_{dtype}", apply_one, 3, lambda: [_data(dtype, 5), np.zeros(N, result)], expect,
        {"fn": fn, "cube_dim": 128},
    )  # fmt: skip


def _conversions() -> Iterator[Case]:
    names = [dtype.name for dtype in PLAIN if dtype.name != "bfloat16"]
    for old in names:
        for new in names:
            if old != new and (old, new) != ("float64", "float16"):
                yield _convert(old, new)
    for old, new in (("float32", "int32"), ("int64", "float64"), ("float16", "uint16")):
        yield Case(
            f"bitcast_{old}_{new}", reinterpret, 3,
            lambda old=old, new=new: [_data(old, 6), np.zeros(N, new)],
            lambda x, out: {1: x.view(out.dtype)}, {"cube_dim": 128},
        )  # fmt: skip


def _convert(old: str, new: str) -> Case:
    def args() -> list[Any]:
        data = _data(old, 6)
        if old.startswith("float"):
            with np.errstate(all="ignore"):
                data[8:60] = data[8:60] * np.asarray(1e4, old)
                data[60:90] = data[60:90] * np.asarray(3e4, old)
                if old != "float16":
                    data[90:150] = data[90:150] * np.asarray(1e18, old)
        return [data, np.zeros(N, new)]

    return Case(f"cast_{old}_{new}", convert, 3, args, None, {"cube_dim": 128})
