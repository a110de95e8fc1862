"""Kernels that are chosen on GPUs, on the watched interpreter that says it is one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn_cube_backend.kernels import chains
from burn_cube_backend.plugin import CubeBackend, interp
from burn_ir import CATALOG
from burn_std import dtypes as d

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def gpu() -> CubeBackend:
    return made_gpu()


@pytest.fixture(scope="module", params=["tiles", "groups"])
def cores(request: pytest.FixtureRequest) -> CubeBackend:
    """A GPU with tensor cores, which multiply for one plane or for four."""
    return made_gpu({"groups"} if request.param == "groups" else set())


def made_gpu(more: Collection[str] = ()) -> CubeBackend:
    """Return the interpreter as a GPU with tensor cores, and what more it has."""
    made = interp.create(0)
    runtime = made.engine.client.runtime
    facts = replace(
        runtime.properties,
        kind="gpu",
        capabilities=frozenset({"fp64", "planes", "tensor_cores", *more}),
        index=d.int32,
        units=2,
        shared_bytes=227 << 10,
    )
    runtime.properties = facts
    return made


def run(gpu: CubeBackend, name: str, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Any:
    given = [gpu.from_numpy(x, True) if isinstance(x, np.ndarray) else x for x in inputs]
    out = gpu.execute(CATALOG[name], given, attrs)
    return [gpu.to_numpy(e) for e in out] if isinstance(out, list) else gpu.to_numpy(out)


SHAPES = [(3, 1), (5, 7), (70, 100), (2, 1030), (1, 9000), (600, 4), (257, 36), (40, 3, 8)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
def test_reductions_of_every_shape(gpu: CubeBackend, shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)
    for dim in range(len(shape)):
        dims = (dim,)
        np.testing.assert_array_equal(
            run(gpu, "sum", x, attrs=(dims, False, d.float32)), x.sum(dim, dtype=np.float32)
        )
        np.testing.assert_array_equal(run(gpu, "amax", x, attrs=(dims, False)), x.max(dim))
        if dtype != "bool":
            np.testing.assert_array_equal(run(gpu, "argmin", x, attrs=(dim, False)), x.argmin(dim))
        if dtype != "float16":
            np.testing.assert_array_equal(
                run(gpu, "all", x, attrs=(dims, False)).astype(bool), x.all(dim)
            )
    assert run(gpu, "sum", x, attrs=(None, False, d.int64)) == x.sum(dtype=np.int64)
    if dtype != "bool":
        assert run(gpu, "argmax", x, attrs=(None, False)) == x.argmax()


def test_a_reduction_reads_views_and_is_planned_once(gpu: CubeBackend) -> None:
    x = RNG.standard_normal((6, 50, 64)).astype(np.float32)
    given = gpu.from_numpy(x, True)
    for order in ((1, 0, 2), (2, 1, 0), (0, 2, 1)):
        view = gpu.execute(CATALOG["permute"], [given], (order,))
        for dims in ((0,), (1,), (2,), (0, 1), (1, 2)):
            for _ in range(2):
                out = gpu.execute(CATALOG["sum"], [view], (dims, False, None))
                wanted = x.transpose(order).sum(dims)
                np.testing.assert_allclose(gpu.to_numpy(out), wanted, rtol=1e-4, atol=1e-4)


SORTED = ["int16", "int32", "float32", "float16", "int8", "uint8", "bool", "int64", "float64"]


@pytest.mark.parametrize("length", [700, 8600])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", SORTED)
def test_long_lines_are_sorted_by_digits(
    gpu: CubeBackend, dtype: str, descending: bool, length: int
) -> None:
    most = 1 << (10 if dtype == "float16" else 20)
    x = RNG.integers(-most, most, (2, length)).astype(dtype)
    if x.dtype.kind == "f":
        x[0, :9] = [np.nan, -0.0, 0.0, np.inf, -np.inf, np.nan, 1, 0.0, -0.0]
    for dim, given in ((1, x), (0, np.ascontiguousarray(x.T))):
        values, places = run(gpu, "sort", given, attrs=(dim, descending))
        lines = given if dim else given.T
        wanted = stable_order(lines, descending)
        np.testing.assert_array_equal(places if dim else places.T, wanted)
        taken = np.take_along_axis(lines, wanted, 1)
        np.testing.assert_array_equal(values if dim else values.T, taken)


def stable_order(x: Any, descending: bool) -> Any:
    if not descending:
        return x.argsort(1, kind="stable")
    # The last of equals comes first in the reverse of what is turned around.
    return x.shape[1] - 1 - x[:, ::-1].argsort(1, kind="stable")[:, ::-1]


@pytest.mark.parametrize("most", [chains.MOST, 0], ids=["chained", "sorted"])
@pytest.mark.parametrize("columns", [3, 8])
@pytest.mark.parametrize("rows", [50, 9000, 1])
def test_many_additions_at_indices_keep_their_order(
    gpu: CubeBackend, monkeypatch: pytest.MonkeyPatch, most: int, columns: int, rows: int
) -> None:
    monkeypatch.setattr(chains, "MOST", most)
    x = RNG.standard_normal((rows, columns)).astype(np.float32)
    at = RNG.integers(0, rows, 1500)
    src = RNG.standard_normal((1500, columns)).astype(np.float32)
    wanted = x.copy()
    for number, row in zip(at, src, strict=True):
        wanted[number] += row
    np.testing.assert_array_equal(run(gpu, "index_add", x, at, src, attrs=(0, 1.0)), wanted)
    for mode in ("assign", "amax"):
        whole = np.broadcast_to(at[:, None], src.shape).copy()
        found = run(gpu, "scatter", x, whole, src, attrs=(0, mode))
        wanted = x.copy()
        for number, row in zip(at, src, strict=True):
            wanted[number] = row if mode == "assign" else np.maximum(wanted[number], row)
        np.testing.assert_array_equal(found, wanted)


def attended(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Return attention in float64."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (t.astype(np.float64) for t in (q, k.repeat(group, 1), v.repeat(group, 1)))
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    p = np.exp(scores - np.where(np.isinf(most), 0, most))
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-300) @ v


FLASH = {
    "causal": ((1, 2, 130, 32), (1, 2, 130, 32), 16, None, True),
    "grouped": ((2, 4, 5, 16), (2, 2, 70, 16), 32, None, False),
    "masked": ((1, 2, 20, 16), (1, 2, 67, 16), 16, bool, True),
    "biased": ((2, 1, 9, 16), (2, 1, 33, 16), 16, np.float32, False),
    "wide": ((1, 1, 20, 80), (1, 1, 70, 80), 96, None, True),
}


@pytest.mark.parametrize("name", FLASH)
def test_attention_of_halves_on_tensor_cores(cores: CubeBackend, name: str) -> None:
    q_shape, k_shape, width, kind, causal = FLASH[name]
    q = RNG.standard_normal(q_shape).astype(np.float16)
    k = RNG.standard_normal(k_shape).astype(np.float16)
    v = RNG.standard_normal((*k_shape[:-1], width)).astype(np.float16)
    mask = None
    if kind is not None:
        mask = RNG.standard_normal((q_shape[2], k_shape[2])).astype(np.float32)
        mask = mask > 0 if kind is bool else mask
        if kind is bool:
            mask[3] = False
    scale = 0.3
    attrs = (causal, q_shape[1] != k_shape[1], scale)
    found, _ = run(cores, "attention", q, k, v, mask, attrs=attrs)
    wanted = attended(q, k, v, mask, causal, scale)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-2, atol=4e-3)


PRODUCTS = [(1, 40, 24, 40), (3, 8, 130, 16), (1, 16, 8, 1100), (1, 136, 264, 72)]


@pytest.mark.parametrize("size", PRODUCTS, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (True, True), (False, True)], ids=str)
def test_products_of_halves_on_tensor_cores(
    cores: CubeBackend, size: tuple[int, ...], turned: tuple[bool, bool]
) -> None:
    batch, m, n, k = size
    x = RNG.integers(-4, 5, (batch, m, k)).astype(np.float16)
    y = RNG.integers(-4, 5, (batch, k, n)).astype(np.float16)
    given = []
    for t, turn in zip((x, y), turned, strict=True):
        laid = np.ascontiguousarray(t.swapaxes(1, 2)) if turn else t
        made = cores.from_numpy(laid, True)
        given.append(cores.execute(CATALOG["permute"], [made], ((0, 2, 1),)) if turn else made)
    found = cores.to_numpy(cores.execute(CATALOG["matmul"], given, ()))
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(found, wanted.astype(np.float16))


def slopes(g: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> list[Any]:
    """Return the gradients of attention in float64, and those of its scores."""
    group = q.shape[1] // k.shape[1]
    g, q, k, v = (t.astype(np.float64) for t in (g, q, k.repeat(group, 1), v.repeat(group, 1)))
    eye = np.eye(k.shape[2])[None, None]
    p = attended(q, k, np.broadcast_to(eye, (*k.shape[:2], *eye.shape[2:])), mask, causal, scale)
    dp = g @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dk, dv = ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ g
    heads = (k.shape[0], k.shape[1] // group, group)
    return [ds @ k * scale, *(t.reshape(*heads, *t.shape[2:]).sum(2) for t in (dk, dv)), ds]


@pytest.mark.parametrize("name", FLASH)
def test_gradients_of_attention_on_tensor_cores(cores: CubeBackend, name: str) -> None:
    q_shape, k_shape, width, kind, causal = FLASH[name]
    q = RNG.standard_normal(q_shape).astype(np.float16)
    k = RNG.standard_normal(k_shape).astype(np.float16)
    v = RNG.standard_normal((*k_shape[:-1], width)).astype(np.float16)
    g = RNG.standard_normal((*q_shape[:-1], width)).astype(np.float16)
    mask = None
    if kind is not None:
        mask = RNG.standard_normal((q_shape[2], k_shape[2])).astype(np.float32)
        mask = mask > 0 if kind is bool else mask
        if kind is bool:
            mask[3] = False
    attrs = (causal, q_shape[1] != k_shape[1], 0.3)
    made = run(cores, "attention", q, k, v, mask, attrs=attrs)
    found = run(cores, "attention_backward", g, q, k, v, mask, *made, attrs=attrs)
    wanted = slopes(g, q, k, v, mask, causal, 0.3)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.astype(np.float64), two, rtol=3e-2, atol=1e-2)
