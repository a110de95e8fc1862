"""Windows and short-time spectra; values and gradients of spectra stand in tests/cases."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import float64, int64


@pytest.mark.parametrize(("make", "reference"), [
    (bt.hann_window, np.hanning), (bt.hamming_window, np.hamming),
    (bt.blackman_window, np.blackman), (bt.bartlett_window, np.bartlett),
])  # fmt: skip
def test_windows_are_numpys_and_periodic_ones_a_period_of_the_next(make, reference):
    for n in (0, 1, 2, 7, 8):
        np.testing.assert_allclose(
            make(n, periodic=False, dtype=float64).numpy(), reference(n), atol=1e-15
        )
    np.testing.assert_allclose(make(8, dtype=float64).numpy(), reference(9)[:-1], atol=1e-15)
    assert make(1).tolist() == [1.0]
    with pytest.raises(DTypeError):
        make(4, dtype=int64)
    with pytest.raises(ArgumentError):
        make(-1)


def test_signals_come_back_from_their_spectra():
    x = bt.tensor(np.random.default_rng(0).normal(size=(2, 3, 50)))
    window = bt.hamming_window(12, dtype=float64)
    for normalized in (False, True):
        more = {"win_length": 12, "window": window, "normalized": normalized}
        back = bt.istft(bt.stft(x, 16, **more), 16, length=50, **more)
        np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)


def test_what_cannot_be_put_together_is_refused():
    with pytest.raises(ShapeError):
        bt.stft(bt.ones(3), 8, center=False)
    with pytest.raises(ShapeError):
        bt.stft(bt.ones(30), 8, window=bt.ones(7))
    with pytest.raises(ArgumentError):
        bt.stft(bt.ones(30), 8, win_length=6)
    with pytest.raises(ArgumentError):
        bt.stft(bt.ones(30), 8, hop_length=0)
    spectrum = bt.stft(bt.ones(40), 8, hop_length=8, window=bt.hann_window(8))
    with pytest.raises(ArgumentError, match="hop_length"):
        bt.istft(spectrum, 8, hop_length=8, window=bt.hann_window(8))
    with pytest.raises(ShapeError):
        bt.istft(spectrum, 16)
    with pytest.raises(ShapeError, match="needs a dim"):
        bt.stft(bt.tensor(1.0), 8)
    for pair in (bt.ones(3), (bt.ones(3),), (bt.ones(3), 1.0)):
        with pytest.raises(DTypeError, match="imaginary"):
            bt.istft(pair, 8)
