"""Half precision and values near the ends of a dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional


@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16])
def test_b40_mean_of_halves_does_not_overflow(dtype: Any, make: Any) -> None:
    x = make(np.full(1000, 100.0, np.float32)).to(dtype)
    assert float(x.mean().item()) == 100
    assert float(x.mean(0).item()) == 100
    assert float(x.reshape(10, 100).mean((0, 1)).item()) == 100


def test_b42_logsumexp_of_many_halves(make: Any, leaf: Any, slope: Any) -> None:
    zeros = np.zeros(65536, np.float16)
    assert make(zeros).logsumexp(0).item() == pytest.approx(11.0904, abs=8e-3)
    grad = slope(lambda x: x.logsumexp(0), leaf(zeros))
    np.testing.assert_allclose(grad.astype("f4"), 1.526e-05, rtol=2e-2)


@pytest.mark.parametrize("eps", [1e-12, 1e-5])
def test_b44_eps_survives_in_half_precision(eps: float, make: Any) -> None:
    x = make(np.zeros((2, 8), np.float16))
    assert functional.layer_norm(x, (8,), eps=eps).tolist() == [[0.0] * 8] * 2
    assert functional.rms_norm(x, (8,), eps=eps).tolist() == [[0.0] * 8] * 2


def test_b45_overflow_in_a_product_is_not_finite_on_any_path(make: Any) -> None:
    # The contract leaves inf or NaN open, but never a finite number.
    row = np.array([3e38, -3e38], np.float32)
    for n in (1, 3, 16, 64):
        found = make(np.tile(row, (n, 1))) @ make(np.full((2, n), 2.0, np.float32))
        assert not np.isfinite(found.numpy()).any()


def test_b46_norm_of_huge_inputs(make: Any) -> None:
    x = make(np.array([[1e30, -1e30, 1e30, -1e30]], np.float32))
    found = functional.layer_norm(x, (4,)).numpy()
    np.testing.assert_allclose(found, [[1, -1, 1, -1]], rtol=1e-5)


def test_b40_sum_of_halves_overflows_to_inf_only_when_the_sum_does(make: Any) -> None:
    assert make(np.full(1000, 100.0, np.float16)).sum().item() == math.inf
    assert make(np.array([60000.0, 60000.0, -60000.0], np.float16)).sum().item() == 60000
