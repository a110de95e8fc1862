"""A small regression that trains in milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burn_dataset import ArrayDataset, DataLoader
from burn_dispatch import Device
from burn_nn import Dropout, Linear, MSELoss, ReLU, Sequential
from burn_optim import Adam
from burn_train import Learner

RNG = np.random.default_rng(0)
X = RNG.standard_normal((22, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)


@pytest.fixture
def device() -> Device:
    return Device.default().autodiff()


@pytest.fixture
def loaders(device: Device) -> Any:
    data = ArrayDataset(X, Y)
    return lambda: (
        DataLoader(data, 4, shuffle=True, seed=3, device=device),
        DataLoader(data, 8, device=device),
    )


@pytest.fixture
def learner(device: Device) -> Any:
    def make(seed: int = 0) -> Learner:
        device.seed(seed)
        model = Sequential(
            Linear(3, 8, device=device), ReLU(), Dropout(0.2), Linear(8, 1, device=device)
        )
        return Learner(model, Adam(lr=0.02), MSELoss())

    return make


@pytest.fixture
def parameters() -> Any:
    return lambda learner: [p.numpy().copy() for p in learner.model.parameters()]
