"""Kernels of this package against numpy, on the watched interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from burn_cube_backend.plugin import CubeBackend, interp
from burn_ir import CATALOG
from burn_std import dtypes as d, quantized


@pytest.fixture(scope="module")
def cube() -> CubeBackend:
    return interp.create(0)


def run(cube: CubeBackend, name: str, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Any:
    def given(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return cube.from_numpy(x, True)
        return [given(e) for e in x] if isinstance(x, list) else x

    out = cube.execute(CATALOG[name], [given(x) for x in inputs], attrs)
    return [cube.to_numpy(e) for e in out] if isinstance(out, list) else cube.to_numpy(out)


RNG = np.random.default_rng(7)


@pytest.mark.parametrize("length", [1, 7, 1500, 70000])
def test_sums_of_every_length(cube: CubeBackend, length: int) -> None:
    x = RNG.standard_normal((2, length)).astype(np.float32)
    found = run(cube, "sum", x, attrs=((1,), False, None))
    np.testing.assert_allclose(found, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-3)
    assert run(cube, "argmax", x, attrs=(1, False)).tolist() == x.argmax(1).tolist()


def test_the_first_nan_is_the_maximum(cube: CubeBackend) -> None:
    x = np.array([[1, np.nan, 3, np.nan], [4, 4, 2, 1]], np.float32)
    assert run(cube, "argmax", x, attrs=(1, False)).tolist() == [1, 0]
    found = run(cube, "amax", x, attrs=((1,), False))
    assert np.isnan(found[0])
    assert found[1] == 4


@pytest.mark.parametrize("length", [5, 9000])
def test_scans(cube: CubeBackend, length: int) -> None:
    x = RNG.integers(-9, 9, (2, length))
    assert (run(cube, "cumsum", x, attrs=(1, None)) == x.cumsum(1)).all()


@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable(cube: CubeBackend, descending: bool) -> None:
    x = RNG.integers(0, 5, (3, 37)).astype(np.float32)
    x[0, 3] = np.nan
    _, order = run(cube, "sort", x, attrs=(1, descending))
    key = np.where(np.isnan(x), np.inf, x)
    expected = np.argsort(-key if descending else key, 1, kind="stable")
    assert (order == expected).all()


def test_duplicates_count_and_the_last_assignment_wins(cube: CubeBackend) -> None:
    x = np.zeros(3, np.float32)
    index, src = np.array([1, 1, 0]), np.array([1, 2, 3], np.float32)
    assert run(cube, "scatter", x, index, src, attrs=(0, "add")).tolist() == [3, 3, 0]
    assert run(cube, "scatter", x, index, src, attrs=(0, "assign")).tolist() == [3, 2, 0]


@pytest.mark.parametrize("shape", [(3, 5, 4), (40, 33, 50)])
def test_products_read_views(cube: CubeBackend, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, y = RNG.standard_normal((m, k)), RNG.standard_normal((n, k))
    turned = cube.execute(CATALOG["permute"], [cube.from_numpy(y, True)], ((1, 0),))
    out = cube.execute(CATALOG["matmul"], [cube.from_numpy(x, True), turned], ())
    np.testing.assert_allclose(cube.to_numpy(out), x @ y.T)


def test_integers_divide_by_zero_and_wrap(cube: CubeBackend) -> None:
    x, y = np.array([7, -7, -128], np.int8), np.array([0, 2, -1], np.int8)
    assert run(cube, "floor_divide", x, y).tolist() == [0, -4, -128]
    x, y = np.array([3, -1, 2], np.int8), np.array([5, -3, -1], np.int8)
    assert run(cube, "pow", x, y).tolist() == [-13, -1, 0]


def test_halves_round_once(cube: CubeBackend) -> None:
    x = np.array([1.5, 2.25], ml_dtypes.bfloat16)
    found = run(cube, "exp", x)
    assert (found == np.exp(x.astype(np.float32)).astype(ml_dtypes.bfloat16)).all()


def test_uniforms_are_those_of_philox(cube: CubeBackend) -> None:
    found = run(cube, "uniform", attrs=(d.float32, (5,), 0.0, 1.0, (0, 0)))
    # The first words of block 0 with key and counter 0, of the paper's known answers.
    words = np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint32)
    assert (found[:4] == (words >> 8).astype(np.float32) * np.float32(2.0**-24)).all()


def test_quantised_blocks_with_a_short_end(cube: CubeBackend) -> None:
    x = RNG.standard_normal((3, 7)).astype(np.float32)
    q = cube.execute(
        CATALOG["quantize"], [cube.from_numpy(x, True), None, None], (quantized(8, block=4),)
    )
    back = cube.to_numpy(cube.execute(CATALOG["dequantize"], [q], (d.float32,)))
    assert q.scale.shape == (3, 2)
    assert np.abs(back - x).max() <= np.abs(x).max() / 127


def test_nothing_is_launched_for_nothing(cube: CubeBackend) -> None:
    x = np.zeros((0, 3), np.float32)
    assert run(cube, "exp", x).shape == (0, 3)
    assert run(cube, "sum", x, attrs=((0,), False, None)).tolist() == [0, 0, 0]
    assert run(cube, "matmul", np.zeros((2, 0)), np.zeros((0, 2))).tolist() == [[0, 0], [0, 0]]


@pytest.fixture(scope="module")
def gpu() -> CubeBackend:
    """The interpreter under the name of a GPU: kernels take the forms they have there."""
    made = interp.create(0)
    runtime = made.engine.client.runtime
    runtime.properties = replace(runtime.properties, kind="gpu")
    return made


@pytest.mark.parametrize("length", [511, 512, 513, 1100])
def test_sort_in_the_form_of_a_gpu(gpu: CubeBackend, length: int) -> None:
    x = RNG.integers(0, 99, (2, length))
    values, order = run(gpu, "sort", x, attrs=(1, True))
    assert (order == np.argsort(-x, 1, kind="stable")).all()
    assert (values == -np.sort(-x, 1)).all()


def test_long_lines_are_written_run_by_run(gpu: CubeBackend) -> None:
    index = RNG.integers(0, 7, 1500)
    src = RNG.integers(-9, 9, 1500)
    x = np.zeros(8, np.int64)
    added, assigned = x.copy(), x.copy()
    np.add.at(added, index, src)
    for i, s in zip(index, src, strict=True):
        assigned[i] = s
    assert (run(gpu, "scatter", x, index, src, attrs=(0, "add")) == added).all()
    assert (run(gpu, "scatter", x, index, src, attrs=(0, "assign")) == assigned).all()
    rows = RNG.integers(-9, 9, (1500, 3))
    table = np.zeros((8, 3), np.int64)
    np.add.at(table, index, rows)
    found = run(gpu, "index_put", np.zeros((8, 3), np.int64), rows, [index], attrs=((0,), True))
    assert (found == table).all()
