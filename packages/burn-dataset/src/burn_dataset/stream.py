"""Iterable data sets: items that come one after the other, with no length and no index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from burn_dataset.dataset import item_random
from burn_std import ArgumentError

T = TypeVar("T")


class IterableDataset(Generic[T]):
    """Items of an iterable, passed through functions; iterating begins anew each time.

    What a loader's workers share out is the functions: each worker goes through the items, and
    calls the functions for its own batches only. So the order depends on no number of workers.

    Args:
        source: an iterable that can be iterated again, or a function that returns an iterator.

    Example:
        >>> squares = IterableDataset(range(4)).map(lambda x: x * x)
        >>> list(squares), list(squares.take(2))
        ([0, 1, 4, 9], [0, 1])
    """

    def __init__(self, source: Iterable[T] | Callable[[], Iterator[T]]) -> None:
        self._source = source
        self._steps: tuple[tuple[Callable[..., Any], bool], ...] = ()

    def raw(self) -> Iterator[Any]:
        """Yield the items before the functions."""
        yield from self._source() if callable(self._source) else self._source

    def finish(self, item: Any, seed: int, epoch: int, index: int) -> Any:
        """Pass an item through the functions.

        Args:
            item: as `raw` yields it.
            seed: with epoch and index it decides what is random.
            epoch: from 0.
            index: how many items came before.
        """
        rng = None
        for fn, random in self._steps:
            if random:
                rng = item_random(seed, epoch, index) if rng is None else rng
                item = fn(item, rng)
            else:
                item = fn(item)
        return item

    def __iter__(self) -> Iterator[T]:
        for k, item in enumerate(self.raw()):
            yield self.finish(item, 0, 0, k)

    def map(self, fn: Callable[..., Any], *, random: bool = False) -> IterableDataset[Any]:
        """Return the items passed through a function.

        Args:
            fn: `item -> item`, or `(item, rng) -> item` with `random`.
            random: the function draws from the generator it is given.
        """
        made: IterableDataset[Any] = IterableDataset(self._source)
        made._steps = (*self._steps, (fn, random))
        return made

    def shuffle(self, buffer: int, seed: int = 0) -> IterableDataset[T]:
        """Return the items in an order that a seed decides, drawn from a buffer.

        Functions that were mapped before run when an item enters the buffer.

        Args:
            buffer: items held; as many as there are for an order that is equally likely as any.
            seed: decides the order.

        Raises:
            ArgumentError: the buffer holds nothing.
        """
        if buffer < 1:
            raise ArgumentError("IterableDataset.shuffle", "buffer is positive", got=buffer)
        return IterableDataset(_Shuffled(self, buffer, seed))

    def take(self, count: int) -> IterableDataset[T]:
        """Return the first items.

        Args:
            count: how many.
        """
        return IterableDataset(_Taken(self, count))


class _Shuffled(Generic[T]):
    def __init__(self, source: Iterable[T], buffer: int, seed: int) -> None:
        self.source = source
        self.buffer = buffer
        self.seed = seed

    def __iter__(self) -> Iterator[T]:
        rng = item_random(self.seed, 0, 0)
        held: list[T] = []
        for item in self.source:
            if len(held) < self.buffer:
                held.append(item)
                continue
            k = int(rng.integers(self.buffer))
            out, held[k] = held[k], item
            yield out
        order = rng.permutation(len(held))
        yield from (held[k] for k in order)


class _Taken(Generic[T]):
    def __init__(self, source: Iterable[T], count: int) -> None:
        self.source = source
        self.count = count

    def __iter__(self) -> Iterator[T]:
        yield from islice(self.source, self.count)
