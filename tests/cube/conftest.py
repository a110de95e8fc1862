"""What the tests of the compiling devices share: those of OpenCL need a driver."""

from __future__ import annotations

import pytest

import burn


@pytest.fixture(autouse=True)
def driver(request: pytest.FixtureRequest) -> None:
    """Skip what names `opencl` where no driver finds a device."""
    given = getattr(request.node, "callspec", None)
    named = given is not None and "opencl" in given.params.values()
    if named and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
