"""Edges of differentiation."""

from __future__ import annotations

import gc
import itertools
import math
import threading
import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import burn
from burn_testing.devices import another

INF = math.inf


def test_b56_where_does_not_leak_nan(leaf: Any, slope: Any) -> None:
    where = burn.where
    assert slope(lambda x: where(x > 0, x.sqrt(), x), leaf([-1.0, -4.0])).tolist() == [1, 1]
    assert slope(lambda x: where(x <= 0, x.exp(), 1 + x), leaf([100.0])).tolist() == [1]
    assert slope(lambda x: where(x < 1, x.cos(), 0.0), leaf([0.0, INF])).tolist() == [0, 0]
    for name in ("log", "rsqrt", "reciprocal", "log1p", "acosh", "asin", "atanh", "tan", "log2"):
        grad = slope(
            lambda x, n=name: where(x > 5, getattr(x, n)(), x), leaf([-1.0, 0.0, 1.0, 2.0])
        )
        assert grad.tolist() == [1, 1, 1, 1], name
    grad = slope(lambda x: where(x > 5, 1 / x, x), leaf([0.0]))
    assert grad.tolist() == [1]
    grad = slope(lambda x: where(x > 5, x**-0.5, x), leaf([0.0, -1.0]))
    assert grad.tolist() == [1, 1]


def test_b57_masked_square_root_at_0(leaf: Any, slope: Any) -> None:
    def radius(x: Any, y: Any) -> Any:
        rho = (x * x + y * y).sqrt()
        return burn.maximum(rho, burn.tensor(1e-10, device=x.device))

    assert [g.tolist() for g in slope(radius, leaf([0.0]), leaf([0.0]))] == [[0], [0]]
    assert slope(lambda x: x.sqrt(), leaf([0.0])).tolist() == [INF]


def test_b59_powers_and_their_slopes(make: Any, leaf: Any, slope: Any) -> None:
    assert (make([0.0]) ** 0).item() == 1
    assert (make([-2.0]) ** 3).item() == -8
    for n, at, right in (
        (2, 0.0, 0),
        (2, -2.0, -4),
        (1, 0.0, 1),
        (0, 0.0, 0),
        (0.5, 0.0, INF),
        (3, -2.0, 12),
    ):
        assert slope(lambda x, n=n: x**n, leaf([at])).tolist() == [right]
        exponent = burn.tensor([float(n)], device=leaf([at]).device)
        assert slope(lambda x, e=exponent: x**e, leaf([at])).tolist() == [right]


def test_b60_clamp_passes_at_its_bounds_and_relu6_does_not(leaf: Any, slope: Any) -> None:
    assert slope(lambda x: x.clamp(0, 1), leaf([0.0, 1.0, 0.5, 2.0])).tolist() == [1, 1, 1, 0]
    assert slope(lambda x: x.clamp(1, 1), leaf([1.0])).tolist() == [1]
    f = burn.functional
    assert slope(f.relu6, leaf([0.0, 6.0, 3.0])).tolist() == [0, 0, 1]
    assert slope(f.hardtanh, leaf([-1.0, 1.0, 0.5])).tolist() == [0, 0, 1]
    assert slope(f.relu, leaf([0.0])).tolist() == [0]
    for fn in (lambda x: x.clamp(0, 1), f.relu6, f.hardtanh, f.relu):
        assert math.isnan(fn(leaf([math.nan])).item())


def test_b61_ties_share_or_choose_but_never_double(leaf: Any, slope: Any) -> None:
    assert slope(lambda x: x.max(), leaf([2.0, 2.0, 1.0])).tolist() == [0.5, 0.5, 0]
    assert slope(lambda x: x.amax(0), leaf([2.0, 2.0, 1.0])).tolist() == [0.5, 0.5, 0]
    assert slope(lambda x: x.max(0).values, leaf([2.0, 2.0, 1.0])).tolist() == [1, 0, 0]
    a, b = slope(burn.maximum, leaf([3.0]), leaf([3.0]))
    assert (a.tolist(), b.tolist()) == ([0.5], [0.5])
    assert slope(lambda x: x.abs(), leaf([0.0])).tolist() == [0]


@pytest.mark.parametrize("change", ["add", "assign"])
def test_b62_a_write_through_a_view_cannot_reach_a_saved_value(change: str, leaf: Any) -> None:
    w = leaf([[1.0, 2.0], [3.0, 4.0]])
    x = burn.tensor([[1.0, 2.0], [3.0, 4.0]], device=w.device)
    y = x.T @ w
    if change == "add":
        x += 1
    else:
        x[0] = 100.0
    grads = y.sum().backward()
    assert w.grad(grads).tolist() == [[3, 3], [7, 7]]


