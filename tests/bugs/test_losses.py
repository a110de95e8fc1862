"""Softmax, attention and losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional

INF = math.inf


@pytest.mark.parametrize("causal", [False, True])
def test_b47_a_fully_masked_row_is_0(causal: bool, leaf: Any) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (leaf(rng.normal(size=(1, 1, 4, 3))) for _ in range(3))
    mask = np.ones((4, 4), bool)
    mask[1] = False
    if causal:
        mask &= np.tril(np.ones((4, 4), bool))
        mask[0] = False
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=burn.tensor(mask, device=q.device)
    )
    grads = out.sum().backward()
    dead = [1, 0] if causal else [1]
    assert np.isfinite(out.numpy()).all()
    assert (out.numpy()[0, 0, dead] == 0).all()
    live = [i for i in range(4) if i not in dead]
    assert (out.numpy()[0, 0, live] != 0).all()
    for x in (q, k, v):
        assert np.isfinite(x.grad(grads).numpy()).all()
    assert (q.grad(grads).numpy()[0, 0, dead] == 0).all()


def test_b47_log_softmax_of_a_row_of_minus_inf_is_nan(make: Any) -> None:
    assert np.isnan(functional.log_softmax(make([-INF, -INF]), 0).numpy()).all()
    assert np.isnan(functional.softmax(make([-INF, -INF]), 0).numpy()).all()


def test_b49_logsumexp_at_the_ends(make: Any, leaf: Any, slope: Any) -> None:
    assert make([-INF, -INF]).logsumexp(0).item() == -INF
    assert make([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000.693147, rel=1e-7)
    assert make([INF, 0.0]).logsumexp(0).item() == INF
    assert slope(lambda x: x.logsumexp(0), leaf([-INF, -INF])).tolist() == [0, 0]


def test_b50_bce_with_large_logits(make: Any) -> None:
    x, t = make([100.0, -100.0, 100.0, -100.0]), make([0.0, 1.0, 1.0, 0.0])
    each = functional.binary_cross_entropy_with_logits(x, t, reduction="none").numpy()
    np.testing.assert_allclose(each, [100, 100, 3.7e-44, 3.7e-44], atol=1e-43)
    assert functional.binary_cross_entropy_with_logits(x, t).item() == 50


def test_b51_bce_with_infinite_logits(make: Any) -> None:
    x, t = make([-INF, -INF, INF]), make([0.9, 0.0, 1.0])
    found = functional.binary_cross_entropy_with_logits(x, t, reduction="none").tolist()
    assert found == [INF, 0, 0]


def test_b53_bce_of_probabilities_at_the_ends(make: Any, leaf: Any, slope: Any) -> None:
    bce = functional.binary_cross_entropy
    assert bce(make([1.0, 0.0]), make([1.0, 0.0])).item() == 0
    assert bce(make([0.0]), make([1.0])).item() == 100
    x = leaf([-50.0] * 8)
    ones = burn.ones(8, device=x.device)
    safe = functional.binary_cross_entropy_with_logits
    np.testing.assert_allclose(slope(lambda v: safe(v, ones), x), -0.125, rtol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_b55_every_target_ignored(reduction: str, leaf: Any) -> None:
    x = leaf([[0.1, 0.2], [0.3, 0.4]])
    target = burn.tensor([-100, -100], device=x.device)
    loss = functional.cross_entropy(x, target, reduction=reduction)
    grads = loss.backward()
    if reduction == "mean":
        assert math.isnan(loss.item())
    else:
        assert loss.item() == 0
        assert x.grad(grads).tolist() == [[0, 0], [0, 0]]
