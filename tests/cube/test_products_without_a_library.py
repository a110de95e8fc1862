"""Products of a processor for which no library is there: packed blocks, tiles in registers."""

import numpy as np
import pytest

from burn_cube_backend.kernels import blas, matmul_cpu
from burn_cube_backend.kernels.matmul_cpu import Tile
from burn_dispatch import device

BARE = device("eager-cpu").without_autodiff()
ENGINE = BARE.resource.backend.engine
RNG = np.random.default_rng(5)
# Of processors with wide vectors, with narrower ones, and with the narrowest.
TILES = [Tile(8, 2, 16), Tile(4, 3, 8), Tile(4, 3, 4), Tile(4, 3, 2)]


def samples(shape, dtype=np.float32):
    if np.dtype(dtype).kind == "f":
        return RNG.standard_normal(shape).astype(dtype)
    return RNG.integers(-100, 100, shape).astype(dtype)


def laid(x, how):
    """Return matrices on the device that lie by rows, by columns, or with gaps between elements."""
    dtype = BARE.context.tensor_from_numpy(x).dtype
    if how == "columns":
        made = ENGINE.from_numpy(np.swapaxes(x, -1, -2).copy(), dtype)
        return made.view(x.shape, (*made.strides[:-2], 1, x.shape[-2]))
    if how == "apart":
        made = ENGINE.from_numpy(np.repeat(x, 2, -1), dtype)
        return made.view(x.shape, (*made.strides[:-1], 2))
    return ENGINE.from_numpy(x, dtype)


def check(got, x, y, tolerance):
    got = ENGINE.to_numpy(got)
    assert got.dtype == x.dtype
    if x.dtype.kind == "f":
        want = x.astype(np.float64) @ y.astype(np.float64)
        np.testing.assert_allclose(got, want, tolerance, tolerance * np.sqrt(x.shape[-1]))
    else:
        np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("right", ["rows", "columns", "apart"])
@pytest.mark.parametrize("left", ["rows", "columns", "apart"])
def test_blocks_and_their_edges(left, right, tile):
    """Blocks are small here, so that extents are whole, have rests, and are less than a tile."""
    block = (2 * tile.rows, 2 * tile.columns, 16)
    for m, k, n in ((16, 32, 64), (37, 50, 70), (3, 17, 5), (1, 1, 1), (16, 16, 96), (33, 5, 65)):
        x, y = samples((m, k)), samples((k, n))
        got = matmul_cpu.multiplied(ENGINE, laid(x, left), laid(y, right), tile, block)
        check(got, x, y, 2e-6)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float64, 1e-14), (np.float16, 2e-3), (np.int32, 0), (np.int8, 0), (np.uint8, 0)],
)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_other_dtypes(dtype, tolerance, layout):
    x, y = samples((45, 70), dtype), samples((70, 130), dtype)
    got = matmul_cpu.product(ENGINE, laid(x, layout), laid(y, layout))
    check(got, x, y, tolerance)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 40, 50), (3, 50, 60)), ((2, 1, 33, 40), (1, 3, 40, 35)), ((5, 40, 33), (33, 40))],
)
def test_batches(a, b):
    x, y = samples(a), samples(b)
    check(matmul_cpu.product(ENGINE, laid(x, "rows"), laid(y, "rows")), x, y, 2e-6)


def test_more_than_one_block():
    x, y = samples((300, 260)), samples((260, 600))
    check(matmul_cpu.product(ENGINE, laid(x, "rows"), laid(y, "columns")), x, y, 2e-6)


def test_what_is_not_finite_stays_in_its_row_and_column():
    x, y = samples((40, 64)), samples((64, 40))
    x[3, 5], y[7, 39] = np.nan, np.inf
    got = ENGINE.to_numpy(matmul_cpu.product(ENGINE, laid(x, "rows"), laid(y, "rows")))
    bad = ~np.isfinite(got)
    wanted = np.zeros_like(bad)
    wanted[3, :] = wanted[:, 39] = True
    np.testing.assert_array_equal(bad, wanted)


def test_the_backend_takes_it_where_there_is_no_library(monkeypatch):
    seen = []
    monkeypatch.setattr(blas, "provider", lambda engine: None)
    product = matmul_cpu.product
    monkeypatch.setattr(matmul_cpu, "product", lambda *a: seen.append(1) or product(*a))
    c = BARE.context
    x, y = samples((64, 70)), samples((70, 64))
    got = c.to_numpy(c.matmul(c.tensor_from_numpy(x), c.tensor_from_numpy(y)))
    np.testing.assert_allclose(got, x @ y, 1e-5, 1e-4)
    assert seen == [1]


@pytest.mark.parametrize("threads", [1, 2, 16, 64])
@pytest.mark.parametrize(("m", "n"), [(32, 32), (64, 4096), (256, 256), (1000, 1000)])
def test_threads_have_blocks(m, n, threads):
    tile = Tile(8, 2, 16)
    high, wide = matmul_cpu._extents(m, n, 1, threads, tile, (128, 256, 128))
    assert high % 8 == wide % 32 == 0
    assert high <= 128 and wide <= 256
    most = -(-m // 8) * -(-n // 32)
    assert -(-m // high) * -(-n // wide) >= min(threads, most)
