"""Batch norm under mixed precision follows its input, as in PyTorch: halves stay halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn


@pytest.mark.parametrize("half", [burn.float16, burn.bfloat16], ids=lambda t: t.short)
def test_halves_stay_halves_and_statistics_are_floats(device: Any, half: Any) -> None:
    pixels = np.random.default_rng(0).standard_normal((4, 3, 5, 5)).astype(np.float32)
    tracked = device.autodiff()
    x = burn.tensor(pixels, device=tracked).to(half).detach().require_grad()
    norm, other = nn.BatchNorm2d(3, device=tracked), nn.BatchNorm2d(3, device=tracked)
    with burn.autocast(half):
        made = norm(x)
    wide = other(x.to(burn.float32))
    assert made.dtype is half
    np.testing.assert_array_equal(made.to(burn.float32).numpy(),
                                  wide.to(half).to(burn.float32).numpy())  # fmt: skip
    for name in ("running_mean", "running_var"):
        own, want = getattr(norm, name), getattr(other, name)
        assert own.dtype is burn.float32
        np.testing.assert_allclose(own.numpy(), want.numpy(), rtol=1e-6)
    grads = made.to(burn.float32).square().sum().backward()
    assert x.grad(grads).dtype is half
    assert norm.weight.grad(grads).dtype is burn.float32


@pytest.mark.parametrize("kind", [burn.bfloat16, burn.float64], ids=lambda t: t.short)
def test_parameters_of_another_dtype_leave_the_input_its_own(device: Any, kind: Any) -> None:
    tracked = device.autodiff()
    x = burn.tensor(np.arange(24, dtype=np.float32).reshape(6, 4), device=tracked).require_grad()
    norm = nn.BatchNorm1d(4, device=tracked).to_dtype(kind)
    made = norm(x)
    assert made.dtype is burn.float32
    assert norm.valid()(x).dtype is burn.float32
    grads = made.square().sum().backward()
    assert x.grad(grads).dtype is burn.float32
    assert norm.weight.grad(grads).dtype is kind
