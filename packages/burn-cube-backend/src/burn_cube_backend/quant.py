"""The payload of a quantised tensor, and values of 4 bits as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from burn_cube_backend.payload import CubeTensor, Ints
from burn_std import QDType


class QuantTensor:
    """Integers with their scales.

    Attributes:
        values: int8, row-major, of the tensor's shape; of 4 bits uint8, [ceil(size / 2)], two in a
            byte, the one with an even number in the low bits.
        scale: floats; rank 0 for one scale per tensor, else [..., blocks] of the last dim.
        zero: int8 zero points of the scale's shape; None for symmetric schemes.
        shape: shape of the tensor.
        dtype: the scheme.
        value: None; a quantised tensor is never a bare number.
        layout: number of what a launch depends on but for addresses, 0 until somebody asks.
    """

    __slots__ = ("dtype", "layout", "scale", "shape", "value", "values", "zero")

    def __init__(
        self, values: CubeTensor, scale: CubeTensor, zero: CubeTensor | None, dtype: QDType,
        shape: Ints,
    ) -> None:  # fmt: skip
        self.values = values
        self.scale = scale
        self.zero = zero
        self.shape = shape
        self.dtype = dtype
        self.value = None
        self.layout = 0

    @property
    def scales(self) -> list[CubeTensor]:
        """What stands beside the integers: scales, and zero points if there are any."""
        return [self.scale] if self.zero is None else [self.scale, self.zero]

    def __repr__(self) -> str:
        return f"QuantTensor({self.dtype.name}{list(self.shape)})"


def flattened(payloads: Iterable[Any]) -> tuple[list[Any], dict[int, range]]:
    """Return plain tensors alone, and where the scales of quantised ones are among them.

    Integers stand in the place of each quantised tensor, their scales behind all payloads.
    """
    flat = list(payloads)
    places: dict[int, range] = {}
    for k, x in enumerate(flat[:]):
        if x.__class__ is QuantTensor:
            first = len(flat)
            flat += x.scales
            flat[k] = x.values
            places[k] = range(first, len(flat))
    return flat, places


def packed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers of 4 bits two in a byte.

    Example:
        >>> packed(np.array([1, -1, 7], np.int8)).tolist()
        [241, 7]
    """
    low = np.zeros(-(-values.size // 2) * 2, np.uint8)
    low[: values.size] = values.reshape(-1).view(np.uint8) & 15
    made: np.ndarray[Any, Any] = low[::2] | low[1::2] << np.uint8(4)
    return made


def unpacked(data: np.ndarray[Any, Any], shape: Ints) -> np.ndarray[Any, Any]:
    """Return the integers that `packed` made bytes of.

    Example:
        >>> unpacked(np.array([241, 7], np.uint8), (3,)).tolist()
        [1, -1, 7]
    """
    both = np.stack([data & 15, data >> 4], -1).reshape(-1)[: int(np.prod(shape))]
    made: np.ndarray[Any, Any] = ((both ^ 8).astype(np.int8) - np.int8(8)).reshape(shape)
    return made
