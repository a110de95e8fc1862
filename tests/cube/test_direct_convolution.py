"""Convolutions from windows as they lie, on the cpu, beside the reference."""

from dataclasses import replace

import numpy as np
import pytest

from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels import direct
from burn_cube_backend.kernels.conv import out_lengths
from tests.cube.test_cpu_providers import CPU, run
from tests.cube.test_winograd import FLEX, near, normal, wide

EACH = ((1, 1), (2, 1), (1, 2), (3, 2))


def convolutions(x, w, b, how, groups):
    """Compare a convolution and its gradients; NaN is where the reference has it."""
    attrs = (*how, groups)
    (expected,) = run("conv", wide(x, w, b), attrs, FLEX)
    near(run("conv", [x, w, b], attrs, CPU)[0], expected)
    g = normal(*expected.shape)
    for name, inputs, shape in (
        ("conv_input_grad", (g, w), x.shape),
        ("conv_weight_grad", (g, x), w.shape),
    ):
        (expected,) = run(name, wide(*inputs), (*attrs, shape), FLEX)
        near(run(name, inputs, (*attrs, shape), CPU)[0], expected)


def sizes(dice, low, high, rank):
    """Return an extent per dim."""
    return tuple(int(n) for n in dice.integers(low, high, rank))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_any_geometry(seed, rank):
    dice = np.random.default_rng(seed)
    groups = int(dice.choice([1, 1, 2, 5]))
    n, channels, outs = (
        int(dice.integers(1, 5)),
        int(dice.integers(1, 15)),
        int(dice.integers(1, 20)),
    )
    lengths, size = sizes(dice, 1, 50, rank), sizes(dice, 1, 6, rank)
    how = (sizes(dice, 1, 4, rank), sizes(dice, 0, 5, rank), sizes(dice, 1, 4, rank))
    if min(out_lengths(lengths, size, *how)) < 1:
        lengths = tuple(n + 20 for n in lengths)
    x, w = normal(n, channels * groups, *lengths), normal(outs * groups, channels, *size)
    if seed % 3 == 0:
        place = tuple(int(dice.integers(0, n)) for n in x.shape)
        x[place] = [np.nan, np.inf][seed % 2]
    convolutions(x, w, normal(outs * groups) if seed % 2 else None, how, groups)


@pytest.mark.parametrize("size", [(7, 7), (4, 4), (1, 17), (2, 9)])
def test_large_windows(size):
    how = ((2, 2), (3, 8), (1, 1))
    convolutions(normal(2, 3, 31, 40), normal(9, 3, *size), normal(9), how, 1)


@pytest.mark.parametrize("stride", [(2, 2), (1, 3), (2, 1)], ids=str)
@pytest.mark.parametrize("width", [9, 20, 27, 40, 75])
def test_steps_over_many_channels(width, stride):
    x = normal(2, 17, 12, width)
    x[1, 3, 5, width // 2] = np.inf
    how = (stride, (1, 1), (1, 1))
    convolutions(x, normal(20, 17, 3, 3), normal(20), how, 1)
    convolutions(x[:, :5], normal(9, 5, 2, 5), None, how, 1)


def test_depthwise():
    how = ((1, 1), (1, 1), (1, 1))
    convolutions(normal(2, 33, 14, 30), normal(33, 1, 3, 3), normal(33), how, 33)
    convolutions(normal(2, 5, 14, 30), normal(10, 1, 3, 3), None, ((2, 2), *how[1:]), 5)


def test_wide_rows_and_many_channels_come_in_several_bands(monkeypatch):
    monkeypatch.setattr(direct, "BAND", 1 << 12)
    monkeypatch.setattr(direct, "STRETCH", 64)
    how = ((1, 1), (2, 2), (1, 1))
    convolutions(normal(2, 12, 40, 70), normal(15, 12, 5, 5), normal(15), how, 1)


def test_one_thread_gives_what_two_give(monkeypatch):
    x, w, g = normal(3, 6, 20, 20), normal(10, 6, 3, 3), normal(3, 10, 18, 18)
    how = ((1, 1), (0, 0), (1, 1), 1)
    both = [run("conv", [x, w, None], how, CPU)[0]]
    runtime = CPU.context.resource.backend.engine.client.runtime
    monkeypatch.setattr(runtime, "properties", replace(runtime.properties, units=1))
    assert np.array_equal(run("conv", [x, w, None], how, CPU)[0], both[0])
    near(
        run("conv_weight_grad", [g, x], (*how, w.shape), CPU)[0],
        run("conv_weight_grad", wide(g, x), (*how, w.shape), FLEX)[0],
    )


def test_nothing_in_nothing_out():
    how = ((1, 1), (2, 2), (1, 1))
    for shape in ((0, 3, 5, 5), (2, 3, 0, 5)):
        convolutions(np.zeros(shape, np.float32), normal(4, 3, 3, 3), normal(4), how, 1)


def test_what_stood_in_memory_does_not_matter(monkeypatch):
    def flat(engine, count, dtype, label=""):
        made = plain(engine, count, dtype, label)
        engine.client.runtime.write(
            made.storage.handle, 0, memoryview(b"\xff" * (made.length * dtype.itemsize))
        )
        return made

    plain = Engine.flat
    monkeypatch.setattr(Engine, "flat", flat)
    for size, how in (((3, 5), ((1, 1), (1, 2), (1, 1))), ((4, 7), ((2, 2), (0, 1), (1, 2)))):
        convolutions(normal(2, 3, 13, 24), normal(9, 3, *size), normal(9), how, 1)
    convolutions(normal(2, 17, 13, 24), normal(19, 17, 3, 3), None, ((1, 1), (1, 2), (1, 1)), 1)
    convolutions(normal(2, 6, 13, 24), normal(6, 1, 3, 3), None, ((1, 1), (1, 2), (1, 1)), 6)


def test_shares_cover_every_element_and_every_tap_once():
    for stride in (1, 2, 3, 4):
        for dilation in (1, 2, 3):
            for k in (1, 2, 3, 5):
                made = direct.shares(13, k, stride, 2, dilation)
                assert sum(s.extent for s in made) == 13
                if len(made) == stride:
                    assert sum(s.taps for s in made) == k
