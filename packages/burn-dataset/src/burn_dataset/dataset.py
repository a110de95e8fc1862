"""Map-style data sets: anything with `len` and item access; transforms are data sets again.

An item that is drawn at random comes from `get(index, rng)`, which a loader calls with a generator
that seed, epoch and index decide. Transforms pass it on to what they wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from burn_std import ArgumentError, IndexRangeError, unwritten

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class Dataset(Protocol[T_co]):
    """What a loader needs: a length and items by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T_co: ...


def check_index(index: int, size: int, name: str) -> int:
    """Return a non-negative index or raise IndexRangeError."""
    if not -size <= index < size:
        raise IndexRangeError(name, f"index must be in [{-size}, {size - 1}]", got=index)
    return index % size


def item_of(dataset: Any, index: int, rng: np.random.Generator | None) -> Any:
    """Return an item; with randomness if the data set has a use for it.

    Args:
        dataset: with `get(index, rng)`, or plain.
        index: of the item.
        rng: decides what is random; None for `dataset[index]`.
    """
    get = getattr(dataset, "get", None)
    return dataset[index] if get is None or rng is None else get(index, rng)


class _Random:
    """Access by index for data sets that write `get`: the same item each time."""

    def get(self, index: int, rng: np.random.Generator | None) -> Any:
        """Return an item.

        Args:
            index: of the item.
            rng: decides what is random.
        """
        raise unwritten(self, "get")

    def __getitem__(self, index: int) -> Any:
        return self.get(index, None)


class InMemoryDataset(Generic[T]):
    """A sequence of items.

    Example:
        >>> InMemoryDataset([10, 20])[1]
        20
    """

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> T:
        return self.items[check_index(index, len(self), "InMemoryDataset")]


