"""Gradients of parts of one tensor are put together once, and are what each alone adds up to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import Device, Tensor


@pytest.fixture(params=["flex", "fusion-cpu"])
def device(request: pytest.FixtureRequest) -> Device:
    return burn.device(request.param).autodiff()


def halves(x: Tensor) -> Tensor:
    a, b, c = x.chunk(3, 1)
    return (a * b + c.exp()).sum()


def rows(x: Tensor) -> Tensor:
    total = x[0] * 0
    for k in (4, 1, 3):
        total = total + x[k] * (k + 1.0)
    return (total * total).sum()


def overlapping(x: Tensor) -> Tensor:
    return (x[:, 0:4] * x[:, 2:6] + x[:, 5:6]).sum()


def mixed(x: Tensor) -> Tensor:
    y = x * 1.5
    return (y[:, 1] * y[:, 4]).sum() + (y * y).sum() + y[2:4, ::2].sum() + y[1].sum()


def permuted(x: Tensor) -> Tensor:
    parts = (x * 1).reshape(6, 3, 2)
    q, k, v = (parts[:, j].permute(1, 0) for j in range(3))
    return (q * k - v).exp().sum()


PROGRAMS = (halves, rows, overlapping, mixed, permuted)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_differences(device: Device, program: Any) -> None:
    data = np.random.default_rng(3).uniform(-0.5, 0.5, (6, 6))
    x = burn.tensor(data, device=device).require_grad()
    got = x.grad(program(x).backward()).numpy()
    wanted = np.empty_like(data)
    for at in np.ndindex(*data.shape):
        step = np.zeros_like(data)
        step[at] = 1e-6
        up, down = (program(burn.tensor(data + s, device=device)).item() for s in (step, -step))
        wanted[at] = (up - down) / 2e-6
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)


def test_a_second_order_goes_through(device: Device) -> None:
    x = burn.tensor([0.5, 1.0, 1.5, 2.0], device=device).require_grad()
    a, b = x.chunk(2)
    first = (a * a * b).sum().backward(create_graph=True)
    again = (x.grad(first) * burn.tensor([1.0, 2.0, 3.0, 4.0], device=device)).sum().backward()
    # d/dx of the sum of w * (2ab, a^2)
    np.testing.assert_allclose(x.grad(again).numpy(), [6.0, 16.0, 1.0, 4.0])


def test_a_chunk_is_one_join() -> None:
    device = burn.device("fusion-cpu").autodiff()
    w = burn.ones(4, 12, device=device).require_grad()

    def step(x: Tensor) -> Any:
        q, k, v = (x @ w).chunk(3, 1)
        return (q * k + v).sum().backward()

    x = burn.ones(2, 4, device=device)
    kernels = burn.explain(step, x).plans[0].kernels
    names = [name for kernel in kernels for name in kernel.operations]
    assert names.count("cat") == 1
    assert "slice_backward" not in names
    assert "full" not in [n for k in kernels if not k.is_view for n in k.operations]
