"""Statistics of nothing: an empty batch, and one that is refused, are none that a norm has seen."""

from __future__ import annotations

from typing import Any

import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ShapeError

NORMS: list[tuple[Any, tuple[int, ...]]] = [
    (lambda **k: nn.BatchNorm1d(2, **k), (4, 2)),
    (lambda **k: nn.BatchNorm2d(2, **k), (4, 2, 3, 3)),
    (lambda **k: nn.BatchNorm1d(2, momentum=None, **k), (4, 2, 5)),
    (lambda **k: nn.BatchNorm2d(2, momentum=None, **k), (4, 2, 3, 3)),
    (lambda **k: nn.LazyBatchNorm1d(momentum=None, **k), (4, 2)),
    (lambda **k: nn.InstanceNorm1d(2, track_running_stats=True, **k), (4, 2, 5)),
    (lambda **k: nn.InstanceNorm2d(2, affine=True, track_running_stats=True, **k), (4, 2, 3, 3)),
]  # fmt: skip


def state(model: Any) -> dict[str, Any]:
    return {name: b.tolist() for name, b in model.named_buffers()}


@pytest.mark.parametrize(("make", "shape"), NORMS)
def test_an_empty_batch_moves_no_statistics(
    make: Any, shape: tuple[int, ...], tracking: Device
) -> None:
    bt.manual_seed(0)
    batches = [bt.randn(*shape, device=tracking) * 2 + 1 for _ in range(3)]
    one, other = make(device=tracking), make(device=tracking)
    empties = [(0, *shape[1:])] + ([(*shape[:-1], 0)] if len(shape) > 2 else [])
    for x in batches:
        for empty in empties:
            out = one(bt.zeros(*empty, device=tracking))
            assert out.shape == empty
        one(x)
        other(x)
    assert state(one) == state(other)
    assert one.running_mean.tolist() != [0.0, 0.0]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_refused_batch_moves_no_statistics(momentum: float | None, tracking: Device) -> None:
    model = nn.BatchNorm1d(2, momentum=momentum, device=tracking)
    before = state(model)
    with pytest.raises(ShapeError):
        model(bt.ones(1, 2, device=tracking))
    assert state(model) == before
