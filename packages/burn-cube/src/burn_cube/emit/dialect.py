"""What differs between the languages of the C family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from burn_cube.errors import KernelError
from burn_cube.ir import Kernel, Op
from burn_cube.types import Tile
from burn_std.dtypes import DType

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter


def lacking(language: str, op: Op, what: str | None = None) -> KernelError:
    """Return the error of an operation for which a language has no words, at the user's line.

    Args:
        language: name of the dialect.
        op: the operation.
        what: the operation in words, if its name says too little.
    """
    return KernelError(
        op.name, f"{language} has no {what or op.name}", where=op.where,
        remedy="Ask the device first: client.properties.",
    )  # fmt: skip


class Dialect(ABC):
    """One language: its words for types, positions, barriers, memory and math.

    Attributes:
        name: `opencl` or `cuda`.
        wide: whether the device computes in float64.
        cubes_at_once: the device runs the units of a cube in one loop, which is filled with vectors
            where no unit tests for itself.
    """

    name: str
    wide: bool = True
    cubes_at_once: bool = False

    @abstractmethod
    def check(self, kernel: Kernel) -> None:
        """Refuse a kernel that the device cannot run.

        Raises:
            LaunchError: names what is missing.
        """

    @abstractmethod
    def prelude(self, kernel: Kernel) -> str:
        """Return the types and macros that the helpers build on."""

    @abstractmethod
    def kernel(self, entry: str, kernel: Kernel, params: str) -> str:
        """Return the signature of the kernel."""

    @abstractmethod
    def pointer(self, space: str, dtype: DType, name: str, constant: bool) -> str:
        """Return the declaration of a pointer to elements."""

    @abstractmethod
    def array(self, space: str, dtype: DType, name: str, size: int) -> str:
        """Return the declaration of shared or local memory."""

    @abstractmethod
    def literal(self, bits: int, dtype: DType) -> str:
        """Return a float by its bits."""

    @abstractmethod
    def integer(self, value: int, dtype: DType) -> str:
        """Return an integer constant."""

    @abstractmethod
    def bits(self, text: str, old: DType, new: DType) -> str:
        """Return a value with its bits read as another type."""

    @abstractmethod
    def half(self, old: DType, new: DType) -> str:
        """Return the function `<new>_from_<old>` between a half and float32."""

    @abstractmethod
    def math(self, name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
        """Return a call of the math table for float32 or float64."""

    @abstractmethod
    def intrinsic(self, name: str, dtype: DType, args: tuple[str, ...]) -> str:
        """Return `popcount`, `leading_zeros` or the 64-bit `mulhi`."""

    @abstractmethod
    def position(self, what: str, axis: int) -> str:
        """Return the number of a unit or cube, or the count of cubes, along an axis."""

    @abstractmethod
    def barrier(self, scope: str, kernel: Kernel) -> str:
        """Return a barrier of the cube or the plane."""

    @abstractmethod
    def plane_head(self, kernel: Kernel) -> list[str]:
        """Return what plane operations need at the head of the kernel."""

    @abstractmethod
    def plane(self, kind: str, dtype: DType, args: list[str], writer: MemoryWriter) -> str:
        """Return an operation over a plane."""

    @abstractmethod
    def load_vector(
        self, place: str, dtype: DType, width: int, aligned: bool, space: str, writer: MemoryWriter
    ) -> list[str]:
        """Write a read of neighbours; return the lanes."""

    @abstractmethod
    def store_vector(
        self, place: str, dtype: DType, lanes: list[str], aligned: bool, space: str,
        writer: MemoryWriter,
    ) -> None:  # fmt: skip
        """Write a write of neighbours."""

    @abstractmethod
    def atomic(
        self, kind: str, dtype: DType, space: str, place: str, args: list[str],
        writer: MemoryWriter,
    ) -> str:  # fmt: skip
        """Return an atomic; kind `cas` has two arguments."""

    @abstractmethod
    def claim(self, record: str, site: int) -> str:
        """Return the test by which the first fault takes the record."""

    @abstractmethod
    def format(self, dtype: DType) -> str:
        """Return the format of printf."""

    def asks(self, kernel: Kernel) -> bool:
        """Return whether shared memory is asked for at the launch instead of declared."""
        return False

    def grain(self, kernel: Kernel) -> int:
        """Return the bytes at multiples of which arrays begin in what the launch asks for."""
        return 16

    def dynamic(self, dtype: DType, name: str, offset: int) -> list[str]:
        """Return the declaration of shared memory at an offset of what the launch asks for."""
        raise KernelError(name, f"{self.name} declares all shared memory itself")

    def takes_tiles(self, kernel: Kernel) -> bool:
        """Return whether the device multiplies the kernel's tiles itself."""
        return False

    def tile_variables(self, type_: Tile) -> tuple[str, int]:
        """Return the C type and the number of variables that hold a tile."""
        raise KernelError("tile", f"{self.name} keeps tiles in memory", got=type_.short)

    def tile(self, op: Op, writer: MemoryWriter) -> None:
        """Write an operation on matrix tiles."""
        raise lacking(self.name, op)

    def takes_copies(self, kernel: Kernel) -> bool:
        """Return whether the device makes the kernel's asynchronous copies behind."""
        return False

    def copy(self, op: Op, writer: MemoryWriter) -> None:
        """Write an asynchronous copy, the end of a group, or a wait."""
        raise lacking(self.name, op)

    def takes_math(self) -> bool:
        """Return whether the device's math functions are fast and exact enough."""
        return True

    def ctype(self, dtype: DType) -> str:
        """Return the type of a variable.

        Halves are held as their bits.
        """
        if dtype.is_bool:
            return "bool"
        if dtype.is_float and dtype.bits == 16:
            return "u16"
        return dtype.short

    def memory_type(self, dtype: DType) -> str:
        """Return the type of an element in memory."""
        return "u8" if dtype.is_bool else self.ctype(dtype)
