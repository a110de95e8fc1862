"""Rows that a processor reads and adds at indices, and rows of scores that end early."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import burn
from tests.cube.test_attention_rows import FLEX, normal, run, same

F = burn.functional
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("place", ["eager-cpu", "eager-opencl"])
@pytest.mark.parametrize("features", [3, 8, 12, 16, 20, 256])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32"])
def test_rows_of_tables(place: str, features: int, dtype: str) -> None:
    table = (RNG.standard_normal((40, features)) * 4).astype(dtype)
    index = RNG.integers(0, 40, (6, 5))
    for at in (index, index[::2, ::-1], index[:1, :0], np.int64(3)):
        same(place, "embedding", [table, np.asarray(at)], (None,), 0)
    same(place, "index_select", [table, index[0]], (0,), 0)
    same(place, "index_select", [np.stack([table, table + 1]), index[0]], (1,), 0)
    if dtype != "int32":
        g = np.round(RNG.standard_normal((6, 5, features)) * 8).astype(dtype)
        same(place, "embedding_backward", [g, index], (2, 40), 0)


def _numpy(x: Any) -> Any:
    return x.to_device(burn.device("flex")).numpy()


@pytest.mark.parametrize("features", [3, 16, 24])
def test_numpy_indices_and_additions(features: int) -> None:
    base = RNG.integers(-9, 9, (12, features)).astype(np.float32)
    at, src = RNG.integers(-12, 12, 30), RNG.integers(-9, 9, (30, features)).astype(np.float32)
    found = []
    for name in ("eager-cpu", "flex"):
        x, i, s = (burn.tensor(a, device=burn.device(name)) for a in (base, at, src))
        found.append([
            _numpy(t)
            for t in (
                x[i], x.T[:, i], x[i, 1:], x[:, i % features], x.index_add(0, i % 12, s),
                x.index_put([i], s), x.index_put([i], s, accumulate=True),
                x.T.index_add(1, i % 12, s.T),
                x.scatter_reduce(0, burn.zeros_like(s).to(burn.int64) + i.unsqueeze(1) % 12, s,
                                 "amax"),
            )
        ])  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["eager-cpu", "cpu", "opencl"])
def test_a_row_that_is_not_there_is_an_error(name: str) -> None:
    table = burn.ones(10, 32, device=burn.device(name))
    with pytest.raises(burn.IndexRangeError, match="index 10 for size 10"):
        F.embedding(burn.tensor([1, 10], device=table.device), table).numpy()


# The interpreter is slow, and the kernels are the same for it.
CAUSAL = [
    ("interp", 65, "float32"),
    *itertools.product(
        ["eager-cpu", "eager-opencl"], [40, 65, 96, 100, 131], ["float32", "float64", "float16"]
    ),
]


@pytest.mark.parametrize(("place", "keys", "dtype"), CAUSAL)
def test_causal_rows_end_with_their_keys(place: str, keys: int, dtype: str) -> None:
    attrs, tolerance = (True, False, 0.3), {"float16": 4e-3}.get(dtype, 3e-5)
    for queries in (keys, 33, keys + 7):
        q, g = (normal(2, 2, queries, 8).astype(dtype) for _ in range(2))
        k, v = (normal(2, 2, keys, 8).astype(dtype) for _ in range(2))
        for mask in (None, RNG.random((queries, keys)) < 0.7):
            given = [q, k, v, mask]
            same(place, "attention", given, attrs, tolerance)
            made = run("attention", given, attrs, FLEX)
            same(place, "attention_backward", [g, *given, *made], attrs, tolerance)


def test_the_gradient_reads_what_the_forward_left() -> None:
    """Recorded and eager gradients of attention have the same bits, at every batch size."""
    for batch in (1, 3):
        arrays = [normal(batch, 2, 70, 16) for _ in range(3)]
        found = []
        for name in ("cpu", "eager-cpu"):
            leaves = [
                burn.tensor(a, device=burn.device(name).autodiff()).require_grad() for a in arrays
            ]
            grads = F.scaled_dot_product_attention(*leaves, is_causal=True).tanh().sum().backward()
            found.append([_numpy(t.grad(grads)) for t in leaves])
        for one, other in zip(*found, strict=True):
            assert one.tobytes() == other.tobytes()
