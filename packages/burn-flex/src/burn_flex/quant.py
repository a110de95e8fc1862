"""The payload of a quantised tensor on flex."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_std import QDType

Array = np.ndarray[Any, Any]


class QArray:
    """Integers with their scales; 4-bit values take one int8 each.

    Attributes:
        values: int8, of the tensor's shape.
        scale: floats; rank 0 for one scale per tensor, else [..., blocks] of the last dim.
        zero: int8 zero points of the scale's shape; None for symmetric schemes.
        shape: shape of the tensor.
        dtype: the scheme.
    """

    __slots__ = ("dtype", "scale", "shape", "values", "zero")

    def __init__(self, values: Array, scale: Array, zero: Array | None, dtype: QDType) -> None:
        self.values = values
        self.scale = scale
        self.zero = zero
        self.shape = values.shape
        self.dtype = dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Refuse, so that no kernel takes it for an array of one object."""
        raise TypeError("a quantised payload is no array")

    @property
    def nbytes(self) -> int:
        """Bytes held by values, scales and zero points."""
        return (
            self.values.nbytes + self.scale.nbytes + (0 if self.zero is None else self.zero.nbytes)
        )

    def __repr__(self) -> str:
        return f"QArray({self.dtype.name}{list(self.shape)})"
