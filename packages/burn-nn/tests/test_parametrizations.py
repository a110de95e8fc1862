"""Normed weights: PyTorch's values and keys (`expected/make_normed.py`), copies and removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_core import Lora, apply_lora
from burn_dispatch import Device, no_grad
from burn_nn.parametrizations import (
    is_parametrized,
    remove_parametrizations,
    spectral_norm,
    weight_norm,
)
from burn_std import ArgumentError, BurnError, IndexRangeError

with np.load(Path(__file__).parent / "expected" / "normed.npz") as _file:
    EXPECTED = {key: _file[key] for key in _file.files}
MAKERS: dict[str, Any] = {
    "weight-linear": lambda d: (weight_norm(nn.Linear(4, 3, device=d)), "weight"),
    "weight-whole": lambda d: (weight_norm(nn.Linear(4, 3, device=d), dim=None), "weight"),
    "weight-conv": lambda d: (weight_norm(nn.Conv2d(2, 3, 3, device=d), dim=1), "weight"),
    "weight-gru": lambda d: (weight_norm(nn.GRU(3, 4, device=d), "weight_hh_l0"), "weight_hh_l0"),
    "spectral-linear": lambda d: (spectral_norm(nn.Linear(4, 3, device=d), "weight", 2), "weight"),
    "spectral-conv": lambda d: (spectral_norm(nn.Conv2d(2, 3, 3, device=d)), "weight"),
    "spectral-back": lambda d: (spectral_norm(nn.ConvTranspose1d(2, 3, 3, device=d)), "weight"),
    "spectral-bias": lambda d: (spectral_norm(nn.Linear(4, 3, device=d), "bias"), "bias"),
}


def near(found: Any, expected: np.ndarray) -> bool:
    array = found.numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape
    return np.allclose(array, expected, rtol=2e-5, atol=2e-5)


def first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("key", MAKERS)
def test_normed_weights_answer_as_pytorch_does(key: str, tracking: Device) -> None:
    mine = {k.partition("/")[2]: v for k, v in EXPECTED.items() if k.startswith(f"{key}/")}

    def part(kind: str) -> dict[str, np.ndarray]:
        return {k.partition(":")[2]: v for k, v in mine.items() if k.startswith(f"{kind}:")}

    model, name = MAKERS[key](tracking)
    before = part("before")
    # PyTorch lists buffers after parameters; the names are the same.
    assert sorted(model.state_dict()) == sorted(before)
    model.load_state_dict({k: bt.tensor(v) for k, v in before.items()})
    x = bt.tensor(mine["x"], device=tracking).require_grad()
    out = first(model(x))
    assert near(out, mine["out"])
    grads = bt.backward([out], [bt.tensor(mine["end"], device=tracking)])
    assert near(x.grad(grads), mine["gx"])
    wanted = part("grad")
    assert {path for path, _ in model.named_parameters()} == set(wanted)
    for path, p in model.named_parameters():
        assert near(p.grad(grads), wanted[path]), path
    state = model.state_dict()
    for path, value in part("after").items():
        assert near(state[path], value), path
    assert near(first(model.valid()(x)), mine["still"])
    remove_parametrizations(model, name)
    assert near(getattr(model, name), mine["plain"])
    assert not is_parametrized(model) and name in model.state_dict()


@pytest.mark.parametrize("norm", [weight_norm, spectral_norm])
def test_norming_keeps_values_identity_and_flags(norm: Any, tracking: Device) -> None:
    layer = nn.Linear(4, 3, device=tracking)
    weight, value = layer.weight, layer.weight.numpy().copy()
    assert norm(layer) is layer and is_parametrized(layer, "weight")
    assert layer.weight is not weight and not is_parametrized(layer, "bias")
    if norm is weight_norm:
        assert near(layer.weight, value)
    elif norm is spectral_norm:
        kept = remove_parametrizations(norm(nn.Linear(4, 3)), "weight", leave_parametrized=False)
        assert not is_parametrized(kept)
    infer, fork = model_copies(layer)
    old = fork.weight.numpy().copy()
    weight.set(bt.ones(3, 4, device=tracking))
    assert near(infer.weight, layer.weight.numpy()) and near(fork.weight, old)
    fork.to_device(Device.flex(1))
    assert fork(bt.ones(1, 4, device=Device.flex(1))).device == Device.flex(1)
    remove_parametrizations(layer, "weight")
    assert layer.weight is weight and weight.requires_grad


def model_copies(layer: Any) -> tuple[Any, Any]:
    return layer.valid(), layer.fork()


def test_statistics_move_in_training_only(tracking: Device) -> None:
    layer = spectral_norm(nn.Linear(40, 30, device=tracking))
    x = bt.ones(1, 40, device=tracking)
    path = "parametrizations.weight.0._u"
    start = layer.state_dict()[path].numpy().copy()
    layer.valid()(x)
    with no_grad():
        layer(x)
    assert (layer.state_dict()[path].numpy() == start).all()
    layer(x)
    assert (layer.state_dict()[path].numpy() != start).any()


def test_what_has_no_meaning_is_refused(tracking: Device) -> None:
    layer = weight_norm(nn.Linear(4, 3, device=tracking))
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: weight_norm(layer), ArgumentError),
        (lambda: spectral_norm(layer), ArgumentError),
        (lambda: weight_norm(nn.Linear(4, 3), "nothing"), ArgumentError),
        (lambda: weight_norm(nn.Linear(4, 3, bias=False), "bias"), ArgumentError),
        (lambda: weight_norm(nn.LazyLinear(3)), ArgumentError),
        (lambda: weight_norm(nn.Linear(4, 3), dim=2), IndexRangeError),
        (lambda: spectral_norm(nn.Linear(4, 3), n_power_iterations=0), ArgumentError),
        (lambda: remove_parametrizations(layer, "bias"), ArgumentError),
        (lambda: remove_parametrizations(layer, "weight", False), ArgumentError),
        (lambda: apply_lora(layer, Lora(1, select="parametrizations.weight.original1")), BurnError),
        (lambda: setattr(layer, "weight", nn.Parameter(bt.ones(3, 4))), BurnError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
