"""Dropout: seeds, scale, extremes, and whole channels."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError
from burn_tensor import functional as F


def state() -> object:
    return Device.default().context.resource.random_state()


def seeded(seed: int) -> None:
    Device.default().context.resource.seed(seed)


def flex(*shape: int) -> burn.Tensor:
    return burn.ones(*shape, device=Device.default())


def test_one_seed_gives_one_mask_and_calls_differ() -> None:  # B84
    seeded(7)
    first, second = F.dropout(flex(1000)), F.dropout(flex(1000))
    seeded(7)
    again = F.dropout(flex(1000))
    assert first.tolist() == again.tolist()
    assert first.tolist() != second.tolist()
    assert set(first.tolist()) == {0.0, 2.0}
    assert 400 < np.count_nonzero(first.numpy()) < 600


def test_nothing_is_drawn_outside_training_or_for_p_zero() -> None:  # B83
    before, x = state(), flex(4)
    assert F.dropout(x, training=False) is x
    assert F.dropout(x, p=0.0) is x
    F.scaled_dot_product_attention(flex(1, 2, 2), flex(1, 2, 2), flex(1, 2, 2))
    assert state() == before


def test_p_one_gives_zeros_with_zero_gradients() -> None:
    x = burn.tensor([1.0, float("inf")], device=Device.default().autodiff()).require_grad()
    for drop in (F.dropout, F.alpha_dropout):
        y = drop(x, 1.0, True)
        assert y.tolist() == [0.0, 0.0]
        assert x.grad(y.sum().backward()).tolist() == [0.0, 0.0]


def test_the_backward_draws_the_forward_mask() -> None:
    tracking = Device.default().autodiff()
    for device in (tracking, tracking.gradient_checkpointing()):
        x = burn.ones(100, device=device).require_grad()
        y = F.dropout(x, 0.25)
        assert x.grad(y.sum().backward()).tolist() == y.tolist()


@pytest.mark.parametrize("name", ["dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_p_is_a_probability(name: str) -> None:
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match=f"{name}: p is a probability"):
            getattr(F, name)(flex(2, 2, 2, 2), p)


@pytest.mark.parametrize(("name", "shape"), [
    ("dropout1d", (4, 8, 5)), ("dropout1d", (8, 5)), ("dropout2d", (4, 8, 3, 3)),
    ("dropout2d", (4, 8, 5)), ("dropout3d", (4, 8, 2, 2, 2)), ("dropout3d", (8, 2, 2, 2)),
])  # fmt: skip
def test_whole_channels_are_dropped(name: str, shape: tuple[int, ...]) -> None:
    seeded(3)
    lead = 1 if (name, len(shape)) in {("dropout1d", 2), ("dropout3d", 4)} else 2
    rows = getattr(F, name)(flex(*shape)).numpy().reshape(int(np.prod(shape[:lead])), -1)
    assert (rows == rows[:, :1]).all()
    assert set(rows[:, 0].tolist()) == {0.0, 2.0}


def test_channel_dropout_refuses_other_ranks() -> None:
    with pytest.raises(ShapeError, match="dropout3d: needs 4 or 5 dims"):
        F.dropout3d(flex(2, 3))


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    seeded(1)
    x = burn.randn(200_000, device=Device.default())
    y = F.alpha_dropout(x, 0.3, True).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.02
    channels = F.feature_alpha_dropout(flex(1, 50, 4), 0.5, True).numpy()[0]
    assert (channels == channels[:, :1]).all()


def test_rrelu_and_gumbel_softmax_draw_in_their_ranges() -> None:
    seeded(5)
    y = F.rrelu(-flex(1000), 0.25, 0.5, training=True).numpy()
    assert (y <= -0.25).all() and (y >= -0.5).all() and len(np.unique(y)) > 900
    hard = F.gumbel_softmax(burn.zeros(1000, 4, device=Device.default()), hard=True).numpy()
    assert (hard.sum(1) == 1).all()
    assert (abs(hard.mean(0) - 0.25) < 0.06).all()


def test_hard_gumbel_softmax_has_the_soft_gradient() -> None:
    x = burn.zeros(3, 4, device=Device.default().autodiff()).require_grad()
    w = burn.tensor([1.0, 2.0, 3.0, 4.0])
    g = x.grad((F.gumbel_softmax(x, hard=True) * w).sum().backward()).numpy()
    assert (abs(g) > 0).any()
    np.testing.assert_allclose(g.sum(1), 0, atol=1e-6)
