"""Maps: the decomposition and the scalar expression give the same values, edges included."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from burn_ir import CATALOG, Entry
from burn_std import DType
from burn_std.dtypes import bfloat16, bool_, float32, float64, int8, int64, uint8

INF, NAN = math.inf, math.nan
FLOATS = [-INF, -200.0, -25.0, -3.5, -2.0, -1.0, -0.5, -1e-5, -0.0, 0.0, 1e-5, 0.3, 0.5, 1.0, 2.5]
FLOATS += [6.0, 25.0, 200.0, INF, NAN]
INTS = [-128, -127, -7, -2, -1, 0, 1, 2, 3, 7, 127]
ATTRS: dict[str, list[tuple[Any, ...]]] = {
    "gelu": [("none",), ("tanh",)],
    "elu": [(1.0,), (0.3,)],
    "celu": [(1.0,), (0.5,)],
    "leaky_relu": [(0.01,)],
    "softplus": [(1.0, 20.0), (2.0, 1.0)],
    "hardshrink": [(0.5,)],
    "softshrink": [(0.5,)],
    "hardtanh": [(-1.0, 1.0)],
    "threshold": [(0.5, 9.0)],
    "nan_to_num": [(None, None, None), (1.0, 2.0, 3.0)],
}
INT_ATTRS = {"hardtanh": [(1, 3)], "threshold": [(1, 5)], "nan_to_num": [(None, None, None)]}
MAPS = [e for e in CATALOG if e.grade == "derived" and e.expr and e.name[:3] != "tri"]
MAPS = [e for e in MAPS if "::" not in e.name]
CLASSES = {
    "any": (float64, int8, uint8, bool_),
    "numeric": (float64, int8, uint8),
    "float": (float64,),
    "bits": (int8, bool_),
}


def attributes(entry: Entry, dtype: DType) -> list[tuple[Any, ...]]:
    if not entry.attrs:
        return [()]
    return (ATTRS if dtype.is_float else INT_ATTRS)[entry.name]


CASES = [
    (entry, dtype, attrs)
    for entry in MAPS
    for dtype in CLASSES[entry.accepts]
    if dtype.is_float or not entry.attrs or entry.name in INT_ATTRS
    for attrs in attributes(entry, dtype)
]


def values(dtype: DType) -> list[Any]:
    if dtype.is_float:
        return FLOATS
    if dtype.is_bool:
        return [False, True]
    return INTS if dtype.is_signed else [0, 1, 2, 7, 255]


def same(got: Any, want: Any, tolerance: float) -> bool:
    if want != want or got != got:
        return want != want and got != got
    return got == want or math.isclose(got, want, rel_tol=tolerance, abs_tol=1e-300)


def compare(fake: Any, entry: Entry, args: list[Any], tolerance: float) -> None:
    fake.native = set()
    got = fake.run(entry, args)
    fake.native = {entry.name}
    want = fake.run(entry, args)
    wrong = [
        ([a.data[k] for a in args if hasattr(a, "data")], g, w)
        for k, (g, w) in enumerate(zip(got.data, want.data, strict=True))
        if not same(g, w, tolerance)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("entry", "dtype", "attrs"), CASES, ids=lambda v: getattr(v, "name", str(v))
)
def test_decomposition_equals_the_expression(
    fake: Any, entry: Entry, dtype: DType, attrs: tuple[Any, ...]
) -> None:
    count = len(entry.inputs)
    pool = values(dtype) if count < 3 else values(dtype)[3:16:2] + values(dtype)[:1]
    columns = zip(*product(pool, repeat=count), strict=True)
    args = [fake.tensor(list(c), dtype) for c in columns]
    compare(fake, entry, [*args, *attrs], 2e-15 if entry.name != "acosh" else 1e-11)


@pytest.mark.parametrize("entry", [e for e in MAPS if "float" in e.accepts], ids=lambda e: e.name)
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=lambda d: d.name)
def test_decomposition_rounds_16_bits_once(fake: Any, entry: Entry, dtype: DType) -> None:
    # In f32 each step rounds; in bf16 everything runs in f32 and rounds once.
    attrs = ATTRS.get(entry.name, [()])[0]
    args = [fake.tensor([0.25, 0.75, 1.5, -0.375, 3.0], dtype) for _ in entry.inputs]
    wide = 1e-6 if entry.name == "tanhshrink" else 4e-7
    compare(fake, entry, [*args, *attrs], wide if dtype is float32 else 2**-7)


@pytest.mark.parametrize(
    ("low", "high"), [(None, None), (0.0, None), (None, 1.0), (-1.0, 1.0), (2.0, 1.0)]
)
def test_clamp_takes_either_bound(fake: Any, low: float | None, high: float | None) -> None:
    compare(fake, CATALOG["clamp"], [fake.tensor(FLOATS), low, high], 0)


@pytest.mark.parametrize("name", ["sub", "fmod", "div_trunc", "hypot", "logical_or", "ge", "lerp"])
def test_scalars_stand_on_either_side(fake: Any, name: str) -> None:
    entry, x = CATALOG[name], fake.tensor([-3.0, 0.0, 5.5])
    more = [0.25] * (len(entry.inputs) - 2)
    compare(fake, entry, [x, 2.0, *more], 1e-15)
    compare(fake, entry, [2.0, x, *more], 1e-15)


def test_integer_division_by_zero_is_zero(fake: Any) -> None:
    x, zero = fake.tensor([5, -5, 0], int64), fake.tensor([0, 0, 0], int64)
    for name in ("div_trunc", "fmod", "floor_divide", "remainder"):
        assert fake.run(CATALOG[name], [x, zero]).data == [0, 0, 0]


def test_smallest_integer_wraps(fake: Any) -> None:
    x, minus = fake.tensor([-128], int8), fake.tensor([-1], int8)
    assert fake.div_trunc(x, minus).data == [-128]
    assert fake.square(fake.tensor([16], int8)).data == [0]
