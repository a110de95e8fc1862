"""Elementwise operations become one kernel, and give the bits that they give one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn

F = burn.functional
RNG = np.random.default_rng(5)


def plans(device: Any) -> list[Any]:
    """Return the plans of a device."""
    backend: Any = device.without_autodiff().context.resource.backend
    found: list[Any] = backend.recorder.plans()
    return found


def units(device: Any, fn: Callable[[], Any]) -> list[str]:
    """Return what the plan of a program calls: names of operations, groups as lists of them."""
    device.sync()
    before = set(map(id, plans(device)))
    result = fn()
    device.flush()
    (plan,) = [p for p in plans(device) if id(p) not in before]
    del result
    return [
        "+".join(s.entry.name for s in u.steps) if hasattr(u, "steps") else u.entry.name
        for u in plan.units
    ]


@pytest.fixture
def fused() -> Any:
    return burn.device("cpu")


def tensors(device: Any, *shapes: tuple[int, ...]) -> list[Any]:
    return [burn.tensor(RNG.standard_normal(s).astype(np.float32), device=device) for s in shapes]


def test_a_chain_with_branches_is_one_kernel(fused: Any) -> None:
    x, y, z = tensors(fused, (5, 7), (5, 7), (5, 7))
    made = units(fused, lambda: F.gelu(x * y + z) * z.tanh() + y * 0.5)
    assert len(made) == 1
    assert sorted(made[0].split("+")) == ["add", "add", "gelu", "mul", "mul", "mul", "tanh"]


def test_a_step_between_keeps_two_halves_apart(fused: Any) -> None:
    (x,) = tensors(fused, (6, 3))

    def program() -> Any:
        a = x * 2 + 1
        total = a.cumsum(0)
        return (a - total).exp() * a

    assert units(fused, program) == ["mul+add", "cumsum", "sub+exp+mul"]


def test_values_nobody_reads_are_not_computed(fused: Any) -> None:
    (x,) = tensors(fused, (4, 4))

    def program() -> Any:
        x.cumsum(0)
        return x + 1

    assert units(fused, program) == ["full", "add"]


def test_neighbours_that_read_the_same_are_one_kernel_with_two_results(fused: Any) -> None:
    (x,) = tensors(fused, (9,))
    assert units(fused, lambda: (x.sin() * 2, x.cos() * 3)) == ["sin+mul+cos+mul"]


def test_shapes_that_differ_are_two_kernels(fused: Any) -> None:
    x, row = tensors(fused, (4, 3), (3,))
    assert units(fused, lambda: (row * 2 + 1) * x - 1) == ["mul+add", "mul+sub"]


DTYPES = (burn.float32, burn.float16, burn.bfloat16, burn.float64, burn.int32, burn.uint8)


# A kernel takes PoCL a third of a second to compile, so it gets one dtype.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*(("cpu", t) for t in DTYPES), ("opencl", burn.float16)],
    ids=str,
)
@pytest.mark.parametrize(
    "shapes",
    [
        [(3, 4), (3, 4)],
        [(3, 4), (4,)],
        [(3, 1), (1, 4)],
        [(2, 3, 5), (3, 1)],
        [(0, 4), (4,)],
        [(), (1500,)],
        [(2, 1), (2, 1500)],
        [(), ()],
    ],
    ids=str,
)
def test_bits_are_those_of_single_kernels(name: str, dtype: Any, shapes: Any) -> None:
    results = []
    rng = np.random.default_rng(1)
    data = [rng.standard_normal(s) * 3 for s in shapes]
    for device in (burn.device(f"eager-{name}"), burn.device(name)):
        x, y = (burn.tensor(v, device=device).to(dtype) for v in data)
        turned = x.permute(*reversed(range(len(x.shape))))
        found = []
        for k in range(4):
            a = burn.where(x > y, x * y - k, (x + y) * 2)
            b = burn.maximum(a, x) * (y < 1).to(dtype) + a.abs()
            c = (turned * turned + 1).to(burn.float32).sqrt() * 0.5
            found += [a, b, c, (b * 3).to(burn.float32).exp()]
        results.append(found)
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_numbers_change_without_a_new_plan(fused: Any) -> None:
    (x,) = tensors(fused, (8,))
    before = None
    for k in range(6):
        y = x.clamp(-k, k + 0.5) * (k + 1) + k
        assert np.array_equal(y.numpy(), x.numpy().clip(-k, k + 0.5) * np.float32(k + 1) + k)
        before = before or len(plans(fused))
    assert len(plans(fused)) == before
