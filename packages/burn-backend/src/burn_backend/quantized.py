"""A quantised tensor on the host: what backends hand over to each other, and to files."""

from __future__ import annotations

from typing import Any

from burn_std import QDType


class QuantizedArray:
    """Integers with their scales; 4-bit values take one int8 each.

    `Backend.to_numpy` returns one for a quantised payload, and `Backend.from_numpy` takes it.

    Attributes:
        values: int8, of the tensor's shape.
        scale: floats; rank 0 for one scale per tensor, else [..., blocks] of the last dim.
        zero: int8 zero points of the scale's shape; None for symmetric schemes.
        shape: shape of the tensor.
        dtype: the scheme.
    """

    __slots__ = ("dtype", "scale", "shape", "values", "zero")

    def __init__(self, values: Any, scale: Any, zero: Any, dtype: QDType) -> None:
        self.values = values
        self.scale = scale
        self.zero = zero
        self.shape: tuple[int, ...] = values.shape
        self.dtype = dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse, so that no kernel takes it for an array of one object."""
        raise TypeError("a quantised payload is no array")

    @property
    def nbytes(self) -> int:
        """Bytes held by values, scales and zero points."""
        parts = (self.values, self.scale, self.zero)
        return sum(part.nbytes for part in parts if part is not None)

    def __repr__(self) -> str:
        return f"QuantizedArray({self.dtype.name}{list(self.shape)})"
