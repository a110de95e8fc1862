"""Sums over the first dim and the last ones, whose first stage is computed with their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn

F = burn.functional
# Rows that fill vectors and that do not, long ones in pieces, dims of one element.
SHAPES = [(4, 3, 6), (8, 16, 7, 7), (2, 3, 4, 4), (6, 4, 1, 20), (2, 5, 100, 100), (3, 2, 2, 9000),
          (1, 4, 5, 5), (4, 1, 6, 6), (3, 4, 2, 3, 4)]  # fmt: skip


def normed(name: str, shape: tuple[int, ...], dtype: burn.DType) -> list[Any]:
    """Return a batch norm with neighbours, its gradients, and sums of elements that lie across."""
    device = burn.device(name).autodiff()
    rng = np.random.default_rng(0)

    def given(*shape: int) -> burn.Tensor:
        return burn.tensor(rng.standard_normal(shape), dtype=dtype, device=device)

    x, skip = given(*shape).require_grad(), given(*shape)
    w, b = given(shape[1]).require_grad(), given(shape[1]).require_grad()
    mean = burn.zeros(shape[1], dtype=dtype, device=device)
    var = burn.ones(shape[1], dtype=dtype, device=device)
    out = F.relu(F.batch_norm(x * 1.5 + skip, mean, var, w, b, training=True) + skip)
    grads = (out * out).sum().backward()
    over = (0, *range(2, len(shape)))
    u = x.detach()
    made = [
        out.detach(), mean, var, *(p.grad(grads) for p in (x, w, b)), (u * 2).sum(over),
        (u * skip).transpose(0, 1).sum(over), (u + 1).transpose(0, -1).sum(over, keepdim=True),
    ]  # fmt: skip
    return [t.numpy() for t in made if t is not None]


@pytest.mark.parametrize("dtype", [burn.float32, burn.float64, burn.float16], ids=lambda t: t.short)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_norms_are_those_of_the_operations_alone(shape: Any, dtype: burn.DType) -> None:
    alone = normed("eager-cpu", shape, dtype)
    wanted = normed("flex", shape, dtype)
    for _ in range(3):
        for a, b, c in zip(normed("cpu", shape, dtype), alone, wanted, strict=True):
            assert a.tobytes() == b.tobytes()
            if dtype is burn.float64:
                np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-9)


def test_statistics_take_no_pass_of_their_own() -> None:
    x = burn.randn(8, 16, 10, 10, device="cpu")
    found = burn.explain(lambda x: ((x * 2 + 1).tanh() * x).sum((0, 2, 3)), x)
    # The elements are not written: one kernel reads x, the other what rows come to.
    assert found.kernels == 2
    moved = sum(row.reads + row.writes for plan in found.plans for row in plan.kernels)
    assert moved < 1.2 * x.numel() * 4
    direct = burn.explain(lambda x: x.sum((0, 2, 3)), x)
    assert direct.kernels == 1
