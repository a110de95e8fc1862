"""Places of memory for launches: nothing that lives at once overlaps, and little is lost."""

from __future__ import annotations

import random

import pytest

from burn_cube_backend.memory_plan import Arrangement, Span, Wish, arranged, most_live

UNIT = 256


def made(seed: int) -> tuple[list[Span], list[int], list[Wish], dict[int, Span], int]:
    """Return random blocks, results, wishes and inputs of so many launches."""
    dice = random.Random(seed)
    launches = dice.randint(5, 120)
    blocks = []
    for _ in range(dice.randint(1, 150)):
        first = dice.randrange(launches)
        last = min(launches - 1, first + int(dice.expovariate(0.2)))
        blocks.append(Span(UNIT * dice.choice([1, 2, 4, 64, 300, 1024]), first, last))
    results = sorted(dice.sample(range(len(blocks)), len(blocks) // 5))
    inputs = {
        k: Span(UNIT * dice.choice([1, 2, 4, 64, 300, 1024]), 0, dice.randrange(-1, launches))
        for k in range(dice.randint(0, 10))
    }
    wishes = []
    for k, block in enumerate(blocks):
        ends = [j for j, b in enumerate(blocks) if b.last == block.first and j != k]
        ends += [-1 - j for j, s in inputs.items() if s.last == block.first]
        if ends and dice.random() < 0.7:
            wishes.append(Wish(block.first, k, dice.choice(ends)))
        walks = [j for j, b in enumerate(blocks) if block.first < b.last <= block.last and j != k]
        if walks and dice.random() < 0.5:
            j = dice.choice(walks)
            wishes.append(Wish(block.first, k, j, blocks[j].last - block.first))
    wishes.sort()
    return blocks, results, wishes, inputs, launches


def check(
    found: Arrangement, blocks: list[Span], results: list[int], wishes: list[Wish],
    inputs: dict[int, Span], launches: int,
) -> None:  # fmt: skip
    """Play the launches: every block keeps what was written until its last launch."""
    wished = {(w.launch, w.out, w.x, w.launch + w.more) for w in wishes}
    sizes = {-1: found.size, **{r: blocks[r].size for r in results}}
    for a, (one, at) in enumerate(found.places):
        assert at % 64 == 0 and at + blocks[a].size <= sizes[one]
        for b in range(a):
            other, place = found.places[b]
            if one != other or at >= place + blocks[b].size or place >= at + blocks[a].size:
                continue
            x, y = blocks[a], blocks[b]
            ends = (
                launches - 1 if a in results else x.last,
                launches - 1 if b in results else y.last,
            )
            if x.first > ends[1] or y.first > ends[0]:
                continue
            # They meet in the launches that write over what they read, at the same place.
            late, early = (a, b) if x.first >= y.first else (b, a)
            assert at == place and blocks[late].size == blocks[early].size
            assert (blocks[late].first, late, early, blocks[early].last) in wished
    assert len(set(found.over.values())) == len(found.over)
    for r, k in found.over.items():
        assert blocks[r].size == inputs[k].size
        met = (blocks[r].first, r, -1 - k, blocks[r].first) in wished
        assert inputs[k].last < blocks[r].first or (met and inputs[k].last == blocks[r].first)
        assert all(host != r or b == r for b, (host, _) in enumerate(found.places))


@pytest.mark.parametrize("seed", range(60))
def test_random_lists(seed: int) -> None:
    blocks, results, wishes, inputs, launches = made(seed)
    found = arranged(blocks, results, wishes, inputs, {}, launches)
    check(found, blocks, results, wishes, inputs, launches)


def test_packing_loses_little() -> None:
    lost = []
    for seed in range(40):
        blocks, *_, launches = made(seed)
        found = arranged(blocks, [], [], {}, {}, launches)
        lost.append(found.size / most_live(blocks, launches))
    assert sorted(lost)[len(lost) // 2] < 1.06 and max(lost) < 1.3


def test_an_heir_takes_the_place_of_what_it_succeeds() -> None:
    blocks = [Span(512, 3, 3), Span(512, 3, 3)]
    inputs = {0: Span(512, 0, 3), 1: Span(512, 0, 3)}
    wishes = [Wish(3, out, -1 - k) for out in (0, 1) for k in (0, 1)]
    assert arranged(blocks, [0, 1], wishes, inputs, {0: 1, 1: 0}, 4).over == {0: 1, 1: 0}
    assert sorted(arranged(blocks, [0, 1], wishes, inputs, {}, 4).over) == [0, 1]
    assert arranged(blocks, [0, 1], wishes[:1], inputs, {}, 4).over == {0: 0}


def test_launches_that_walk_through_a_block_write_over_it() -> None:
    blocks = [Span(512, 0, 5), Span(512, 3, 8)]
    walk = [Wish(3, 1, 0, 2)]
    assert arranged(blocks, [], walk, {}, {}, 9).places == [(-1, 0), (-1, 0)]
    assert arranged(blocks, [0], walk, {}, {}, 9).places == [(0, 0), (-1, 0)]
    later = [Span(512, 0, 6), blocks[1]]  # somebody reads it after the walk
    assert arranged(later, [], walk, {}, {}, 9).size == 1024


def test_temporaries_lie_in_results_that_are_not_written_yet() -> None:
    big = 1 << 20
    blocks = [Span(big, 0, 1), Span(big, 4, 5)]
    assert arranged(blocks, [1], [], {}, {}, 6).size == 0
    assert arranged([blocks[0], Span(big, 1, 5)], [1], [], {}, {}, 6).size == big
