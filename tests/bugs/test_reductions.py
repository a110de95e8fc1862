"""Empty axes, NaN and ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import burn

NAN, INF = math.nan, math.inf


def test_b21_identities_do_not_leak(make: Any) -> None:
    x = make(np.zeros((0, 4), np.float32))
    for name in ("max", "min", "argmax", "argmin", "amax", "amin"):
        with pytest.raises(ValueError):
            getattr(x, name)()
    for name in ("max", "min", "argmax", "argmin", "median"):
        with pytest.raises((ValueError, IndexError)):
            getattr(x, name)(0)
    assert x.sum().item() == 0
    assert x.sum(0).tolist() == [0, 0, 0, 0]
    assert x.prod().item() == 1
    assert math.isnan(x.mean().item())
    assert x.sum(1).shape == (0,)


def test_b22_nan_passes_through_extremes(make: Any) -> None:
    assert math.isnan(make([1.0, NAN, 3.0]).max().item())
    assert math.isnan(make([NAN, 2.0]).min().item())
    found = make([1.0, NAN, 5.0]).cummax(0).values.tolist()
    assert found[0] == 1
    assert math.isnan(found[1])
    assert math.isnan(found[2])
    assert math.isnan(burn.maximum(make([1.0]), make([NAN])).item())
    assert math.isnan(make([NAN]).clamp(0, 1).item())
    for length in (7, 33, 1025):  # any width of a vector loop
        row = np.zeros(length, np.float32)
        row[length - 2] = NAN
        assert math.isnan(make(row).max().item())


def test_b24_argmax_of_nan_stays_inside(make: Any) -> None:
    assert make([NAN] * 58).argmax().item() == 0
    assert make([0.0, NAN]).argmax().item() == 1
    assert make([NAN] * 58).argmin().item() == 0


def test_b25_first_of_equal_maxima(make: Any) -> None:
    assert make([1, 3, 3, 2]).argmax().item() == 1
    row = np.zeros(2048, np.float32)
    row[[5, 1029]] = 1
    assert make(row).argmax().item() == 5
    assert make(row).max(0).indices.item() == 5
    assert make(row.reshape(2, 1024)).argmax(1).tolist() == [5, 5]


def test_b26_isnan_is_a_test_of_bits(make: Any) -> None:
    assert make([1.0, NAN, INF, -INF]).isnan().tolist() == [False, True, False, False]
    assert not make([INF, -INF]).isnan().any().item()


def test_b27_sign_of_nan_is_0(make: Any, leaf: Any, slope: Any) -> None:
    for nan in (NAN, -NAN):
        assert make([nan]).sign().item() == 0
    assert slope(lambda x: x.log().abs(), leaf([-0.5])).tolist() == [0]
