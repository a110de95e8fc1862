"""A few of the random layers on the compiling device, and what once went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn_testing import case_tolerance, difference
from tests.laws import layer_kinds, random_layers as layers


@pytest.mark.parametrize(("name", "count"), [("fusion-flex", 100), ("cpu", 30)])
def test_layers_are_those_of_flex(name: str, count: int) -> None:
    for seed in range(count):
        layers.run(seed, burn.device(name))


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: a layer that is another on each device is found."""
    calls: list[int] = []

    def make(dice: Any, shape: Any, settings: Any) -> Any:
        calls.append(len(calls))
        scale = 1.0 + 0.01 * calls[-1]
        return lambda x: x * scale

    for name, kind in layer_kinds.LAYERS.items():
        monkeypatch.setitem(layer_kinds.LAYERS, name, kind._replace(make=make))
    with pytest.raises(layers.Difference):
        for seed in range(20):
            layers.run(seed, burn.device("fusion-flex"))


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d])
@pytest.mark.parametrize(
    ("inputs", "outputs", "count"), [(0, 2, 2), (2, 0, 2), (0, 0, 1), (2, 3, 0)]
)
@pytest.mark.parametrize("dtype", [burn.float32, burn.float16])
def test_convolutions_without_channels(
    device: Any, kind: Any, inputs: int, outputs: int, count: int, dtype: Any
) -> None:
    """The bias alone, as PyTorch gives it; gradients of nothing are zeros or empty."""
    rank = 1 if kind.__name__.endswith("1d") else 2
    for size, stride, padding in ((3, 1, 1), (1, 1, 0), (3, 2, 1)):
        results = []
        for on in (device.autodiff(), burn.device("flex:9").autodiff()):
            on.seed(3)
            layer = kind(inputs, outputs, size, stride, padding, device=on, dtype=dtype)
            x = burn.ones(count, inputs, *(4,) * rank, dtype=dtype, device=on).require_grad()
            y = layer(x)
            grads = (y * y).sum().backward()
            found = [w.grad(grads) for w in (x, *layer.parameters())]
            results.append([y.numpy(), *(None if g is None else g.numpy() for g in found)])
        for a, b in zip(*results, strict=True):
            assert (a is None) == (b is None)
            assert a is None or difference(a, b, case_tolerance(dtype.short)) is None
        if not inputs and layer.bias is not None:
            bias = layer.bias.numpy().reshape(-1, *(1,) * rank)
            assert np.array_equal(results[0][0], np.broadcast_to(bias, y.shape))
