"""What an operation is cast to under autocast holds for the parts that it is written in."""

from __future__ import annotations

import numpy as np
import pytest

import burn
from burn import functional as F
from burn_cube_backend.kernels.maps import Map


@pytest.fixture(params=["flex", "fusion-flex", "cpu", "eager-cpu"])
def device(request: pytest.FixtureRequest) -> burn.Device:
    return burn.device(request.param)


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_parts_of_what_stays_in_float32_stay_there(device):
    x, y = (burn.tensor(values(6, 40), device=device) for _ in range(2))
    plain = burn.cdist(x, y + 1.0)
    with burn.autocast(burn.bfloat16):
        cast = burn.cdist(x, y + 1.0)
    assert cast.dtype is burn.float32
    np.testing.assert_array_equal(cast.numpy(), plain.numpy())


def test_a_linear_layer_under_autocast_is_one_of_halves(device):
    x, w, b = (burn.tensor(values(*s), device=device) for s in ((5, 64), (3, 64), (3,)))
    with burn.autocast(burn.bfloat16):
        cast = F.linear(x, w, b)
    half = [t.to(burn.bfloat16) for t in (x, w, b)]
    assert cast.dtype is burn.bfloat16
    np.testing.assert_array_equal(
        cast.to(burn.float32).numpy(), F.linear(*half).to(burn.float32).numpy()
    )


def test_nothing_is_cast_to_what_it_is(monkeypatch):
    if not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no driver finds an OpenCL device; others have a kernel of their own")
    device = burn.device("eager-opencl")
    x, w = (burn.tensor(values(*s), device=device) for s in ((5, 64), (3, 64)))
    made, cast = [], Map.cast
    monkeypatch.setattr(
        Map, "cast", lambda self, x, dtype: made.append((x.dtype, dtype)) or cast(self, x, dtype)
    )
    with burn.autocast(burn.bfloat16):
        F.linear(x, w).numpy()
    assert made == [(burn.float32, burn.bfloat16)] * 2


def test_a_turned_tensor_is_cast_where_it_lies():
    device = burn.device("eager-cpu")
    x = burn.tensor(values(40, 30), device=device)
    turned = x.T.to(burn.bfloat16)
    assert turned.v.strides == (1, 30)
    np.testing.assert_array_equal(
        turned.to(burn.float32).numpy(), x.to(burn.bfloat16).to(burn.float32).numpy().T
    )
    part = x[3:, :].T.to(burn.float64)
    np.testing.assert_array_equal(part.numpy(), x.numpy()[3:].T.astype(np.float64))
    gaps = x[:, 2:9].T.to(burn.float16)
    np.testing.assert_array_equal(gaps.numpy(), x.numpy()[:, 2:9].T.astype(np.float16))
    flipped = x.T.flip(0).to(burn.float16)
    np.testing.assert_array_equal(flipped.numpy(), x.numpy().T[::-1].astype(np.float16))
