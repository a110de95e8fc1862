"""Types of values and memory in the kernel IR.

A value is a scalar (a `DType` of burn_std) or a `Vector` of 2, 4, 8 or 16 scalars. Memory is a
`Memory`: an address space and an element type, which may itself be a vector.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from burn_std.dtypes import DType, bool_

WIDTHS: Final = (2, 4, 8, 16)
Space = Literal["global", "shared", "local"]


class Vector:
    """The type of a vector value; `Vector(float32, 4)` is one object however often it is named.

    Args:
        dtype: type of one lane.
        width: number of lanes: 2, 4, 8 or 16.

    Example:
        >>> from burn_std.dtypes import float32
        >>> Vector(float32, 4) is Vector(float32, 4)
        True
        >>> Vector(float32, 4).itemsize
        16
    """

    __slots__ = ("dtype", "width")
    dtype: DType
    width: int

    def __new__(cls, dtype: DType, width: int) -> Vector:
        """Return the one object of these parameters."""
        return _vector(dtype, width)

    def __getnewargs__(self) -> tuple[DType, int]:
        return (self.dtype, self.width)

    @property
    def itemsize(self) -> int:
        """Bytes of one vector in memory."""
        return self.dtype.itemsize * self.width

    @property
    def short(self) -> str:
        """Name in printed IR, `f32x4`."""
        return f"{self.dtype.short}x{self.width}"

    def __repr__(self) -> str:
        return f"Vector({self.dtype.name}, {self.width})"


@cache
def _vector(dtype: DType, width: int) -> Vector:
    if width not in WIDTHS:
        raise ValueError(f"Vector: the width is one of {WIDTHS}; got {width}")
    if dtype.is_quantized:
        raise ValueError(f"Vector: lanes are plain scalars; got {dtype!r}")
    made = object.__new__(Vector)
    made.dtype = dtype
    made.width = width
    return made


Type = DType | Vector


class Memory:
    """The type of a piece of memory: where it is and what one element is."""

    __slots__ = ("elem", "space")

    def __init__(self, space: Space, elem: Type) -> None:
        self.space = space
        self.elem = elem

    @property
    def short(self) -> str:
        """Name in printed IR, `global<f32>`."""
        return f"{self.space}<{self.elem.short}>"

    def __repr__(self) -> str:
        return self.short


class Tile:
    """The type of a matrix tile that a plane holds together.

    Attributes:
        use: `a` ([m, k]), `b` ([k, n]) or `acc` ([m, n]).
        dtype: element type.
        rows: rows of the tile.
        cols: columns of the tile.
    """

    __slots__ = ("cols", "dtype", "rows", "use")
    use: str
    dtype: DType
    rows: int
    cols: int

    def __new__(cls, use: str, dtype: DType, rows: int, cols: int) -> Tile:
        """Return the one object of these parameters."""
        return _tile(use, dtype, rows, cols)

    def __getnewargs__(self) -> tuple[str, DType, int, int]:
        return (self.use, self.dtype, self.rows, self.cols)

    @property
    def short(self) -> str:
        """Name in printed IR, `tile_a<f16,16,16>`."""
        return f"tile_{self.use}<{self.dtype.short},{self.rows},{self.cols}>"

    def __repr__(self) -> str:
        return self.short


@cache
def _tile(use: str, dtype: DType, rows: int, cols: int) -> Tile:
    made = object.__new__(Tile)
    made.use, made.dtype, made.rows, made.cols = use, dtype, rows, cols
    return made


def scalar_of(type_: Type) -> DType:
    """Return the type of one lane; a scalar is its own lane."""
    return type_.dtype if isinstance(type_, Vector) else type_


def width_of(type_: Type) -> int:
    """Return the number of lanes, 1 for a scalar."""
    return type_.width if isinstance(type_, Vector) else 1


def like(type_: Type, dtype: DType) -> Type:
    """Return the type with the same lanes and another scalar."""
    return Vector(dtype, type_.width) if isinstance(type_, Vector) else dtype


def truth(type_: Type) -> Type:
    """Return the type of a comparison of two such values."""
    return like(type_, bool_)
