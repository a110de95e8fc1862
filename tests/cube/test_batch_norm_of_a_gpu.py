"""The kernels of batch norm that CUDA has, on PoCL and on the interpreter that says it is a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_cube_backend.geometry import is_last
from burn_cube_backend.kernels.batch_norm import batch_norm, batch_norm_backward
from burn_cube_backend.plugin import CubeBackend, interp, opencl
from burn_ir import CATALOG
from burn_std import dtypes as d

FLEX = burn.device("flex")
RNG = np.random.default_rng(9)
SHAPES = [(4, 3), (130, 40), (2, 5, 7), (3, 8, 4, 4), (2, 6, 9, 5), (5, 72, 12, 8), (2, 3, 2, 3, 4)]


@pytest.fixture(scope="module", params=["interp", "opencl"])
def engines(request: pytest.FixtureRequest) -> CubeBackend:
    if request.param == "opencl":
        if not burn.Device.enumerate(burn.DeviceFilter("opencl")):
            pytest.skip("no OpenCL device")
        made = opencl.create(0)
    else:
        made = interp.create(0)
        runtime = made.engine.client.runtime
        runtime.properties = replace(
            runtime.properties, kind="gpu", index=d.int32, units=2,
            capabilities=frozenset({"fp64", "planes"}),
        )  # fmt: skip
    made.engine.keeps_last = True
    return made


def sent(backend: CubeBackend, x: Any, last: bool = False) -> Any:
    if x is None:
        return None
    if not last:
        return backend.from_numpy(x, True)
    made = backend.from_numpy(np.ascontiguousarray(np.moveaxis(x, 1, -1)), True)
    dims = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return backend.execute(CATALOG["permute"], [made], (dims,))


def expected(name: str, inputs: Any, attrs: Any) -> list[Any]:
    wide = [None if x is None else burn.tensor(x.astype(np.float64), device=FLEX) for x in inputs]
    return [t.numpy() for t in getattr(FLEX.context, name)(*wide, *attrs)]


def close(backend: CubeBackend, made: Any, want: Any, tolerance: float) -> None:
    for payload, value in zip(made, want, strict=True):
        found = backend.to_numpy(payload).astype(np.float64)
        scale = max(1.0, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("training", [True, False])
def test_values_of_both_orders(engines: Any, shape: Any, dtype: str, training: bool) -> None:
    if engines.name == "interp" and np.prod(shape) > 6000:
        shape = (2, 40, 6, 4)
    channels = shape[1]
    x, g = (RNG.standard_normal(shape).astype(dtype) + 3 for _ in range(2))
    weight, bias = (RNG.standard_normal(channels).astype(np.float32) for _ in range(2))
    mean = RNG.standard_normal(channels).astype(np.float32)
    var = RNG.random(channels).astype(np.float32) + 0.5
    tolerance = 2e-5 if dtype == "float32" else 3e-3
    for w, b in ((weight, bias), (None, None)):
        stats = (None, None) if training else (mean, var)
        want = expected("batch_norm", (x, w, b, *stats), (training, 1e-5))
        back = expected("batch_norm_backward", (g, x, w, *want[1:]), (training, 1e-5))
        used = [v.astype(np.float32) for v in want[1:]]
        for last in (False, True) if len(shape) > 3 else (False,):
            given = [sent(engines, x, last), *(sent(engines, v) for v in (w, b, *stats))]
            made = batch_norm(engines.engine, *given, training, 1e-5)
            assert made[0].dtype.name == dtype
            assert made[1].dtype is made[2].dtype is d.float32
            assert is_last(made[0].shape, made[0].strides) == last
            close(engines, made, want, tolerance)
            given = [sent(engines, v, last) for v in (g, x)]
            given += [sent(engines, v) for v in (w, *used)]
            made = batch_norm_backward(engines.engine, *given, training, 1e-5)
            assert is_last(made[0].shape, made[0].strides) == last
            close(engines, made, back, tolerance)


def test_a_large_mean_leaves_the_variance_right(engines: Any) -> None:
    x = (RNG.standard_normal((8, 5, 6, 6)) + 4096).astype(np.float32)
    x[0, :, 0, 0] = 9000  # the first element is far from the others
    want = x.astype(np.float64).var((0, 2, 3))
    for last in (False, True):
        made = batch_norm(
            engines.engine, sent(engines, x, last), None, None, None, None, True, 1e-5
        )
        np.testing.assert_allclose(engines.to_numpy(made[2]), want, rtol=1e-5)


def test_windows_and_nothing(engines: Any) -> None:
    x = engines.from_numpy(RNG.standard_normal(1 + 2 * 8 * 4 * 4).astype(np.float16), True)
    window = x.view((2, 8, 4, 4), (128, 1, 32, 8), 1)  # begins between vectors
    plain = engines.to_numpy(window)
    want = expected("batch_norm", (plain, None, None, None, None), (True, 1e-5))
    close(engines, batch_norm(engines.engine, window, *[None] * 4, True, 1e-5), want, 3e-3)
    none = engines.from_numpy(np.zeros((0, 3, 4), np.float32), True)
    out, mean, var = batch_norm(engines.engine, none, *[None] * 4, True, 1e-5)
    assert out.shape == (0, 3, 4)
    assert np.isnan(engines.to_numpy(mean)).all()
    assert np.isnan(engines.to_numpy(var)).all()


def test_nan_stays_in_its_channel(engines: Any) -> None:
    x = RNG.standard_normal((2, 3, 4, 4)).astype(np.float32)
    x[1, 1, 2, 2] = np.nan
    for last in (False, True):
        made = batch_norm(engines.engine, sent(engines, x, last), *[None] * 4, True, 1e-5)
        for payload in made[1:]:
            assert np.isnan(engines.to_numpy(payload)).tolist() == [False, True, False]


def test_large_values_and_nothing(engines: Any) -> None:
    large = np.full((8, 2), 3e19, np.float32)
    _, mean, var = batch_norm(engines.engine, sent(engines, large), *[None] * 4, True, 1e-5)
    np.testing.assert_array_equal(engines.to_numpy(mean), large[0])
    assert np.isfinite(engines.to_numpy(var)).all()
    for shape in ((0, 3, 4, 4), (0, 3), (2, 0, 4, 4)):
        x, stats = np.zeros(shape, np.float32), np.ones(shape[1], np.float32)
        given = [sent(engines, v) for v in (x, x)]
        used = [sent(engines, stats) for _ in range(2)]
        made = batch_norm_backward(engines.engine, *given, None, *used, True, 1e-5)
        assert [tuple(t.shape) for t in made] == [shape, (shape[1],), (shape[1],)]
