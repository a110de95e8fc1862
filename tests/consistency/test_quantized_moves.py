"""Quantised tensors on their way between devices: the same integers and scales everywhere."""

from __future__ import annotations

from typing import Any

import pytest

import burn
from burn import nn


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("block", [0, 4])
def test_a_quantised_tensor_moves(
    device: Any, other: Any, bits: int, symmetric: bool, block: int
) -> None:
    flex = burn.device("flex")
    scheme = burn.quantized(bits, symmetric=symmetric, block=block)
    with flex:
        burn.manual_seed(1)
        x = burn.randn(5, 6).quantize(scheme)
    there = x.to_device(device)
    assert (there.dtype, there.shape, there.device) == (scheme, (5, 6), device)
    back = there.to_device(other).to_device(flex)
    want = x.dequantize().numpy()
    assert (there.dequantize().numpy() == want).all()
    assert (back.dequantize().numpy() == want).all()


def test_a_quantised_model_moves(device: Any) -> None:
    with burn.device("flex"):
        burn.manual_seed(1)
        model = nn.Linear(8, 3)
        x = burn.randn(2, 8)
    burn.core.quantize_weights(model, burn.core.Quantizer(burn.quantized(8)))
    want = model(x).numpy()
    got = model.to_device(device)(x.to_device(device)).numpy()
    assert abs(got - want).max() < 1e-5
    data = burn.store.to_bytes(model)
    with burn.store.open(data, device=device) as file:
        assert file["weight"].device == device
        assert (file["weight"].dequantize().numpy() == model.weight.numpy()).all()
