"""A convolution and the operations behind it are one kernel, with the bits of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from tests.cube.row_programs import bits
from tests.cube.test_fusing import units
from tests.cube.test_fusing_rows import kernels

F = burn.functional
EAGER, FUSED = burn.device("eager-cpu"), burn.device("cpu")

# Samples, channels, extent, output channels, kernel, stride, padding, groups.
WAYS = {
    "tiles": (2, 17, 11, 19, 3, 1, 1, 1),
    "one image": (1, 32, 26, 64, 3, 1, 0, 1),
    "windows": (3, 4, 12, 9, 5, 2, 2, 1),
    "first layer": (1, 1, 28, 32, 3, 1, 0, 1),
    "depthwise": (2, 8, 9, 8, 3, 1, 1, 8),
    "depthwise in vectors": (2, 4, 21, 4, 3, 1, 1, 4),
    "depthwise, steps of two": (2, 4, 37, 4, 5, 2, 2, 4),
    "groups": (2, 8, 9, 12, 3, 1, 1, 4),
    "narrow": (2, 3, 3, 5, 3, 1, 0, 1),
}


class Given:
    """A convolution `c`, and what is computed with it."""

    def __init__(self, way: str, device: Any, spoil: str = "", batch: int = 0) -> None:
        n, channels, extent, outs, k, stride, padding, groups = WAYS[way]
        n = batch or n
        rng = np.random.default_rng(3)

        def put(*shape: int) -> Any:
            return burn.tensor(rng.standard_normal(shape).astype(np.float32), device=device)

        def spoiled(made: Any, what: str) -> Any:
            if spoil != what:
                return made
            array = made.numpy().copy()
            for value, at in zip((np.inf, -np.inf, np.nan), (0, array.size // 2, -1), strict=True):
                array.flat[at] = value
            return burn.tensor(array, device=device)

        self.x = spoiled(put(n, channels, extent, extent), "input")
        self.w = spoiled(put(outs, channels // groups, k, k), "weight")
        self.b, self.scale, self.shift, self.mean = (put(outs) for _ in range(4))
        self.var = self.scale.abs() + 0.1
        side = (extent + 2 * padding - k) // stride + 1
        self.same = put(n, outs, side, side)
        self.how = (stride, padding, 1, groups)

    def c(self, bias: bool = True) -> Any:
        return F.conv2d(self.x, self.w, self.b if bias else None, *self.how)


def norm(v: Given) -> Any:
    return F.batch_norm(v.c(bias=False), v.mean, v.var, v.scale, v.shift, training=False)


PROGRAMS: dict[str, Callable[[Given], Any]] = {
    "relu": lambda v: v.c().relu(),
    "numbers": lambda v: v.c() * 0.25 + 1.5,
    "silu": lambda v: F.silu(v.c(bias=False)),
    "gelu": lambda v: F.gelu(v.c()),
    "leaky": lambda v: F.leaky_relu(v.c(), 0.1),
    "clamp": lambda v: v.c().clamp(-0.5, 2.0),
    "residual": lambda v: F.relu(v.c() + v.same),
    "norm": norm,
    "block": lambda v: F.relu(norm(v) + v.same),
    "scale": lambda v: v.c() * v.scale[:, None, None] - v.shift.reshape(1, -1, 1, 1),
    "through": lambda v: (v.c().to(burn.bfloat16) * 3).to(burn.float32).tanh(),
    "where": lambda v: burn.where(v.same > 0, v.c(), -1.0),
    "itself": lambda v: v.c() * (lambda t: t + t)(v.same),
}
ONE = [k for k in PROGRAMS if k not in ("norm", "block", "where", "itself")]
# By transforms of tiles, which read no tensor of the result's shape.
TILES = ("tiles", "one image")


def fused(fn: Callable[[Given], Any], given: Given) -> list[tuple[str, ...]]:
    """Return the operations of each kernel of a program."""
    return kernels(lambda x: fn(given), given.x)


CASES = [(name, way, "") for name in PROGRAMS for way in ("tiles", "windows")]
CASES += [("block", way, "") for way in WAYS]
CASES += [(n, w, s) for n in ("relu", "norm", "block") for w in WAYS for s in ("input", "weight")]


@pytest.mark.parametrize(("name", "way", "spoil"), CASES)
def test_bits_are_those_of_single_kernels(name: str, way: str, spoil: str) -> None:
    expected = PROGRAMS[name](Given(way, EAGER, spoil)).numpy()
    assert spoil == "" or not np.isfinite(expected).all()
    given = Given(way, FUSED, spoil)
    for _ in range(4):  # plain, noted, replayed, with packed weights
        assert bits(PROGRAMS[name](given).numpy()) == bits(expected)


@pytest.mark.parametrize("name", ONE)
def test_they_are_one_kernel(name: str) -> None:
    for way in WAYS:
        found = fused(PROGRAMS[name], Given(way, FUSED))
        if name == "residual" and way in TILES:
            assert found == [("conv",), ("add", "relu")]
        else:
            assert len(found) == 1, (way, found)
            assert found[0][0] == "conv"


@pytest.mark.parametrize("way", ["tiles", "windows"])
def test_a_norm_is_one_kernel_beside_that_of_its_statistics(way: str) -> None:
    found = fused(PROGRAMS["norm"], Given(way, FUSED))
    assert found[1:] == [("conv", "sub", "mul", "mul", "add")]
    found = fused(PROGRAMS["block"], Given(way, FUSED))
    behind = ("sub", "mul", "mul", "add", "add", "relu")
    assert found[1:] == ([("conv",), behind] if way in TILES else [("conv", *behind)])


def test_a_tensor_for_each_row_is_left_to_a_kernel_of_its_own() -> None:
    given = Given("tiles", FUSED)
    row = burn.ones(11, device=FUSED)
    found = fused(lambda v: F.relu(v.c() + row), given)
    assert found == [("conv",), ("add", "relu")]
    turned = given.same.permute(0, 1, 3, 2)
    found = fused(lambda v: F.relu(v.c() + turned), given)
    assert found == [("conv",), ("add", "relu")]


def test_what_somebody_else_reads_is_written() -> None:
    given = Given("tiles", FUSED)

    def program() -> Any:
        made = given.c()
        return made, made.relu()

    assert units(FUSED, program) == ["conv", "relu"]
    one, other = program()
    assert bits(one.relu().numpy()) == bits(other.numpy())


def test_of_two_convolutions_the_last_one_takes_the_sum() -> None:
    def program(a: Given, b: Given) -> Any:
        return F.relu(a.c() + b.c(bias=False) * 0.5)

    assert units(FUSED, lambda: program(Given("tiles", FUSED), Given("tiles", FUSED))) == [
        "conv", "conv+mul+add+relu",
    ]  # fmt: skip
    expected = program(Given("tiles", EAGER), Given("tiles", EAGER))
    found = program(Given("tiles", FUSED), Given("tiles", FUSED))
    assert bits(found.numpy()) == bits(expected.numpy())


@pytest.mark.parametrize("device", ["opencl", "eager-opencl", "fusion-flex"])
def test_other_devices_run_it_apart(device: str) -> None:
    made = PROGRAMS["block"](Given("windows", burn.device(device))).numpy()
    np.testing.assert_allclose(made, PROGRAMS["block"](Given("windows", EAGER)).numpy(), 1e-4, 1e-4)


def test_nothing_differs_where_every_plan_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURN_FUSION", "check")
    for k, name in enumerate(PROGRAMS):
        # A batch of its own, so that no plan of another test serves.
        given = Given("tiles", FUSED, batch=4 + k)
        for _ in range(3):
            (PROGRAMS[name](given) * 1.0625).numpy()


def test_a_training_has_the_bits_of_single_kernels() -> None:
    def losses(device: Any, captured: bool) -> list[float]:
        burn.manual_seed(0)
        on = {"device": device.autodiff()}
        model = nn.Sequential(
            nn.Conv2d(3, 16, 3, **on), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, **on),
            nn.BatchNorm2d(16, **on), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 4, **on),
        )  # fmt: skip
        optimizer = optim.SGD(lr=0.05)
        x = burn.tensor(np.random.default_rng(0).standard_normal((4, 3, 10, 10)), device=device)
        x = x.to(burn.float32)

        def step(x: Any) -> Any:
            loss = model(x).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        run = burn.capture(step, state=(model, optimizer)) if captured else step
        made = [run(x).item() for _ in range(8)]
        return [*made, model.valid()(x).sum().item(), model.valid()(x).sum().item()]

    plain = losses(FUSED, False)
    assert losses(FUSED, True) == plain
    np.testing.assert_allclose(plain, losses(EAGER, False), 1e-5)
