"""Steps of optimizers behind the recorder: one operation per group, one plan, nothing read."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import burn
from burn import optim

_INDICES = itertools.count(300)
CLASSES = [
    c for c in vars(optim).values()
    if inspect.isclass(c) and issubclass(c, optim.Optimizer) and c is not optim.Optimizer
]  # fmt: skip


@pytest.fixture
def device() -> burn.Device:
    """A resource of its own, so that counts start at zero."""
    return burn.device(f"fusion-flex:{next(_INDICES)}").autodiff()


class Pair(burn.Module):
    def __init__(self, device: burn.Device) -> None:
        self.a = burn.Parameter(burn.ones(4, 3, device=device))
        self.b = burn.Parameter(burn.ones(3, 2, device=device))

    def forward(self, x: burn.Tensor) -> burn.Tensor:
        return ((x @ self.a) @ self.b).mean()


def _plans(device: burn.Device) -> list:
    return list(device.resource.backend.recorder.plans())


def _batches(device: burn.Device, count: int):
    for k in range(count):
        x = np.full((2 + k, 4), 1.0 + k, np.float32)
        yield burn.tensor(x, device=device)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_a_step_is_one_operation_of_one_program(cls, device, monkeypatch):
    model = Pair(device)
    device.flush()
    optimizer = cls(lr=0.01)
    reads = []
    backend = device.resource.backend
    real = backend.to_numpy
    monkeypatch.setattr(backend, "to_numpy", lambda v: reads.append(1) or real(v))
    made = backend.report()["plans"]
    for k, x in enumerate(_batches(device, 4)):
        device.flush()
        optimizer.step(model, model(x).backward(), lr=0.1 / (k + 1))
    # The first step, with its fresh state, is the same program as the others.
    assert backend.report()["plans"] == made + 1
    assert backend.report()["waiting"] == 0
    assert reads == []


def test_clipping_scaling_and_averaging_belong_to_the_step(device, monkeypatch):
    model = Pair(device)
    scaler, ema = optim.GradScaler(8.0, device=device), optim.EMA(model)
    optimizer = optim.AdamW(lr=0.01)
    device.flush()
    backend = device.resource.backend
    reads = []
    real = backend.to_numpy
    monkeypatch.setattr(backend, "to_numpy", lambda v: reads.append(1) or real(v))
    made = backend.report()["plans"]
    for x in _batches(device, 4):
        device.flush()
        grads = scaler.scale(model(x)).backward()
        scaler.unscale(model, grads)
        optim.clip_grad_norm(model, grads, 1.0)
        scaler.step(optimizer, model, grads, flush=False)
        ema.update(model)
        device.flush()
    assert backend.report()["plans"] == made + 1
    assert reads == []


def test_parts_of_a_batch_are_one_program(device):
    model = Pair(device)
    sums, optimizer = optim.GradientAccumulator(), optim.SGD(lr=0.1)
    device.flush()
    backend = device.resource.backend
    made = backend.report()["plans"]
    for _ in range(2):
        for x in _batches(device, 3):
            device.flush()
            sums.add(model, model(x).backward(), weight=x.shape[0])
            device.flush()
        optimizer.step(model, sums.take())
    # One for every part of a batch, one for the step.
    assert backend.report()["plans"] == made + 2


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_bits_are_those_of_the_eager_backend(cls, device):
    found = []
    for where in (device, burn.device("flex").autodiff()):
        model = Pair(where)
        optimizer = cls(lr=0.01)
        for x in _batches(where, 4):
            optimizer.step(model, model(x).backward())
        found.append([p.numpy().copy() for p in model.parameters()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
