"""The payload of a quantised tensor."""

from __future__ import annotations

from burn_cube_backend.payload import CubeTensor, Ints
from burn_std import QDType


class QuantTensor:
    """Integers with their scales; 4-bit values take one int8 each.

    Attributes:
        values: int8, row-major, of the tensor's shape.
        scale: floats; rank 0 for one scale per tensor, else [..., blocks] of the last dim.
        zero: int8 zero points of the scale's shape; None for symmetric schemes.
        shape: shape of the tensor.
        dtype: the scheme.
        value: None; a quantised tensor is never a bare number.
    """

    __slots__ = ("dtype", "scale", "shape", "value", "values", "zero")

    def __init__(
        self, values: CubeTensor, scale: CubeTensor, zero: CubeTensor | None, dtype: QDType
    ) -> None:
        self.values = values
        self.scale = scale
        self.zero = zero
        self.shape: Ints = values.shape
        self.dtype = dtype
        self.value = None

    def __repr__(self) -> str:
        return f"QuantTensor({self.dtype.name}{list(self.shape)})"
