"""The kernel IR: structured, typed, small.

A kernel is a list of parameters and a region. A region is a list of operations; an operation has
at most one result and is itself the name of that result. Control is structured: `if`, `for`,
`while` and `block` own regions; `break`, `continue` and `leave` jump out of them. Mutable locals
are `slot`s, read by `get` and written by `set`; every other value is assigned once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burn_cube.errors import Where
from burn_cube.types import Memory, Tile, Type
from burn_std.dtypes import DType, int64


class Op:
    """One operation and its result.

    Attributes:
        name: what it does.
        type: type of the result; a `Memory` for buffers and arrays, None without result.
        args: operands.
        attrs: what is fixed when the kernel is made.
        regions: bodies of a control operation.
        where: place in the user's source, or None.
    """

    __slots__ = ("args", "attrs", "name", "regions", "type", "where")

    def __init__(
        self,
        name: str,
        type_: Type | Memory | Tile | None,
        args: tuple[Op, ...] = (),
        attrs: dict[str, Any] | None = None,
        regions: tuple[Region, ...] = (),
        where: Where | None = None,
    ) -> None:
        self.name = name
        self.type: Any = type_
        self.args = args
        self.attrs = attrs if attrs is not None else {}
        self.regions = regions
        self.where = where

    def __repr__(self) -> str:
        kind = f": {self.type.short}" if self.type is not None else ""
        return f"<{self.name}{kind}>"


class Region:
    """A list of operations with one entry and, jumps aside, one end."""

    __slots__ = ("ops",)

    def __init__(self, ops: list[Op] | None = None) -> None:
        self.ops: list[Op] = ops if ops is not None else []

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)


class Kernel:
    """A kernel as the emitters take it.

    Attributes:
        name: an identifier of C.
        params: `param` operations in the order of the launch arguments; their type is a
            `Memory` for a buffer, a scalar else.
        body: the operations; a `block` around an early return stands in it like any other.
        cube_dim: units of a cube along x, y and z.
        plane_dim: units of a plane.
        index: dtype of positions, lengths, shapes and strides.
        bounds: `checked`, `validated` or `unchecked`.
        fast_math: whether the kernel gave up the rules for inf and NaN.

    Example:
        >>> from burn_cube import Builder
        >>> from burn_std.dtypes import float32
        >>> b = Builder("twice", cube_dim=64)
        >>> x = b.buffer("x", float32)
        >>> i = b.special("absolute_pos")
        >>> with b.if_(b.op("lt", i, b.length(x))):
        ...     b.store(x, i, b.op("mul", b.load(x, i), b.const(2.0, float32)))
        >>> print(b.finish())
        kernel twice(%x: global<f32>) cube 64x1x1 plane 32 index i64 bounds checked
          %0 = special absolute_pos : i64
          %1 = length %x : i64
          %2 = lt %0, %1 : bool
          if %2
            %3 = load %x, %0 : f32
            %4 = const 2.0 : f32
            %5 = mul %3, %4 : f32
            store %x, %0, %5
    """

    __slots__ = (
        "body", "bounds", "cube_dim", "fast_math", "index", "name", "params", "plane_dim",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        params: list[Op],
        body: Region,
        cube_dim: tuple[int, int, int],
        plane_dim: int = 32,
        index: DType = int64,
        bounds: str = "checked",
        fast_math: bool = False,
    ) -> None:
        self.name = name
        self.params = params
        self.body = body
        self.cube_dim = cube_dim
        self.plane_dim = plane_dim
        self.index = index
        self.bounds = bounds
        self.fast_math = fast_math

    @property
    def cube_size(self) -> int:
        """Units of a cube."""
        x, y, z = self.cube_dim
        return x * y * z

    @property
    def buffers(self) -> list[Op]:
        """The parameters that are memory."""
        return [p for p in self.params if isinstance(p.type, Memory)]

    def __str__(self) -> str:
        from burn_cube.printer import text_of

        return text_of(self)


def walk(region: Region) -> Iterator[Op]:
    """Yield every operation of a region and of the regions inside, in program order.

    Example:
        >>> list(walk(Region()))
        []
    """
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


def written(kernel: Kernel) -> set[Op]:
    """Return the buffers that the kernel writes."""
    names = {"store", "atomic", "atomic_cas", "tile_store"}
    return {op.args[0] for op in walk(kernel.body) if op.name in names} & set(kernel.buffers)


def read(kernel: Kernel) -> set[Op]:
    """Return the buffers that the kernel reads, atomics included."""
    at = {"load": 0, "atomic": 0, "atomic_cas": 0, "tile_load": 0, "async_copy": 2}
    found = {op.args[at[op.name]] for op in walk(kernel.body) if op.name in at}
    return found & set(kernel.buffers)
