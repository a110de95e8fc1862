"""A few of the random programs and trainings, and the smallest programs that once went wrong."""

from __future__ import annotations

import pytest

import burn
from tests.fusion import random_programs as programs, random_training as training
from tests.fusion.random_programs import Program, Step

# Programs that do the same operations in ever other orders are warned of.
pytestmark = [
    pytest.mark.filterwarnings("ignore::burn.PlanChurnWarning"),
    pytest.mark.filterwarnings("ignore::burn.ReplayWarning"),
]


def devices(name: str) -> tuple[burn.Device, burn.Device]:
    return burn.device(f"eager-{name}"), burn.device(f"fusion-{name}")


@pytest.mark.parametrize("name", ["flex", "cpu"])
@pytest.mark.parametrize("first", [0, 10_000])
def test_recorded_programs(name: str, first: int) -> None:
    for seed in range(first, first + (20 if name == "flex" else 3)):
        programs.check(programs.make(seed), *devices(name))


@pytest.mark.parametrize("name", ["flex", "cpu"])
def test_captured_programs_and_graphs(name: str) -> None:
    for seed in range(10 if name == "flex" else 2):
        programs.check_pure(seed, *devices(name))


@pytest.mark.parametrize("name", ["fusion-flex", "fusion-cpu"])
def test_captured_trainings(name: str) -> None:
    for seed in range(4 if name == "fusion-flex" else 2):
        assert training.check(seed, burn.device(name), 40) > 0


MINIMAL = {
    "dtype and shape refused": (
        Step("bits", -3, 24, 3, 2.0),
    ),
    "two results wait in each other's memory": (
        Step("softmax by hand", 8, 6, 5, -1.25), Step("softmax by hand", 8, 50, 3, 3.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["flex", "cpu"])
@pytest.mark.parametrize("what", MINIMAL)
def test_what_once_went_wrong(name: str, what: str) -> None:
    programs.check(Program(0, False, MINIMAL[what]), *devices(name))


def test_a_difference_is_found_and_made_small() -> None:
    """The comparison can fail: a kernel that is wrong in one plan is found, by few steps."""
    eager, fused = devices("flex")
    program = programs.make(3)
    right = programs.outcome(program, eager, fused)
    assert right is None
    step = Step("tanh", 0, 0, 0, 1.0)
    wrong = program._replace(steps=(*program.steps, step))

    def fails(p: Program) -> bool:
        return step in p.steps

    assert programs.shrunk(wrong, fails).steps == (step,)
    with pytest.raises(programs.Difference):
        programs._same(("float32", programs.np.zeros(1)), ("float32", -programs.np.zeros(1)), "")
