"""Integers, dtypes and casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import burn

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dtype", [burn.float32, burn.float64])
def test_b29_float_remainder_has_the_divisors_sign(dtype: Any, make: Any) -> None:
    r = make([-25.2], dtype) % make([6.1], dtype)
    assert r.item() == pytest.approx(5.3, rel=1e-5)
    assert (make([6.0], dtype) % 1.5).item() == 0
    b = make([0.1, 0.7, 1.3, 2.5], dtype)
    for k in (1, 3, 8, 1000):
        exact = (b * float(k)) % b
        assert ((exact >= 0) & (exact < b)).all().item()
    whole = make([3.0, 10.0, 1e6], dtype)
    assert ((whole * 4) % whole).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [burn.int8, burn.int32, burn.int64, burn.uint8])
def test_b30_integer_division_by_zero_is_0(dtype: Any, make: Any) -> None:
    x, zero = make([2, 100, 0], dtype), make([0, 0, 0], dtype)
    quotient, rest = x // zero, x % zero
    assert quotient.tolist() == [0, 0, 0]
    assert rest.tolist() == [0, 0, 0]
    assert (x % zero).tolist() == [0, 0, 0]
    assert x.fmod(zero).tolist() == [0, 0, 0]
    low = burn.tensor(-(2**31), dtype=burn.int32)
    assert (low // -1).item() == -(2**31)
    assert (low % -1).item() == 0


def test_b31_accumulators_are_wide(make: Any) -> None:
    assert make([200, 100, 50], burn.uint8).cumsum(0).tolist() == [200, 300, 350]
    wide = make([2**30, 2**30, 5], burn.int32).cumsum(0)
    assert wide.dtype is burn.int64
    assert wide.tolist() == [2**30, 2**31, 2**31 + 5]
    assert make([True, True, False]).cumsum(0).tolist() == [1, 2, 2]
    assert make(np.ones(300, np.uint8)).sum().item() == 300


def test_b32_mean_of_integers_is_refused_or_wide(make: Any) -> None:
    x = make([2147483647, 2147483647], burn.int32)
    with pytest.raises(TypeError):
        x.mean()
    assert x.mean(dtype=burn.float64).item() == 2147483647


def test_b33_ranges_are_exact(device: Any) -> None:
    whole = burn.arange(16777210, 16777230, device=device)
    assert whole.tolist() == list(range(16777210, 16777230))
    one = burn.arange(16777217, 16777218, dtype=burn.float64, device=device)
    assert one.tolist() == [16777217.0]
    assert burn.arange(0.0, 1.0, 0.25, device=device).tolist() == [0, 0.25, 0.5, 0.75]


def test_b34_integer_linspace_keeps_its_ends(device: Any) -> None:
    found = burn.linspace(-2147483647, 2147483647, 10, dtype=burn.int32, device=device).tolist()
    right = [-2147483647, -1670265059, -1193046471, -715827883, -238609295, 238609294, 715827882,
             1193046470, 1670265058, 2147483647]  # fmt: skip
    assert (found[0], found[-1]) == (right[0], right[-1])
    assert max(abs(f - r) for f, r in zip(found, right, strict=True)) <= 1


def test_b35_int64_ids_stay_whole(make: Any, device: Any) -> None:
    ids = [16777217, 16777219, 2**53 + 1]
    x = make(ids)
    assert x.dtype is burn.int64
    assert burn.stack([x, x])[1].tolist() == ids
    assert x.to_device(burn.device("flex:1")).to_device(device).tolist() == ids
    assert burn.tensor(x.numpy(), device=device).tolist() == ids


def test_b36_float_to_int_saturates_at_the_top(make: Any) -> None:
    assert make([2147483647.0], burn.float32).to(burn.int32).tolist() == [2147483647]
    assert make([2.0**63], burn.float32).to(burn.int64).tolist() == [2**63 - 1]


def test_b37_nan_and_inf_to_integers(make: Any) -> None:
    x = make([NAN, INF, -INF, 510.0, -200.0], burn.float32)
    assert x.to(burn.int32).tolist() == [0, 2147483647, -2147483648, 510, -200]
    assert x.to(burn.int8).tolist() == [0, 127, -128, 127, -128]
    assert x.to(burn.uint8).tolist() == [0, 255, 0, 255, 0]
    assert x.to(burn.bool_).tolist() == [True] * 5


def test_b39_integer_dtypes_are_part_of_the_interface(make: Any, device: Any) -> None:
    index = make([1.0, 3.0]).argmax()
    assert index.dtype is burn.int64
    assert burn.arange(3, device=device).dtype is burn.int64
    assert (make([1], burn.int32) + make([1], burn.int64)).dtype is burn.int64
    assert (index + make([1], burn.int64)).tolist() == [2]