def test_b64_a_move_between_devices_is_tracked(leaf: Any, device: Any) -> None:
    x = leaf([1.0, 2.0])
    there = another(device)
    grads = (x.to_device(there) * 3).sum().backward()
    grad = x.grad(grads)
    assert grad.tolist() == [3, 3]
    assert grad.device == x.device


def test_b65_plain_and_integer_tensors_are_constants(leaf: Any, make: Any) -> None:
    w, x = leaf([[1.0, 2.0], [3.0, 4.0]]), make([[5.0, 6.0], [7.0, 8.0]])
    index = make([[0, 1], [1, 0]])
    loss = (w * x).gather(1, index).sum()
    found: list[Any] = []
    worker = threading.Thread(target=lambda: found.append(loss.backward()))
    worker.start()
    worker.join()
    assert w.grad(found[0]).tolist() == [[5, 6], [7, 8]]


def test_b66_a_value_used_twice_gets_both_shares(leaf: Any, slope: Any) -> None:
    x = 2.0
    assert slope(lambda w: w * (w * x), leaf([3.0])).tolist() == [12]


class Tied(burn.nn.Module):
    """One parameter under two names."""

    def __init__(self, device: Any) -> None:
        self.first = burn.nn.Parameter(burn.tensor([3.0], device=device))
        self.second = self.first

    def forward(self, x: Any) -> Any:
        return self.first * (self.second * x)


def test_b66_a_tied_parameter_is_one(tracking: Any, device: Any) -> None:
    model = Tied(tracking)
    assert len(list(model.parameters())) == 1
    x = burn.tensor([2.0], device=tracking)
    grads = model(x).sum().backward()
    assert model.first.grad(grads).tolist() == [12]
    burn.optim.SGD(lr=0.1).step(model, grads)
    assert model.second.tolist() == pytest.approx([1.8], rel=1e-6)
    moved = model.to_device(another(device).autodiff())
    assert moved.first is moved.second
    assert len(list(moved.parameters())) == 1


def test_b64_a_moved_module_keeps_leaves_and_frozen_flags(tracking: Any, device: Any) -> None:
    model = burn.nn.Linear(2, 2, device=tracking)
    model.bias.set_requires_grad(False)
    there = another(device).autodiff()
    model = model.to_device(there)
    assert not model.bias.requires_grad
    assert model.weight.requires_grad
    grads = model(burn.ones(1, 2, device=there)).sum().backward()
    assert model.weight.grad(grads).tolist() == [[1, 1], [1, 1]]
    assert model.bias.grad(grads) is None


def _nodes() -> int:
    kind = type(burn.zeros(1, device=burn.device("flex").autodiff()).require_grad().node)
    return sum(type(o) is kind for o in gc.get_objects())


@pytest.mark.parametrize("backward", [False, True])
def test_b67_dropping_the_outputs_frees_the_tape(backward: bool, leaf: Any) -> None:
    w = leaf(np.ones((4, 4), np.float32))
    x = burn.ones(2, 4, device=w.device)
    gc.collect()
    gc.disable()
    try:
        before = _nodes()
        for _ in range(200):
            loss = burn.functional.relu(x @ w).sum()
            if backward:
                loss.backward()
            del loss
        assert _nodes() <= before + 4
    finally:
        gc.enable()


def test_b68_selecting_batches_keeps_no_buffers(leaf: Any) -> None:
    data = burn.rand(256, 64, device=leaf([1.0]).device.without_autodiff())
    w = leaf(np.zeros((64, 8), np.float32))
    peaks, measured = [], 0
    gc.collect()
    tracemalloc.start()
    try:
        # Frequent functions are compiled over several steps, and that stays.
        recorder = getattr(data.device.resource.backend, "recorder", None)
        for step in itertools.count():
            if recorder is None or not recorder.waiting:
                measured += 1
            if measured > 40:
                break
            start = step % 200
            index = burn.arange(start, start + 32, device=data.device)
            loss = (data.index_select(0, index) @ w).square().mean()
            grads = loss.backward()
            w = (w - 0.1 * w.grad(grads)).detach().require_grad()
            loss.item()
            del loss, grads, index
            peaks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # A table of the process, filled by other tests, may double once: that is one step. What is kept
    # per batch, 8 kB of rows at least, shows in every one.
    steps = sorted(b - a for a, b in pairwise(peaks[-30:]))
    assert sum(steps[:-1]) < 64_000


def test_b139_second_backward(leaf: Any) -> None:
    x = leaf([3.0])
    y = (x * x).sum()
    assert x.grad(y.backward(retain_graph=True)).tolist() == [6]
    assert x.grad(y.backward()).tolist() == [6]  # a value each time: nothing accumulates
    with pytest.raises(burn.AutodiffError, match="retain_graph"):
        y.backward()
    with pytest.raises(burn.AutodiffError):
        y.detach().backward()
    other = leaf([1.0])
    assert other.grad((x * 2).sum().backward()) is None
