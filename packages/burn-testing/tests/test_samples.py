import numpy as np
import pytest

from burn_ir import CATALOG
from burn_testing.samples import ERRORS, SAMPLES, arrays, as_bfloat16


@pytest.mark.parametrize("name", [e.name for e in CATALOG if "::" not in e.name])
def test_samples_fit_the_signature(name: str) -> None:
    entry = CATALOG[name]
    for s in (*SAMPLES[name], *ERRORS[name]):
        assert len(s.inputs) == len(entry.inputs)
        assert len(s.attrs) == len(entry.attrs)
    assert len({s.name for s in SAMPLES[name]}) == len(SAMPLES[name])


def test_draws_are_the_same_each_time() -> None:
    s = next(s for s in SAMPLES["add"] if "f32" in s.dtypes)
    first, second = arrays(s, "f32"), arrays(s, "f32")
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_bfloat16_rounds_half_to_even() -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, np.inf, np.nan], np.float32)
    found = as_bfloat16(x)
    assert found[:4].tolist() == [1.0, 1.0, 1.015625, np.inf]
    assert np.isnan(found[4])
