"""Random numbers inside the kernel that uses them: those of the stream, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import Group, Part
from burn_cube import client
from burn_cube.emit.cuda import emit_cuda
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import Form, FusedMap, fused_kernel
from burn_cube_backend.kernels.random import Drawn, normal, uniform
from burn_std import dtypes as d

F = burn.functional
SHAPES = [(1,), (5,), (3, 7), (2, 3, 64), (100, 130), (1, 9000), (1500, 3), (20, 4100)]
FLOATS = [burn.float32, burn.float64, burn.float16, burn.bfloat16]


def drawn(device: burn.Device, shape: tuple[int, ...], dtype: burn.DType) -> list[burn.Tensor]:
    """Return what a program draws and uses at once."""
    device.seed(5)
    rng = np.random.default_rng(0)
    x = burn.tensor(rng.standard_normal(shape), dtype=dtype, device=device)
    bias = burn.tensor(rng.standard_normal(shape[-1]), dtype=dtype, device=device)
    return [
        F.dropout(burn.relu(x + bias), 0.3, training=True),
        burn.rand(*shape, dtype=dtype, device=device) * 2 - bias,
        x + burn.randn(*shape, dtype=dtype, device=device) * 0.5,
        burn.bernoulli(x.sigmoid()) * x,
        x * F.dropout(x, 1.0, training=True),
    ]


def walked(device: burn.Device, shape: tuple[int, ...], dtype: burn.DType) -> list[burn.Tensor]:
    """Return what a program draws in front of rows and columns, and behind them."""
    device.seed(3)
    rng = np.random.default_rng(0)

    def given(*shape: int) -> burn.Tensor:
        return burn.tensor(rng.standard_normal(shape), dtype=dtype, device=device)

    x, skip, bias = given(*shape), given(*shape), given(shape[-1])
    stream = skip + F.dropout(x + bias, 0.3, training=True)
    noise = burn.randn(*shape, dtype=dtype, device=device)
    made = (noise * x).tanh()
    centred = made - made.mean(-1, keepdim=True)
    return [
        stream,
        F.layer_norm(stream, bias.shape, bias, bias),
        F.rms_norm(x * noise, bias.shape, bias),
        F.dropout(F.softmax(x * 0.5, -1), 0.2, training=True) * 2,
        F.softmax(burn.randn(*shape, dtype=dtype, device=device) * 2, -1),
        (F.dropout(x * skip, 0.5, training=True) + bias).sum(0),
        (burn.rand(*shape, dtype=dtype, device=device) * x).sum(-1),
        (burn.rand(*shape, device=device) > 0.5).to(dtype).sum(0),
        centred * (centred * centred).mean(-1, keepdim=True).rsqrt(),
    ]


def same(a: burn.Tensor, b: burn.Tensor) -> bool:
    return a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.short)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_are_those_of_the_operations_alone(shape: Any, dtype: burn.DType) -> None:
    alone = drawn(burn.device("eager-cpu"), shape, dtype)
    for _ in range(3):
        for k, (a, b) in enumerate(
            zip(drawn(burn.device("cpu"), shape, dtype), alone, strict=True)
        ):
            assert same(a, b), k


@pytest.mark.parametrize("name", ["opencl"])
@pytest.mark.parametrize("dtype", [burn.float32, burn.bfloat16], ids=lambda t: t.short)
def test_numbers_are_those_of_the_operations_alone_on(name: str, dtype: burn.DType) -> None:
    for make in (drawn, walked):
        alone = make(burn.device(f"eager-{name}"), (40, 130), dtype)
        for a, b in zip(make(burn.device(name), (40, 130), dtype), alone, strict=True):
            assert same(a, b)


@pytest.mark.parametrize("dtype", [burn.float32, burn.bfloat16], ids=lambda t: t.short)
@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 64), (100, 130), (2, 5000)], ids=str)
def test_rows_and_columns_of_random_numbers(shape: Any, dtype: burn.DType) -> None:
    alone = walked(burn.device("eager-cpu"), shape, dtype)
    for _ in range(3):
        made = walked(burn.device("cpu"), shape, dtype)
        for k, (a, b) in enumerate(zip(made, alone, strict=True)):
            assert same(a, b), k


def test_masks_are_those_of_every_backend() -> None:
    """What is dropped does not depend on the device, nor on what stands around."""
    masks = []
    for name in ("flex", "eager-cpu", "cpu"):
        device = burn.device(name)
        device.seed(1)
        x = burn.ones(70, 33, device=device)
        masks.append((F.dropout(x * 2 + 1, 0.4, training=True) - x).numpy())
    assert same_arrays(masks)


def same_arrays(arrays: list[Any]) -> bool:
    return all(np.array_equal(a, arrays[0]) for a in arrays)


def test_dropout_is_in_one_kernel_forward_and_backward() -> None:
    device = burn.device("cpu").autodiff()
    x = burn.randn(64, 96, device=device).require_grad()
    skip, bias = burn.randn(64, 96, device=device), burn.randn(96, device=device)

    def step(x: Any, skip: Any, bias: Any) -> Any:
        out = skip + F.dropout(burn.relu(x + bias), 0.1, training=True)
        return out.detach(), x.grad((out * skip).sum().backward())

    assert burn.explain(step, x, skip, bias).kernels == 1

    def block(x: Any, skip: Any, bias: Any) -> Any:
        out = F.layer_norm(skip + F.dropout(x + bias, 0.1, training=True), bias.shape, bias)
        return F.dropout(F.softmax(out * 0.5, -1), 0.1, training=True)

    assert burn.explain(block, x.detach(), skip, bias).kernels == 2


def test_a_mask_of_the_backward_is_that_of_the_forward() -> None:
    device = burn.device("cpu").autodiff()
    x = burn.ones(33, 70, device=device).require_grad()
    out = F.dropout(x * 3, 0.25, training=True)
    grad = x.grad(out.sum().backward())
    assert grad is not None
    assert np.array_equal(grad.numpy() != 0, out.numpy() != 0)


def test_numbers_that_are_read_elsewhere_are_a_result_too() -> None:
    found = []
    for name in ("eager-cpu", "cpu"):
        device = burn.device(name)
        device.seed(2)
        u = burn.rand(30, 40, device=device)
        found.append([u * 2 + 1, u, u.sum(0), u.T * 3])
    for a, b in zip(*found, strict=True):
        assert same(a, b)


def test_a_captured_step_draws_on() -> None:
    """The counter advances from call to call, as without capture."""
    found = []
    for name in ("eager-cpu", "cpu"):
        device = burn.device(name)
        device.seed(3)

        def step(x: Any) -> Any:
            return F.dropout(x * 2, 0.5, training=True) + burn.rand(64, device=x.device)

        call = burn.capture(step) if name == "cpu" else step
        x = burn.ones(50, 64, device=device)
        found.append([call(x).numpy().copy() for _ in range(6)])
    assert same_arrays([np.stack(f) for f in found])
    assert len({a.tobytes() for a in found[0]}) == 6


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Engine:
    device = client("cpu")
    monkeypatch.setattr(device.runtime, "properties", replace(device.properties, kind="gpu"))
    return Engine(device)


KEY = (123456789012, 7)


@pytest.mark.parametrize("name", ["uniform", "normal"])
@pytest.mark.parametrize("dtype", [d.float32, d.float64, d.float16], ids=lambda t: t.short)
@pytest.mark.parametrize("shape", [(32768,), (128, 256), (128, 258), (5, 3)], ids=str)
@pytest.mark.parametrize("lines", [False, True])
def test_units_of_a_gpu_draw_whole_blocks(
    gpu: Engine, name: str, dtype: Any, shape: Any, lines: bool
) -> None:
    f = d.float32
    parts = (
        Part(name, (), (dtype,), 4, dtype, dtype),
        Part("cast", (0,), (f,), 0, dtype, f),
        Part("add", (1, -1), (), 0, f, f),
    )
    apart: list[Any] = []

    def alone(*args: Any) -> Any:
        apart.append(args)
        return ()

    host = np.arange(shape[-1] if lines else np.prod(shape)).astype(np.float32)
    x = gpu.from_numpy(host if lines else host.reshape(shape), f)
    fused = FusedMap(gpu, Group(parts, (f,), (2, 0)), alone)
    made = fused(x, shape, 0.5, 2.0, KEY)
    each = 1 if name == "uniform" and dtype is not d.float64 else 2
    width = 16 // max(4, dtype.itemsize)
    # Vectors are of elements that are even in number, and many.
    while lines and len(shape) > 1 and shape[-1] % width:
        width //= 2
    whole = np.prod(shape) >= 1 << 14 and np.prod(shape) % width == 0 and width * each % 4 == 0
    assert fused.parted is not whole
    if whole:
        expected = (uniform if name == "uniform" else normal)(gpu, dtype, shape, 0.5, 2.0, KEY)
        numbers = gpu.to_numpy(expected)
        assert np.array_equal(gpu.to_numpy(made[1]), numbers)
        assert np.array_equal(gpu.to_numpy(made[0]), numbers.astype(np.float32) + gpu.to_numpy(x))


def test_cuda_code_is_written() -> None:
    f = d.float32
    parts = (Part("uniform", (), (f,), 4, f, f), Part("add", (0, -1), (), 0, f, f))
    form = Form("wide", (False,), (True,) * 4, d.int32, 4)
    what = ((0, Drawn("uniform", f, False)),)
    text = emit_cuda(fused_kernel(Group(parts, (f,), (1,)), form._replace(drawn=what)))
    # One block of four words: ten rounds of two products, each low and high.
    assert text.count("u) >> 32)") == 20 and "store_aligned<f32, 4>" in text
