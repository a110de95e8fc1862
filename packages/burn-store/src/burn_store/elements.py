"""Element types on disk, the host arrays that hold them, and what may be cast to what."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from burn_std import StoreError

Array = np.ndarray[Any, Any]

NATIVE: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        "float64", "float32", "float16", "bool",
        "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    )
} | {"bfloat16": np.dtype(ml_dtypes.bfloat16)}  # fmt: skip

_FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})

# No machine has tensors of more dims; a file that says so is corrupt.
MAX_RANK = 64
# Offsets in files are signed 64-bit everywhere; a larger product cannot be an extent.
MAX_BYTES = 1 << 62


class Spec(NamedTuple):
    """What is known of a stored tensor without reading it.

    Attributes:
        shape: extents.
        dtype: name of the dtype, `float32`; one the framework lacks stands as the file has it.
    """

    shape: tuple[int, ...]
    dtype: str


def native_dtype(name: str, tensor: str) -> np.dtype[Any]:
    """Return the numpy dtype of a dtype name.

    Raises:
        StoreError: the framework has no such dtype.
    """
    found = NATIVE.get(name)
    if found is None:
        raise StoreError(
            "store",
            f"the dtype of {tensor} is not supported",
            got=name,
            remedy="Leave the tensor out with exclude=, or convert the file where it was written.",
        )
    return found


def byte_count(shape: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes of a dense tensor."""
    return prod(shape) * itemsize


def checked_shape(shape: object, what: str) -> tuple[int, ...]:
    """Return a shape read from a file as a tuple of non-negative ints.

    Raises:
        StoreError: it is not a list of non-negative ints, or too large for any file.
    """
    if not isinstance(shape, (list, tuple)) or len(shape) > MAX_RANK:
        raise StoreError(
            "store.open",
            f"the shape of {what} is a list of at most {MAX_RANK} extents",
            got=shortened(shape),
        )
    bound = 1
    for extent in shape:
        if type(extent) is not int or extent < 0:
            raise StoreError(
                "store.open", f"extents of {what} are non-negative integers", got=shortened(shape)
            )
        # Zeros are left out so that [2**62, 2**62, 0] is caught too.
        bound *= extent or 1
        if bound > MAX_BYTES:
            raise StoreError(
                "store.open", f"the shape of {what} is too large for any file", got=shortened(shape)
            )
    return tuple(shape)


def shortened(value: object, limit: int = 80) -> str:
    """Return text of a value from a file for a message, short whatever the value is."""
    if isinstance(value, (list, tuple)):
        # One level only: what a file holds may be nested without end.
        head = [
            f"a {type(v).__name__}" if isinstance(v, (list, tuple)) else shortened(v, 20)
            for v in value[:8]
        ]
        return f"[{', '.join(head)}{', ...' if len(value) > 8 else ''}]"[:limit]
    if isinstance(value, int) and abs(value) > MAX_BYTES:
        return "a huge integer"
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        text = repr(value[:limit] if isinstance(value, (str, bytes)) else value)
        return text if len(text) <= limit else text[:limit] + "..."
    return f"a {type(value).__name__}"


def normalised(array: Array) -> Array:
    """Return an array whose bools are 0 or 1, whatever byte the file held."""
    if array.dtype == np.bool_:
        raw = array.view(np.uint8)
        np.not_equal(raw, 0, out=array)
    return array


def castable(source: str, target: str) -> bool:
    """Return whether values of one dtype may be loaded as another without asking.

    Floats go to floats; integers go where every value fits; bool stays bool; what is quantised
    goes to floats.

    Example:
        >>> castable("bfloat16", "float32"), castable("int64", "float32")
        (True, False)
    """
    if source == target:
        return True
    if source.startswith("qint") and target in _FLOATS:  # the floats that it stands for
        return True
    if source not in NATIVE or target not in NATIVE:
        return False
    a, b = NATIVE[source], NATIVE[target]
    if source in _FLOATS or target in _FLOATS:
        return source in _FLOATS and target in _FLOATS
    if a.kind == "b" or b.kind == "b":
        return False
    return bool(np.can_cast(a, b, "safe"))
