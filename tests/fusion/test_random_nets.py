"""A few of the random nets, and the smallest programs that once went wrong."""

from __future__ import annotations

import numpy as np
import pytest

import burn
from tests.fusion import random_nets as nets

pytestmark = [
    pytest.mark.filterwarnings("ignore::burn.PlanChurnWarning"),
    pytest.mark.filterwarnings("ignore::burn.ReplayWarning"),
]


@pytest.mark.parametrize(("name", "count"), [("flex", 120), ("cpu", 12)])
def test_recorded_nets(name: str, count: int) -> None:
    eager, fused = burn.device(f"eager-{name}"), burn.device(f"fusion-{name}")
    for seed in range(count):
        nets.check(seed, eager, fused)


@pytest.mark.parametrize("name", ["flex", "cpu"])
def test_bits_of_a_sum_do_not_depend_on_what_was_written_over(name: str) -> None:
    """A result written over an operand lies as a fresh one: sums add in the order of memory."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((40, 30), (30, 40), (30,))
    ]

    def run(device: burn.Device) -> list[bytes]:
        a, b, c = (burn.tensor(x, device=device) for x in arrays)
        made = [
            (b.T * 1.5) + (a * 2.0),
            (a * 2.0) + (b.T * 1.5),
            (b.T * 1.5) + a,
            (b.T * 1.5) + c,
            (a * 2.0) - (a + 1.0),
            (b.T * 0.5) * (b.T + 1.0),
            (b.T * 2.0) + (a.sum(1, keepdim=True) * 3),
        ]
        sums = [[x.sum(), x.sum(0), x.mean(-1)] for x in made]
        del made
        return [x.numpy().tobytes() for row in sums for x in row]

    eager, fused = burn.device(f"eager-{name}"), burn.device(f"fusion-{name}")
    assert run(fused) == run(eager)


def test_a_difference_is_found() -> None:
    """The comparison can fail: nets of two seeds are not alike."""
    device = burn.device("eager-flex")
    one, other = nets._Run(1, device).go().seen, nets._Run(2, device).go().seen
    with pytest.raises(nets.Difference):
        for a, b in zip(one, other, strict=False):
            nets._same(a, b, "")
