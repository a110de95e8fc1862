"""Captured steps whose learning rates change: every optimizer, groups, schedules of groups."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.optim import lr_scheduler

# Optimizers of one kind with and without decay share the plans of steps that are not captured.
pytestmark = pytest.mark.filterwarnings("ignore::burn.ReplayWarning")
RNG = np.random.default_rng(2)
X = [RNG.standard_normal((4, 6)).astype(np.float32) for _ in range(20)]
CLASSES = [
    c for c in vars(optim).values()
    if inspect.isclass(c) and issubclass(c, optim.Optimizer) and c is not optim.Optimizer
]  # fmt: skip


@pytest.fixture(params=["fusion-flex", "fusion-cpu"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def trained(
    name: str,
    captured: bool,
    optimizer: Any,
    schedule: Any,
    more: Callable[[Any], Any] = id,
    at: int = 12,
) -> tuple[list[Any], int]:
    """Return losses and weights of twenty steps, and how many of them were replays."""
    device = burn.device(name).autodiff()
    burn.manual_seed(0)
    bias = not isinstance(optimizer, optim.Muon)
    model = nn.Sequential(
        nn.Linear(6, 5, bias=bias, device=device), nn.Tanh(),
        nn.Linear(5, 3, bias=bias, device=device),
    )  # fmt: skip

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward(), lr=schedule.lr)
        schedule.step()
        return loss

    step: Any = burn.capture(train, state=(model, optimizer, schedule)) if captured else train
    losses = []
    for k, x in enumerate(X):
        if k == at:
            more(optimizer)
        losses.append(step(burn.tensor(x, device=device.without_autodiff())).item())
    state = [t.tolist() for t in (*model.parameters(), *optimizer.step_tensors())]
    return [losses, state, schedule.position], step.replays if captured else 0


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_optimizer_follows_a_schedule(name: str, cls: Any, decay: float) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        settings = (
            {"weight_decay": decay} if "weight_decay" in inspect.signature(cls).parameters else {}
        )
        return trained(
            name, captured, cls(lr=0.05, **settings), lr_scheduler.ExponentialLR(0.05, gamma=0.9)
        )

    found, replays = run(True)
    assert replays == 16
    assert found == run(False)[0]


@pytest.mark.parametrize("settings", [{"no_prox": True}, {"no_prox": False}])
def test_adan_in_both_forms(name: str, settings: Any) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        optimizer = optim.Adan(lr=0.05, weight_decay=0.1, **settings)
        return trained(name, captured, optimizer, lr_scheduler.LinearLR(0.05, total_iters=30))

    found, replays = run(True)
    assert replays == 16
    assert found == run(False)[0]


def _exponential(rate: float, gamma: float) -> Any:
    return lr_scheduler.ExponentialLR(rate, gamma=gamma)


SCHEDULES = {
    "one for all": lambda: _exponential(0.05, 0.9),
    "one for each": lambda: lr_scheduler.GroupLR(_exponential(0.05, 0.9), own=_exponential(1, 0.5)),
    "alike at first": lambda: lr_scheduler.GroupLR(
        lr_scheduler.MultiStepLR(0.05, milestones=[2, 3, 4, 9]),
        own=lr_scheduler.MultiStepLR(0.05, milestones=[2, 3, 4, 11]),
    ),
    "alike always": lambda: lr_scheduler.GroupLR(
        _exponential(0.05, 0.9), own=_exponential(0.05, 0.9)
    ),
}  # fmt: skip
GROUPS = {
    "that follows": {"weight_decay": 0.0},
    "with a rate of its own": {"lr": 0.2},
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_groups_follow_schedules(name: str, schedule: str, group: str) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        optimizer = optim.AdamW(lr=0.05)
        optimizer.add_group(re.compile("bias"), name="own", **GROUPS[group])
        optimizer.add_group("nobody", name="empty", lr=0.3)
        return trained(name, captured, optimizer, SCHEDULES[schedule]())

    found, replays = run(True)
    assert replays >= 7
    assert found == run(False)[0]


def test_all_parameters_in_groups_with_rates_of_their_own(name: str) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        optimizer = optim.SGD(lr=0.1)
        optimizer.add_group(re.compile("^0"), lr=0.2).add_group(re.compile("^2"), lr=0.02)
        return trained(name, captured, optimizer, _exponential(0.05, 0.9))

    found, replays = run(True)
    assert replays == 16
    assert found == run(False)[0]


def test_a_groups_own_rate_may_be_changed_between_steps(name: str) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        optimizer = optim.SGD(lr=0.1).add_group(re.compile("^0"), lr=0.2)

        def change(optimizer: Any) -> None:
            optimizer.groups[0].optimizer.lr = 0.01

        return trained(name, captured, optimizer, _exponential(0.05, 0.9), change)

    found, replays = run(True)
    assert replays > 4
    assert found == run(False)[0]


@pytest.mark.parametrize("at", range(6))
def test_a_rate_set_anew_while_the_schedule_stands_still(name: str, at: int) -> None:
    def run(captured: bool) -> tuple[list[Any], int]:
        optimizer = optim.Lion(lr=0.01)
        optimizer.add_group(lambda path, p: len(p.shape) == 2, optim.SGD(lr=0.1), name="matrices")

        def change(optimizer: Any) -> None:
            optimizer.lr *= 0.9

        schedule = lr_scheduler.MultiStepLR(0.05, milestones=[9, 15], gamma=0.5)
        return trained(name, captured, optimizer, schedule, change, at)

    found, replays = run(True)
    assert replays > 4
    assert found == run(False)[0]


def test_a_number_made_of_a_rate_says_what_to_do(name: str) -> None:
    class Halved:
        """A schedule whose rate the step halves by itself."""

        def __init__(self) -> None:
            self.inner = _exponential(0.05, 0.9)
            self.step = self.inner.step

        @property
        def lr(self) -> float:
            return self.inner.lr

        @property
        def position(self) -> int:
            return self.inner.position

    device = burn.device(name).autodiff()
    model, optimizer, schedule = nn.Linear(6, 3, device=device), optim.SGD(lr=0.1), Halved()

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward(), lr=schedule.lr * 0.5)
        schedule.step()
        return loss

    step = burn.capture(train, state=(model, optimizer, schedule))
    with pytest.raises(burn.CaptureError, match="lr_scheduler"):
        for x in X:
            step(burn.tensor(x, device=device.without_autodiff()))
