"""Attention: masks, shared heads, dropout, rows that attend to nothing."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError
from burn_tensor import functional as F

RNG = np.random.default_rng(0)
attention = F.scaled_dot_product_attention


def given(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def leaf(data: np.ndarray) -> burn.Tensor:
    return burn.tensor(data, device=Device.default().autodiff()).require_grad()


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("p", [0.0, 1e-12])
def test_a_row_masked_everywhere_is_zero_with_zero_gradient(causal: bool, p: float) -> None:  # B47
    q, k, v = given(4, 3), given(4, 3), given(4, 3)
    mask = np.ones((4, 4), bool)
    mask[1] = False
    xs = [leaf(x) for x in (q, k, v)]
    y = attention(*xs, burn.tensor(mask), p, causal)
    allowed = mask & np.tril(np.ones((4, 4), bool)) if causal else mask
    np.testing.assert_allclose(y.numpy(), reference(q, k, v, allowed), atol=1e-12)
    assert y[1].tolist() == [0.0] * 3
    grads = y.sum().backward()
    assert all(np.isfinite(x.grad(grads).numpy()).all() for x in xs)
    assert xs[0].grad(grads)[1].tolist() == [0.0] * 3


def test_the_written_out_path_agrees_with_the_operation() -> None:
    q, k, v = given(2, 4, 3, 8), given(2, 2, 5, 8), given(2, 2, 5, 6)
    bias = burn.tensor(given(3, 5))
    one = attention(*map(burn.tensor, (q, k, v)), bias, 0.0, False, 0.3, True)
    two = attention(*map(burn.tensor, (q, k, v)), bias, 1e-12, False, 0.3, True)
    np.testing.assert_allclose(one.numpy(), two.numpy(), atol=1e-12)
    repeated = [burn.tensor(x.repeat(2, 1)) for x in (k, v)]
    three = attention(burn.tensor(q), *repeated, bias, scale=0.3)
    np.testing.assert_allclose(one.numpy(), three.numpy(), atol=1e-12)


def test_dropout_drops_weights() -> None:
    q = burn.zeros(1, 64, 4)
    y = attention(q, q, burn.ones(1, 64, 1), dropout_p=0.5).numpy()
    assert len(np.unique(y)) > 4
    assert abs(y.mean() - 1) < 0.2
    assert attention(q, q, q, dropout_p=1.0).tolist() == q.tolist()
    with pytest.raises(ArgumentError, match="dropout_p is a probability"):
        attention(q, q, q, dropout_p=1.5)
