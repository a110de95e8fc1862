"""Packs the arguments of a launch into the row of words that `emit.layout` describes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Any

import numpy as np

from burn_cube.builder import wrap
from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.ir import Kernel
from burn_cube.types import Memory
from burn_std.dtypes import DType, bfloat16

FORMATS = {
    "bool": "?7x", "int8": "b7x", "uint8": "B7x", "int16": "h6x", "uint16": "H6x",
    "int32": "i4x", "uint32": "I4x", "int64": "q", "uint64": "Q", "float16": "e6x",
    "bfloat16": "H6x", "float32": "f4x", "float64": "d",
}  # fmt: skip


# From here on a number rounds to infinity: half a step beyond the largest one.
_BEYOND = {"float16": 65520.0, "float32": 2.0**128 - 2.0**103}


@cache
def within(dtype: DType) -> Callable[[Any], Any]:
    """Return what makes numbers infinite that a float dtype cannot hold, as a cast does.

    Example:
        >>> from burn_std.dtypes import float16
        >>> within(float16)(-1e5), within(float16)(1.5)
        (-inf, 1.5)
    """
    top = _BEYOND.get(dtype.name, inf)

    def held(value: Any) -> Any:
        if -top < value < top or value != value:
            return value
        return inf if value > 0 else -inf

    return held


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
                if param.type.is_int or param.type.is_float:
                    self.scalars[at] = param.type
        self.struct = struct.Struct("=" + "".join(parts) + "qqqq")
        self.pointers = pointers
        self._quick = None if bfloat16 in self.scalars.values() else self._written()

    def _written(self) -> Any:
        """Return a function that packs arguments whose integers fit; a launch is short."""
        names, words = [], []
        for at, rank in enumerate(self.ranks):
            name = f"a{at}"
            names.append(f"{name}, ")
            if rank is None:
                words.append(name)
                continue
            words.append(f"{name}.{'pointer' if self.pointers else 'offset'}")
            words.append(f"{name}.length" + (f" // {-rank}" if rank < 0 else ""))
            if rank > 0:
                words += [f"*{name}.shape", f"*{name}.strides"]
        lines = [
            "def quick(buffer, args, x, y, z, fault):",
            f"    {''.join(names)}= args" if names else "    pass",
            f"    into(buffer, 0, {''.join(f'{w}, ' for w in words)}x, y, z, fault)",
        ]
        scope: dict[str, Any] = {"into": self.struct.pack_into}
        exec("\n".join(lines), scope)  # the names above are all there is in it
        return scope["quick"]

    def pack_into(
        self, buffer: Any, args: Sequence[Any], x: int, y: int, z: int, fault: int
    ) -> None:
        """Write all words into a buffer."""
        if self._quick is not None:
            try:
                self._quick(buffer, args, x, y, z, fault)
            except (struct.error, OverflowError):
                # An integer that wraps, a float beyond its dtype, or a number of another kind.
                self.struct.pack_into(buffer, 0, *self.words(args), x, y, z, fault)
        else:
            self.struct.pack_into(buffer, 0, *self.words(args), x, y, z, fault)

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
        """Wrap integers into their dtype, floats beyond it are infinite; bfloat16 as its bits."""
        place = 0
        for at, rank in enumerate(self.ranks):
            dtype = self.scalars.get(at)
            if dtype is bfloat16:
                words[place] = int(to_bfloat16(np.array([args[at]], np.float32))[0])
            elif dtype is not None and dtype.is_float:
                words[place] = within(dtype)(args[at])
            elif dtype is not None:
                words[place] = wrap(int(args[at]), dtype)
            place += 1 if rank is None else 2 if rank <= 0 else 2 + 2 * rank
        return words
