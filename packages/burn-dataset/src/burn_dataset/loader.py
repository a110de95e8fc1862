"""The loader: batches of a data set as tensors, in an order that seed and epoch decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from burn_dataset.dataset import Dataset, as_batch, permutation
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError
from burn_tensor import Tensor, tensor


def collate(items: Sequence[Any]) -> Any:
    """Return items as one: numbers and arrays are stacked, tuples and dicts field by field.

    Raises:
        DTypeError: items of a kind that cannot be stacked.

    Example:
        >>> collate([(1, 2.0), (3, 4.0)])
        (array([1, 3]), array([2., 4.]))
    """
    first = items[0]
    if isinstance(first, (bool, int, float, np.generic, np.ndarray)):
        return np.stack([np.asarray(i) for i in items])
    if isinstance(first, Tensor):
        return np.stack([i.numpy() for i in items])
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(c) for c in zip(*items, strict=True)))
    if isinstance(first, (tuple, list)):
        return tuple(collate(c) for c in zip(*items, strict=True))
    if isinstance(first, dict):
        return {k: collate([i[k] for i in items]) for k in first}
    if isinstance(first, str):
        return list(items)
    raise DTypeError(
        "collate",
        "items are numbers, arrays, strings, or tuples and dicts of them",
        got=type(first).__name__,
        remedy="Pass collate=.",
    )


def to_tensors(batch: Any, device: Device | None) -> Any:
    """Return a batch with its arrays as tensors on a device."""
    if isinstance(batch, np.ndarray):
        return tensor(batch, device=device)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_tensors(b, device) for b in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_tensors(b, device) for b in batch)
    if isinstance(batch, dict):
        return {k: to_tensors(b, device) for k, b in batch.items()}
    return batch


class DataLoader:
    """Batches of a data set; one iteration is one epoch.

    Args:
        dataset: anything with `len` and items.
        batch_size: items per batch; the last may be smaller.
        shuffle: a new order every epoch.
        seed: decides the orders.
        drop_last: leave out a smaller last batch.
        collate: items to one batch of arrays; stacking if None.
        device: where tensors are made; the default device if None.

    Attributes:
        epoch: how many iterations were begun; decides the order of the next.
        position: batches given out in the running epoch; set both to resume inside an epoch.

    Raises:
        ArgumentError: batch_size is not positive.

    Example:
        >>> import numpy as np
        >>> from burn_dataset import ArrayDataset
        >>> loader = DataLoader(ArrayDataset(np.arange(5)), batch_size=2)
        >>> [batch[0].tolist() for batch in loader]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, dataset: Dataset[Any], batch_size: int = 1, *, shuffle: bool = False, seed: int = 0,
        drop_last: bool = False, collate: Callable[[Sequence[Any]], Any] | None = None,
        device: Device | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ArgumentError("DataLoader", "batch_size must be positive", got=batch_size)
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.collate = collate
        self.device = device
        self.epoch = 0
        self.position = 0

    def __len__(self) -> int:
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        epoch, start = self.epoch, self.position
        self.epoch, self.position = epoch + 1, 0
        n = len(self.dataset)
        order = permutation(n, self.seed, epoch) if self.shuffle else np.arange(n)
        batch = as_batch(self.dataset) if self.collate is None else None
        join = self.collate or collate
        for k in range(start, len(self)):
            indices = order[k * self.batch_size : (k + 1) * self.batch_size]
            if batch is not None:
                arrays = batch(indices)
            else:
                arrays = join([self.dataset[int(i)] for i in indices])
            self.position = k + 1 if k + 1 < len(self) else 0
            yield to_tensors(arrays, self.device)
