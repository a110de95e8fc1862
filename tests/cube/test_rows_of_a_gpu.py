"""Kernels of rows as a GPU has them: neighbours at once, planes that exchange values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_cube_backend.plugin import interp
from burn_ir import CATALOG
from burn_std import dtypes as d

# Less than a plane, one plane with and without a rest, several planes, several rounds.
LENGTHS = (1, 10, 128, 131, 768, 1027, 5001)


@pytest.fixture(scope="module")
def kernels() -> Any:
    """Kernels on the watched interpreter that says that it is a GPU."""
    made = interp.create(0)
    runtime = made.engine.client.runtime
    runtime.properties = replace(
        runtime.properties, kind="gpu", capabilities=frozenset({"fp64", "planes"}), index=d.int32
    )
    return made


def call(backend: Any, name: str, arrays: list[Any], *attrs: Any) -> Any:
    given = [None if a is None else backend.from_numpy(np.asarray(a), True) for a in arrays]
    made = backend.execute(CATALOG[name], given, list(attrs))
    outs = made if isinstance(made, (tuple, list)) else (made,)
    return [backend.to_numpy(x) for x in outs]


@pytest.mark.parametrize("length", LENGTHS)
def test_softmax(kernels: Any, length: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, length)).astype(np.float32) * 3
    (got,) = call(kernels, "softmax", [x], 1, None)
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, want / want.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("length", LENGTHS)
def test_layer_norm(kernels: Any, length: int) -> None:
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((3, length), length, length))
    got, mean, root = call(kernels, "layer_norm", [x, w, b], 1, 1e-5)
    wide = x.astype(np.float64)
    want_root = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    want = (wide - wide.mean(1, keepdims=True)) * want_root * w + b
    np.testing.assert_allclose(mean, wide.mean(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(root, want_root, rtol=1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_cross_entropy_and_its_gradient(kernels: Any, length: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, length)).astype(np.float32)
    target = np.array([0, length - 1, -100, length // 2])
    more = ("mean", None, -100, 0.1)
    (loss,) = call(kernels, "cross_entropy", [x, target, None], *more)
    (slope,) = call(kernels, "cross_entropy_backward", [np.float32(1), x, target, None], *more)
    device = burn.device("flex")
    scores = burn.tensor(x, device=device.autodiff()).require_grad()
    want = burn.functional.cross_entropy(
        scores, burn.tensor(target, device=device), label_smoothing=0.1
    )
    np.testing.assert_allclose(loss, want.numpy(), rtol=1e-5)
    np.testing.assert_allclose(slope, scores.grad(want.backward()).numpy(), rtol=1e-4, atol=1e-7)
