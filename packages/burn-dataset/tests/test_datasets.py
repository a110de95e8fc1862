"""Map-style data sets and what makes one out of another."""

from __future__ import annotations

import numpy as np
import pytest

from burn_dataset import (
    ArrayDataset,
    ComposedDataset,
    Dataset,
    InMemoryDataset,
    MapDataset,
    PartialDataset,
    SampleDataset,
    SelectDataset,
    ShuffledDataset,
    WindowDataset,
    split,
)
from burn_dataset.dataset import item_of, item_random
from burn_std import ArgumentError, IndexRangeError


def items(dataset):
    return [dataset[k] for k in range(len(dataset))]


@pytest.fixture
def letters():
    return InMemoryDataset("abcdef")


def test_indices_count_from_both_ends_and_are_checked(letters):
    assert isinstance(letters, Dataset)
    assert (letters[-1], letters[0]) == ("f", "a")
    for bad in (6, -7):
        with pytest.raises(IndexRangeError, match=r"\[-6, 5\]"):
            letters[bad]


def test_iteration_by_index_ends(letters):
    assert list(letters) == list("abcdef")


def test_map_is_lazy(letters):
    seen = []
    mapped = MapDataset(letters, lambda c: seen.append(c) or c.upper())
    assert (mapped[2], seen, len(mapped)) == ("C", ["c"], 6)


def test_select_keeps_the_order_given(letters):
    assert items(SelectDataset(letters, [4, 4, -1])) == ["e", "e", "f"]
    with pytest.raises(IndexRangeError):
        SelectDataset(letters, [6])


def test_shuffle_is_a_function_of_the_seed(letters):
    one, same, other = (items(ShuffledDataset(letters, seed=s)) for s in (1, 1, 2))
    assert one == same != other
    assert sorted(one) == sorted(other) == list("abcdef")


def test_partial_is_a_range(letters):
    assert items(PartialDataset(letters, 1, 3)) == ["b", "c"]
    assert items(PartialDataset(letters, 2, 2)) == []
    for bad in ((3, 2), (-1, 2), (0, 7)):
        with pytest.raises(ArgumentError):
            PartialDataset(letters, *bad)


def test_composed_is_one_after_the_other(letters):
    whole = ComposedDataset([letters, InMemoryDataset(""), InMemoryDataset("xy")])
    assert "".join(items(whole)) == "abcdefxy"
    assert whole[-1] == "y"
    assert len(ComposedDataset([])) == 0


def test_rows_of_arrays():
    data = ArrayDataset(np.arange(6).reshape(3, 2), np.array([7, 8, 9]))
    x, y = data[-1]
    assert (x.tolist(), int(y)) == ([4, 5], 9)
    assert [a.tolist() for a in data.batch(np.array([2, 0]))] == [[[4, 5], [0, 1]], [9, 7]]
    for bad in ((), (np.ones(2), np.ones(3))):
        with pytest.raises(ArgumentError):
            ArrayDataset(*bad)


@pytest.mark.parametrize("fractions", [[0.9, 0.1], [0.5, 0.25, 0.25], [1 / 3] * 3, [1.0]])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_a_split_leaks_nothing_and_loses_nothing(fractions, size):
    # B103
    parts = split(InMemoryDataset(range(size)), fractions, seed=3)
    again = split(InMemoryDataset(range(size)), fractions, seed=3)
    assert [items(p) for p in parts] == [items(p) for p in again]
    assert sorted(i for p in parts for i in items(p)) == list(range(size))


@pytest.mark.parametrize("bad", [[], [0.5, 0.6], [0.5, 0.0], [-0.1, 0.5]])
def test_a_split_needs_shares(bad):
    with pytest.raises(ArgumentError):
        split(InMemoryDataset(range(4)), bad, seed=0)


def test_a_sample_draws_by_its_seed(letters):
    one, same, other = (items(SampleDataset(letters, 4, seed=s)) for s in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) == 4
    assert len(SampleDataset(letters, 0.5)) == 3
    assert sorted(items(SampleDataset(letters))) == list("abcdef")
    assert len(SampleDataset(letters, 20, replace=True)) == 20
    assert len(SampleDataset(InMemoryDataset(""), 0)) == 0
    for bad in (7, -1, 1.5):
        with pytest.raises(ArgumentError):
            SampleDataset(letters, bad)


def test_windows_overlap(letters):
    assert items(WindowDataset(letters, 3, 2)) == [["a", "b", "c"], ["c", "d", "e"]]
    assert items(WindowDataset(letters, 7)) == []
    assert WindowDataset(letters, 6)[-1] == list("abcdef")
    with pytest.raises(ArgumentError):
        WindowDataset(letters, 0)


def test_randomness_goes_through_the_transforms(letters):
    noisy = MapDataset(letters, lambda c, rng: (c, int(rng.integers(1 << 30))), random=True)
    chain = SelectDataset(ComposedDataset([noisy, noisy]), [7, 1])
    rng = item_random(0, 3, 7)
    want = int(item_random(0, 3, 7).integers(1 << 30))
    assert item_of(chain, 0, rng) == ("b", want)
    # Without a loader an item is the same each time.
    assert chain[0] == chain[0]
    assert item_of(letters, 0, rng) == "a"
