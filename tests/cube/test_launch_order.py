"""Launches of a replay in another order that their memory allows give the same bits.

A device with graphs runs them side by side. Here the cpu makes them one by one in random orders,
over random programs: an edge that is missing shows as a wrong value.
"""

import random

import pytest

import burn
from burn_cube_backend.launch_order import order_of
from burn_cube_backend.replay import Replay
from tests.fusion import random_nets, random_programs


@pytest.fixture
def shuffled(monkeypatch):
    rng, orders = random.Random(5), []
    set_up = Replay._set_up

    def other(replay):
        set_up(replay)
        replay.branches = True  # memory rests, as it does where launches run side by side
        plan = replay._arranged()
        replay.branches = False
        replay.scratch, replay.live = plan.size, plan.live
        replay.over = {replay.number_of[b]: k for b, k in plan.over.items()}
        replay._placed(plan)
        before = order_of(replay.log, plan)
        order, done = [], set()
        while len(order) < len(before):
            ready = [k for k in range(len(before)) if k not in done and done.issuperset(before[k])]
            order.append(rng.choice(ready))
            done.add(order[-1])
        replay.calls._table[:] = replay.calls._table[order]
        orders.append(order != sorted(order))

    monkeypatch.setattr(Replay, "_set_up", other)
    return orders


def test_any_order_that_memory_allows_gives_the_bits_of_the_list(shuffled):
    eager, fused = burn.device("eager-cpu"), burn.device("fusion-cpu")
    for seed in range(8):
        random_programs.check(random_programs.make(seed + 700_000), eager, fused)
        random_programs.check_pure(seed + 710_000, eager, fused)
        random_nets.check(seed + 90_000, eager, fused)
    assert sum(shuffled) > 20
