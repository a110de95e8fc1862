"""The opencl runtime on whatever device there is; PoCL makes one of the processor."""

import os

import numpy as np
import pytest

import burn_cube as bc
from burn_cube.conformance import cases, check
from burn_std.dtypes import float32, int32

# A driver takes most of a second to compile a kernel: a part of the cases, or all on request.
EVERY = 1 if os.environ.get("BURN_CUBE_ALL") else 14

pytest.importorskip("pyopencl")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def device():
    from burn_cube.runtime.opencl import plugin

    if not plugin.count():
        pytest.skip("no OpenCL device")
    return bc.client("opencl")


@pytest.mark.parametrize("case", cases()[::EVERY], ids=repr)
def test_case(case, device):
    check(case, device)


@bc.cube
def gather(x: bc.Array[float32], at: bc.Array[int32], out: bc.Array[float32]):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[at[i]]


def test_validated_bounds_surface_at_sync_with_the_line(device):
    x = device.from_numpy(np.arange(4, dtype=np.float32))
    at = device.from_numpy(np.array([0, 9], np.int32))
    gather.launch(device, 1, x, at, device.zeros(2, float32), cube_dim=2, bounds="validated")
    with pytest.raises(bc.KernelFaultError, match="inside") as caught:
        device.sync()
    assert "got 9 in gather(x=f32[4], at=i32[2], out=f32[2])" in str(caught.value)
    assert "out[i] = x[at[i]]" in caught.value.where.text
    device.sync()


def test_views_start_at_their_offset(device):
    x = device.from_numpy(np.arange(8, dtype=np.float32))
    at = device.from_numpy(np.array([0, 2], np.int32))
    out = device.zeros(2, float32)
    gather.launch(device, 1, x.view((4,), offset=3), at, out, cube_dim=2)
    np.testing.assert_array_equal(out.numpy(), [3, 5])


def test_profile_uses_the_time_of_the_device(device):
    x = device.from_numpy(np.arange(4, dtype=np.float32))
    at = device.from_numpy(np.array([0, 1], np.int32))
    with bc.profile() as table:
        gather.launch(device, 1, x, at, device.zeros(2, float32), cube_dim=2)
    assert table.rows["opencl", "gather"][0] == 1
