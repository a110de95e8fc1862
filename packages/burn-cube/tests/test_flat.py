"""Kernels whose units know only their position: below all limits they test nothing."""

import numpy as np
import pytest

import burn_cube as bc
from burn_std.dtypes import float32, int32


@pytest.fixture(scope="module", params=["cpu", "opencl"])
def device(request):
    if request.param == "opencl":
        from burn_cube.runtime.opencl import plugin

        if not plugin.count():
            pytest.skip("no OpenCL device")
    return bc.client(request.param)


@bc.cube
def neighbours(x: bc.Array[float32], out: bc.Array[float32]):
    i = bc.ABSOLUTE_POS
    out.store(i * 4, x.load(i, 4))


@bc.cube
def fours(x: bc.Array[float32], out: bc.Array[float32]):
    out.store(bc.ABSOLUTE_POS, bc.splat(x[0], 4))


@bc.cube
def limited(x: bc.Array[float32], y: bc.Array[float32], out: bc.Array[float32], n: int32):
    i = bc.ABSOLUTE_POS
    if i >= n:
        return
    if x[i] < 0.0:
        out[i] = -1.0
        return
    out[i] = x[i] + y[i]


def test_neighbours_that_begin_inside_may_reach_outside(device):
    x = device.from_numpy(np.ones(16, np.float32)).view((6,), (1,))
    out = device.zeros(32, float32)
    neighbours.launch(device, 1, x, out, cube_dim=8)
    device.sync()
    np.testing.assert_array_equal(out.numpy()[::4], [1, 1, 1, 0, 0, 0, 0, 0])
    whole = device.zeros(16, float32)
    fours.launch(device, 1, x, whole.view((6,), (1,)), cube_dim=8)
    device.sync()
    assert whole.numpy().sum() == 6


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("grid", [(5, 1, 1), (1, 5, 1), (2, 1, 3)])
@pytest.mark.parametrize("index", [int32, None])
def test_every_limit_counts(device, n, grid, index):
    """The position ends at the least of a number and three lengths; cubes of eight units."""
    host = np.arange(30, dtype=np.float32) - 2
    x, y = device.from_numpy(host), device.from_numpy(np.ones(13, np.float32))
    out = device.from_numpy(np.full(27, 9, np.float32))
    options = {} if index is None else {"index": index}
    limited.launch(device, grid, x, y, out, n, cube_dim=8, **options)
    device.sync()
    wanted = np.full(27, 9, np.float32)
    end = min(n, 27)
    more = np.where(np.arange(27) < 13, 1, 0)
    wanted[:end] = np.where(host[:27] < 0, -1, host[:27] + more)[:end]
    np.testing.assert_array_equal(out.numpy(), wanted)


@pytest.mark.parametrize("n", [0, 7, 8, 20])
def test_a_number_alone_is_a_limit(device, n):
    """Without checks no length is passed."""
    x = device.from_numpy(np.arange(24, dtype=np.float32))
    out = device.zeros(24, float32)
    limited.launch(device, 3, x, x, out, n, cube_dim=8, bounds="unchecked")
    device.sync()
    wanted = np.where(np.arange(24) < n, np.arange(24) * 2, 0)
    np.testing.assert_array_equal(out.numpy(), wanted)
