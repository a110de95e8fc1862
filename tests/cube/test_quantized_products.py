"""Products by quantised matrices: the bytes are read inside, the floats are those of dequantize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F
from burn_cube.emit.cuda import emit_cuda
from burn_cube_backend.kernels import quantized_matmul, quantized_rows, quantized_units
from burn_std import dtypes as d

SCHEMES = [
    burn.quantized(bits, symmetric=symmetric, block=block)
    for bits in (4, 8)
    for symmetric in (True, False)
    for block in (0, 32, 48, 64)
]


@pytest.fixture(params=["eager-cpu", "cpu", "eager-opencl"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> burn.Device:
    if request.param == "eager-opencl" and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
    monkeypatch.setattr(quantized_units, "LEAST", 1)
    return burn.device(request.param)


def close(found: burn.Tensor, x: burn.Tensor, plain: Any, bias: Any, turned: bool = True) -> None:
    """Compare a product with that of the floats in float64."""
    left, right = x.to(burn.float32).numpy().astype(np.float64), plain.astype(np.float64)
    right = right.T if turned else right
    expected = left @ right + (0 if bias is None else bias.numpy())
    bound = 1e-6 * (np.abs(left) @ np.abs(right) + 1)
    assert found.shape == expected.shape
    assert (np.abs(found.to(burn.float32).numpy() - expected) <= bound).all()


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
@pytest.mark.parametrize(("extent", "depth"), [(37, 160), (5, 99), (1, 70), (130, 64)])
def test_linear(device: burn.Device, scheme: burn.DType, extent: int, depth: int) -> None:
    dice = np.random.default_rng(extent)
    plain = dice.standard_normal((extent, depth)).astype(np.float32)
    q = burn.tensor(plain, device=device).quantize(scheme)
    floats = q.dequantize().numpy()
    bias = burn.tensor(dice.standard_normal(extent).astype(np.float32), device=device)
    for rows in (1, 3, 8, 11, 70):
        x = burn.tensor(dice.standard_normal((rows, depth)).astype(np.float32), device=device)
        close(F.linear(x, q, bias), x, floats, bias)
        close(F.linear(x, q), x, floats, None)
    host = dice.standard_normal((depth, 2)).astype(np.float32)
    turned = burn.tensor(host, device=device).T
    close(F.linear(turned, q), turned, floats, None)
    close(F.linear(x[0], q), x[0], floats, None)
    many = x[:6].reshape(2, 3, depth)
    close(F.linear(many, q, bias), many, floats, bias)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_matrices_that_are_not_turned(device: burn.Device, scheme: burn.DType) -> None:
    dice = np.random.default_rng(0)
    for shape in ((96, 66), (31, 7), (9, 192), (40, 41), (33, 128), (41, 65)):
        q = burn.tensor(dice.standard_normal(shape).astype(np.float32), device=device).quantize(
            scheme
        )
        floats = q.dequantize().numpy()
        for lead in ((), (1,), (2, 4), (3,), (66,)):
            host = dice.standard_normal((*lead, shape[0])).astype(np.float32)
            x = burn.tensor(host, device=device)
            close(x @ q, x, floats, None, False)
            close(F.linear(x, q.T), x, floats, None, False)


def test_the_floats_are_those_of_dequantize_to_the_bit(device: burn.Device) -> None:
    dice = np.random.default_rng(1)
    for scheme in SCHEMES:
        plain = dice.standard_normal((24, 96)).astype(np.float32) * 1e30
        q = burn.tensor(plain, device=device).quantize(scheme)
        rows = burn.eye(96, device=device)
        for start in (0, 8, 88):
            found = F.linear(rows[start : start + 8], q).numpy()
            np.testing.assert_array_equal(found, q.dequantize().numpy().T[start : start + 8])


def test_nothing_to_multiply(device: burn.Device) -> None:
    for scheme in SCHEMES:
        for extent, depth, rows in ((0, 64, 2), (3, 64, 0), (3, 0, 2)):
            q = burn.ones(extent, depth, device=device).quantize(scheme)
            x = burn.ones(rows, depth, device=device)
            bias = burn.ones(extent, device=device)
            np.testing.assert_array_equal(F.linear(x, q, bias).numpy(), np.ones((rows, extent)))
            np.testing.assert_array_equal(F.linear(x, q).numpy(), np.zeros((rows, extent)))


def test_scales_given_and_halves(device: burn.Device) -> None:
    dice = np.random.default_rng(2)
    plain = burn.tensor(dice.standard_normal((40, 128)).astype(np.float32), device=device)
    x = burn.tensor(dice.standard_normal((4, 128)).astype(np.float32), device=device)
    for scheme in (burn.quantized(4, block=64), burn.quantized(8, symmetric=False)):
        q = plain.quantize(scheme)
        with burn.autocast(burn.bfloat16):
            found = F.linear(x, q)
        assert found.dtype is burn.bfloat16
        floats = q.dequantize().to(burn.bfloat16).to(burn.float32).numpy()
        left = x.to(burn.bfloat16).to(burn.float32).numpy()
        expected = left.astype(np.float64) @ floats.T.astype(np.float64)
        np.testing.assert_allclose(found.to(burn.float32).numpy(), expected, rtol=8e-3, atol=1e-2)
    doubles = F.linear(x.to(burn.float64), q)
    assert doubles.dtype is burn.float64


def test_panels(device: burn.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized_matmul, "PANEL", 1)
    monkeypatch.setattr(quantized_matmul, "PANEL_AFAR", 1)
    dice = np.random.default_rng(3)
    for scheme in SCHEMES:
        for extent, depth in ((45, 64), (33, 35)):
            plain = dice.standard_normal((extent, depth)).astype(np.float32)
            q = burn.tensor(plain, device=device).quantize(scheme)
            x = burn.tensor(dice.standard_normal((2, 9, depth)).astype(np.float32), device=device)
            bias = burn.tensor(dice.standard_normal(extent).astype(np.float32), device=device)
            close(F.linear(x, q, bias), x, q.dequantize().numpy(), bias)
            close(F.linear(x, q), x, q.dequantize().numpy(), None)


@pytest.mark.parametrize("name", ["eager-cpu", "eager-opencl"])
def test_the_bytes_are_read_inside(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either orientation, of small matrices and of odd rows."""
    monkeypatch.setattr(quantized_units, "LEAST", 1)
    if name == "eager-opencl" and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
    device = burn.device(name)
    way = quantized_rows if name == "eager-cpu" else quantized_units
    seen: list[Any] = []
    inner = way.product
    monkeypatch.setattr(way, "product", lambda *a: seen.append(a[1].shape) or inner(*a))
    q = burn.ones(256, 256, device=device).quantize(burn.quantized(4, block=64))
    assert F.linear(burn.ones(2, 4, 256, device=device), q).shape == (2, 4, 256)
    assert (burn.ones(5, 256, device=device) @ q).shape == (5, 256)
    odd = burn.ones(33, 65, device=device).quantize(burn.quantized(4, block=32))
    assert F.linear(burn.ones(1, 65, device=device), odd).shape == (1, 33)
    one = burn.ones(33, 65, device=device).quantize(burn.quantized(4))
    assert (burn.ones(2, 1, 33, device=device) @ one).shape == (2, 1, 65)
    assert seen == [(8, 256), (5, 256), (1, 65), (2, 33)]


