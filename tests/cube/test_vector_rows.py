"""Views with rows without gaps are read and written in vectors on a GPU: here on any device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn_cube import client
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.maps import copied, plan_of
from burn_cube_backend.payload import CubeTensor
from burn_std import dtypes as d


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    device = client("cpu")
    facts = replace(device.properties, kind="gpu")
    monkeypatch.setattr(device.runtime, "properties", facts)
    return Engine(device)


def view(
    engine: Engine, shape: tuple[int, ...], order: tuple[int, ...], start: int, dtype: Any
) -> tuple[CubeTensor, Any]:
    """Return a view of part of a tensor with its dims in another order, and its elements."""
    host = np.arange(np.prod(shape)).astype(np.float32).reshape(shape)
    whole = engine.from_numpy(host, d.float32)
    if dtype is not d.float32:
        whole = copied(engine, whole, dtype)
    part = host[..., start:]
    steps = whole.strides
    seen = CubeTensor(whole.buf, part.shape, steps, dtype, whole.offset + start)
    turned = seen.view(tuple(part.shape[k] for k in order), tuple(steps[k] for k in order))
    return turned, part.transpose(order)


@pytest.mark.parametrize("dtype", [d.float32, d.float16], ids=lambda t: t.short)
@pytest.mark.parametrize(
    ("shape", "order", "start", "vectors"),
    [
        ((4, 16, 6, 64), (0, 2, 1, 3), 0, True),
        ((4, 16, 6, 72), (2, 0, 1, 3), 8, True),
        ((4, 16, 6, 66), (2, 0, 1, 3), 2, True),
        ((4, 16, 6, 65), (2, 0, 1, 3), 1, False),
        ((4, 16, 6, 64), (0, 1, 3, 2), 0, False),
        ((2, 4, 6, 8), (2, 1, 0, 3), 0, False),
    ],
)
def test_copies_of_views(
    engine: Engine, shape: Any, order: Any, start: int, vectors: bool, dtype: Any
) -> None:
    x, expected = view(engine, shape, order, start, dtype)
    out = copied(engine, x, d.float32)
    assert np.array_equal(
        engine.to_numpy(out), expected.astype(np.float16 if dtype is d.float16 else np.float32)
    )
    from burn_cube_backend.kernels.maps import _IDENTITY, Operand

    plan = plan_of(engine, "copy", _IDENTITY, (Operand("x", dtype, False),), d.float32, [x], out)
    assert ("_rows_x" in plan.program.kernel.name) is vectors
