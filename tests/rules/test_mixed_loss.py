"""Cross-entropy under mixed precision reads halves as they lie, and gives what casts give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F


@pytest.mark.parametrize("half", [burn.float16, burn.bfloat16], ids=lambda t: t.short)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("soft", [False, True])
def test_the_loss_of_halves_is_that_of_their_floats(
    device: Any, half: Any, reduction: str, soft: bool
) -> None:
    rng = np.random.default_rng(0)
    tracked = device.autodiff()
    scores = rng.standard_normal((6, 40)).astype(np.float32)
    given = rng.random((6, 40)).astype(np.float32) if soft else rng.integers(0, 40, 6)
    target = burn.tensor(given, device=device)
    weight = burn.tensor(rng.random(40).astype(np.float32) + 0.5, device=device)
    found = []
    for mixed in (True, False):
        x = burn.tensor(scores, device=tracked).to(half).detach().require_grad()
        if mixed:
            with burn.autocast(half):
                loss = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=0.1)
        else:
            loss = F.cross_entropy(
                x.to(burn.float32), target, weight, reduction=reduction, label_smoothing=0.1
            )
        assert loss.dtype is burn.float32
        slope = x.grad(loss.sum().backward())
        assert slope.dtype is half
        found.append((loss.numpy(), slope.to(burn.float32).numpy()))
    for got, want in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)
