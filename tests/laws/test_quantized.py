"""Quantised tensors in operations: everything but quantize and dequantize sees the floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn

SCHEMES = [
    burn.quantized(8),
    burn.quantized(4, block=2),
    burn.quantized(8, symmetric=False),
]

CALLS: dict[str, Any] = {
    "scalar": lambda q, x: q + 1,
    "scalar first": lambda q, x: 2.0 / q,
    "mixed": lambda q, x: q * x,
    "mixed first": lambda q, x: x - q,
    "both": lambda q, x: q + q,
    "map": lambda q, x: q.relu(),
    "reduce": lambda q, x: q.sum(),
    "compare": lambda q, x: q > x,
    "matmul": lambda q, x: q @ x.T,
    "matmul second": lambda q, x: x @ q.T,
    "linear": lambda q, x: burn.functional.linear(x, q),
    "reshape": lambda q, x: q.reshape(6),
    "select": lambda q, x: q[0],
    "slice": lambda q, x: q[:, 1:],
    "mask": lambda q, x: q[x > 0],
    "take": lambda q, x: q[burn.tensor([1, 0], device=x.device)],
    "permute": lambda q, x: q.T,
    "cat": lambda q, x: burn.cat([q, q]),
    "cat mixed": lambda q, x: burn.cat([x, q]),
    "stack": lambda q, x: burn.stack([q, x]),
    "where": lambda q, x: burn.where(x > 0, q, x),
    "where both": lambda q, x: burn.where(x > 0, q, q),
    "softmax": lambda q, x: q.softmax(-1),
    "sort": lambda q, x: q.sort(-1).values,
    "embedding": lambda q, x: burn.functional.embedding(burn.tensor([1], device=x.device), q),
    "half": lambda q, x: q.to(burn.float16),
    "expand": lambda q, x: q.reshape(1, 2, 3).expand(2, 2, 3),
    "flip": lambda q, x: q.flip((0,)),
    "einsum": lambda q, x: burn.einsum("ij,kj->ik", q, x),
}


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
@pytest.mark.parametrize("name", CALLS)
def test_operations_dequantise(name: str, scheme: burn.DType, device: Any) -> None:
    x = burn.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], device=device)
    q = x.quantize(scheme)
    found = CALLS[name](q, x)
    expected = CALLS[name](q.dequantize(), x)
    assert found.dtype is expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_gradients_pass_straight_through(device: Any) -> None:
    x = burn.tensor([1.0, -2.0, 3.0], device=device.autodiff()).require_grad()
    loss = (x.quantize(burn.quantized(8)) * 2).sum()
    assert x.grad(loss.backward()).tolist() == [2.0, 2.0, 2.0]
