"""What a group computes only for a later one is computed there; and how large groups become."""

from __future__ import annotations

from typing import Any

import numpy as np

import burn

F = burn.functional


def moved(found: Any) -> tuple[int, int]:
    """Return the bytes that all kernels read and write."""
    rows = [row for plan in found.plans for row in plan.kernels]
    return sum(r.reads for r in rows), sum(r.writes for r in rows)


def normed(x: Any) -> Any:
    """Columns by hand; the differences stand there twice, as in the parts of a batch norm."""
    mean = x.mean(0)
    spread = ((x - mean) * (x - mean)).mean(0)
    return (x - mean) * (spread + 1e-5).rsqrt()


def test_differences_are_computed_where_they_are_read() -> None:
    x = burn.randn(400, 300, device="cpu")
    found = burn.explain(normed, x)
    size = x.numel() * 4
    reads, writes = moved(found)
    # Three walks over x, and nothing but the result is written.
    assert reads < 3.1 * size and writes < 1.1 * size
    eager = normed(burn.tensor(x.numpy(), device="eager-cpu"))
    assert normed(x).numpy().tobytes() == eager.numpy().tobytes()


def test_what_others_read_too_stays_where_it_is() -> None:
    def both(x: Any) -> Any:
        centred = x - x.mean(0)
        spread = (centred * centred).mean(0)
        return centred, centred * (spread + 1e-5).rsqrt()

    array = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    alone = both(burn.tensor(array, device="eager-cpu"))
    for a, b in zip(both(burn.tensor(array, device="cpu")), alone, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_values_inside_of_a_kernel_are_none_of_its_arrays() -> None:
    """A chain of many operations over two tensors is one kernel, beside rows too."""

    def chain(x: Any, y: Any) -> Any:
        for k in range(40):
            x = x * y + k
        return x - x.sum(-1, keepdim=True)

    x, y = burn.randn(64, 100, device="cpu"), burn.randn(64, 100, device="cpu")
    assert burn.explain(chain, x, y).kernels == 1


def test_long_programs_are_planned_at_once() -> None:
    """Shapes are found by short ways: a chain of values has one shape, however long it is."""
    from burn_fusion.extents import Extents

    shapes = Extents((), lambda slot: None)
    for k in range(3000):
        shapes._same(k + 1, k)
    assert shapes.root(0) == 3000
    assert shapes._one[0] == 3000