class ArrayDataset:
    """Rows of arrays of one length; an item is a tuple with one row of each.

    Args:
        *arrays: arrays whose first dim counts items.

    Raises:
        ArgumentError: no array, or lengths differ.

    Example:
        >>> import numpy as np
        >>> ArrayDataset(np.arange(4).reshape(2, 2), np.array([7, 8]))[1]
        (array([2, 3]), np.int64(8))
    """

    def __init__(self, *arrays: np.ndarray[Any, Any]) -> None:
        if not arrays or len({len(a) for a in arrays}) != 1:
            raise ArgumentError(
                "ArrayDataset", "needs arrays of one length", got=[len(a) for a in arrays]
            )
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        k = check_index(index, len(self), "ArrayDataset")
        return tuple(a[k] for a in self.arrays)

    def batch(self, indices: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        """Return several rows at once, which a loader prefers to stacking items."""
        return tuple(a[indices] for a in self.arrays)


class MapDataset(_Random, Generic[T, U]):
    """Items passed through a function when they are asked for.

    Args:
        source: the data set.
        fn: `item -> item`, or `(item, rng) -> item` with `random`.
        random: the function draws from the generator it is given, which seed, epoch and index
            decide; so a value depends neither on the number of workers nor on the batch.

    Example:
        >>> MapDataset(InMemoryDataset([1, 2]), lambda x: x * 10)[1]
        20
    """

    def __init__(self, source: Dataset[T], fn: Callable[..., U], *, random: bool = False) -> None:
        self.source = source
        self.fn = fn
        self.random = random

    def __len__(self) -> int:
        return len(self.source)

    def get(self, index: int, rng: np.random.Generator | None) -> U:
        """Return an item; without a generator the index alone decides what is random."""
        item = item_of(self.source, index, rng)
        if not self.random:
            return self.fn(item)
        return self.fn(item, item_random(0, 0, index) if rng is None else rng)


class SelectDataset(_Random, Generic[T]):
    """Chosen items in a chosen order.

    Args:
        source: the data set.
        indices: which items.

    Raises:
        IndexRangeError: an index is outside the source.

    Example:
        >>> SelectDataset(InMemoryDataset("abc"), [2, 0])[0]
        'c'
    """

    def __init__(self, source: Dataset[T], indices: Sequence[int]) -> None:
        self.source = source
        self.indices = [check_index(int(i), len(source), "SelectDataset") for i in indices]

    def __len__(self) -> int:
        return len(self.indices)

    def get(self, index: int, rng: np.random.Generator | None) -> T:
        """Return an item."""
        k = self.indices[check_index(index, len(self), "SelectDataset")]
        item: T = item_of(self.source, k, rng)
        return item


class ShuffledDataset(SelectDataset[T]):
    """All items in an order that a seed decides.

    Example:
        >>> sorted(ShuffledDataset(InMemoryDataset([1, 2, 3]), seed=0)[k] for k in range(3))
        [1, 2, 3]
    """

    def __init__(self, source: Dataset[T], seed: int) -> None:
        super().__init__(source, permutation(len(source), seed, 0).tolist())


class PartialDataset(SelectDataset[T]):
    """Items from `start` up to `end`.

    Example:
        >>> len(PartialDataset(InMemoryDataset("abcd"), 1, 3))
        2
    """

    def __init__(self, source: Dataset[T], start: int, end: int) -> None:
        if not 0 <= start <= end <= len(source):
            raise ArgumentError(
                "PartialDataset",
                "0 <= start <= end <= length",
                got=f"{start}, {end} of {len(source)}",
            )
        super().__init__(source, range(start, end))


class SampleDataset(SelectDataset[T]):
    """Items drawn at random, by a seed.

    Args:
        source: the data set.
        size: how many, as a number or as a share of the source; all if None.
        seed: decides which.
        replace: an item may come several times.

    Raises:
        ArgumentError: there are not so many items.

    Example:
        >>> len(SampleDataset(InMemoryDataset("abcd"), 0.5, seed=1))
        2
    """

    def __init__(
        self, source: Dataset[T], size: int | float | None = None, *, seed: int = 0,
        replace: bool = False,
    ) -> None:  # fmt: skip
        n = len(source)
        count = n if size is None else round(size * n) if isinstance(size, float) else size
        if count < 0 or (count > n and not replace) or (count and not n):
            raise ArgumentError("SampleDataset", f"a size from 0 to {n}, or replace=True", got=size)
        rng = item_random(seed, 0, 0)
        super().__init__(source, rng.choice(n, count, replace).tolist() if count else [])


class WindowDataset(Generic[T]):
    """Overlapping runs of neighbouring items, as lists.

    Args:
        source: the data set.
        size: items per window.
        step: distance between the beginnings of two windows.

    Raises:
        ArgumentError: size or step is not positive.

    Example:
        >>> windows = WindowDataset(InMemoryDataset([1, 2, 3, 4]), 3)
        >>> len(windows), windows[1]
        (2, [2, 3, 4])
    """

    def __init__(self, source: Dataset[T], size: int, step: int = 1) -> None:
        if size < 1 or step < 1:
            raise ArgumentError(
                "WindowDataset", "size and step are positive", got=f"{size}, {step}"
            )
        self.source = source
        self.size = size
        self.step = step

    def __len__(self) -> int:
        return max(0, (len(self.source) - self.size) // self.step + 1)

    def __getitem__(self, index: int) -> list[T]:
        start = check_index(index, len(self), "WindowDataset") * self.step
        return [self.source[k] for k in range(start, start + self.size)]


class ComposedDataset(_Random, Generic[T]):
    """Data sets one after the other.

    Args:
        sources: in order.

    Example:
        >>> ComposedDataset([InMemoryDataset("ab"), InMemoryDataset("c")])[2]
        'c'
    """

    def __init__(self, sources: Sequence[Dataset[T]]) -> None:
        self.sources = list(sources)
        self._ends = np.cumsum([len(s) for s in self.sources]).tolist()

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._ends else 0

    def get(self, index: int, rng: np.random.Generator | None) -> T:
        """Return an item."""
        k = check_index(index, len(self), "ComposedDataset")
        which = int(np.searchsorted(self._ends, k, side="right"))
        start = self._ends[which - 1] if which else 0
        item: T = item_of(self.sources[which], k - start, rng)
        return item


def split(source: Dataset[T], fractions: Sequence[float], seed: int) -> list[SelectDataset[T]]:
    """Split without overlap into shares of a shuffled order.

    Args:
        source: the data set.
        fractions: positive shares that add up to at most 1.
        seed: decides the order.

    Raises:
        ArgumentError: the shares are no such numbers.

    Example:
        >>> [len(s) for s in split(InMemoryDataset(range(10)), [0.8, 0.2], seed=1)]
        [8, 2]
    """
    if not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
        raise ArgumentError(
            "split", "fractions are positive and add up to at most 1", got=fractions
        )
    order = permutation(len(source), seed, 0).tolist()
    ends = [0] + [round(float(e) * len(source)) for e in np.cumsum(fractions)]
    return [SelectDataset(source, order[a:b]) for a, b in pairwise(ends)]


def permutation(size: int, seed: int, epoch: int) -> np.ndarray[Any, Any]:
    """Return the order of an epoch: a function of size, seed and epoch alone."""
    key = np.array([seed & (2**64 - 1), epoch], np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).permutation(size)


def drawn(chances: np.ndarray[Any, Any], size: int, seed: int, epoch: int) -> np.ndarray[Any, Any]:
    """Return the items of an epoch that chances choose: a function of these and seed and epoch."""
    key = np.array([seed & (2**64 - 1), epoch], np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).choice(len(chances), size, p=chances)


def item_random(seed: int, epoch: int, index: int) -> np.random.Generator:
    """Return the generator of an item: a function of seed, epoch and index alone.

    Args:
        seed: of the loader.
        epoch: from 0.
        index: of the item.
    """
    key = np.random.SeedSequence([seed & (2**64 - 1), epoch, index])
    return np.random.Generator(np.random.PCG64(key))


def batch_random(seed: int, epoch: int, first: int) -> np.random.Generator:
    """Return the generator of a batch: a function of seed, epoch and its first item alone.

    Args:
        seed: of the loader.
        epoch: from 0.
        first: index of the first item.
    """
    # One word more than the generators of items have, so none of them is the same.
    key = np.random.SeedSequence([seed & (2**64 - 1), epoch, first, 1])
    return np.random.Generator(np.random.PCG64(key))


def as_batch(dataset: Any) -> Callable[[np.ndarray[Any, Any]], Any] | None:
    """Return a data set's own way to take several rows at once, or None."""
    return cast("Callable[[np.ndarray[Any, Any]], Any] | None", getattr(dataset, "batch", None))
