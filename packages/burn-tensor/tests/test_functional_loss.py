"""Losses: stability, ignored targets, and the ones without stored cases against plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_tensor import functional as F

RNG = np.random.default_rng(0)
INF = float("inf")


def leaf(data: object) -> burn.Tensor:
    return burn.tensor(data, device=Device.default().autodiff()).require_grad()


def test_bce_with_large_and_infinite_logits() -> None:  # B50, B51
    x = burn.tensor([100.0, -100.0, 100.0, -100.0])
    t = burn.tensor([0.0, 1.0, 1.0, 0.0])
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    np.testing.assert_allclose(loss.numpy(), [100, 100, 0, 0], atol=1e-30)
    x, t = burn.tensor([-INF, -INF, INF]), burn.tensor([0.9, 0.0, 1.0])
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    assert loss.tolist() == [INF, 0.0, 0.0]


def test_bce_of_certain_probabilities() -> None:  # B53
    x, t = burn.tensor([1.0, 0.0, 0.0]), burn.tensor([1.0, 0.0, 1.0])
    assert F.binary_cross_entropy(x, t, reduction="none").tolist() == [0.0, 0.0, 100.0]


def test_every_target_ignored() -> None:  # B55
    x, t = leaf(np.ones((2, 3))), burn.tensor([-100, -100])
    assert math.isnan(F.cross_entropy(x, t).item())
    loss = F.cross_entropy(x, t, reduction="sum")
    assert loss.item() == 0.0
    assert x.grad(loss.backward()).tolist() == np.zeros((2, 3)).tolist()


@pytest.mark.parametrize(("flags", "name"), [
    ((None, False), "none"), ((False, None), "sum"), ((True, True), "mean"), ((True, None), "mean"),
])  # fmt: skip
def test_old_flags_win_over_the_name(flags: tuple[bool | None, bool | None], name: str) -> None:
    x, t = burn.tensor([1.0, 3.0]), burn.tensor([0.0, 0.0])
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.soft_margin_loss):
        assert loss(x, t, *flags, "none").tolist() == loss(x, t, reduction=name).tolist()


def test_weights_per_element() -> None:
    x, t, w = burn.tensor([1.0, 3.0]), burn.tensor([0.0, 0.0]), burn.tensor([1.0, 3.0])
    assert F.mse_loss(x, t, weight=w).item() == (1 + 27) / 4
    assert F.l1_loss(x, t, weight=w).item() == (1 + 9) / 4
    assert F.huber_loss(x, t, weight=w).item() == (0.5 + 2.5 * 3) / 2
    with pytest.raises(ShapeError, match="mse_loss: weight must have the loss's shape"):
        F.mse_loss(x, t, weight=burn.ones(1))


def test_what_losses_refuse() -> None:
    x = burn.ones(2, 3)
    for call, rule in (
        (lambda: F.margin_ranking_loss(x, x, x, reduction="avg"), "reduction is none, mean or sum"),
        (lambda: F.mse_loss(x, x, reduction="avg"), "reduction is"),
        (lambda: F.huber_loss(x, x, delta=0.0), "delta must be positive"),
        (lambda: F.smooth_l1_loss(x, x, beta=-1.0), "beta must not be negative"),
        (lambda: F.cross_entropy(x, x, label_smoothing=2.0), "label_smoothing"),
        (lambda: F.multi_margin_loss(x, burn.tensor([0, 0]), p=3), "p is 1 or 2"),
        (lambda: F.gaussian_nll_loss(x, x, -1.0), "a variance is not negative"),
        (lambda: F.triplet_margin_loss(x, x, x, margin=0.0), "margin must be positive"),
    ):
        with pytest.raises(ArgumentError, match=rule):
            call()
    for call in (
        lambda: F.binary_cross_entropy(x, burn.ones(3)),
        lambda: F.gaussian_nll_loss(x, x, burn.ones(2, 2)),
        lambda: F.margin_ranking_loss(x, x, burn.ones(3)),
        lambda: F.cosine_embedding_loss(x, x, x),
        lambda: F.multilabel_margin_loss(x, burn.tensor([0])),
        lambda: F.multi_margin_loss(x, burn.tensor([0])),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(DTypeError, match="class targets are integers"):
        F.multi_margin_loss(x, burn.ones(2))


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss_against_loops(p: int) -> None:
    x, t, w = RNG.standard_normal((4, 3)), [0, 2, 1, 2], RNG.random(3)
    expected = [
        sum(w[c] * max(0, 0.7 - row[c] + row[i]) ** p for i in range(3) if i != c) / 3
        for row, c in zip(x, t, strict=True)
    ]
    loss = F.multi_margin_loss(
        burn.tensor(x), burn.tensor(t), p, 0.7, burn.tensor(w), reduction="none"
    )
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12)
    single = F.multi_margin_loss(burn.tensor(x[0]), burn.tensor(0), p, 0.7, burn.tensor(w))
    np.testing.assert_allclose(single.item(), expected[0], rtol=1e-12)


def test_multilabel_margin_loss_against_loops() -> None:
    x = RNG.standard_normal((3, 4))
    t = np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [2, -1, -1, 0]])
    expected = []
    for row, labels in zip(x, t, strict=True):
        true = list(itertools.takewhile(lambda c: c >= 0, labels))
        others = [i for i in range(4) if i not in true]
        expected.append(sum(max(0, 1 - (row[j] - row[i])) for j in true for i in others) / 4)
    loss = F.multilabel_margin_loss(burn.tensor(x), burn.tensor(t), reduction="none")
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12)
    one = F.multilabel_margin_loss(burn.tensor(x[0]), burn.tensor(t[0]))
    np.testing.assert_allclose(one.item(), expected[0], rtol=1e-12)


def test_multilabel_soft_margin_loss_against_the_formula() -> None:
    x, t, w = RNG.standard_normal((3, 4)), RNG.integers(0, 2, (3, 4)).astype(float), RNG.random(4)
    s = 1 / (1 + np.exp(-x))
    expected = -(w * (t * np.log(s) + (1 - t) * np.log(1 - s))).mean(-1)
    loss = F.multilabel_soft_margin_loss(*map(burn.tensor, (x, t, w)), reduction="none")
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-9)


def test_triplet_loss_with_the_callers_distance() -> None:
    x, y = burn.zeros(2, 3), burn.ones(2, 3)
    seen = []

    def distance(a: burn.Tensor, b: burn.Tensor) -> burn.Tensor:
        seen.append(1)
        return (a - b).abs().sum(-1)

    loss = F.triplet_margin_with_distance_loss(
        x, y, y, distance_function=distance, swap=True, margin=0.5, reduction="none"
    )
    assert loss.tolist() == [3.5, 3.5]
    assert len(seen) == 3


def ctc_by_paths(p: np.ndarray, target: tuple[int, ...]) -> float:
    """Sum over every path of classes that collapses to the target."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=p.shape[0]):
        merged = [c for c, _ in itertools.groupby(path)]
        if tuple(c for c in merged if c != 0) == target:
            total += math.exp(sum(p[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else INF


def test_ctc_loss_against_all_paths() -> None:
    x = RNG.standard_normal((4, 3, 3))
    p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    targets, steps = [(1, 2), (1,), (2, 2)], (4, 3, 4)
    expected = [
        ctc_by_paths(p[:n, b], t) for b, (n, t) in enumerate(zip(steps, targets, strict=True))
    ]
    lp = burn.tensor(p)
    padded = burn.tensor([[1, 2], [1, 0], [2, 2]])
    joined, lengths = burn.tensor([1, 2, 1, 2, 2]), (2, 1, 2)
    for t in (padded, joined):
        loss = F.ctc_loss(lp, t, burn.tensor(steps), lengths, reduction="none")
        np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-10)
    mean = F.ctc_loss(lp, padded, steps, lengths)
    np.testing.assert_allclose(mean.item(), np.mean(np.array(expected) / lengths), rtol=1e-10)
    single = F.ctc_loss(
        lp[:, 0], burn.tensor([1, 2]), burn.tensor(4), burn.tensor(2), reduction="none"
    )
    np.testing.assert_allclose(single.item(), expected[0], rtol=1e-10)
    assert single.shape == ()


def test_ctc_loss_of_what_cannot_be_aligned() -> None:
    x = leaf(np.full((1, 1, 3), -math.log(3)))
    t = burn.tensor([[1, 2]])
    assert F.ctc_loss(x, t, (1,), (2,)).item() == INF
    loss = F.ctc_loss(x, t, (1,), (2,), zero_infinity=True)
    assert loss.item() == 0.0
    assert x.grad(loss.backward()).tolist() == np.zeros((1, 1, 3)).tolist()
    with pytest.raises(ShapeError, match="as many as the target lengths"):
        F.ctc_loss(x, burn.tensor([1, 2]), (1,), (1,))


def test_the_variance_is_raised_without_losing_its_gradient() -> None:
    var = leaf([0.0])
    loss = F.gaussian_nll_loss(burn.tensor([1.0]), burn.tensor([0.0]), var, eps=0.5)
    np.testing.assert_allclose(loss.item(), 0.5 * (math.log(0.5) + 2), rtol=1e-6)
    np.testing.assert_allclose(var.grad(loss.backward()).tolist(), [0.5 * (2 - 4)], rtol=1e-6)


def test_plain_inputs_meet_tracked_targets() -> None:
    t = leaf([2.0])
    loss = F.poisson_nll_loss(burn.tensor([1.0]), t, full=True)
    assert t.grad(loss.backward()) is not None
    far = leaf([[1.0, 1.0]])
    loss = F.triplet_margin_loss(burn.zeros(1, 2), burn.ones(1, 2), far, swap=True)
    assert far.grad(loss.backward()) is not None
