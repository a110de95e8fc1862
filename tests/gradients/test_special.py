"""Gradients that differences over one operation cannot measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_std import quantized
from burn_std.dtypes import float32
from burn_testing.gradcheck import differences


def test_ctc_loss_through_log_softmax(device: Any) -> None:
    tracking, plain = device.autodiff().context, device.context
    logits = np.random.default_rng(0).normal(size=(5, 2, 4))
    targets, lengths, sizes = (np.array(a) for a in ([[1, 2], [3, 0]], [5, 4], [2, 1]))

    def losses(context: Any, x: Any) -> Any:
        log_probs = context.log_softmax(x, 2, None)
        rest = [context.tensor_from_numpy(a) for a in (targets, lengths, sizes)]
        return context.ctc_loss(log_probs, *rest, 0)[0]

    def value(at: list[Any]) -> float:
        out = losses(plain, plain.tensor_from_numpy(at[0]))
        return float((plain.to_numpy(out) * np.array([1.0, 0.5])).sum())

    leaf = tracking.decorator.leaf(tracking.tensor_from_numpy(logits))
    seed = tracking.tensor_from_numpy(np.array([1.0, 0.5]))
    grads = tracking.decorator.backward([losses(tracking, leaf)], [seed])
    found = tracking.to_numpy(grads.get(leaf))
    np.testing.assert_allclose(found, differences(value, [logits])[0], rtol=1e-6, atol=1e-8)


def test_quantize_passes_the_gradient_straight_through(device: Any) -> None:
    context = device.autodiff().context
    x = context.decorator.leaf(context.tensor_from_numpy(np.linspace(-1, 1, 6, dtype=np.float32)))
    y = context.dequantize(context.quantize(x, None, None, quantized(8)), float32)
    seed = context.tensor_from_numpy(np.arange(6, dtype=np.float32))
    grads = context.decorator.backward([y], [seed])
    np.testing.assert_array_equal(context.to_numpy(grads.get(x)), np.arange(6))
