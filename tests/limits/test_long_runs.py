"""Long chains, long trainings, and what they leave in memory."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn


def resident() -> int:
    """Bytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_a_chain_of_100_000_operations_differentiates(tracking: Any) -> None:
    x = burn.tensor([1.0], device=tracking, dtype=burn.float64).require_grad()
    y = x
    for _ in range(50_000):
        y = y * 1.00001 + 0.0
    grads = y.sum().backward()
    assert x.grad(grads).item() == pytest.approx(1.00001**50_000, rel=1e-9)


def test_a_long_chain_is_dropped_without_recursion(tracking: Any) -> None:
    x = burn.tensor([1.0], device=tracking).require_grad()
    y = x
    for _ in range(100_000):
        y = y + 1.0
    del y
    assert sys.getrecursionlimit() < 100_000


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's own numbers")
def test_2000_training_steps_leave_memory_flat(tracking: Any) -> None:
    class Net(burn.nn.Module):
        def __init__(self) -> None:
            self.first = burn.nn.Linear(16, 32, device=tracking)
            self.second = burn.nn.Linear(32, 4, device=tracking)

        def forward(self, x: Any) -> Any:
            return self.second(burn.functional.relu(self.first(x)))

    model, optimizer = Net(), burn.optim.AdamW(lr=1e-3)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(2048, 16)).astype(np.float32)
    target = rng.integers(0, 4, 2048)
    gc.collect()
    sizes = []
    for step in range(2000):
        rows = slice(step % 64 * 32, step % 64 * 32 + 32)
        x = burn.tensor(data[rows], device=tracking)
        t = burn.tensor(target[rows], device=tracking)
        loss = burn.functional.cross_entropy(model(x), t)
        optimizer.step(model, loss.backward(), lr=1e-3 * (1 + step % 7))
        if step % 100 == 99:
            loss.item()
            sizes.append(resident())
    assert max(sizes[2:]) - sizes[1] < 2_000_000


def test_forward_passes_without_backward_leave_no_nodes(tracking: Any) -> None:
    w = burn.ones(8, 8, device=tracking).require_grad()
    kind = type(w.node)
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(o, kind) for o in gc.get_objects())
        for _ in range(300):
            (w @ w).tanh().sum()
        after = sum(isinstance(o, kind) for o in gc.get_objects())
    finally:
        gc.enable()
    assert after <= before
