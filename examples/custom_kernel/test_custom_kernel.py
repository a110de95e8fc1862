"""The operation equals its composite on every runtime there is, recorded and at once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import burn

CPU, OPENCL, CUDA = "cpu", "opencl", "cuda"
WITH_KERNEL = (CPU, OPENCL, CUDA, "interp")
# Relative to the largest value; the rounding of the dtype, a few times over.
BOUNDS = {"float32": 2e-5, "float64": 1e-9, "float16": 3e-3, "bfloat16": 2e-2}


def present(name: str) -> bool:
    """Whether this machine has a device of the name."""
    return any(device.name == name for device in burn.Device.enumerate())


@pytest.fixture(params=["flex", *WITH_KERNEL])
def device(request: pytest.FixtureRequest) -> str:
    """Every device that can run the kernel, and one that runs the decomposition."""
    name = str(request.param)
    if name != "interp" and not present(name):
        pytest.skip(f"no {name} here")
    return name


@pytest.mark.parametrize("behind", ["eager-", "fusion-"], ids=["at once", "recorded"])
def test_it_is_an_operation_like_any_other(
    run_script: Callable[..., str], device: str, behind: str
) -> None:
    said = run_script("main.py", device=behind + device)
    found = {k: float(v) for k, v in re.findall(r"(\w+): differs by (\S+) from", said)}
    assert {"float32", "float64"} <= found.keys()
    assert all(value <= BOUNDS[name] for name, value in found.items()), said
    assert "refused: mypkg::matmul_add_relu: x is [..., K]" in said
    if behind == "fusion-":
        recorded = re.search(r"recorded (.+); sent as JSON .* differs by (\S+)", said)
        assert recorded, said
        assert float(recorded[2]) < 1e-5
        if device in WITH_KERNEL:
            assert recorded[1] == "mypkg::matmul_add_relu"


def test_the_kernel_has_a_source_for_each_target(run_script: Callable[..., str]) -> None:
    said = run_script("sources.py")
    assert "define void" in said
    assert "__kernel" in said
    assert "__global__" in said
