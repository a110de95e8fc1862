"""The loader: batches of a data set as tensors, in an order that seed and epoch decide."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from burn_dataset.collating import to_tensors
from burn_dataset.dataset import Dataset, drawn, permutation
from burn_dataset.fetching import Recipe
from burn_dataset.workers import Pool, run_by_indices, run_stream
from burn_dispatch import Device
from burn_std import ArgumentError, Closed, StoreError, unknown_keyword

LOG = logging.getLogger("burn.dataset")

# Each is a process.
_MOST_WORKERS = 1024

# What PyTorch's loader takes, and what to write instead.
_OTHERWISE = {
    "collate_fn": "Write collate=.",
    "pin_memory": "Leave it out: batches go to the device when they are made.",
    "pin_memory_device": "Write device=.",
    "sampler": "Write weights= to draw by chances; choose items with SelectDataset(data, indices).",
    "batch_sampler": "Choose items with SelectDataset(data, indices), in the order of the batches.",
    "persistent_workers": "Leave it out: workers live as long as the loader.",
    "prefetch_factor": "Write prefetch=.",
    "worker_init_fn": "Write what an item needs into the data set; random ones take a generator.",
    "multiprocessing_context": "Leave it out: workers are started clean (forkserver).",
    "num_samples": "Write samples=, with weights=.",
    "generator": "Write seed=.",
    "in_order": "Leave it out: batches come in order.",
}


class DataLoader(Closed):
    """Batches of a data set; one iteration is one epoch.

    What comes out depends on data set, seed and epoch, never on the number of workers: batches
    come in order, and what is random in an item comes from a generator of its own.

    Workers are processes started clean (forkserver): a script that uses them begins its work under
    `if __name__ == "__main__":`. They get the data set by pickle once, never touch a device, and
    send arrays through shared memory. They live until `close()`, or as long as the loader.

    Args:
        dataset: with `len` and items, or an iterable.
        batch_size: items per batch; the last may be smaller.
        shuffle: a new order every epoch.
        seed: decides orders and what is random in items.
        drop_last: leave out a smaller last batch.
        collate: items to one batch of arrays; stacking if None. One with a true attribute `random`,
            as `augment.Mixup`, is called with a generator that seed, epoch and batch decide.
        device: where tensors are made; the default device if None.
        num_workers: processes that make batches; 0 makes them here.
        prefetch: batches that each worker makes ahead.
        weights: chances of the items, not negative, one each: every epoch draws anew, as often as
            there are items, and an item may come several times or not at all.
        samples: how many items an epoch with `weights` draws; as many as there are if None.
        timeout: seconds that a batch of a worker is waited for; 0 waits for ever.

    Attributes:
        epoch: how many iterations were begun; decides the order of the next.
        position: batches given out in the running epoch; set both to resume inside an epoch.

    Raises:
        ArgumentError: a setting has no meaning, or, when iterated, the data set does not pickle.

    Example:
        >>> import numpy as np
        >>> from burn_dataset import ArrayDataset
        >>> loader = DataLoader(ArrayDataset(np.arange(5)), batch_size=2)
        >>> [batch[0].tolist() for batch in loader]
        [[0, 1], [2, 3], [4]]
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse settings that there are not."""
        error = unknown_keyword(cls.__name__, cls.__init__, kwargs, _OTHERWISE)
        if error is not None:
            raise error
        return super().__new__(cls)

    def __init__(
        self, dataset: Dataset[Any] | Iterable[Any], batch_size: int = 1, shuffle: bool = False, *,
        seed: int = 0, drop_last: bool = False,
        collate: Callable[[Sequence[Any]], Any] | None = None, device: Device | None = None,
        num_workers: int = 0, prefetch: int = 2, timeout: float = 0.0,
        weights: Sequence[float] | None = None, samples: int | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ArgumentError("DataLoader", "batch_size must be positive", got=batch_size)
        if not 0 <= num_workers <= _MOST_WORKERS or prefetch < 1:
            raise ArgumentError(
                "DataLoader",
                f"num_workers is not negative, and {_MOST_WORKERS} at most, prefetch positive",
                got=f"{num_workers=}, {prefetch=}",
            )
        if not timeout >= 0 or (timeout and not num_workers):
            raise ArgumentError(
                "DataLoader", "timeout is not negative, and for workers",
                got=f"{timeout=}, {num_workers=}",
            )  # fmt: skip
        items: Any = dataset
        self._by_index = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        if shuffle and not self._by_index:
            raise ArgumentError(
                "DataLoader", "an iterable has no order to shuffle", got=type(dataset).__name__,
                remedy="Use IterableDataset(...).shuffle(buffer).",
            )  # fmt: skip
        self.weights = None if weights is None else self._chances(items, weights, shuffle)
        if samples is not None and (weights is None or samples < 1):
            raise ArgumentError(
                "DataLoader", "samples is positive, and for weights", got=samples,
                remedy="Write weights=, or choose items with SampleDataset.",
            )  # fmt: skip
        self.samples = samples
        self.dataset = items
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.collate = collate
        self.device = device
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.timeout = timeout
        # Of every so many batches the one that is ours, counted from 0: see `split`.
        self._turn, self._turns = 0, 1
        self.epoch = 0
        self._position = 0
        self._resume = False
        self._pool: Pool | None = None
        if self._by_index and drop_last and 0 < self._size() < batch_size:
            LOG.warning(
                "DataLoader: drop_last leaves nothing of %d items in batches of %d",
                len(self.dataset), batch_size,
            )  # fmt: skip

    def _chances(self, items: Any, weights: Sequence[float], shuffle: bool) -> Any:
        """Return weights as probabilities."""
        if not self._by_index or shuffle:
            raise ArgumentError(
                "DataLoader", "weights choose among items by index, and their order is random",
                got=f"shuffle {shuffle}, a {type(items).__name__}",
            )  # fmt: skip
        found = np.array(weights, np.float64)
        if found.shape != (len(items),) or not (found >= 0).all() or not 0 < found.sum() < np.inf:
            raise ArgumentError(
                "DataLoader", "one weight per item, none negative, not all 0",
                got=f"shape {list(found.shape)} for {len(items)} items",
            )  # fmt: skip
        return found / found.sum()

    def _size(self) -> int:
        """Return how many items an epoch gives out."""
        return self.samples or len(self.dataset)

    @property
    def position(self) -> int:
        """Batches given out in the running epoch; set it to begin the next iteration there."""
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        self._position, self._resume = value, True

    def __len__(self) -> int:
        if not self._by_index:
            raise TypeError("a loader of an iterable has no length")
        return len(self._numbers())

    def _numbers(self) -> range:
        """Return the numbers of the batches of an epoch that are given out here."""
        n = self._size()
        whole = n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        if self.drop_last:  # a round that is not for everybody is left out too
            whole -= whole % self._turns
        return range(self._turn, whole, self._turns)

    def split(self, devices: Sequence[Device | None]) -> list[DataLoader]:
        """Return loaders that share out the batches of this one, one for each device.

        They take turns: of n the first has batches 0, n, 2 n, ... of every epoch, each the batch
        that this loader would give. One may have a batch more than another; with `drop_last` such a
        round is left out. Each has workers of its own, and begins where this loader is.

        Args:
            devices: where the tensors of each are made; the default device for None.

        Raises:
            ArgumentError: there is no device, or this loader is a share itself.

        Example:
            >>> import numpy as np
            >>> from burn_dataset import ArrayDataset
            >>> loader = DataLoader(ArrayDataset(np.arange(5)), batch_size=2)
            >>> [[b[0].tolist() for b in one] for one in loader.split([None, None])]
            [[[0, 1], [4]], [[2, 3]]]
        """
        if not devices or self._turns != 1:
            raise ArgumentError(
                "DataLoader.split", "a whole loader is split over at least one device",
                got=f"{len(devices)} devices, a share of {self._turns}",
            )  # fmt: skip
        made = []
        for turn, device in enumerate(devices):
            one = DataLoader(
                self.dataset, self.batch_size, shuffle=self.shuffle, seed=self.seed,
                drop_last=self.drop_last, collate=self.collate, device=device,
                num_workers=self.num_workers, prefetch=self.prefetch, timeout=self.timeout,
                weights=self.weights, samples=self.samples,
            )  # fmt: skip
            one._turn, one._turns = turn, len(devices)
            one.epoch = self.epoch
            if self._resume:
                # Of the batches given out so far, those that were this one's.
                one.position = len(range(turn, self._position, len(devices)))
            made.append(one)
        return made

    def __iter__(self) -> Iterator[Any]:
        # An epoch that was left in the middle is over, unless someone asks to go on there.
        epoch, start = self.epoch, self._position if self._resume else 0
        self.epoch, self._position, self._resume = epoch + 1, 0, False
        last = len(self) if self._by_index else 0
        k = start
        try:
            for arrays in self._batches(epoch, start):
                k += 1
                self._position = k if k != last else 0
                yield to_tensors(arrays, self.device)
        except BaseException:
            # Failed, or left in the middle: answers that nobody wants are in the pipes.
            self.close()
            raise
        self._position = 0

    def _batches(self, epoch: int, start: int) -> Iterator[Any]:
        recipe = Recipe(self.dataset, self.collate, self.seed, self.batch_size, self.drop_last)
        if not self._by_index:
            first, step = self._turn + start * self._turns, self._turns
            if self.num_workers:
                yield from run_stream(self._workers(recipe), epoch, first, step)
            else:
                yield from (batch for _, batch in recipe.stream(epoch, first, step))
            return
        n = len(self.dataset)
        if self.weights is not None:
            order = drawn(self.weights, self._size(), self.seed, epoch)
        else:
            order = permutation(n, self.seed, epoch) if self.shuffle else np.arange(n)
        size = self.batch_size
        parts = [order[k * size : (k + 1) * size] for k in self._numbers()[start:]]
        if self.num_workers:
            yield from run_by_indices(self._workers(recipe), parts, epoch)
        else:
            yield from (recipe.fetch(part, epoch) for part in parts)

    def _workers(self, recipe: Recipe) -> Pool:
        if self._pool is None:
            self._pool = Pool(recipe, self.num_workers, self.prefetch, self.timeout)
        return self._pool

    def close(self) -> None:
        """End the workers; the next iteration starts new ones."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def state_dict(self) -> dict[str, int]:
        """Return epoch and position, numbers that JSON can hold."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Take what `state_dict` returned in the middle of an epoch or between two.

        Args:
            state: epoch and position.

        Raises:
            StoreError: other names; nothing is changed then.
        """
        if set(state) != {"epoch", "position"}:
            raise StoreError("DataLoader", "the state is epoch and position", got=sorted(state))
        # The epoch counts iterations that were begun; one that is not done is begun again.
        running = int(state["position"]) > 0
        self.epoch = int(state["epoch"]) - (1 if running else 0)
        self.position = int(state["position"])
