"""Batches: joining, order, resuming."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from burn_dataset import (
    ArrayDataset,
    DataLoader,
    InMemoryDataset,
    IterableDataset,
    MapDataset,
    collate,
)
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, ShapeError, StoreError


class Pair(NamedTuple):
    x: int
    y: float


def ids(loader):
    return [int(i) for batch in loader for i in batch.tolist()]


def numbers(n, **settings):
    return DataLoader(InMemoryDataset(range(n)), **settings)


def test_items_are_joined_field_by_field():
    one, two = {"a": (1, np.ones(2)), "t": "x"}, {"a": (2, np.zeros(2)), "t": "y"}
    joined = collate([one, two])
    assert joined["a"][0].tolist() == [1, 2]
    assert joined["a"][1].tolist() == [[1, 1], [0, 0]]
    assert joined["t"] == ["x", "y"]
    assert collate([Pair(1, 2.0), Pair(3, 4.0)]).y.tolist() == [2, 4]
    with pytest.raises(DTypeError, match="Pass collate="):
        collate([object()])
    with pytest.raises(ShapeError, match=r"got \(2,\) and \(3,\)\. Pad the items"):
        collate([np.ones(2), np.ones(3)])


def test_batches_are_tensors_on_the_device():
    device = Device.flex(1)
    data = ArrayDataset(np.ones((3, 2), np.float32), np.arange(3))
    x, y = next(iter(DataLoader(data, 2, device=device)))
    assert (x.device, y.device) == (device, device)
    assert (x.shape, y.tolist()) == ((2, 2), [0, 1])


def test_sizes_of_batches():
    assert [b.tolist() for b in numbers(5, batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in numbers(5, batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert (len(numbers(5, batch_size=2)), len(numbers(5, batch_size=2, drop_last=True))) == (3, 2)
    assert list(numbers(0, batch_size=2)) == []
    with pytest.raises(ArgumentError):
        numbers(5, batch_size=0)


def test_every_epoch_has_its_own_order():
    loader = numbers(10, batch_size=3, shuffle=True, seed=4)
    epochs = [ids(loader) for _ in range(3)]
    assert all(sorted(e) == list(range(10)) for e in epochs)
    assert len({tuple(e) for e in epochs}) == 3
    again = numbers(10, batch_size=5, shuffle=True, seed=4)
    assert [ids(again) for _ in range(3)] == epochs


def test_a_resumed_epoch_goes_on_where_it_stopped():
    # B100: N=64, batch 4, stop after 3 batches of epoch 1, also at a boundary.
    def make():
        return numbers(64, batch_size=4, shuffle=True, seed=1234)

    whole = make()
    want = [ids(whole) for _ in range(3)]
    stopped = make()
    ids(stopped)
    seen = []
    for k, batch in enumerate(stopped):
        seen += batch.tolist()
        if k == 2:
            break
    fresh = make()
    fresh.epoch, fresh.position = 1, 3
    assert seen + ids(fresh) == want[1]
    assert ids(fresh) == want[2]


def test_own_joining():
    loader = numbers(4, batch_size=2, collate=lambda items: np.array(items) * 10)
    assert [b.tolist() for b in loader] == [[0, 10], [20, 30]]


def test_state_in_the_middle_and_between():
    loader = numbers(10, batch_size=2, shuffle=True, seed=1)
    ids(loader)
    running = iter(loader)
    seen = [next(running).tolist() for _ in range(2)]
    fresh = numbers(10, batch_size=2, shuffle=True, seed=1)
    fresh.load_state_dict(loader.state_dict())
    whole = numbers(10, batch_size=2, shuffle=True, seed=1)
    want = [ids(whole) for _ in range(3)]
    assert sum(seen, []) + ids(fresh) == want[1]  # noqa: RUF017 - two lists
    again = numbers(10, batch_size=2, shuffle=True, seed=1)
    again.load_state_dict(fresh.state_dict())
    assert ids(again) == want[2]
    with pytest.raises(StoreError):
        again.load_state_dict({"epoch": 1})


def test_a_batch_larger_than_the_data_warns(caplog):
    # B102: no batch, and no hang.
    assert list(numbers(3, batch_size=4, drop_last=True)) == []
    assert "drop_last leaves nothing of 3 items" in caplog.text


def test_what_is_random_is_decided_by_seed_epoch_and_index():
    data = MapDataset(InMemoryDataset(range(6)), lambda x, rng: rng.integers(1 << 30), random=True)
    one, two = (DataLoader(data, n, seed=3) for n in (2, 5))
    assert ids(one) == ids(two)
    assert ids(one) == ids(two) != ids(DataLoader(data, 2, seed=3))


def test_streams():
    stream = IterableDataset(range(5)).map(lambda x: x + 1)
    assert [b.tolist() for b in DataLoader(stream, 2)] == [[1, 2], [3, 4], [5]]
    assert [b.tolist() for b in DataLoader(stream, 2, drop_last=True)] == [[1, 2], [3, 4]]
    generator = IterableDataset(lambda: iter("abc"))
    loader = DataLoader(generator, 2)
    assert list(loader) == list(loader) == [["a", "b"], ["c"]]
    mixed = list(IterableDataset(range(20)).shuffle(5, seed=1))
    assert sorted(mixed) == list(range(20)) != mixed
    assert mixed == list(IterableDataset(range(20)).shuffle(5, seed=1))
    assert list(IterableDataset(range(9)).take(2)) == [0, 1]
    plain = DataLoader(iter([1, 2, 3]), 2)
    assert [b.tolist() for b in plain] == [[1, 2], [3]]


def test_a_split_loader_gives_every_batch_once_and_in_turn():
    device = Device.default()

    def epochs(loader, n=2):
        return [[b[0].tolist() for b in loader] for _ in range(n)]

    for size in (1, 21, 24):
        make = lambda size=size: DataLoader(  # noqa: E731
            ArrayDataset(np.arange(size)), 3, shuffle=True, seed=4
        )
        want = epochs(make())
        for n in (1, 2, 3, 9):
            parts = make().split([device] * n)
            found = [epochs(one) for one in parts]
            for epoch in range(2):
                assert [p[epoch] for p in found] == [want[epoch][k::n] for k in range(n)]
            assert [len(one) for one in parts] == [len(p[0]) for p in found]


def test_a_split_loader_with_drop_last_gives_everybody_as_much():
    loader = DataLoader(ArrayDataset(np.arange(22)), 3, drop_last=True)
    parts = loader.split([None, None])
    assert [len(p) for p in parts] == [3, 3]
    assert [len(list(p)) for p in parts] == [3, 3]


def test_a_split_begins_where_the_whole_is_and_resumes():
    make = lambda: DataLoader(ArrayDataset(np.arange(20)), 2, shuffle=True)  # noqa: E731
    whole, want = make(), [b[0].tolist() for b in list(make())]
    whole.epoch, whole.position = 0, 3
    parts = whole.split([None, None])
    assert [[b[0].tolist() for b in p] for p in parts] == [want[4::2], want[3::2]]
    part = make().split([None, None])[1]
    iterator = iter(part)
    first = [next(iterator)[0].tolist() for _ in range(2)]
    state = part.state_dict()
    again = make().split([None, None])[1]
    again.load_state_dict(state)
    assert first + [b[0].tolist() for b in again] == want[1::2]


def test_a_split_of_a_stream_and_what_cannot_be_split():
    def make():
        return DataLoader(IterableDataset(range(11)), 2)

    want = [b.tolist() for b in make()]
    assert [[b.tolist() for b in p] for p in make().split([None] * 3)] == [
        want[k::3] for k in range(3)
    ]
    with pytest.raises(ArgumentError):
        make().split([])
    with pytest.raises(ArgumentError):
        make().split([None, None])[0].split([None])


def test_items_that_do_not_go_together_are_named():
    for items, error in (
        ([(1, 2), (1,)], ShapeError), ([{"a": 1}, {"b": 1}], ShapeError),
        ([{"a": 1}, {"a": 1, "b": 2}], ShapeError), ([1, "a"], DTypeError), ([1, None], DTypeError),
        ([np.ones(2), (1, 2)], DTypeError), ([(1, np.ones(2)), (1, np.ones(3))], ShapeError),
        ([None, None], DTypeError), ([{"a": [1]}, {"a": [1, 2]}], ShapeError),
    ):  # fmt: skip
        with pytest.raises(error, match="collate"):
            list(DataLoader(InMemoryDataset(items), 2))


def test_weights_decide_how_often_an_item_comes():
    data = ArrayDataset(np.arange(4))
    loader = DataLoader(data, 50, weights=[0, 1, 3, 0], samples=4000, seed=1)
    assert len(loader) == 80
    first, second = ([int(i) for b in loader for i in b[0].tolist()] for _ in range(2))
    assert first != second
    again = DataLoader(data, 50, weights=[0, 1, 3, 0], samples=4000, seed=1)
    assert [int(i) for b in again for i in b[0].tolist()] == first
    assert set(first) == {1, 2}
    assert 0.7 < first.count(2) / 4000 < 0.8
    shares = DataLoader(data, 50, weights=[0, 1, 3, 0], samples=4000, seed=1).split([None, None])
    whole = [[int(i) for i in b[0].tolist()] for b in shares[0]]
    assert whole[0] == first[:50]


@pytest.mark.parametrize("settings", [
    {"weights": [1, 2]}, {"weights": [1, -1, 1, 1]}, {"weights": [0, 0, 0, 0]},
    {"weights": [1, 1, 1, 1], "shuffle": True}, {"samples": 3},
    {"weights": [1, 1, 1, 1], "samples": 0},
])  # fmt: skip
def test_weights_without_meaning_are_refused(settings):
    with pytest.raises(ArgumentError):
        DataLoader(ArrayDataset(np.arange(4)), **settings)
