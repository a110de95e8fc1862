"""A few of the random edits, and that the comparison can fail."""

from __future__ import annotations

import numpy as np
import pytest

import burn
from tests.laws import random_edits as edits


@pytest.mark.parametrize(("name", "count"), [("flex", 200), ("fusion-flex", 60), ("cpu", 25)])
def test_edits_are_those_of_numpy(name: str, count: int) -> None:
    device = burn.device(name)
    for seed in range(count):
        edits.check(seed, device)


def test_a_difference_is_found() -> None:
    program = edits.Program(0, burn.device("flex"))
    with pytest.raises(edits.Difference):
        program.same("x", burn.ones(2, dtype=burn.int64), np.array([1, 2]))
