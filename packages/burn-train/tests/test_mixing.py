"""Learners of one's own that are protocols, abstract or modules too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
import pytest

import burn_tensor as bt
from burn_core import Module, Parameter
from burn_dispatch import Device
from burn_nn import Linear, MSELoss
from burn_optim import SGD, Adam
from burn_std import ArgumentError
from burn_train import Learner, Step


class Reports(Protocol):
    def report(self) -> str: ...


class Scored(Learner, Module, Reports):
    """Has a weight of its own, which nothing trains."""

    def __init__(self, model: Module, device: Device) -> None:
        super().__init__(model, SGD(lr=0.1), MSELoss())
        self.factor = Parameter(bt.full((1,), 2.0, device=device))

    def report(self) -> str:
        return f"{self.steps} steps"

    def forward(self, model: Module, batch: Any) -> Step:
        output = model(batch[0]) * self.factor
        return Step(output, batch[1], self.loss(output, batch[1]))


def test_a_learner_that_is_a_module(device: Device) -> None:
    learner = Scored(Linear(2, 1, device=device), device)
    names = ["model.weight", "model.bias", "factor"]
    assert [name for name, _ in learner.named_parameters()] == names
    assert list(learner.state_dict()) == names
    before = learner.model.weight.numpy().copy()
    for _ in range(3):
        learner.train_step((bt.ones(4, 2), bt.ones(4, 1)))
    assert learner.report() == "3 steps"
    assert (learner.model.weight.numpy() != before).any()
    np.testing.assert_array_equal(learner.factor.numpy(), [2.0])
    with pytest.raises(AttributeError, match="Did you mean 'clip_norm'"):
        learner.clipnorm = 1.0
    with pytest.raises(AttributeError, match="Did you mean 'clip_norm'"):
        learner.valid().clipnorm = 1.0
    learner.clip_norm = 1.0
    assert isinstance(learner, Module)
    assert isinstance(learner, Learner)


def test_a_module_that_is_a_learner_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"class Turned\(Learner, nn\.Module\)"):

        class Turned(Module, Learner):
            pass


def test_a_learner_is_not_its_own_model(device: Device) -> None:
    class Own(Learner, Module):
        def __init__(self) -> None:
            super().__init__(self, SGD(lr=0.1), MSELoss())

    with pytest.raises(ArgumentError, match="not its own model"):
        Own()


def test_optimizers(device: Device) -> None:
    class Own(Adam, Reports):
        def report(self) -> str:
            return f"lr {self.lr}"

    model = Linear(2, 1, device=device)
    optimizer = Own(lr=0.5)
    before = model.weight.numpy().copy()
    optimizer.step(model, model(bt.ones(1, 2)).sum().backward())
    assert optimizer.report() == "lr 0.5"
    assert (model.weight.numpy() != before).any()
    with pytest.raises(AttributeError):
        optimizer.rate = 1.0


def test_modules(device: Device) -> None:
    class Base(Module, ABC):
        @abstractmethod
        def report(self) -> str: ...

    class Named(Linear, Base, Reports):
        def report(self) -> str:
            return "named"

    with pytest.raises(TypeError, match="abstract"):
        Base()
    model = Named(2, 1, device=device)
    assert model.valid().report() == "named"
    assert model(bt.ones(3, 2)).shape == (3, 1)
    assert isinstance(model, Base)
    with pytest.raises(ArgumentError, match="deriving"):
        Base.register(int)
