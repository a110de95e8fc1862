"""What holds for every class: exact restore, skipping, climbing, untouched snapshots, groups."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import burn_optim
import burn_tensor as bt
from burn_optim import Muon, Optimizer

RNG = np.random.default_rng(3)
GRADS = [[RNG.standard_normal((3, 2)), RNG.standard_normal((2, 4))] for _ in range(6)]
CLASSES = sorted(
    (c for c in vars(burn_optim).values() if inspect.isclass(c) and issubclass(c, Optimizer)),
    key=lambda c: c.__name__,
)[:]
EVERY = pytest.mark.parametrize(
    "cls", [c for c in CLASSES if c is not Optimizer], ids=lambda c: c.__name__
)


@pytest.fixture
def pair(weights):
    rng = np.random.default_rng(4)
    start = rng.standard_normal((3, 2)), rng.standard_normal((2, 4))
    return lambda: weights(a=start[0], b=start[1])


def _values(model):
    return [p.numpy().copy() for p in model.parameters()]


def _equal(one, two):
    return all((a == b).all() for a, b in zip(one, two, strict=True))


def _steps(optimizer, model, grads):
    for g in grads:
        optimizer.step(model, model.gradients(*g))


@EVERY
def test_a_restored_state_goes_on_with_the_same_bits(cls, pair):
    whole, half, fresh = pair(), pair(), pair()
    one, two, three = cls(lr=0.01), cls(lr=0.01), cls(lr=0.01)
    _steps(one, whole, GRADS)
    _steps(two, half, GRADS[:3])
    fresh.load_state_dict(half.state_dict())
    three.load_state_dict(fresh, two.state_dict(half))
    _steps(three, fresh, GRADS[3:])
    assert _equal(_values(whole), _values(fresh))
    want, found = one.state_dict(whole), three.state_dict(fresh)
    assert list(want) == list(found)
    assert all((want[k].numpy() == found[k].numpy()).all() for k in want)


@EVERY
def test_a_skipped_step_leaves_values_and_state(cls, pair):
    model = pair()
    optimizer = cls(lr=0.01)
    _steps(optimizer, model, GRADS[:2])
    before, state = _values(model), optimizer.state_dict(model)
    bad = [np.full((3, 2), np.nan), np.full((2, 4), np.inf)]
    optimizer.step(model, model.gradients(*bad), skip=bt.tensor(True))
    assert _equal(before, _values(model))
    after = optimizer.state_dict(model)
    assert all((state[k].numpy() == after[k].numpy()).all() for k in state)
    optimizer.step(model, model.gradients(*GRADS[2]), skip=bt.tensor(False))
    assert not _equal(before, _values(model))


@EVERY
def test_it_goes_down_a_slope(cls, weights):
    model = weights(w=np.full((2, 2), 3.0))
    optimizer = cls() if cls.__name__ in ("Adadelta",) else cls(lr=0.05)
    for _ in range(60):
        optimizer.step(model, ((model.w - 1) ** 2).sum().backward())
    assert (np.abs(model.w.numpy()) < 3).all()


@EVERY
def test_the_rate_is_a_number_of_the_call(cls, pair):
    one, two = pair(), pair()
    cls(lr=0.02).step(one, one.gradients(*GRADS[0]))
    cls(lr=5.0).step(two, two.gradients(*GRADS[0]), lr=0.02)
    assert _equal(_values(one), _values(two))


@pytest.mark.parametrize("cls", [
    c for c in CLASSES if "maximize" in inspect.signature(c.__init__).parameters
], ids=lambda c: c.__name__)  # fmt: skip
def test_maximize_is_the_step_of_the_negative(cls, pair):
    up, down = pair(), pair()
    one, two = cls(lr=0.01, maximize=True), cls(lr=0.01)
    for a, b in GRADS[:3]:
        one.step(up, up.gradients(a, b))
        two.step(down, down.gradients(-a, -b))
    assert _equal(_values(up), _values(down))


@EVERY
def test_groups_are_what_separate_optimizers_would_be(cls, pair):
    grouped, a_alone, b_alone = pair(), pair(), pair()
    optimizer = cls(lr=0.01).add_group("b", lr=0.03)
    one, two = cls(lr=0.01), cls(lr=0.03)
    for a, b in GRADS[:3]:
        optimizer.step(grouped, grouped.gradients(a, b))
        one.step(a_alone, a_alone.gradients(a, None))
        two.step(b_alone, b_alone.gradients(None, b))
    assert (grouped.a.numpy() == a_alone.a.numpy()).all()
    assert (grouped.b.numpy() == b_alone.b.numpy()).all()
    assert not isinstance(optimizer, Muon) or optimizer.groups[0].optimizer.lr == 0.03
