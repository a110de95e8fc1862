"""Fractional pooling and the clustered softmax: what PyTorch's values do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import float32, int64
from burn_tensor import functional as F


def test_drawn_windows_cover_the_end_and_follow_the_seed() -> None:
    x = bt.arange(4 * 50).reshape(1, 4, 50).to(float32).unsqueeze(2).expand(1, 4, 3, 50)
    bt.manual_seed(3)
    one, places = F.fractional_max_pool2d(x, (1, 2), (3, 20), return_indices=True)
    bt.manual_seed(3)
    again = F.fractional_max_pool2d(x, (1, 2), (3, 20))
    other = F.fractional_max_pool2d(x, (1, 2), (3, 20))
    assert one.tolist() == again.tolist() != other.tolist()
    assert one[..., -1].tolist() == x[..., -1].tolist()
    taken = x.flatten(2).gather(2, places.flatten(2))
    assert taken.tolist() == one.flatten(2).tolist()
    steps = np.diff(places.numpy()[0, 0, 0])
    assert steps.min() >= 1 and steps.max() <= 3


def test_fractional_pooling_refuses_what_has_no_meaning() -> None:
    x = bt.ones(1, 1, 6, 6)
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: F.fractional_max_pool2d(x, 2), ArgumentError),
        (lambda: F.fractional_max_pool2d(x, 2, 3, 0.5), ArgumentError),
        (lambda: F.fractional_max_pool2d(x, 2, output_ratio=1.5), ArgumentError),
        (lambda: F.fractional_max_pool2d(x, 3, 5), ShapeError),
        (lambda: F.fractional_max_pool2d(x[0, 0], 2, 3), ShapeError),
        (lambda: F.fractional_max_pool2d(x.to(int64), 2, 3), DTypeError),
        (lambda: F.fractional_max_pool2d(x, 2, 3, _random_samples=bt.ones(2)), ShapeError),
        (lambda: nn.FractionalMaxPool3d(2), ArgumentError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()


def test_clusters_hold_the_whole_distribution(tracking: Device) -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], 2.0, head_bias=True, device=tracking)
    x = bt.randn(12, 8, device=tracking)
    whole = layer.log_prob(x)
    assert np.allclose(whole.exp().sum(1).numpy(), 1.0, atol=1e-5)
    output, loss = layer(x, bt.arange(12))
    assert np.allclose(output.numpy(), whole.numpy().diagonal(), atol=1e-5)
    assert np.isclose(loss.item(), -output.numpy().mean())
    assert layer.predict(x).tolist() == whole.numpy().argmax(1).tolist()
    before = layer.tail[1][0].weight.numpy().copy()
    layer.reset_parameters()
    assert (layer.tail[1][0].weight.numpy() != before).any()


def test_clusters_refuse_what_does_not_fit() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7])
    x = bt.ones(2, 8)
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3]), ArgumentError),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, []), ArgumentError),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [12]), ArgumentError),
        (lambda: layer(x, bt.tensor([1])), ShapeError),
        (lambda: layer(bt.ones(2, 7), bt.tensor([1, 2])), ShapeError),
        (lambda: layer(x, bt.tensor([1, 12])), IndexRangeError),
        (lambda: layer(x, bt.ones(2)), DTypeError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
