"""Views with rows without gaps are read and written in vectors on a GPU: here on any device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn_backend import Group, Part
from burn_cube import client
from burn_cube_backend.code import UNITS
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import FusedMap
from burn_cube_backend.kernels.cross_entropy import cross_entropy_backward
from burn_cube_backend.kernels.maps import Map, copied, plan_of, whole_rows
from burn_cube_backend.payload import CubeTensor
from burn_ir import CATALOG, parse
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


def test_gradients_of_many_classes_have_rows_that_begin_evenly(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((5, 3, 1027)).astype(np.float32)
    numbers = rng.integers(0, 1027, (5, 3))
    x = engine.from_numpy(scores.transpose(0, 2, 1).copy(), d.float32)
    g = engine.from_numpy(np.ones((), np.float32), d.float32)
    target = engine.from_numpy(numbers, d.int64)
    out = cross_entropy_backward(engine, g, x, target, None, "sum", None, -100, 0.0)
    assert out.strides == (3 * 1032, 1, 1032)
    rows = out.view((5, 3, 1027), (3 * 1032, 1032, 1))
    entry = CATALOG["cast"]
    half = Map(engine, entry, parse(entry.expr or ""), d.float32).cast(rows, d.float16)
    assert half.strides == rows.strides
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True) - np.eye(1027)[numbers]
    assert np.allclose(engine.to_numpy(half).astype(np.float32), expected, atol=1e-3)
    # A window of the same strides that does not own all of its rows is read as it lies.
    part = CubeTensor(rows.buf, (2, 3, 1027), rows.strides, d.float32, 3 * 1032)
    assert whole_rows(part) is None


@pytest.mark.parametrize("odd", [False, True])
def test_fused_kernels_walk_lines_in_vectors(
    engine: Engine, odd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    length = 65 if odd else 64
    hosts = [
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((8, 6, 16, length), (length,), (8, 16, 6, 1))
    ]
    whole, bias, scale = (engine.from_numpy(h, d.float32) for h in hosts)
    order = (0, 2, 1, 3)
    x = whole.view(tuple(whole.shape[k] for k in order), tuple(whole.strides[k] for k in order))
    f = d.float32
    parts = (
        Part("add", (-1, -2), (), 0, f, f),
        Part("cast", (0,), (d.float16,), 0, f, d.float16),
        Part("mul", (0, -3), (), 0, f, f),
    )
    fused = FusedMap(engine, Group(parts, (f, f, f), (1, 2)))
    seen: list[Any] = []
    loaded = engine.loaded
    monkeypatch.setattr(engine, "loaded", lambda k, spec: seen.append(spec) or loaded(k, spec))
    half, full = fused(x, bias, scale)
    (launch,) = fused.launches.values()
    (form,) = (f for g, f in seen if g is fused.group)
    assert form.kind == ("strided" if odd else "lined")
    assert launch.cubes[0] == -(-full.size // (UNITS * form.width))
    expected = hosts[0].transpose(order) + hosts[1]
    assert np.array_equal(engine.to_numpy(half), expected.astype(np.float16))
    assert np.array_equal(engine.to_numpy(full), expected * hosts[2])
