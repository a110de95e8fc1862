"""What a step keeps of the step before, and when it looks anew."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import burn
from burn_core import walk
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


def test_steady_parameters_are_divided_once(device, monkeypatch):
    model, opt, divided = model_of(device), Adam(lr=0.01), []
    divide = type(opt)._divided
    monkeypatch.setattr(
        type(opt), "_divided", lambda self, *given: divided.append(0) or divide(self, *given)
    )
    for _ in range(STEPS):
        stepped(opt, model)
    assert len(divided) == 1


def test_what_a_module_held_is_not_kept(device):
    class Node:
        """What can be referred to weakly."""

    model, opt, held = model_of(device), Adam(lr=0.01), Node()
    model[0].note = held
    model[0].parent = [model]
    gone, whole = weakref.ref(held), weakref.ref(model)
    for _ in range(STEPS):
        stepped(opt, model)
    model[0].note = None
    del held
    assert gone() is None
    del model
    gc.collect()
    assert whole() is None


def test_parameters_of_another_dtype_are_divided_anew(device):
    model, opt = model_of(device), Adam(lr=0.01)
    for _ in range(STEPS):
        stepped(opt, model)
    model[2].to_dtype(burn.float64)
    with burn.no_grad():
        assert model[2].weight.dtype is burn.float64
    grads = (model[0].weight.sum() + model[2].weight.sum().to(burn.float32)).backward()
    try:
        opt.step(model, grads)
    except burn.BurnError:
        return  # the state is of another dtype: said, not mixed
    kinds = [{p.dtype for p in part.params} for part in opt._parts._parts]
    assert all(len(kind) == 1 for kind in kinds)


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


def test_parameters_are_those_of_a_walk():
    device = burn.device("flex")

    class Named(dict):
        """A container of its own class."""

    model = model_of(device)
    model.other = Named(a=Linear(2, 2, device=device), b=[model[0], (model[2].weight,)])
    model.again = model.other
    assert [*map(id, model.parameters())] == [id(p) for _, p in model.named_parameters()]
    assert [*map(id, model.parameters())] == [
        id(leaf) for _, _, _, leaf in walk(model) if isinstance(leaf, burn.nn.Parameter)
    ]


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
