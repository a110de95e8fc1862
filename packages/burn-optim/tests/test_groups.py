"""Groups of parameters: who has which settings and rates."""

from __future__ import annotations

import re

import numpy as np
import pytest

from burn_optim import SGD, Adam, AdamW, Muon
from burn_std import ArgumentError


@pytest.fixture
def model(weights):
    return weights(w=np.ones((2, 2)), v=np.ones((2, 2)), bias=np.ones(2))


def _step(optimizer, model, **more):
    ones = [np.ones(p.shape) for p in model.parameters()]
    optimizer.step(model, model.gradients(*ones), **more)
    return {path: round(float(p.numpy().reshape(-1)[0]), 6) for path, p in model.named_parameters()}


@pytest.mark.parametrize("selector", [
    "bias", ["bias"], re.compile("bias$"), lambda path, p: len(p.shape) == 1, "b*s",
])  # fmt: skip
def test_a_group_by_path_regex_or_predicate(model, selector):
    optimizer = SGD(lr=0.1).add_group(selector, lr=0.5)
    assert _step(optimizer, model) == {"w": 0.9, "v": 0.9, "bias": 0.5}


def test_the_last_match_wins(model):
    optimizer = SGD(lr=0.1).add_group(None, lr=0.2).add_group("v", lr=0.3)
    assert _step(optimizer, model) == {"w": 0.8, "v": 0.7, "bias": 0.8}


def test_settings_that_are_not_named_are_taken_over(model):
    optimizer = AdamW(0.1, (0.5, 0.6), weight_decay=0.3).add_group("bias", weight_decay=0.0)
    made = optimizer.groups[0].optimizer
    assert (made.betas, made.weight_decay, made.lr) == ((0.5, 0.6), 0.0, 0.1)


def test_rates_follow_the_base_in_their_ratio(model):
    optimizer = SGD(lr=0.1).add_group("v", lr=0.01, name="v").add_group("bias", momentum=0.9)
    found = _step(optimizer, model, lr=0.5)
    assert found == {"w": 0.5, "v": 0.95, "bias": 0.5}
    assert optimizer.rates() == {"": 0.1, "v": 0.01}


def test_rates_by_name(model):
    optimizer = SGD(lr=0.1).add_group("v", name="v")
    assert _step(optimizer, model, lr={"": 0.2, "v": 0.3}) == {"w": 0.8, "v": 0.7, "bias": 0.8}
    with pytest.raises(ArgumentError, match="no such group"):
        _step(optimizer, model, lr={"w": 0.2})
    optimizer.set_rates({"": 0.4})
    assert optimizer.lr == 0.4
    with pytest.raises(ArgumentError, match="no such group"):
        optimizer.set_rates({"v": 0.4})


def test_a_group_with_another_optimizer(model):
    optimizer = Muon(lr=0.02).add_group(lambda path, p: len(p.shape) != 2, Adam(lr=0.1))
    assert _step(optimizer, model)["bias"] == pytest.approx(0.9)
    state = optimizer.state_dict(model)
    assert {"w.momentum_buffer", "bias.exp_avg_sq", "bias.step"} <= set(state)
    fresh = Muon(lr=0.02).add_group(lambda path, p: len(p.shape) != 2, Adam(lr=0.1))
    fresh.load_state_dict(model, state)
    assert list(fresh.state_dict(model)) == list(state)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: SGD().add_group("w", weight=0.1), "no such setting.*weight_decay"),
    (lambda: SGD().add_group("w", lr=-1), "negative"),
    (lambda: SGD().add_group("w", SGD(), lr=1), "not both"),
    (lambda: SGD().add_group("w", name="a").add_group("v", name="a"), "name of its own"),
    (lambda: SGD().add_group("w", SGD().add_group("v")), "nest"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()
