"""Gradients that differences over one operation cannot measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("turned", [True, False])
def test_a_product_by_a_quantised_matrix_has_the_gradients_of_its_floats(
    device: Any, turned: bool
) -> None:
    context = device.autodiff().context
    rng = np.random.default_rng(0)
    shapes = (3, 8), (5, 8) if turned else (8, 5), (5,)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = []
    for packed in (True, False):
        x, w, bias = (context.decorator.leaf(context.tensor_from_numpy(a)) for a in arrays)
        q = context.quantize(w, None, None, quantized(8))
        if packed:
            out = context.quantized_matmul(x, q, bias, turned)
        else:
            floats = context.dequantize(q, float32)
            out = context.linear(x, floats if turned else context.permute(floats, (1, 0)), bias)
        seed = context.tensor_from_numpy(np.arange(15, dtype=np.float32).reshape(3, 5))
        grads = context.decorator.backward([out], [seed])
        found.append([context.to_numpy(grads.get(leaf)) for leaf in (x, w, bias)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
