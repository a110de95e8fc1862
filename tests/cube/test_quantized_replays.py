"""Plans with quantised tensors run again as one native call, list or graph, as others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from tests.cube.test_replays import EAGER, FUSED, replays

F = burn.functional
SCHEMES = [
    burn.quantized(4, block=32),
    burn.quantized(4, symmetric=False),
    burn.quantized(8, symmetric=False, block=32),
    burn.quantized(8),
]


def ran() -> int:
    """Return how often lists of launches ran."""
    return sum(r.runs for r in replays())


def weights(extent: int, depth: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((extent, depth)).astype(np.float32)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
@pytest.mark.parametrize("rows", [1, 12])
def test_products(scheme: burn.DType, rows: int) -> None:
    before = ran()
    for seed in range(6):  # new scales and integers, the same layout
        found, expected = (
            _perceptron(device, scheme, rows, seed).numpy() for device in (FUSED, EAGER)
        )
        np.testing.assert_array_equal(found, expected)
    assert ran() - before >= 4


def _perceptron(device: Any, scheme: burn.DType, rows: int, seed: int) -> burn.Tensor:
    first, second = (
        burn.tensor(weights(*shape, seed), device=device).quantize(scheme)
        for shape in ((160, 128), (128, 160))
    )
    x = burn.tensor(weights(rows, 128, seed + 1), device=device)
    for t in (first, second, x):
        t.device.sync()
    return F.linear(F.linear(x, first).relu(), second) @ second


def test_one_matrix_and_scales_that_change() -> None:
    scheme = burn.quantized(4, block=32)
    x = burn.tensor(weights(2, 128), device=FUSED)
    w = weights(130, 128)
    before = ran()
    held = []
    for step in range(8):
        q = burn.tensor(w * 2.0**step, device=FUSED).quantize(scheme)
        FUSED.sync()
        held.append((F.linear(x, q) * 0.5, q))
        held[-1][0].numpy()
    assert ran() - before >= 5
    first = held[0][0].numpy()
    for step, (out, _) in enumerate(held):  # every result is its own
        np.testing.assert_array_equal(out.numpy(), first * 2.0**step)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_results_that_are_quantised(scheme: burn.DType) -> None:
    held: list[tuple[Any, Any]] = []
    before = ran()
    for step in range(6):
        for device in (FUSED, EAGER):
            x = burn.tensor(weights(33, 96, step), device=device)
            q = (x * 2 + 1).quantize(scheme)
            plain = q.dequantize() + 1
            device.sync()
            held.append((q, plain))
    assert ran() - before >= 4
    for fused, eager in zip(held[::2], held[1::2], strict=True):
        np.testing.assert_array_equal(fused[0].dequantize().numpy(), eager[0].dequantize().numpy())
        np.testing.assert_array_equal(fused[1].numpy(), eager[1].numpy())


def test_other_shapes_of_as_many_bytes() -> None:
    """Integers of 4 bits are a flat array: what they are the bytes of tells the shape."""
    scheme = burn.quantized(4)
    for shape in ((64, 256), (256, 64), (128, 128)) * 4:
        found, expected = (
            burn.tensor(weights(*shape), device=device).quantize(scheme)
            for device in (FUSED, EAGER)
        )
        FUSED.sync()
        np.testing.assert_array_equal(
            (found.dequantize() + 1).numpy(), expected.dequantize().numpy() + 1
        )


def test_gradients_and_an_input_beside_its_integers() -> None:
    scheme = burn.quantized(4, block=32)
    before = ran()
    for step in range(8):
        results = []
        for device in (FUSED, EAGER):
            learning = device.autodiff()
            q = burn.tensor(weights(130, 128), device=device).quantize(scheme)
            x = burn.tensor(weights(3, 128, step), device=learning).require_grad()
            device.sync()
            grads = (F.linear(x, q) ** 2 + q.sum()).sum().backward()
            results.append(x.grad(grads).numpy())
        np.testing.assert_array_equal(*results)
    assert ran() - before >= 4


class Served(nn.Module):
    """A quantised matrix and a trained bias."""

    def __init__(self, device: Any) -> None:
        self.frozen = burn.tensor(weights(16, 128), device=device.without_autodiff()).quantize(
            burn.quantized(4, block=32)
        )
        self.last = nn.Linear(16, 4, device=device)

    def forward(self, x: burn.Tensor) -> burn.Tensor:
        return self.last(F.linear(x, self.frozen).relu())


def test_captured_steps() -> None:
    losses = []
    for device, captured in ((FUSED, True), (FUSED, False), (EAGER, False)):
        burn.manual_seed(0)
        model = Served(device.autodiff())
        optimizer = optim.SGD(lr=0.01)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = (model(x) ** 2).mean()
            optimizer.step(model, loss.backward())
            return loss

        run = burn.capture(step, state=(model, optimizer)) if captured else step
        found = []
        for k in range(9):
            if k == 6:  # another matrix takes the place of the first
                model.frozen = (model.frozen.dequantize() * 2).quantize(model.frozen.dtype)
            found.append(run(burn.tensor(weights(5, 128, k), device=device)).item())
        losses.append(found)
    assert losses[0] == losses[1] == losses[2]
    if replays():
        assert any(r.scales and r.runs for r in replays())
