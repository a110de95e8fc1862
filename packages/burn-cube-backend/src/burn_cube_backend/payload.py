"""The payload of a tensor: a window on device memory, or a number that only the host knows yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube import DeviceArray
from burn_cube_backend.packs import Packs
from burn_std import DType

Ints = tuple[int, ...]


class CubeTensor:
    """Elements of device memory at `offset + sum(index * stride)`.

    Attributes:
        buf: the whole memory as a flat array of the dtype; None while `value` alone is known.
        offset: place of the first element, in elements.
        shape: extents.
        strides: distances in elements; 0 repeats, negative runs backwards.
        dtype: element type.
        value: the number of a rank-0 tensor that was made from one, else None.
        layout: number of what a launch depends on but for the address, 0 until somebody asks.
        packed: forms that kernels made of the elements to read them again, see `packs`.
    """

    __slots__ = ("buf", "dtype", "layout", "offset", "packed", "shape", "strides", "value")

    def __init__(
        self, buf: DeviceArray | None, shape: Ints, strides: Ints, dtype: DType, offset: int = 0
    ) -> None:
        self.buf = buf
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.value: Any = None
        self.layout = 0
        self.packed: Packs | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def view(self, shape: Ints, strides: Ints, offset: int | None = None) -> CubeTensor:
        """Return another window on the same memory."""
        at = self.offset if offset is None else offset
        return CubeTensor(self.buf, shape, strides, self.dtype, at)

    def on(self, buf: DeviceArray | None) -> CubeTensor:
        """Return the same window on other memory."""
        made = CubeTensor(buf, self.shape, self.strides, self.dtype, self.offset)
        made.layout = self.layout
        return made

    def __repr__(self) -> str:
        return f"CubeTensor({self.dtype.name}{list(self.shape)}, strides {list(self.strides)})"


class LateTensor(CubeTensor):
    """A row-major tensor that is computed, by a function, when somebody reads it.

    For results that are seldom wanted and large. What it is computed from lives as long.
    """

    __slots__ = ("_made", "_make")

    def __init__(
        self, shape: Ints, strides: Ints, dtype: DType, make: Callable[[], CubeTensor]
    ) -> None:
        self._made: DeviceArray | None = None
        self._make: Callable[[], CubeTensor] | None = make
        super().__init__(None, shape, strides, dtype)

    @property
    def is_pending(self) -> bool:
        """Whether nobody has read it, so that it has no memory yet."""
        return self._made is None

    @property
    def buf(self) -> DeviceArray | None:
        """The memory; computed at the first look."""
        if self._made is None and self._make is not None:
            made, self._make = self._make(), None
            buf = made.buf
            # The offset of this tensor was seen before.
            self._made = buf.view((made.size,), None, made.offset) if buf is not None else None
        return self._made

    @buf.setter
    def buf(self, made: DeviceArray | None) -> None:
        self._made = made


def number(value: Any, dtype: DType) -> CubeTensor:
    """Return a rank-0 tensor that has no memory yet."""
    made = CubeTensor(None, (), (), dtype)
    made.value = value
    return made