def test_odd_rows_are_put_apart_once() -> None:
    device = burn.device("eager-cpu")
    q = burn.ones(33, 65, device=device).quantize(burn.quantized(4, block=32))
    x = burn.ones(1, 65, device=device)
    for _ in range(3):
        np.testing.assert_array_equal(F.linear(x, q).numpy(), np.full((1, 33), 65.0))
    ((made,),) = q.v.values.packed.forms.values()
    assert made.shape == (33 * 33,)


def test_gradients(device: burn.Device) -> None:
    dice = np.random.default_rng(4)
    host, weight = (dice.standard_normal(s).astype(np.float32) for s in ((3, 64), (20, 64)))
    learning = device.autodiff()
    x = burn.tensor(host, device=learning).require_grad()
    w = burn.tensor(weight, device=learning).require_grad()
    q = w.quantize(burn.quantized(4, block=32))
    grads = (F.linear(x, q) ** 2).sum().backward()
    floats = q.dequantize().numpy().astype(np.float64)
    g = 2 * (host @ floats.T)
    np.testing.assert_allclose(x.grad(grads).numpy(), g @ floats, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(w.grad(grads).numpy(), g.T @ host, rtol=1e-4, atol=1e-3)
    left = burn.tensor(host[:, :20].copy(), device=learning).require_grad()
    bias = burn.tensor(weight[0], device=learning).require_grad()
    grads = (left @ w.quantize(burn.quantized(4, block=32)) + bias).sum().backward()
    ones = np.ones((3, 64))
    np.testing.assert_allclose(left.grad(grads).numpy(), ones @ floats.T, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(w.grad(grads).numpy(), host[:, :20].T @ ones, rtol=1e-4, atol=1e-3)


def test_second_gradients(device: burn.Device) -> None:
    dice = np.random.default_rng(5)
    host, weight = (dice.standard_normal(s).astype(np.float32) for s in ((3, 64), (20, 64)))
    x = burn.tensor(host, device=device.autodiff()).require_grad()
    q = burn.tensor(weight, device=device).quantize(burn.quantized(4, block=32))
    first = x.grad((F.linear(x, q) ** 2).sum().backward(create_graph=True))
    second = x.grad((first**2).sum().backward())
    floats = q.dequantize().numpy().astype(np.float64)
    square = floats.T @ floats
    np.testing.assert_allclose(first.numpy(), 2 * host @ square, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(second.numpy(), 8 * host @ square @ square, rtol=1e-4, atol=1)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("width", [1, 8])
def test_units_of_a_gpu_read_several_bytes_at_once(bits: int, width: int) -> None:
    spec = quantized_units.Spec(bits, True, d.bfloat16, d.float16, 3, width, True, True, d.int32)
    text = emit_cuda(quantized_units.units_kernel(spec))
    assert "quantized_units" in text
    assert text.count("__syncthreads") >= 8
    text = emit_cuda(quantized_units.columns_kernel(spec._replace(odd=False)))
    assert "quantized_unit_columns" in text
    assert text.count("__syncthreads") >= 6


@pytest.mark.parametrize("device", ["eager-cpu", "cpu"])
@pytest.mark.parametrize("how", ["turned", "expanded"])
def test_scales_may_be_views(device: str, how: str) -> None:
    plain, rng = burn.device(device), np.random.default_rng(3)
    w = burn.tensor(rng.standard_normal((40, 128)).astype(np.float32), device=plain)
    if how == "turned":
        s = burn.tensor(rng.uniform(0.02, 0.06, (2, 40)).astype(np.float32), device=plain)
        q = w.quantize(burn.quantized(8, block=64), scale=s.transpose(0, 1))
    else:
        s = burn.tensor([[0.05]], device=plain).expand(40, 1)
        q = w.quantize(burn.quantized(8, block=128), scale=s)
    x = burn.tensor(rng.standard_normal((3, 128)).astype(np.float32), device=plain)
    y = burn.tensor(rng.standard_normal((3, 40)).astype(np.float32), device=plain)
    floats = q.dequantize()
    for made, want in ((F.linear(x, q), F.linear(x, floats)), (y @ q, y @ floats)):
        np.testing.assert_allclose(made.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
