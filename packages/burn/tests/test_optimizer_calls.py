"""Habits from PyTorch are answered with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

import burn
from burn import nn, optim

CALLS = {
    "no arguments": lambda opt, model, grads: opt.step(),
    "gradients alone": lambda opt, model, grads: opt.step(grads),
    "the model alone": lambda opt, model, grads: opt.step(model),
    "by name": lambda opt, model, grads: opt.step(grads=grads),
    "parameters": lambda opt, model, grads: opt.step(model.parameters(), grads),
}


@pytest.mark.parametrize("cls", [optim.SGD, optim.AdamW, optim.Muon])
@pytest.mark.parametrize("call", CALLS)
def test_a_step_as_pytorch_has_it(call: str, cls: Any) -> None:
    model = nn.Linear(2, 1, bias=False, device=burn.Device.default().autodiff())
    grads = model(burn.ones(1, 2)).sum().backward()
    optimizer = cls(lr=0.1)
    with pytest.raises(burn.ArgumentError, match=r"opt\.step\(model, loss\.backward\(\)\)"):
        CALLS[call](optimizer, model, grads)
    optimizer.step(model=model, grads=grads)


def test_zero_grad_and_groups_of_parameters() -> None:
    optimizer: Any = optim.SGD(lr=0.1)
    with pytest.raises(AttributeError, match="nothing to zero"):
        optimizer.zero_grad()
    with pytest.raises(AttributeError, match=r"opt\.groups"):
        optimizer.param_groups[0]["lr"] = 0.1
