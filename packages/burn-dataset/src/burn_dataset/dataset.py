"""Map-style data sets: anything with `len` and item access; transforms are data sets again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from burn_std import ArgumentError, IndexRangeError

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


class MapDataset(Generic[T, U]):
    """Items passed through a function when they are asked for.

    Example:
        >>> MapDataset(InMemoryDataset([1, 2]), lambda x: x * 10)[1]
        20
    """

    def __init__(self, source: Dataset[T], fn: Callable[[T], U]) -> None:
        self.source = source
        self.fn = fn

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> U:
        return self.fn(self.source[index])


class SelectDataset(Generic[T]):
    """Chosen items in a chosen order.

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

    def __getitem__(self, index: int) -> T:
        return self.source[self.indices[check_index(index, len(self), "SelectDataset")]]


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


class ComposedDataset(Generic[T]):
    """Data sets one after the other.

    Example:
        >>> ComposedDataset([InMemoryDataset("ab"), InMemoryDataset("c")])[2]
        'c'
    """

    def __init__(self, sources: Sequence[Dataset[T]]) -> None:
        self.sources = list(sources)
        self._ends = np.cumsum([len(s) for s in self.sources]).tolist()

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._ends else 0

    def __getitem__(self, index: int) -> T:
        k = check_index(index, len(self), "ComposedDataset")
        which = int(np.searchsorted(self._ends, k, side="right"))
        return self.sources[which][k - (self._ends[which - 1] if which else 0)]


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


def rows(dataset: Dataset[T]) -> Iterator[T]:
    """Yield the items in order."""
    for k in range(len(dataset)):
        yield dataset[k]


def as_batch(dataset: Any) -> Callable[[np.ndarray[Any, Any]], Any] | None:
    """Return a data set's own way to take several rows at once, or None."""
    return cast("Callable[[np.ndarray[Any, Any]], Any] | None", getattr(dataset, "batch", None))
