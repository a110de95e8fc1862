"""Random programs on the compiling devices, step by step beside flex."""

from __future__ import annotations

import pytest

import burn
from tests.laws.random_programs import run

# Programs of twenty steps, each in portions, so that workers share them.
PORTIONS, PROGRAMS = 20, 100


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_random_programs_are_those_of_flex(backend: str, portion: int) -> None:
    # flex is what the others are compared with; there its recorder is.
    device = burn.device("fusion-flex" if backend == "flex" else backend)
    for seed in range(portion * PROGRAMS, (portion + 1) * PROGRAMS):
        run(seed, device)
