"""The opencl runtime on whatever device there is; PoCL makes one of the processor."""

import numpy as np
import pytest
from burn_std.dtypes import float32, int32

import burn_cube as bc
from burn_cube.conformance import cases, check

pytest.importorskip("pyopencl")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def device():
    from burn_cube.runtime.opencl import plugin

    if not plugin.count():
        pytest.skip("no OpenCL device")
    return bc.client("opencl")


@pytest.mark.parametrize("case", cases(), ids=repr)
def test_case(case, device):
    check(case, device)
