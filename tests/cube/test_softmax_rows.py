"""Softmax of rows on a processor: powers of what is not positive, up to where they vanish."""

import numpy as np
import pytest

from burn_dispatch import device

BARE = device("eager-cpu").without_autodiff().context


def both(x):
    """Return softmax and log_softmax of the device, and those of float64 powers of float32."""
    on = BARE.tensor_from_numpy(x)
    got = [BARE.to_numpy(op(on, 1, None)) for op in (BARE.softmax, BARE.log_softmax)]
    with np.errstate(all="ignore"):
        below = (x - x.max(1, keepdims=True)).astype(np.float64)
        powers = np.exp(below)
        total = powers.sum(1, keepdims=True)
        return got, [powers / total, below - np.log(total)]


@pytest.mark.parametrize("columns", [1, 5, 16, 33, 64, 100, 1000])
@pytest.mark.parametrize("spread", [0.5, 20.0, 60.0])
def test_every_power_has_its_digits(columns, spread):
    x = np.random.default_rng(0).standard_normal((50, columns)).astype(np.float32)
    got, want = both(x * np.float32(spread))
    # Of subnormal results as many digits as they have.
    np.testing.assert_allclose(got[0], want[0], 2e-6, 1.5e-45)
    np.testing.assert_allclose(got[1], want[1], 2e-6, 2e-6)


@pytest.mark.parametrize(
    "below", [80.0, 87.0, 88.5, 100.0, 103.0, 103.9, 104.1, 120.0, 1e30, np.inf]
)
def test_powers_vanish_where_float32_ends(below):
    x = np.zeros((2, 40), np.float32)
    x[0, 1:] = -below
    x[1, :39] = -below
    got, want = both(x)
    np.testing.assert_allclose(got[0], want[0], 2e-6, 1.5e-45)
    assert ((got[0] == 0) == (want[0].astype(np.float32) == 0)).all()


def test_rows_that_are_not_finite():
    x = np.random.default_rng(1).standard_normal((5, 48)).astype(np.float32)
    x[0] = -np.inf
    x[1, 7] = np.inf
    x[2, 47] = np.nan
    x[3, :40] = -np.inf
    for got in both(x)[0]:
        np.testing.assert_array_equal(np.isnan(got).all(1), [True, True, True, False, False])
        np.testing.assert_array_equal(np.isnan(got).any(1), [True, True, True, False, False])
