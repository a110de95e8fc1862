"""Columns that are reduced where their elements are computed, as on a GPU: bits of two kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import Group, Part
from burn_cube import client
from burn_cube.emit.cuda import emit_cuda
from burn_cube_backend.fused_columns import FusedColumns
from burn_cube_backend.panel_code import PanelForm, panel_kernel
from burn_cube_backend.plugin import CubeBackend, interp
from burn_ir import CATALOG
from burn_std import dtypes as d

F = d.float32
# Few columns and many, in one piece and in several, that fill vectors and that do not.
SHAPES = [(3, 2), (5, 7), (70, 100), (300, 36), (257, 129), (1000, 8)]


@pytest.fixture(params=["interp", "cpu", "opencl"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CubeBackend]:
    """A backend whose device says that it is a GPU."""
    made = interp.create(0)
    if request.param != "interp":
        if request.param == "opencl" and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
            pytest.skip("no OpenCL device")
        made = CubeBackend(f"eager-{request.param}", 0, client(request.param))
    runtime = made.engine.client.runtime
    facts = replace(runtime.properties, kind="gpu", units=2)
    monkeypatch.setattr(runtime, "properties", facts)
    yield made


def sum_of(source: int, dtype: Any, form: Any = "cut") -> Part:
    return Part("sum", (source,), ((0,), form == "kept", dtype), 0, dtype, dtype, form)


def group_of(kind: str, t: Any) -> Group:
    """Return x * w + b, reduced along columns in some way, and what becomes of that."""
    parts: list[Part] = [
        Part("mul", (-1, -2), (), 0, t, t),
        Part("add", (0, -3), (), 0, t, t),
    ]
    outputs: tuple[int, ...] = (2,)
    if kind == "sum":
        parts.append(sum_of(1, t))
    elif kind == "kept too":
        parts += [sum_of(1, t), sum_of(-1, t)]
        outputs = (1, 2, 3)
    elif kind == "scaled":
        parts += [sum_of(1, t, "kept"), Part("mul", (2, 2), (), 0, t, t, "kept")]
        outputs = (3,)
    else:
        parts.append(Part("amax", (1,), ((0,), False), 0, t, t, "cut"))
    return Group(tuple(parts), (t, t, t), outputs, -1, (False,) * 3)


@pytest.mark.parametrize("kind", ["sum", "kept too", "scaled", "amax"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_columns_are_those_of_kernels_alone(gpu: CubeBackend, shape: Any, kind: str) -> None:
    small = gpu.engine.client.name == "interp"
    if small and shape[0] * shape[1] > 8000:
        shape = (260, 9)
    rng = np.random.default_rng(0)
    hosts = [rng.standard_normal(s).astype(np.float32) for s in (shape, shape[1], (shape[0], 1))]
    tensors = [gpu.from_numpy(h, True) for h in hosts]
    fused = FusedColumns(gpu.engine, group_of(kind, F), pytest.fail)
    made = [gpu.to_numpy(x) for x in fused(*tensors)]
    assert not fused.parted

    def run(name: str, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Any:
        return gpu.execute(CATALOG[name], list(inputs), list(attrs))

    whole = run("add", run("mul", *tensors[:2]), tensors[2])
    if kind == "amax":
        wanted = [run("amax", whole, attrs=((0,), False))]
    elif kind == "scaled":
        total = run("sum", whole, attrs=((0,), True, F))
        wanted = [run("mul", total, total)]
    else:
        wanted = [run("sum", whole, attrs=((0,), False, F))]
    if kind == "kept too":
        wanted = [whole, *wanted, run("sum", tensors[0], attrs=((0,), False, F))]
    for found, x in zip(made, wanted, strict=True):
        assert found.tobytes() == gpu.to_numpy(x).tobytes()


def test_sums_that_go_several_ways_run_apart(gpu: CubeBackend) -> None:
    """Halves are read by eight and float32 by four: alone these sums have other panels."""
    parts = (
        Part("mul", (-1, -1), (), 0, d.float16, d.float16),
        Part("sum", (0,), ((0,), False, F), 0, d.float16, F, "cut"),
        Part("cast", (-1,), (F,), 0, d.float16, F),
        Part("mul", (2, 2), (), 0, F, F),
        sum_of(3, F),
    )
    group = Group(parts, (d.float16,), (1, 4), -1, (False,))
    asked: list[Any] = []

    def apart(*args: Any) -> Any:
        asked.append(args)
        return ()

    fused = FusedColumns(gpu.engine, group, apart)
    fused(gpu.from_numpy(np.ones((300, 512), np.float16), True))
    assert fused.parted and asked


@pytest.mark.parametrize("cut", [False, True])
def test_cuda_code_is_written(cut: bool) -> None:
    form = PanelForm(4, 32, d.int32, (False,) * 3, (), ("1", "1", "0"), cut)
    text = emit_cuda(panel_kernel(group_of("kept too", F), form))
    assert text.count("__syncthreads()") > 2 and "load_any<f32, 4>" in text
