"""Softmax and the norms take elementwise neighbours in, with the bits of single kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import Group, Part
from burn_cube_backend.plugin import interp
from burn_ir import CATALOG
from burn_std import dtypes as d
from tests.cube.row_programs import bits
from tests.cube.test_fusing_rows import kernels

F = burn.functional
RNG = np.random.default_rng(5)
Program = Callable[..., Any]


def _masked(x: Any, y: Any, w: Any) -> Any:
    mask = burn.arange(x.shape[-1], device=x.device) < x.shape[-1] - 1
    return F.softmax(burn.where(mask, x * 0.25, float("-inf")), -1)


PROGRAMS: dict[str, Program] = {
    "scores": lambda x, y, w: F.softmax(x * 0.5 + y, -1),
    "mask": _masked,
    "weights": lambda x, y, w: F.softmax(x, -1) * y + w,
    "both": lambda x, y, w: ((z := x.tanh() + y), F.log_softmax(z, -1) * z),
    "residual": lambda x, y, w: x + F.layer_norm(x * 2 + y, w.shape, w, w),
    "stream": lambda x, y, w: ((z := x + y), F.gelu(F.layer_norm(z, w.shape, w, None))),
    "root": lambda x, y, w: F.rms_norm(x + y, w.shape, w).relu() - x,
    "narrow": lambda x, y, w: F.softmax((x * y).to(burn.float16), -1).to(burn.float32) + 1,
    "wide": lambda x, y, w: F.softmax(x + y, -1, dtype=burn.float64) * 2,
}
SHAPES = [(6, 40), (3, 5, 77), (4, 64), (40, 16), (2, 130), (9,), (0, 8), (3, 0), (2, 1), (1, 300)]


def _outputs(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple) else [made]


def _arrays(shape: tuple[int, ...], wild: bool = False) -> list[Any]:
    made = [RNG.standard_normal(s).astype(np.float32) * 3 for s in (shape, shape, shape[-1:])]
    if wild:
        flat = made[0].reshape(-1)
        flat[RNG.integers(0, flat.size, 3)] = [np.inf, -np.inf, np.nan]
        made[0][0] = -np.inf
    return made


def _same(fn: Program, arrays: list[Any], dtype: Any, fused: str) -> None:
    found = []
    for name in (fused, f"eager-{fused}"):
        device = burn.device(name)
        given = [burn.tensor(a, device=device).to(dtype) for a in arrays]
        with np.errstate(all="ignore"):
            found.append([t.to_device(burn.device("flex")).numpy() for t in _outputs(fn(*given))])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert bits(one) == bits(other)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_neighbours_have_the_bits_of_single_kernels(name: str, dtype: str) -> None:
    shapes = SHAPES if dtype == "float32" else SHAPES[:3]
    for shape in shapes:
        _same(PROGRAMS[name], _arrays(shape), getattr(burn, dtype), "cpu")
    _same(PROGRAMS[name], _arrays((5, 33), wild=True), getattr(burn, dtype), "cpu")


@pytest.mark.parametrize("name", PROGRAMS)
def test_opencl_has_them_too(name: str) -> None:
    _same(PROGRAMS[name], _arrays((5, 70)), burn.float32, "opencl")


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "mask"])
def test_they_are_one_kernel(name: str) -> None:
    device = burn.device("cpu")
    given = [burn.tensor(a, device=device) for a in _arrays((12, 48))]
    assert len(kernels(PROGRAMS[name], *given)) == 1


def test_statistics_are_kept_for_the_gradient() -> None:
    """A step forward and back has the kernel of the forward, and one for the gradients of rows."""
    found = []
    for name in ("cpu", "eager-cpu"):
        device = burn.device(name).autodiff()
        rng = np.random.default_rng(5)
        x, y, w = (
            burn.tensor(rng.standard_normal(s).astype(np.float32), device=device).require_grad()
            for s in ((8, 48), (8, 48), (48,))
        )

        def step(x: Any, y: Any, w: Any) -> list[Any]:
            grads = (x + F.layer_norm(x + y, (48,), w, w)).tanh().sum().backward()
            return [t.grad(grads) for t in (x, y, w)]

        found.append([t.numpy() for t in step(x, y, w)])
    for one, other in zip(*found, strict=True):
        assert bits(one) == bits(other)


def test_two_softmaxes_in_a_row_are_two_kernels() -> None:
    x, y, _ = (burn.tensor(a, device=burn.device("cpu")) for a in _arrays((12, 48)))
    made = kernels(lambda x, y: F.softmax(F.softmax(x + y, -1) * 2, -1) - y, x, y)
    assert sorted(sum(made, ())) == sorted(["add", "softmax", "mul", "softmax", "sub"])
    assert len(made) == 2
    _same(lambda x, y, w: F.softmax(F.softmax(x + y, -1) * 2, -1) - y, _arrays((7, 21)),
          burn.float32, "cpu")  # fmt: skip


def test_columns_and_turned_operands_run_apart() -> None:
    for fn in (
        lambda x, y, w: F.softmax(x + y, 0) * 2,
        lambda x, y, w: F.softmax(x.mT, -1) * 2,
        lambda x, y, w: F.softmax(x + y.mT.mT, -1) * w,
    ):
        _same(fn, _arrays((6, 20)), burn.float32, "cpu")


@pytest.mark.parametrize("length", [10, 128, 131, 1027])
def test_rows_of_a_gpu(length: int) -> None:
    """The watched interpreter says that it is a GPU: planes exchange values."""
    backend = interp.create(0)
    runtime = backend.engine.client.runtime
    runtime.properties = replace(
        runtime.properties, kind="gpu", capabilities=frozenset({"fp64", "planes"}), index=d.int32
    )
    t = d.float32
    x, y = (backend.from_numpy(a, True) for a in _arrays((3, length))[:2])

    def run(name: str, *inputs: Any, attrs: Any = ()) -> Any:
        return backend.execute(CATALOG[name], list(inputs), list(attrs))

    expected = backend.to_numpy(run("mul", run("softmax", run("add", x, y), attrs=(1, None)), y))
    parts = (
        Part("add", (-1, -2), (), 0, t, t),
        Part("softmax", (0,), (1, None), 0, t, t),
        Part("mul", (1, -2), (), 0, t, t),
    )
    group = Group(parts, (t, t), (2,), 1, (False, False))
    (found,) = backend.fuser.fuse(group, lambda *a: pytest.fail("it is one kernel"))(x, y)
    assert bits(backend.to_numpy(found)) == bits(expected)


def test_what_nobody_reads_is_left_out_and_bad_indices_are_still_found() -> None:
    device = burn.device("cpu")
    x, y, w = (burn.tensor(a, device=device) for a in _arrays((12, 48)))
    F.layer_norm(x + y, w.shape, w, w)
    (x * 3).gather(1, burn.zeros(12, 1, dtype=burn.int64, device=device))
    assert np.isfinite((x - y).sum().item())
    (x * 3).gather(1, burn.full((12, 1), 48, device=device))
    with pytest.raises(burn.IndexRangeError, match="index 48 for size 48"):
        (x - y).numpy()
