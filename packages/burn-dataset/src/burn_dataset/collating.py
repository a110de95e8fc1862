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
        DTypeError: items of a kind that cannot be stacked, or of several kinds.
        ShapeError: arrays of different shapes, tuples or dicts of different fields.

    Example:
        >>> collate([(1, 2.0), (3, 4.0)])
        (array([1, 3]), array([2., 4.]))
    """
    first, kind = items[0], _kind(items[0])
    for item in items:
        if _kind(item) != kind:
            raise DTypeError(
                "collate", "the items of a batch are of one kind",
                got=f"{type(first).__name__} and {type(item).__name__}", remedy="Pass collate=.",
            )  # fmt: skip
    if kind == "number":
        return _stacked([np.asarray(i) for i in items])
    if kind == "tensor":
        return _stacked([i.numpy() for i in items])
    if kind == "tuple":
        _same_parts([len(i) for i in items], "as many fields")
        columns = [collate(column) for column in zip(*items, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    if kind == "dict":
        _same_parts([set(i) for i in items], "the same keys")
        return {k: collate([i[k] for i in items]) for k in first}
    if kind == "text":
        return list(items)
    raise DTypeError(
        "collate",
        "items are numbers, arrays, strings, or tuples and dicts of them",
        got=type(first).__name__,
        remedy="Pass collate=.",
    )


def _kind(item: Any) -> str:
    if isinstance(item, (bool, int, float, np.generic, np.ndarray)):
        return "number"
    if isinstance(item, Tensor):
        return "tensor"
    if isinstance(item, (tuple, list)):
        return "tuple"
    if isinstance(item, dict):
        return "dict"
    return "text" if isinstance(item, str) else type(item).__name__


def _same_parts(found: list[Any], what: str) -> None:
    for one in found:
        if one != found[0]:
            shown = [sorted(f, key=str) if isinstance(f, set) else f for f in (found[0], one)]
            raise ShapeError(
                "collate", f"the items of a batch have {what}", got=f"{shown[0]} and {shown[1]}",
                remedy="Complete the items, or pass collate=.",
            )  # fmt: skip


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
