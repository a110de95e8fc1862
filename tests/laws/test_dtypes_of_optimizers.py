"""The state of an optimizer follows the dtype of the parameters, and is taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_optim import SGD, Adam, RMSprop
from burn_std.dtypes import bfloat16, float32, float64


@pytest.fixture
def device(device: Device) -> Device:
    return device.autodiff()


@pytest.mark.parametrize(
    "make", [lambda: Adam(lr=0.1), lambda: SGD(lr=0.1, momentum=0.9), lambda: RMSprop(lr=0.1)]
)
@pytest.mark.parametrize("dtype", [bfloat16, float64])
@pytest.mark.parametrize("stepped", [False, True])
def test_state_follows_the_dtype(make: Any, dtype: Any, stepped: bool, device: Device) -> None:
    opt, model, x = make(), nn.Linear(2, 2, device=device), bt.ones(3, 2, device=device)

    def step() -> None:
        kind = model.weight.dtype
        opt.step(model, (model(x.to(kind)) ** 2).to(float32).mean().backward())

    step()
    before = {k: v.to(float32).numpy() for k, v in opt.state_dict(model).items()}
    model.to_dtype(dtype)
    if stepped:
        step()
    state = opt.state_dict(model)
    for name, t in state.items():
        assert t.dtype is dtype or name.endswith("step")
        if not stepped:
            np.testing.assert_allclose(t.to(float32).numpy(), before[name], rtol=1e-2)
    opt.load_state_dict(model, state)
    step()
    other = make()
    other.load_state_dict(model, opt.state_dict(model))
    assert opt.state_dict(model)["weight.step"].item() == 2 + stepped
    # One operation for all of them, as before: they share their count.
    states = list(opt._state.values())
    assert states[0]["step"] is states[1]["step"]
