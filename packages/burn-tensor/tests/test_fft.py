"""Real Fourier transforms against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_std import ArgumentError, IndexRangeError, ShapeError
from burn_std.dtypes import float32
from burn_tensor import fft

X = np.random.default_rng(0).standard_normal((3, 6, 4))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 5, 9])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_there_and_back(norm: str | None, n: int | None, dim: int) -> None:
    z = np.fft.rfft(X, n, dim, norm)
    real, imag = fft.rfft(burn.tensor(X), n, dim, norm)
    np.testing.assert_allclose(real.numpy(), z.real, atol=1e-12)
    np.testing.assert_allclose(imag.numpy(), z.imag, atol=1e-12)
    samples = n or X.shape[dim]
    back = fft.irfft(real, samples, dim, norm, imag=imag)
    np.testing.assert_allclose(back.numpy(), np.fft.irfft(z, samples, dim, norm), atol=1e-12)
    pair = fft.irfft(fft.rfft(burn.tensor(X), n, dim, norm), samples, dim, norm)
    np.testing.assert_array_equal(pair.numpy(), back.numpy())


def test_integers_become_floats() -> None:
    assert fft.rfft(burn.tensor([1, 2, 3])).real.dtype is float32
    assert fft.irfft(burn.tensor([True, False])).dtype is float32


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n: int) -> None:
    np.testing.assert_allclose(fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(fft.rfftfreq(n, 2.0).numpy(), np.fft.rfftfreq(n, 2.0))
    x = np.arange(n * 3).reshape(n, 3)
    for dim in (None, 0, (0, 1)):
        there = fft.fftshift(burn.tensor(x), dim)
        np.testing.assert_array_equal(there.numpy(), np.fft.fftshift(x, dim))
        np.testing.assert_array_equal(fft.ifftshift(there, dim).numpy(), x)


def test_what_transforms_refuse() -> None:
    x = burn.ones(3)
    with pytest.raises(ArgumentError, match="rfft: norm is"):
        fft.rfft(x, norm="unitary")
    with pytest.raises(IndexRangeError):
        fft.rfft(x, dim=1)
    with pytest.raises(ShapeError, match="n is at least 1"):
        fft.rfft(x, 0)
    with pytest.raises(ShapeError, match="at least one dim"):
        fft.rfft(burn.tensor(1.0))
    with pytest.raises(ShapeError, match="n is at least 1"):
        fft.irfft(burn.ones(1))
    with pytest.raises(ArgumentError, match="given once"):
        fft.irfft((x, x), imag=x)
    with pytest.raises(ArgumentError, match="n must be positive"):
        fft.fftfreq(0)
