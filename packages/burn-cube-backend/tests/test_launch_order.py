"""Which launches wait for which: any order that keeps that gives what the list gives."""

import random

import numpy as np
import pytest

from burn_cube_backend.launch_order import Access, reduced, waits
from burn_cube_backend.memory_plan import Span

SIZE = 24


def program(rng, launches):
    """Return what launches do with a few pieces of memory, in their order."""
    found = []
    for k in range(launches):
        for _ in range(rng.randint(1, 4)):
            start = rng.randrange(SIZE - 1)
            end = rng.randint(start + 1, min(SIZE, start + 8))
            found.append(Access(k, rng.choice("abc"), start, end, rng.random() < 0.5))
    return found


def run(touched, order, alone):
    """Return the memory after launches in an order; what they write tells what they read."""
    memory = {space: np.arange(SIZE, dtype=np.int64) + 100 * n for n, space in enumerate("abc")}
    stays = np.int64(7)
    for k in order:
        mine = [a for a in touched if a.call == k]
        seen = hash((k, *(int(memory[a.space][a.start : a.end].sum()) for a in mine), int(stays)))
        seen %= 2**40
        for n, a in enumerate(mine):
            if a.writes:
                memory[a.space][a.start : a.end] = seen + n
        if k in alone:
            stays = np.int64(seen)
    return [*memory.values(), np.array([stays])]


@pytest.mark.parametrize("seed", range(60))
def test_any_order_that_keeps_the_edges_gives_the_same(seed):
    rng = random.Random(seed)
    launches = rng.randint(2, 14)
    touched = program(rng, launches)
    alone = [k for k in range(launches) if rng.random() < 0.08]
    before = waits(touched, launches, alone)
    expected = run(touched, range(launches), alone)
    for _ in range(12):
        order, done = [], set()
        while len(order) < launches:
            ready = [k for k in range(launches) if k not in done and done.issuperset(before[k])]
            order.append(rng.choice(ready))
            done.add(order[-1])
        for a, b in zip(run(touched, order, alone), expected, strict=True):
            assert np.array_equal(a, b)


def test_readers_do_not_wait_for_one_another():
    touched = [Access(0, "w", 0, 8, True)] + [Access(k, "w", 0, 8, False) for k in (1, 2, 3)]
    assert waits([*touched, Access(4, "w", 4, 5, True)], 5) == [[], [0], [0], [0], [1, 2, 3]]


def test_parts_that_do_not_meet_are_apart():
    touched = [Access(0, "w", 0, 8, True), Access(1, "w", 8, 16, True), Access(2, "w", 7, 9, False)]
    assert waits(touched, 3) == [[], [], [0, 1]]


def test_who_waits_for_somebody_does_not_wait_for_those_before_once_more():
    assert reduced([set(), {0}, {0, 1}, {0, 2}]) == [[], [0], [1], [2]]


def test_memory_rests_within_the_list():
    span = Span(64, 2, 3).rested(4, 6)
    assert (span.size, span.first, span.last) == (64, 2, 5)
    untouched = Span(64).rested(4, 6)
    assert (untouched.first, untouched.last) == (-1, -1)
