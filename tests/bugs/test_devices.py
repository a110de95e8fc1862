"""Threads and several devices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import burn
from burn_testing.devices import another


def _work(seed: int, device: Any) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    w = burn.tensor(rng.normal(size=(4, 4)), device=device).require_grad()
    total = [0.0]
    for _ in range(20):
        x = burn.tensor(rng.normal(size=(3, 4)), device=device)
        loss = burn.functional.softmax((x @ w).tanh(), -1).square().sum()
        grads = loss.backward()
        w = (w - 0.1 * w.grad(grads)).detach().require_grad()
        total.append(loss.item())
    return total, w.reshape(-1).tolist()


def test_b132_threads_compute_what_one_thread_does(tracking: Any) -> None:
    alone = [_work(seed, tracking) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: _work(seed, tracking), range(4)))
    assert together == alone


def test_b132_any_thread_may_use_any_tensor(leaf: Any) -> None:
    w = leaf([2.0])
    with ThreadPoolExecutor(1) as pool:
        y = pool.submit(lambda: (w * 3).sum()).result()
    assert w.grad(y.backward()).tolist() == [3]


def test_b133_two_devices_in_one_call_are_named(device: Any) -> None:
    here = burn.ones(2, 2, device=device)
    there = burn.ones(2, 2, device=another(device))
    for call in (lambda: here + there, lambda: here @ there, lambda: burn.cat([here, there])):
        with pytest.raises(burn.DeviceError) as caught:
            call()
        assert str(here.device) in str(caught.value)
        assert str(there.device) in str(caught.value)
        assert caught.value.op in ("add", "matmul", "cat")
    with pytest.raises(burn.DeviceError):
        here[burn.tensor([0], device=there.device)]
    assert burn.device(f"{device.name}:0") == device
    assert another(device) != device


def test_b136_two_backends_train_alike(device: Any) -> None:
    results = []
    for name in ("flex", device.name):
        where = burn.device(name)
        where.seed(3)
        with where.autodiff():
            w = (burn.randn(4, 3) * 0.5).detach().require_grad()
            x, losses = burn.randn(16, 4), []
            target = x.sum(1).abs().to(burn.int64) % 3
            for _ in range(10):
                loss = burn.functional.cross_entropy(x @ w, target)
                w = (w - 0.5 * w.grad(loss.backward())).detach().require_grad()
                losses.append(loss.item())
        results.append(losses)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
