"""Copies of an optimizer keep what it has learnt: with its model, alone, by pickle."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import burn
import burn_nn as nn
import burn_tensor as bt
from burn_core import Module
from burn_dispatch import Device
from burn_optim import SGD, Adam, Optimizer
from burn_std import ArgumentError

Pair = tuple[Optimizer, Module]


@pytest.fixture
def device(device: Device) -> Device:
    return device.autodiff()


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


class Trainer:
    def __init__(self, optimizer: Optimizer, model: Module) -> None:
        self.optimizer, self.model = optimizer, model


def as_trainer(o: Optimizer, m: Module) -> Pair:
    made = copy.deepcopy(Trainer(o, m))
    return made.optimizer, made.model


WAYS: dict[str, Callable[[Optimizer, Module], Pair]] = {
    "optimizer first": lambda o, m: copy.deepcopy((o, m)),
    "model first": lambda o, m: copy.deepcopy((m, o))[::-1],
    "in an object": as_trainer,
    "apart": lambda o, m: (copy.deepcopy(o), copy.deepcopy(m)),
    "a fork": lambda o, m: (copy.deepcopy(o), m.fork()),
    "pickled together": lambda o, m: pickled((o, m)),
    "pickled apart": lambda o, m: (pickled(o), pickled(m)),
    "a copy of a copy": lambda o, m: (copy.deepcopy(copy.deepcopy(o)), m.fork()),
}


def made(device: Device) -> tuple[Optimizer, Module, Any]:
    bt.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to_device(device)
    opt = Adam(lr=0.1).add_group("2", lr=0.01)
    x = bt.randn(5, 3, device=device)

    def step(o: Optimizer, m: Module) -> None:
        o.step(m, (m(x) ** 2).mean().backward())

    for _ in range(2):
        step(opt, model)
    return opt, model, step


def states(o: Optimizer, m: Module) -> Any:
    return {k: v.tolist() for k, v in {**m.state_dict(), **o.state_dict(m)}.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_goes_on_where_the_optimizer_was(way: str, device: Device) -> None:
    opt, model, step = made(device)
    copied, other = WAYS[way](opt, model)
    before = states(opt, model)
    assert other is not model
    for _ in range(2):
        step(copied, other)
    assert states(opt, model) == before  # untouched by its copy
    got = states(copied, other)
    for _ in range(2):
        step(opt, model)
    assert got == states(opt, model)


@pytest.mark.parametrize("make", [copy.deepcopy, copy.copy])
def test_a_copy_alone_is_for_the_same_model(make: Any, device: Device) -> None:
    opt, model, step = made(device)
    before = model.state_dict()
    copied = make(opt)
    assert states(copied, model) == states(opt, model)
    step(copied, model)
    got = states(copied, model)
    if make is copy.deepcopy:
        model.load_state_dict(before)
        step(opt, model)
        assert states(opt, model) == got
    assert got["0.weight.step"] == 3


def test_the_state_of_a_copy_goes_to_one_model(device: Device) -> None:
    opt, model, step = made(device)
    copied, fork = copy.deepcopy(opt), model.fork()
    step(copied, model)
    assert not copied.state_dict(fork)  # it has settled on the model
    step(copied, fork)
    assert copied.state_dict(fork)["0.weight.step"].item() == 1


@pytest.mark.parametrize("way", WAYS)
def test_parameters_of_one_id(way: str, device: Device) -> None:
    layer = nn.Linear(2, 2, device=device)
    model = nn.Sequential(layer, nn.Tanh(), layer.fork())
    opt, x = SGD(lr=0.1, momentum=0.9), bt.ones(1, 2, device=device)

    def step(o: Optimizer, m: Module) -> None:
        o.step(m, m(x).sum().backward())

    step(opt, model)
    copied, other = WAYS[way](opt, model)
    step(copied, other)
    step(opt, model)
    same = states(copied, other) == states(opt, model)
    # An id that two parameters have says of none which it is; apart they begin anew.
    assert same == (way in ("optimizer first", "model first", "in an object", "pickled together"))


def test_a_copy_of_a_copy_is_for_the_same_model(device: Device) -> None:
    opt, model, step = made(device)
    copied = copy.deepcopy(copy.deepcopy(opt))
    assert states(copied, model) == states(opt, model)
    step(copied, model)


def test_slots_and_misspelt_settings_are_refused() -> None:
    with pytest.raises(ArgumentError, match="slots"):

        class Narrow(SGD):
            __slots__ = ("extra",)

    opt = Adam(lr=0.1)
    with pytest.raises(AttributeError, match=r"Set opt\.lr"):
        opt.learning_rate = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'weight_decay'"):
        opt.weight_decai = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"opt\.groups"):
        opt.param_groups = []  # type: ignore[attr-defined]
    opt.lr, opt.weight_decay = 0.2, 0.1

    class Own(Adam):
        def __init__(self) -> None:
            super().__init__(lr=0.1)
            self.extra = 1

    own = Own()
    own.extra = 2


def test_a_copy_lets_go_of_the_model_that_it_was_copied_from(device: Device) -> None:
    opt, model, step = made(device)
    copied, other = copy.deepcopy((opt, model))
    step(copied, other)
    weight = weakref.ref(model[0].weight)
    del opt, model
    gc.collect()
    assert weight() is None
    assert copied.state_dict(other)


def test_a_pickled_copy_has_its_own_model_alone(device: Device) -> None:
    opt, model, _ = made(device)
    copied, other = copy.deepcopy((opt, model))
    assert len(pickle.dumps((copied, other))) < len(pickle.dumps((opt, model))) + 500


def test_a_look_at_the_state_changes_nothing(device: Device) -> None:
    opt, model, step = made(device)
    copied, fork = copy.deepcopy(opt), model.fork()
    assert copied.state_dict(fork)
    assert copied.state_dict(model)
    before = states(opt, model)
    model.to_dtype(burn.float16)
    opt.state_dict(model)
    model.to_dtype(burn.float32)
    after = {k: v.tolist() for k, v in opt.state_dict(model).items()}
    assert after == {k: v for k, v in before.items() if k in after}
    step(opt, model)
