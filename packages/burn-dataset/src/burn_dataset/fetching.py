"""How a batch is made of a data set: the same code in the loader's process and in its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from burn_dataset.collating import collate
from burn_dataset.dataset import as_batch, batch_random, item_of, item_random
from burn_dataset.stream import IterableDataset


class Recipe(NamedTuple):
    """What a batch is made with.

    Attributes:
        dataset: by index, or iterable.
        join: items to one batch; stacking if None. With a true attribute `random` it takes a
            generator too.
        seed: of the loader.
        batch_size: items per batch.
        drop_last: leave out a smaller last batch.
    """

    dataset: Any
    join: Callable[[Sequence[Any]], Any] | None
    seed: int
    batch_size: int
    drop_last: bool

    def fetch(self, indices: np.ndarray[Any, Any], epoch: int) -> Any:
        """Return the batch of some items.

        Args:
            indices: which.
            epoch: from 0.
        """
        whole = as_batch(self.dataset) if self.join is None else None
        if whole is not None:
            return whole(indices)
        random = hasattr(self.dataset, "get")
        items = [
            item_of(self.dataset, k, item_random(self.seed, epoch, k) if random else None)
            for k in map(int, indices)
        ]
        return self._joined(items, epoch, int(indices[0]))

    def _joined(self, items: Sequence[Any], epoch: int, first: int) -> Any:
        """Return items as a batch; a random way to join gets a generator of the batch."""
        if self.join is not None and getattr(self.join, "random", False) is True:
            mix: Any = self.join
            return mix(items, batch_random(self.seed, epoch, first))
        return (self.join or collate)(items)

    def stream(self, epoch: int, first: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield every `step`-th batch of an iterable data set with its number, from `first` on.

        Args:
            epoch: from 0.
            first: number of the first batch wanted.
            step: distance to the next.
        """
        data = self.dataset
        plain = not isinstance(data, IterableDataset)
        items = iter(data) if plain else data.raw()
        number = 0
        while part := list(islice(items, self.batch_size)):
            if len(part) < self.batch_size and self.drop_last:
                return
            if number >= first and (number - first) % step == 0:
                start = number * self.batch_size
                if not plain:
                    part = [
                        data.finish(item, self.seed, epoch, start + k)
                        for k, item in enumerate(part)
                    ]
                yield number, self._joined(part, epoch, start)
            number += 1
