"""Leaves, backward, and the functions over them."""

from __future__ import annotations

from typing import Any

import pytest

import burn_tensor as bt
from burn_dispatch import Device, no_grad
from burn_std import AutodiffError, DeviceError, ShapeError

DEVICE = Device.default().autodiff()


def leaf(*values: float) -> bt.Tensor:
    return bt.tensor(list(values), device=DEVICE).require_grad()


def test_leaves_and_tracking() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert (x.is_autodiff(), x.is_tracked(), x.is_require_grad()) == (True, True, True)
    assert (y.is_tracked(), y.is_require_grad(), y.detach().is_tracked()) == (True, False, False)
    with pytest.raises(AutodiffError):
        y.require_grad()
    with pytest.raises(AutodiffError):
        bt.zeros(1).require_grad()
    with pytest.raises(AutodiffError):
        bt.tensor([1], device=DEVICE).require_grad()
    with no_grad():
        assert not (x * 2).is_tracked()


def test_backward_returns_a_value() -> None:
    x, unused = leaf(3.0), leaf(1.0)
    y = x * x
    grads = y.backward()
    assert x.grad(grads).tolist() == [6]
    assert unused.grad(grads) is None
    with pytest.raises(AutodiffError, match="retain_graph"):
        y.backward()


def test_cotangents() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    with pytest.raises(AutodiffError, match="cotangent"):
        y.backward()
    assert x.grad(y.backward(bt.tensor([1.0, 10.0]))).tolist() == [3, 30]
    with pytest.raises(DeviceError, match="cotangent"):
        (x * 3).backward(bt.ones(2, device="flex:5"))
    with pytest.raises(ShapeError):
        (x * 3).backward(bt.ones(3))
    with pytest.raises(AutodiffError):
        bt.zeros(1).backward()


def test_several_outputs() -> None:
    x = leaf(2.0)
    grads = bt.backward([x * 2, x * x], [None, bt.tensor([10.0])])
    assert x.grad(grads).tolist() == [42]


def test_higher_orders() -> None:
    x = leaf(2.0)
    first = x.grad((x * x * x).sum().backward(create_graph=True))
    assert first.tolist() == [12]
    assert x.grad(first.sum().backward()).tolist() == [12]

    def cube(t: bt.Tensor) -> bt.Tensor:
        return (t * t * t).sum()

    def slope(t: bt.Tensor) -> Any:
        return bt.grad(cube)(t).sum()

    assert bt.grad(slope)(bt.tensor([2.0])).tolist() == [12]
    assert bt.grad(lambda t: bt.grad(slope)(t).sum())(bt.tensor([2.0])).tolist() == [6]


def test_grad_with_several_arguments_and_extras() -> None:
    def f(a: bt.Tensor, b: bt.Tensor) -> Any:
        return (a * b).sum(), a + b

    (value, extra), (da, db) = bt.value_and_grad(f, (0, 1), has_aux=True)(
        bt.tensor([2.0]), bt.tensor([5.0])
    )
    assert (value.item(), da.item(), db.item(), extra.detach().item()) == (10, 5, 2, 7)
    assert bt.grad(lambda a, b: (a * 2).sum(), 1)(bt.ones(2), bt.ones(2)).tolist() == [0, 0]


def test_grad_inside_a_tracked_computation() -> None:
    w = leaf(3.0)
    penalty = bt.grad(lambda t: (t * t * w).sum())(bt.tensor([2.0], device=DEVICE))
    assert penalty.tolist() == [12]


def test_checkpoint_agrees_and_recomputes() -> None:
    runs = []

    def block(t: bt.Tensor) -> bt.Tensor:
        runs.append(1)
        return (t * t).exp()

    x = leaf(0.5)
    plain = x.grad(block(x).sum().backward()).item()
    runs.clear()
    assert x.grad(bt.checkpoint(block, x).sum().backward()).item() == plain
    assert len(runs) == 2
    assert x.grad(bt.checkpoint(block)(x).sum().backward()).item() == plain
    assert bt.checkpoint(block, bt.tensor([0.5])).item() == pytest.approx(1.2840, abs=1e-4)


def test_gradient_flows_across_devices() -> None:
    x = leaf(2.0)
    y = x.to_device(Device.flex(1).autodiff()) * 3
    assert y.device == Device.flex(1)
    assert x.grad(y.backward()).tolist() == [3]
