"""Numbers beyond a float dtype are infinite there, as on flex, in every way they reach a kernel."""

from __future__ import annotations

import math
from typing import Any

import pytest

import burn

F = burn.functional
NUMBERS = (1e308, -1e308, 3.4028235677973366e38, 3.4028235677973362e38, 65519.99, 65520.0, -7e4)


@pytest.mark.parametrize("name", ["eager-cpu", "fusion-cpu"])
@pytest.mark.parametrize("dtype", [burn.float32, burn.float16, burn.bfloat16])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_numbers_round_as_on_flex(name: str, dtype: Any) -> None:
    one = [burn.ones(3, device=d).to(dtype) for d in (name, "flex")]
    for _ in range(2):  # a second round is replayed
        for number in NUMBERS:
            found, expected = ((x * number).to(burn.float64).tolist() for x in one)
            assert found == expected, number


@pytest.mark.parametrize("name", ["eager-cpu", "fusion-cpu"])
def test_a_huge_eps(name: str) -> None:
    x = burn.tensor([[1.0, 2.0, 3.0]], device=name)
    for made in (F.layer_norm(x, (3,), eps=1e308), F.rms_norm(x, (3,), eps=1e308)):
        assert [abs(v) for v in made.tolist()[0]] == [0.0] * 3


@pytest.mark.parametrize("name", ["eager-cpu", "fusion-cpu"])
def test_numbers_that_change_in_a_loop(name: str) -> None:
    x = burn.ones(3, device=name)
    for number in (1.0, 1e300, 2.0, -1e300, 3.0, 1e39, 4.0):
        expected = number * 2 if abs(number) < 1e38 else math.copysign(math.inf, number)
        assert (x * number + number).tolist() == [expected] * 3
