"""A model whose gradients a test chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn_tensor as bt
from burn_core import Module, Parameter
from burn_dispatch import Device


class Weights(Module):
    """Named parameters and nothing else."""

    def __init__(self, device: Device, values: dict[str, Any]) -> None:
        for name, value in values.items():
            array = np.asarray(value)
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            setattr(self, name, Parameter(bt.tensor(array, device=device)))

    def gradients(self, *wanted: Any) -> Any:
        """Return gradients of these values, in order of the parameters; None is not reached."""
        loss = None
        for p, g in zip(self.parameters(), wanted, strict=True):
            if g is not None:
                given = bt.tensor(np.asarray(g, p.numpy().dtype), device=p.device)
                part = (p * given).sum()
                loss = part if loss is None else loss + part
        assert loss is not None
        return loss.backward()


@pytest.fixture
def device() -> Device:
    return Device.default().autodiff()


@pytest.fixture
def weights(device: Device) -> Any:
    def make(**values: Any) -> Weights:
        return Weights(device, values)

    return make
