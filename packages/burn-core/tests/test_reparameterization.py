from __future__ import annotations

import pickle
from typing import Any

import pytest

import burn_tensor as bt
from burn_core import Lora, Module, Parameter, Quantizer, apply_lora, merge_lora, quantize_weights
from burn_dispatch import Device
from burn_std import ArgumentError, BurnError, quantized
from burn_std.dtypes import float32
from burn_tensor import functional as F


class Affine(Module):
    def __init__(self, rows: int, cols: int, device: Device | None = None) -> None:
        self.weight = Parameter(bt.randn(rows, cols, device=device))
        self.bias = Parameter(bt.zeros(rows, device=device))

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight, self.bias)


class Net(Module):
    def __init__(self, device: Device | None = None) -> None:
        self.one = Affine(8, 4, device)
        self.two = Affine(2, 8, device)

    def forward(self, x: Any) -> Any:
        return self.two(self.one(x).relu())


def near(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    return bool((a.detach() - b.detach()).abs().max().item() < tolerance)


def test_lora_starts_as_the_base_and_trains_only_its_factors(tracking: Device) -> None:
    model = Net(tracking).freeze()
    x = bt.randn(3, 4, device=tracking)
    before = model(x)
    weight = model.one.weight
    apply_lora(model, Lora(rank=2, alpha=4.0, select="one"))
    assert near(model(x), before)
    assert [n for n, p in model.named_parameters() if p.requires_grad] == [
        "one.weight.lora_a", "one.weight.lora_b",
    ]  # fmt: skip
    grads = model(x).sum().backward()
    b = model.get_parameter("one.weight.lora_b")
    assert b.grad(grads).shape == (8, 2)
    assert weight.grad(grads) is None
    assert "one.weight" in model.state_dict()


def test_merge_keeps_outputs_identity_and_flags(tracking: Device) -> None:
    model = Net(tracking)
    weight = model.one.weight
    apply_lora(model, Lora(rank=2, select="one.weight"))
    model.get_parameter("one.weight.lora_b").set(bt.randn(8, 2))
    x = bt.randn(3, 4, device=tracking)
    before, infer = model(x), model.valid()
    assert near(infer(x), before)
    merge_lora(model)
    assert model.one.weight is weight and weight.requires_grad
    assert near(model(x), before)
    assert sorted(model.state_dict()) == ["one.bias", "one.weight", "two.bias", "two.weight"]


def test_adapters_are_live_in_valid_and_copied_by_fork(tracking: Device) -> None:
    model = apply_lora(Net(tracking), Lora(rank=1))
    infer, fork = model.valid(), model.fork()
    x = bt.ones(1, 4)
    old = fork.valid()(x)
    model.get_parameter("two.weight.lora_b").set(bt.ones(2, 1))
    assert near(infer(x), model(x))
    assert near(fork.valid()(x), old)
    model.to_device(Device.flex(1))
    assert model(x.to_device(Device.flex(1))).device == Device.flex(1)


class Fresh(Affine):
    """Adapted in one test alone."""


def test_an_adapter_from_another_process_computes(device: Device) -> None:
    stored = pickle.dumps(apply_lora(Fresh(2, 3, device), Lora(rank=1, select="weight")))
    for cls in (Fresh, Affine):
        if "weight" in vars(cls):
            del cls.weight  # as in a process in which nobody has adapted one
    plain = Fresh(2, 3, device)
    back = pickle.loads(stored)
    assert back.weight.shape == (2, 3) and "weight" in dir(back)
    assert plain.weight.shape == (2, 3)
    del plain.weight
    with pytest.raises(AttributeError, match="'Fresh' object has no attribute 'weight'"):
        plain.weight  # noqa: B018
    assert not hasattr(Fresh, "weight")


def test_adapted_state_survives_saving(tracking: Device) -> None:
    model = apply_lora(Net(tracking), Lora(rank=2))
    other = apply_lora(Net(tracking), Lora(rank=2))
    other.load_state_dict(model.state_dict())
    x = bt.ones(1, 4)
    assert near(other.valid()(x), model.valid()(x))


def test_quantised_weights_are_close_and_frozen(tracking: Device) -> None:
    model = Net(tracking)
    x = bt.randn(3, 4, device=tracking)
    before = model(x)
    quantize_weights(model, Quantizer(quantized(8)))
    p = model.get_parameter("one.weight")
    assert p.dtype is quantized(8) and not p.requires_grad
    assert near(model(x), before, 0.3)
    assert near(model.valid()(x), model(x))
    grads = model(x).sum().backward()
    assert model.one.bias.grad(grads) is not None
    blocks = quantize_weights(Net(), Quantizer(quantized(4, block=4), calibration="absmean"))
    assert blocks(bt.ones(1, 4)).shape == (1, 2)


def test_qlora_trains_on_a_quantised_base_and_merges_to_floats(tracking: Device) -> None:
    model = Net(tracking).freeze()
    apply_lora(model, Lora(rank=2, quantizer=Quantizer(quantized(8))))
    assert model.get_parameter("one.weight").dtype is quantized(8)
    x = bt.randn(3, 4, device=tracking)
    before = model(x)
    assert model.get_parameter("two.weight.lora_b").grad(before.sum().backward()) is not None
    merge_lora(model)
    assert model.one.weight.dtype is float32
    assert near(model(x), before)


def test_tied_weights_share_one_adapter(tracking: Device) -> None:
    model = Net(tracking)
    model.three = Affine(8, 4, tracking)  # type: ignore[attr-defined]
    model.three.weight = model.one.weight  # type: ignore[attr-defined]
    apply_lora(model, Lora(rank=1, select="one.weight"))
    model.get_parameter("one.weight.lora_b").set(bt.ones(8, 1))
    assert near(model.three.weight, model.one.weight)  # type: ignore[attr-defined]
    merged = model.one.weight.detach()
    merge_lora(model)
    assert model.three.weight is model.one.weight  # type: ignore[attr-defined]
    assert near(model.one.weight, merged)


def test_what_cannot_be_adapted_is_refused(tracking: Device) -> None:
    model = Net(tracking)
    with pytest.raises(ArgumentError):
        apply_lora(model, Lora(rank=1, select="*.bias"))
    with pytest.raises(ArgumentError):
        Lora(rank=0)
    apply_lora(model, Lora(rank=1))
    with pytest.raises(BurnError):
        apply_lora(model, Lora(rank=1))
    with pytest.raises(BurnError, match="Merge"):
        model.one.weight = Parameter(bt.ones(8, 4))
    with pytest.raises(ArgumentError):
        Quantizer(float32)
    with pytest.raises(ArgumentError):
        Quantizer(quantized(8, symmetric=False), calibration="absmean")


def test_a_weight_under_a_name_of_pytorch_is_computed_too(tracking: Device) -> None:
    class Halved(Module):
        def __init__(self) -> None:
            self.half = Parameter(bt.randn(4, 4, device=tracking))

        def forward(self, x: Any) -> Any:
            return x @ self.half

    model, x = Halved(), bt.randn(2, 4, device=tracking)
    before = model(x)
    apply_lora(model, Lora(rank=2))
    assert near(model(x), before)
    with pytest.raises(AttributeError, match="modules have no such attribute"):
        _ = Net(tracking).half


def test_what_another_base_has_under_such_a_name_is_found() -> None:
    class Saves:
        def save(self) -> str:
            return "saved"

        @property
        def half(self) -> int:
            return 7

    class Both(Module, Saves):
        pass

    assert Both().save() == "saved"
    assert Both().half == 7
