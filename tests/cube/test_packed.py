"""Quantised values of 4 bits on the compiling devices: two in a byte, and the integers of flex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn

SHAPES = ((), (1,), (7,), (3, 5), (2, 3, 33), (0, 4), (64, 64))


def parts(q: burn.Tensor) -> Any:
    """Return integers, scales and zero points as the backend hands them over."""
    return q.b.resource.backend.to_numpy(q.v)


@pytest.mark.parametrize("name", ["eager-cpu", "eager-opencl"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("block", [0, 4])
def test_integers_are_those_of_flex(name: str, symmetric: bool, block: int) -> None:
    if name == "eager-opencl" and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
    scheme = burn.quantized(4, symmetric=symmetric, block=block)
    dice = np.random.default_rng(0)
    for shape in SHAPES:
        host = dice.standard_normal(shape).astype(np.float32)
        here, there = (burn.tensor(host, device=burn.device(n)) for n in (name, "flex"))
        for view in (lambda x: x, lambda x: x.permute(*range(x.ndim)[::-1])):
            q, wanted = view(here).quantize(scheme), view(there).quantize(scheme)
            found, right = parts(q), parts(wanted)
            assert found.values.dtype == np.int8
            assert found.values.shape == q.shape
            np.testing.assert_array_equal(found.values, right.values)
            np.testing.assert_array_equal(q.dequantize().numpy(), wanted.dequantize().numpy())
            moved = wanted.to_device(burn.device(name))
            np.testing.assert_array_equal(parts(moved).values, right.values)
            np.testing.assert_array_equal(moved.dequantize().numpy(), wanted.dequantize().numpy())


def test_bytes_are_half_as_many() -> None:
    x = burn.ones(100, 101, device=burn.device("eager-cpu"))
    assert x.quantize(burn.quantized(4)).v.values.shape == (5050,)
    assert x.quantize(burn.quantized(8)).v.values.shape == (100, 101)
