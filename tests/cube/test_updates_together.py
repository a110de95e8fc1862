"""Parameters that a GPU updates in one launch get the same bits as each in its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn_cube import client
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.optim import adam_step, sgd_step
from burn_std import dtypes as d

# More than go together, an empty one, and extents around those of a cube.
SIZES = [1, 255, 256, 257, 0, 1000, *range(2, 12)]


def updated(engine: Engine, rule: str) -> list[Any]:
    rng = np.random.default_rng(0)

    def tensors() -> list[Any]:
        return [engine.from_numpy(rng.random(n, np.float32), d.float32) for n in SIZES]

    step = engine.from_numpy(np.float32(3), d.float32)
    if rule == "sgd":
        made = sgd_step(
            engine, tensors(), tensors(), tensors(), step, None, True, False, 0.1, 0.9, 0.0, 0.01
        )
    else:
        made = adam_step(
            engine, tensors(), tensors(), tensors(), tensors(), tensors(), step, None, True, False,
            0.1, 0.9, 0.99, 1e-8, 0.01,
        )  # fmt: skip
    return [engine.to_numpy(t) for t in made]


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_together_and_apart_agree(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    device = client("cpu")
    apart = updated(Engine(device), rule)
    monkeypatch.setattr(device.runtime, "properties", replace(device.properties, kind="gpu"))
    together = updated(Engine(device), rule)
    assert len(together) == len(apart)
    for one, two in zip(together, apart, strict=True):
        assert np.array_equal(one, two)
