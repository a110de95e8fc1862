"""Metrics: weights, resetting, edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import burn_tensor as bt
from burn_train import Accuracy, LossMetric


def _scores(hits: int, n: int):
    target = bt.zeros(n, dtype=bt.arange(1).dtype)
    rows = np.zeros((n, 2), np.float32)
    rows[:hits, 0] = 1
    rows[hits:, 1] = 1
    return bt.tensor(rows), target


def test_a_smaller_last_batch_counts_as_what_it_is():
    # B92: losses 10 (2 samples) and 9 (1 sample); accuracies .7, .8, .9 of 256, 256, 10.
    loss = LossMetric()
    loss.update(bt.zeros(2, 1), bt.zeros(2), bt.tensor(10.0))
    loss.update(bt.zeros(1, 1), bt.zeros(1), bt.tensor(9.0))
    assert loss.value() == pytest.approx(29 / 3)
    accuracy = Accuracy()
    for hits, n in ((179, 256), (205, 256), (9, 10)):
        output, target = _scores(hits, n)
        accuracy.update(output, target, bt.tensor(0.0))
    assert accuracy.value() == pytest.approx(100 * 393 / 522)


def test_reset_forgets():
    # B94
    loss = LossMetric()
    loss.update(bt.zeros(2, 1), bt.zeros(2), bt.tensor(1.0))
    assert loss.value() == 1
    loss.reset()
    loss.update(bt.zeros(2, 1), bt.zeros(2), bt.tensor(3.0))
    assert loss.value() == 3


def test_nothing_seen_is_nan():
    assert math.isnan(LossMetric().value())
    assert math.isnan(Accuracy().value())
