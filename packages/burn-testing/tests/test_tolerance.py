import math

import numpy as np
import pytest

from burn_ir import CATALOG
from burn_testing import case_tolerance, difference, tolerance
from burn_testing.tolerance import EXACT, Tolerance


def test_nan_equals_nan_and_infinities_need_their_sign() -> None:
    t = Tolerance(1e-6, 1e-6)
    assert difference([math.nan, math.inf], [math.nan, math.inf], t) is None
    assert difference([math.inf], [-math.inf], t)
    assert difference([math.nan], [1.0], t)
    assert difference([1.0], [math.nan], t)


def test_integers_are_exact() -> None:
    assert difference(np.array([2**62]), np.array([2**62]), EXACT) is None
    assert difference(np.array([2**62 + 1]), np.array([2**62]), case_tolerance("i64"))


def test_shapes_are_part_of_equality() -> None:
    assert "shape" in str(difference(np.zeros((2, 1)), np.zeros(2), EXACT))


def test_the_first_difference_is_named() -> None:
    said = difference(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.5]), EXACT)
    assert said is not None
    assert said.startswith("2 of 3 values differ, first at [1]")


def test_cases_have_the_contracts_numbers() -> None:
    assert [case_tolerance(d).relative for d in ("f64", "f32", "bf16", "f16")] == [
        1e-9,
        2e-5,
        2e-2,
        3e-3,
    ]


@pytest.mark.parametrize("name", ["reshape", "gather", "sort"])
def test_what_copies_is_exact_in_integers(name: str) -> None:
    assert tolerance(CATALOG[name], "i64") == EXACT


def test_a_longer_sum_may_differ_more() -> None:
    entry = CATALOG["sum"]
    assert tolerance(entry, "f32", 10_000).relative > tolerance(entry, "f32", 10).relative
