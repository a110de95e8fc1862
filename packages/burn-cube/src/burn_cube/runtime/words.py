"""Packs the arguments of a launch into the row of words that `emit.layout` describes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_cube.builder import wrap
from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.ir import Kernel
from burn_cube.types import Memory
from burn_std.dtypes import bfloat16

FORMATS = {
    "bool": "?7x", "int8": "b7x", "uint8": "B7x", "int16": "h6x", "uint16": "H6x",
    "int32": "i4x", "uint32": "I4x", "int64": "q", "uint64": "Q", "float16": "e6x",
    "bfloat16": "H6x", "float32": "f4x", "float64": "d",
}  # fmt: skip


class Packer:
    """Packs for one kernel.

    Args:
        kernel: whose arguments are packed.
        pointers: put addresses into the first word of a buffer; else its offset in bytes.
    """

    def __init__(self, kernel: Kernel, pointers: bool) -> None:
        parts = []
        # For each parameter: None for a scalar, the rank, or minus the width of vector elements.
        self.ranks: list[int | None] = []
        self.scalars: dict[int, Any] = {}
        for at, param in enumerate(kernel.params):
            if isinstance(param.type, Memory):
                rank = param.attrs.get("rank") or 0
                width = getattr(param.type.elem, "width", 1)
                self.ranks.append(rank if width == 1 else -width)
                parts.append("qq" + "q" * 2 * rank)
            else:
                self.ranks.append(None)
                parts.append(FORMATS[param.type.name])
                if param.type.is_int or param.type is bfloat16:
                    self.scalars[at] = param.type
        self.struct = struct.Struct("=" + "".join(parts) + "qqqq")
        self.pointers = pointers

    @property
    def places(self) -> list[int]:
        """The first word of each parameter."""
        sizes = [1 if r is None else 2 if r <= 0 else 2 + 2 * r for r in self.ranks]
        return [sum(sizes[:k]) for k in range(len(sizes))]

    def words(self, args: Sequence[Any]) -> list[Any]:
        """Return the values of the parameters' words."""
        out: list[Any] = []
        pointers = self.pointers
        for rank, arg in zip(self.ranks, args, strict=True):
            if rank is None:
                out.append(arg)
            elif rank == 0:
                out += (arg.pointer if pointers else arg.offset, arg.length)
            elif rank < 0:
                out += (arg.pointer if pointers else arg.offset, arg.length // -rank)
            else:
                first = arg.pointer if pointers else arg.offset
                out += (first, arg.length, *arg.shape, *arg.strides)
        return self._convert(out, args) if self.scalars else out

    def _convert(self, words: list[Any], args: Sequence[Any]) -> list[Any]:
        """Wrap integers into their dtype; give bfloat16 as its bits."""
        place = 0
        for at, rank in enumerate(self.ranks):
            dtype = self.scalars.get(at)
            if dtype is bfloat16:
                words[place] = int(to_bfloat16(np.array([args[at]], np.float32))[0])
            elif dtype is not None:
                words[place] = wrap(int(args[at]), dtype)
            place += 1 if rank is None else 2 if rank <= 0 else 2 + 2 * rank
        return words

    def pack(self, cubes: tuple[int, int, int], args: Sequence[Any], fault: int) -> bytes:
        """Return the bytes of all words."""
        return self.struct.pack(*self.words(args), *cubes, fault)
