"""Resampling, grids, Fourier transforms and distinct values against numpy and the reference."""

import numpy as np
import pytest

from burn_dispatch import device
from burn_ir import CATALOG

INTERP, FLEX = device("interp").without_autodiff(), device("flex").without_autodiff()


def run(name, inputs, attrs, on):
    """Return the numpy results of one operation of the catalogue."""
    context = on.context
    made = [None if x is None else context.tensor_from_numpy(np.asarray(x)) for x in inputs]
    out = getattr(context, name)(*made, *attrs)
    many = CATALOG[name].multi
    return [context.to_numpy(t) for t in (out if many else [out])]


def same(name, inputs, attrs, tolerance=2e-5):
    """Compare an operation on the interpreter with the reference."""
    mine, theirs = run(name, inputs, attrs, INTERP), run(name, inputs, attrs, FLEX)
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=tolerance,
            atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))),
        )  # fmt: skip


# 67, 127 and 134 have large prime factors: Bluestein.
LENGTHS = (1, 2, 3, 4, 5, 8, 9, 12, 16, 30, 31, 61, 64, 67, 77, 97, 100, 127, 128, 134)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_rfft_and_irfft_of_any_length(n, norm):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, n + 3, 3)).astype(np.float32)
    same("rfft", [x], (1, norm, n))
    same("rfft", [x[:, : max(1, n // 2)]], (1, norm, n))
    bins = n // 2 + 1
    real, imag = rng.standard_normal((2, 2, bins, 3)).astype(np.float32)
    same("irfft", [real, imag], (1, norm, n))
    same("irfft", [real, None], (1, norm, n))
    same("irfft", [x.astype(np.float64), None], (1, norm, n), 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 67])
def test_adjoints_of_the_transforms(n):
    rng = np.random.default_rng(n)
    real, imag = rng.standard_normal((2, 3, n // 2 + 1)).astype(np.float32)
    same("rfft_backward", [real, imag], (1, "ortho", n))
    g = rng.standard_normal((3, n)).astype(np.float32)
    for bins in (n // 2 + 1, n + 2, max(1, n // 2)):
        same("irfft_backward", [g], (1, "backward", bins))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grids_and_their_gradients(mode, padding, corners):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    grid = rng.uniform(-1.7, 1.7, (2, 3, 6, 2)).astype(np.float32)
    g = rng.standard_normal((2, 3, 3, 6)).astype(np.float32)
    same("grid_sample", [x, grid], (mode, padding, corners))
    same("grid_sample_backward", [g, x, grid], (mode, padding, corners))
    if mode != "bicubic":
        volume = rng.standard_normal((1, 2, 3, 4, 2)).astype(np.float64)
        grid = rng.uniform(-1.5, 1.5, (1, 2, 2, 3, 3))
        g = rng.standard_normal((1, 2, 2, 2, 3))
        same("grid_sample", [volume, grid], (mode, padding, corners), 1e-10)
        same("grid_sample_backward", [g, volume, grid], (mode, padding, corners), 1e-10)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_the_adjoint_of_interpolation(mode):
    rng = np.random.default_rng(2)
    for size in ((3, 9), (8, 4), (5, 6)):
        g = rng.standard_normal((2, 2, *size)).astype(np.float32)
        same("interpolate_backward", [g], (mode, False, size, (None, None), (2, 2, 5, 6)))
        same("interpolate_backward", [g.astype(np.float64)],
             (mode, mode.startswith("bi"), size, (1.5, None), (2, 2, 5, 6)), 1e-10)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.bool_])
def test_distinct_values(dtype):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2 if dtype is np.bool_ else 7, (5, 6)).astype(dtype)
    if dtype is np.float32:
        x[0, :3] = np.nan, -0.0, np.nan
    for inverse in (False, True):
        for counts in (False, True):
            same("unique", [x], (inverse, counts))
            same("unique", [x[:0]], (inverse, counts))
