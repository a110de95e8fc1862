"""What a step keeps of the step before, and when it looks anew."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import burn
from burn_core import containers_of
from burn_nn import Linear, Sequential, Tanh
from burn_optim import Adam

STEPS = 8


@pytest.fixture(params=["flex", "fusion-flex"])
def device(request: pytest.FixtureRequest) -> burn.Device:
    return burn.device(request.param).autodiff()


def model_of(device: burn.Device) -> Sequential:
    return Sequential(Linear(4, 8, device=device), Tanh(), Linear(8, 2, device=device))


def stepped(opt: Adam, model: Sequential, skipped: int | None = None) -> None:
    x = burn.tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device=model[0].weight.device)
    h = x
    for k, layer in enumerate(model):
        h = layer(h) if k != skipped else h @ burn.ones(4, 8, device=x.device)
    opt.step(model, h.square().mean().backward())


def test_a_steady_model_is_walked_no_more(device, monkeypatch):
    model, opt, walks = model_of(device), Adam(lr=0.01), []
    walk = type(opt)._owned
    monkeypatch.setattr(type(opt), "_owned", lambda self, m: walks.append(m) or walk(self, m))
    for _ in range(STEPS):
        stepped(opt, model)
    assert 1 <= len(walks) < STEPS


def test_a_layer_that_is_replaced_is_trained(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    old = model[2]
    model[2] = Linear(8, 2, device=device)
    before, kept = model[2].weight.numpy().copy(), old.weight.numpy().copy()
    stepped(opt, model)
    assert (model[2].weight.numpy() != before).any()
    assert (old.weight.numpy() == kept).all()


def test_a_state_that_is_loaded_is_used(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    saved = opt.state_dict(model)
    weights = [p.numpy().copy() for p in model.parameters()]
    stepped(opt, model)
    after = [p.numpy().copy() for p in model.parameters()]
    for p, w in zip(model.parameters(), weights, strict=True):
        p.set(burn.tensor(w, device=device))
    opt.load_state_dict(model, saved)
    stepped(opt, model)
    for p, w in zip(model.parameters(), after, strict=True):
        np.testing.assert_array_equal(p.numpy(), w)


def test_a_parameter_without_a_gradient_keeps_its_count(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    for _ in range(3):
        stepped(opt, model, skipped=0)
    stepped(opt, model)
    counts = {k: int(v.item()) for k, v in opt.state_dict(model).items() if k.endswith("step")}
    assert set(counts.values()) == {STEPS + 1, STEPS + 4}
    assert counts["0.weight.step"] == STEPS + 1


def test_two_models_take_turns(device):
    one, other, opt = model_of(device), model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, one)
        stepped(opt, other)
    assert {int(v.item()) for k, v in opt.state_dict(one).items() if k.endswith("step")} == {STEPS}


def test_a_group_that_is_added_takes_over(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    opt.add_group("2", lr=0.0)
    before = model[2].weight.numpy().copy()
    stepped(opt, model)
    np.testing.assert_array_equal(model[2].weight.numpy(), before)


def test_a_copy_looks_at_its_own_model(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    twin = copy.deepcopy(opt)
    del opt
    gc.collect()
    for _ in range(STEPS):
        stepped(twin, model)


def test_a_model_that_is_gone_is_not_kept():
    device = burn.device("flex").autodiff()
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert opt._listing._owned == []


def test_containers_of_a_model():
    device = burn.device("flex")
    model = model_of(device)
    found = containers_of(model)
    assert found is not None
    assert found[0] is model.__dict__
    assert len({id(c) for c in found}) == len(found)

    class Named(dict):
        pass

    model.other = Named(a=Linear(2, 2, device=device))
    assert containers_of(model) is None


def test_an_optimizer_that_is_gone_is_gone_at_once(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    gone = weakref.ref(opt)
    gc.disable()
    try:
        del opt
        assert gone() is None
    finally:
        gc.enable()
