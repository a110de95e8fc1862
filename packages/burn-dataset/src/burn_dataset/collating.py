"""Items to one batch of arrays, and arrays to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_dispatch import Device
from burn_std import DTypeError, ShapeError
from burn_tensor import Tensor, tensor


def collate(items: Sequence[Any]) -> Any:
    """Return items as one: numbers and arrays are stacked, tuples and dicts field by field.

    Args:
        items: at least one, all of one kind.

    Raises:
        DTypeError: items of a kind that cannot be stacked.
        ShapeError: arrays of different shapes.

    Example:
        >>> collate([(1, 2.0), (3, 4.0)])
        (array([1, 3]), array([2., 4.]))
    """
    first = items[0]
    if isinstance(first, (bool, int, float, np.generic, np.ndarray)):
        return _stacked([np.asarray(i) for i in items])
    if isinstance(first, Tensor):
        return _stacked([i.numpy() for i in items])
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


def _stacked(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    first = arrays[0].shape
    for a in arrays:
        if a.shape != first:
            raise ShapeError(
                "collate", "the arrays of a batch have one shape", got=f"{first} and {a.shape}",
                remedy="Pad the items, or pass collate=.",
            )  # fmt: skip
    return np.stack(arrays)


def to_tensors(batch: Any, device: Device | None) -> Any:
    """Return a batch with its arrays as tensors on a device.

    Args:
        batch: arrays, or tuples, lists and dicts of them; what is no array stays.
        device: the default device if None.
    """
    if isinstance(batch, np.ndarray):
        return tensor(batch, device=device)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_tensors(b, device) for b in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(to_tensors(b, device) for b in batch)
    if isinstance(batch, dict):
        return {k: to_tensors(b, device) for k, b in batch.items()}
    return batch
