"""Convolutions of 3 x 3 kernels by transforms of tiles, on the cpu, beside the reference."""

import numpy as np
import pytest

from burn_cube_backend.kernels import winograd, winograd_weight
from tests.cube.test_cpu_providers import CPU, FLEX, run

RNG = np.random.default_rng(5)
ONE = (1, 1)


def normal(*shape):
    """Return samples."""
    return RNG.standard_normal(shape).astype(np.float32)


def near(got, expected, tolerance=2e-5):
    """Compare with a result in float64, infinities and NaN included."""
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max(initial=0)))
    np.testing.assert_allclose(got, expected, tolerance, tolerance * scale)


def wide(*arrays):
    """Return arrays in float64."""
    return [a if a is None else a.astype(np.float64) for a in arrays]


def convolutions(x, w, b, padding):
    """Compare a convolution and its gradients."""
    attrs = (ONE, padding, ONE, 1)
    (expected,) = run("conv", wide(x, w, b), attrs, FLEX)
    near(run("conv", [x, w, b], attrs, CPU)[0], expected)
    g = normal(*expected.shape)
    for name, inputs, shape in (
        ("conv_input_grad", (g, w), x.shape),
        ("conv_weight_grad", (g, x), w.shape),
    ):
        (expected,) = run(name, wide(*inputs), (*attrs, shape), FLEX)
        near(run(name, inputs, (*attrs, shape), CPU)[0], expected)


@pytest.mark.parametrize("seed", range(30))
def test_any_geometry(seed):
    dice = np.random.default_rng(seed)
    n, padding = int(dice.integers(1, 6)), tuple(int(p) for p in dice.integers(0, 4, 2))
    channels, outs = (int(c) for c in dice.integers(winograd.LEAST, 70, 2))
    lengths = [int(dice.integers(max(1, 3 - 2 * p), 60)) for p in padding]
    bias = normal(outs) if seed % 2 else None
    convolutions(normal(n, channels, *lengths), normal(outs, channels, 3, 3), bias, padding)


@pytest.mark.parametrize("length", [3, 4, 5, 14, 34, 130, 260])
def test_rows_of_every_width(length):
    convolutions(normal(2, 16, 5, length), normal(16, 16, 3, 3), None, (0, 1))


def test_long_runs_are_cut(monkeypatch):
    monkeypatch.setattr(winograd_weight, "RUN", 1 << 14)
    convolutions(normal(3, 20, 9, 11), normal(24, 20, 3, 3), None, (1, 1))


def test_views_are_read_as_they_lie():
    c = CPU.context
    x, w = normal(2, 9, 10, 20), normal(3, 3, 20, 18)
    got = c.conv(
        c.permute(c.tensor_from_numpy(x), (0, 3, 1, 2)),
        c.permute(c.tensor_from_numpy(w), (3, 2, 0, 1)), None, ONE, ONE, ONE, 1,
    )  # fmt: skip
    seen = wide(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1))
    near(c.to_numpy(got), run("conv", [*seen, None], (ONE, ONE, ONE, 1), FLEX)[0])


def test_nothing_in_nothing_out():
    for shape in ((0, 16, 5, 5), (2, 16, 0, 5)):
        convolutions(np.zeros(shape, np.float32), normal(16, 16, 3, 3), normal(16), (2, 2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1)])
def test_infinities_and_nan_reach_what_they_are_part_of_and_nothing_else(bad, padding):
    x, w = normal(2, 17, 12, 30), normal(19, 17, 3, 3)
    x[1, 3, 4, 7] = x[0, 16, 11, 29] = x[0, 0, 0, 0] = bad
    convolutions(x, w, normal(19), padding)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_infinities_and_nan_in_weights_and_gradients(bad):
    x, w = normal(2, 17, 12, 30), normal(19, 17, 3, 3)
    w[5, 3, 1, 1] = w[18, 16, 2, 0] = bad
    attrs = (ONE, (0, 0), ONE, 1)
    (expected,) = run("conv", wide(x, w, None), attrs, FLEX)
    near(run("conv", [x, w, None], attrs, CPU)[0], expected)
    g = normal(2, 19, 10, 28)
    g[0, 7, 0, 3] = g[1, 18, 9, 27] = bad
    for name, inputs, shape in (
        ("conv_input_grad", (g, normal(19, 17, 3, 3)), x.shape),
        ("conv_weight_grad", (g, x), w.shape),
    ):
        (expected,) = run(name, wide(*inputs), (*attrs, shape), FLEX)
        near(run(name, inputs, (*attrs, shape), CPU)[0], expected)


def test_everything_is_nan():
    x, w = np.full((4, 32, 20, 20), np.nan, np.float32), normal(32, 32, 3, 3)
    attrs = (ONE, ONE, ONE, 1)
    assert np.isnan(run("conv", [x, w, None], attrs, CPU)[0]).all()
    assert np.isnan(run("conv_weight_grad", [x, x], (*attrs, w.shape), CPU)[0]).all()
