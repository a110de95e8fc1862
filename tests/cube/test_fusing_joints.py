"""Groups with `cat`, padding and expanded values, with the bits of single kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
from burn_backend import GIVEN, Group, Part
from burn_cube import client
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused import FusedMap
from burn_cube_backend.fused_joints import MOST_BOXES, FusedJoints, Written
from burn_cube_backend.geometry import is_dense
from burn_cube_backend.kernels.cross_entropy import (
    cross_entropy,
    cross_entropy_backward,
    entropy_gradient,
    entropy_kept,
)
from burn_cube_backend.plugin import interp, opencl
from burn_std import dtypes as d
from tests.cube.row_programs import bits
from tests.cube.test_fusing_rows import kernels

F = burn.functional
RNG = np.random.default_rng(11)
Program = Callable[..., Any]


def _rotated(x: Any, y: Any) -> Any:
    half = x.shape[-1] // 2
    return x * y + burn.cat([-x[..., half:], x[..., :half]], -1) * (y + 1)


def _halves(x: Any, y: Any) -> Any:
    a, b = x.chunk(2, -1)
    c, s = y.chunk(2, -1)
    return burn.cat([a * c - b * s, b * c + a * s], -1)


def _window(x: Any, y: Any) -> Any:
    made = x * 2
    made[1:, 1:3] = y[1:, 1:3] + 1
    return made.abs()


# Name: the program of x [4, 6] and y [4, 6], and whether it is one unit.
PROGRAMS: dict[str, tuple[Program, bool]] = {
    "rotary": (_rotated, True),
    "halves": (_halves, True),
    "skip": (lambda x, y: F.relu(burn.cat([F.relu(x), y * 2], 0) + 1), True),
    "kept": (lambda x, y: ((z := burn.cat([x * 2, y], 1)), z.tanh()), True),
    "cats": (lambda x, y: burn.cat([burn.cat([x, y + 1], 1) * 2, burn.cat([y, x], 1)], 0), True),
    "twice": (lambda x, y: burn.cat([x, x, x], -2) * 2, True),
    "empty": (lambda x, y: burn.cat([x[:0], x + y, y[:0] * 2], 0) - 1, True),
    # Nothing is computed at all.
    "all empty": (lambda x, y: burn.cat([x[:0] * 2, y[:0]], 0) + 1, False),
    "stacked": (lambda x, y: burn.stack([x * 2, y + 1], -1) * 3, True),
    "turned": (lambda x, y: burn.cat([x.T * 2, y.T.flip(0)], 0) + 1, True),
    "pad": (lambda x, y: F.pad(x * y, (1, 2), value=0.5).tanh(), True),
    "pad two dims": (lambda x, y: F.pad(x, (1, 1, 2, 0)) * 2, True),
    "crop": (lambda x, y: F.pad(x * 2, (-1, 2, 1, -2), value=-1.0) + 1, True),
    "window": (_window, True),
    "expand": (lambda x, y: (x[:1] * 2 + 1).expand(4, 6) * y, True),
    "expand more": (lambda x, y: (x[0] * 2 + 1).expand(3, 4, 6) * y, True),
    # The root would be computed for each element that shows it.
    "expand a root": (lambda x, y: (x[:1].abs() * 2).sqrt().expand(4, 6) * y, False),
    # And here an exponential twice.
    "dear twice": (lambda x, y: burn.cat([(z := (x * y).exp()), z * 2], 0) + 1, False),
    # A view behind a joint: its boxes are none of the result's.
    "view behind": (lambda x, y: burn.cat([x * 2, y], 0).reshape(2, 24) * 2 + 1, False),
}


def _results(name: str, device: str, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    target = burn.device(device)
    x, y = (
        burn.tensor(rng.standard_normal((4, 6)).astype(np.float32) * 4, device=target).to(dtype)
        for _ in "xy"
    )
    made = PROGRAMS[name][0](x, y)
    return [t.to(burn.float32).numpy() for t in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_bits_are_those_of_single_kernels(name: str, device: str) -> None:
    dtypes = ("float32", "bfloat16", "int32", "float64") if device == "cpu" else ("float32",)
    for dtype in dtypes:
        if dtype == "int32" and name in ("pad", "window", "rotary"):
            continue
        for one, other in zip(
            _results(name, f"eager-{device}", getattr(burn, dtype)),
            _results(name, device, getattr(burn, dtype)),
            strict=True,
        ):
            assert one.shape == other.shape
            assert bits(one) == bits(other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_unit_has_the_joint(name: str) -> None:
    fn, one = PROGRAMS[name]
    device = burn.device("cpu")
    x, y = (
        burn.tensor(RNG.standard_normal((4, 6)).astype(np.float32), device=device) for _ in "xy"
    )
    assert (len(kernels(fn, x, y)) == 1) == one


def test_the_gradient_of_a_rotation_is_one_unit_besides_its_sum() -> None:
    device = burn.device("cpu").autodiff()
    x, y = (
        burn.tensor(RNG.standard_normal((4, 6)).astype(np.float32), device=device) for _ in "xy"
    )
    x = x.require_grad()

    def slope(x: Any, y: Any) -> Any:
        return x.grad((_rotated(x, y) * y).sum().backward())

    with burn.no_fusion():
        expected = slope(x, y).numpy()
    assert slope(x, y).numpy().tobytes() == expected.tobytes()
    assert all("cat" not in names or len(names) > 3 for names in kernels(slope, x, y))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Engine:
    device = client("cpu")
    monkeypatch.setattr(device.runtime, "properties", replace(device.properties, kind="gpu"))
    return Engine(device)


@pytest.mark.parametrize("columns", [64, 66, 65])
@pytest.mark.parametrize("dim", [0, 1])
def test_units_of_a_gpu_write_vectors_into_windows(gpu: Engine, columns: int, dim: int) -> None:
    f = d.float32
    parts = (
        Part("neg", (-1,), (), 0, f, f),
        Part("cat", (0, -2), (dim,), 0, f, f),
        Part("add", (1, -3), (), 0, f, f),
    )
    fused = FusedJoints(gpu, Group(parts, (f, f, f), (2,)), lambda *args: ())
    a, b = (RNG.standard_normal((300, columns)).astype(np.float32) for _ in "ab")
    whole = np.concatenate([-a, b], dim)
    c = RNG.standard_normal(whole.shape[-1:]).astype(np.float32)
    (out,) = fused(*[gpu.from_numpy(v, f) for v in (a, b, c)])
    assert not fused.parted
    assert gpu.to_numpy(out).tobytes() == (whole + c).tobytes()
    (plan,) = fused.plans.values()
    names = [w.launch.program.kernel.params for w in plan.work if isinstance(w, Written)]
    assert len(names) == 2


def test_more_boxes_than_pay_run_apart() -> None:
    x = burn.tensor(RNG.standard_normal((40, 6)).astype(np.float32), device=burn.device("cpu"))

    def fn(x: Any) -> Any:
        return burn.cat([x[k : k + 1] * k for k in range(MOST_BOXES + 1)], 0) * 2

    fn(x).numpy()
    assert len(kernels(fn, x)) > 1


# ---- losses -------------------------------------------------------------------------------------

SCORES: dict[str, Program] = {
    "plain": lambda x, t: x,
    "warm": lambda x, t: x * 0.5,
    "number": lambda x, t: x / t,
    "narrow": lambda x, t: (x * t + 1).to(burn.bfloat16),
    "wide": lambda x, t: x.to(burn.float64) * 3,
}


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_a_loss_and_its_gradient_have_the_bits_of_single_kernels(scores: str, device: str) -> None:
    plain = burn.device(device)
    tracked = plain.autodiff()
    cases = [
        ((9, 33), "mean", 0.0, False),
        ((9, 33), "none", 0.1, True),
        ((3, 4, 5), "sum", 0.1, 0),
    ]
    for shape, reduction, smooth, weighted in cases[: 3 if device == "cpu" else 2]:
        x = burn.tensor(RNG.standard_normal(shape).astype(np.float32), device=tracked)
        x = x.require_grad()
        y = burn.tensor(RNG.integers(-1, shape[1], shape[:1] + shape[2:]), device=plain)
        t = burn.tensor(np.float32(0.7), device=plain)
        w = burn.ones(shape[1], device=plain) * 1.5 if weighted else None

        def both(x: Any, y: Any, t: Any, how: Any = (reduction, smooth, w)) -> Any:
            made = SCORES[scores](x, t)
            weight = None if how[2] is None else how[2].to(made.dtype)
            loss = F.cross_entropy(
                made, y, weight, reduction=how[0], label_smoothing=how[1], ignore_index=-1
            )
            return loss, x.grad((loss * 2).sum().backward())

        found = [[v.to(burn.float64).numpy() for v in both(x, y, t)] for _ in range(3)]
        with burn.no_fusion():
            expected = [v.to(burn.float64).numpy() for v in both(x, y, t)]
        for made in found:
            assert [v.tobytes() for v in made] == [v.tobytes() for v in expected]


def test_a_loss_takes_what_makes_its_scores_and_what_is_made_of_its_gradient() -> None:
    device = burn.device("cpu").autodiff()
    x = burn.tensor(RNG.standard_normal((6, 5)).astype(np.float32), device=device).require_grad()
    y = burn.tensor(RNG.integers(0, 5, 6), device=burn.device("cpu"))

    def slope(x: Any, y: Any) -> Any:
        return x.grad(F.cross_entropy(x * 0.5, y).backward())

    found = [[n for n in names if n != "full"] for names in kernels(slope, x, y)]
    assert [names for names in found if names] == [
        ["mul", "cross_entropy"],
        ["mul", "cross_entropy_backward", "mul"],
    ]


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_what_is_made_of_a_gradient_lies_as_a_map_would_write_it(device: str) -> None:
    """Sums of a GPU go by the order in memory: a bias in front of the loss had other bits."""
    x = burn.tensor(
        RNG.standard_normal((3, 4, 5)).astype(np.float32), device=burn.device(device).autodiff()
    ).require_grad()
    y = burn.tensor(RNG.integers(0, 4, (3, 5)), device=burn.device(device))

    def slope(x: Any, y: Any) -> Any:
        return x.grad(F.cross_entropy(x * 0.5, y).backward())

    names = [[n for n in k if n != "full"] for k in kernels(slope, x, y)]
    assert ["mul", "cross_entropy_backward", "mul"] in names
    found = slope(x, y)
    found.device.flush()
    assert is_dense(found.shape, found.v.buf.strides)


def test_a_loss_with_other_numbers_hands_nothing_wrong_on() -> None:
    """Two losses of one program differ in a number: each gradient is that of its own."""
    device = burn.device("cpu").autodiff()
    x = burn.tensor(RNG.standard_normal((6, 5)).astype(np.float32), device=device).require_grad()
    y = burn.tensor(np.array([0, 1, 1, 2, 4, 3]), device=burn.device("cpu"))

    def slope() -> Any:
        first = F.cross_entropy(x, y, ignore_index=1)
        second = F.cross_entropy(x, y, ignore_index=0, label_smoothing=0.1)
        return x.grad((first * 2 + second).backward())

    found = slope().numpy()
    with burn.no_fusion():
        assert slope().numpy().tobytes() == found.tobytes()


@pytest.fixture(params=["interp", "opencl"])
def planes(request: pytest.FixtureRequest) -> Engine:
    """Return an engine whose device says that it is a GPU with planes; PoCL has none of these."""
    if request.param == "opencl":
        return opencl.create(0).engine
    engine = interp.create(0).engine
    runtime = engine.client.runtime
    runtime.properties = replace(
        runtime.properties, kind="gpu", capabilities=frozenset({"fp64", "planes"}), index=d.int32
    )
    return engine


def _chain_of(source: Any, target: Any) -> Any:
    """Return `(x * 0.5 + t > 0 ? ... : 1)` as a chain with a number and a tensor of rank 0."""
    return Group(
        (
            Part(GIVEN, (), (), 0, source, source),
            Part("cast", (0,), (target,), 0, source, target),
            Part("full", (), (target,), 1, target, target),
            Part("mul", (1, 2), (), 0, target, target),
            Part("add", (3, -1), (), 0, target, target),
            Part("gt", (4, 2), (), 0, target, d.bool_),
            Part("where", (5, 4, 3), (), 0, target, target),
        ),
        (target,),
        (6,),
    )


@pytest.mark.parametrize("columns", [7, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_chains_of_a_loss_in_vectors_of_a_gpu(planes: Engine, columns: int, wide: bool) -> None:
    f, h = d.float32, d.float16
    source, target = (h, f) if wide else (f, h)
    kind = np.float16 if wide else np.float32
    x = planes.from_numpy(RNG.standard_normal((3, columns)).astype(kind), source)
    y = planes.from_numpy(RNG.integers(0, columns, 3), d.int64)
    shift = np.float32(0.25) if wide else np.float16(0.25)
    back = np.float16(0.125) if wide else np.float32(0.125)
    t, u = planes.from_numpy(np.array(shift), target), planes.from_numpy(np.array(back), source)
    g = planes.from_numpy(np.array(shift), target)
    before, after = _chain_of(source, target), _chain_of(target, source)

    def alone(group: Group, value: Any, number: float, other: Any) -> Any:
        (given, *parts) = group.parts
        same = Part("cast", (-1,), (given.dtype,), 0, given.dtype, given.dtype)
        moved = [
            p._replace(inputs=tuple(i if i is None or i >= 0 else i - 1 for i in p.inputs))
            for p in parts
        ]
        whole = Group((same, *moved), (given.dtype, *group.outside), group.outputs)
        return FusedMap(planes, whole)(value, other, number)[0]

    scores = alone(before, x, 0.5, t)
    attrs = ("mean", None, -100, 0.1)
    expected = cross_entropy(planes, scores, y, None, *attrs)
    slope = cross_entropy_backward(planes, g, scores, y, None, *attrs)
    chains = (before, [t], [0.5]), (after, [u], [2.0])
    loss, kept = entropy_kept(planes, chains[0], None, x, y, None, *attrs)
    made = entropy_gradient(planes, *chains, kept, g, x, y, None, *attrs)
    pairs = [(loss, expected), (made, alone(after, slope, 2.0, u))]
    for one, other in pairs:
        assert planes.to_numpy(one).tobytes() == planes.to_numpy(other).tobytes()


@pytest.mark.parametrize("device", ["cpu", "opencl", "flex"])
def test_a_loss_without_a_gradient_takes_what_makes_its_scores(device: str) -> None:
    scores = RNG.standard_normal((9, 12)).astype(np.float32)
    found = []
    for stack in ("fusion", "eager"):
        there = burn.device(device if (stack, device) == ("eager", "flex") else f"{stack}-{device}")
        x = burn.tensor(scores, device=there)
        y = burn.tensor(np.arange(9), device=there)
        there.sync()
        found.append([F.cross_entropy(x * 0.5, y, reduction=r).numpy() for r in ("mean", "none")])
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()
