"""A few of the random surgeries on models between captured steps."""

from __future__ import annotations

import pytest

import burn
from tests.fusion import random_surgery as surgery

pytestmark = [
    pytest.mark.filterwarnings("ignore::burn.PlanChurnWarning"),
    pytest.mark.filterwarnings("ignore::burn.ReplayWarning"),
]


@pytest.mark.parametrize(("name", "count"), [("fusion-flex", 12), ("cpu", 3)])
def test_captured_steps_between_surgeries(name: str, count: int) -> None:
    device = burn.device(name)
    assert sum(surgery.check(seed, device) for seed in range(count)) > 10 * count


def test_a_difference_is_found() -> None:
    """The comparison can fail: trainings of two seeds are not alike."""
    device = burn.device("fusion-flex")
    one, other = (surgery.Surgery(seed, device, False).go(3).seen for seed in (0, 1))
    assert repr(one) != repr(other)
