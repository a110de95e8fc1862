"""What a run of a plan does on a device with addresses, written down to be done again.

Kernels stay as they are: they choose and launch, and the engine tells the log. A pointer in the
words of a launch belongs to an input of the plan, to memory taken in the run, or to memory that
stays (tables, say); only the last is kept as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from burn_cube import DeviceArray
from burn_cube.spi import CudaCall, NativeCall
from burn_cube_backend.late import Late
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

Call = NativeCall | CudaCall
# What a base of pointers is: input or memory of the run, and its number.
Base = tuple[str, int]


class Pointer(NamedTuple):
    """A word that is an address: `base` plus `delta` bytes."""

    word: int
    base: Base
    delta: int


class LateWord(NamedTuple):
    """A word that is a late number of a dtype."""

    word: int
    dtype: DType
    number: Any


class Block:
    """Memory taken in a run.

    Attributes:
        size: bytes.
        first: the first launch that touches it; `last` the last one. -1 while none does.
    """

    __slots__ = ("first", "last", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.first = self.last = -1


class LaunchLog:
    """Launches of one thread, from the making of the log on.

    Attributes:
        calls: the launches.
        pointers, numbers: what to write into their words before they run again.
        blocks: memory taken.
        kept: owners of memory that stays where it is.
        guards: what native code wants to be entered around it.
        broken: why the run cannot be done again, None while it can.
        watches: indices were checked on the device.
    """

    def __init__(self, inputs: Sequence[CubeTensor]) -> None:
        self.thread = threading.get_ident()
        self.calls: list[Call] = []
        self.pointers: list[Pointer] = []
        self.numbers: list[LateWord] = []
        self.blocks: list[Block] = []
        self.kept: list[Any] = []
        self.guards: list[AbstractContextManager[Any]] = []
        self.broken: str | None = None
        self.watches = False
        self._words = 0
        self._inputs: dict[int, tuple[int, DeviceArray]] = {}
        # Start and size of memory, what it belongs to, and where offsets into that begin.
        self._ranges: list[tuple[int, int, Base, int]] = []
        self._block_of: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        for k, x in enumerate(inputs):
            if x.buf is not None:
                storage = x.buf.storage
                self._inputs.setdefault(id(storage), (k, x.buf))
                self._ranges.append((storage.address, storage.bytes, ("input", k), x.buf.pointer))

    def taken(self, array: DeviceArray) -> None:
        """Note memory that the run took."""
        number = len(self.blocks)
        self.blocks.append(Block(array.storage.bytes))
        self._block_of[array.storage] = number
        start = array.storage.address
        self._ranges.append((start, array.storage.bytes, ("block", number), start))

    def base_of(self, array: DeviceArray) -> Base | None:
        """Return what an array is part of, None for memory that stays."""
        block = self._block_of.get(array.storage)
        if block is not None:
            return "block", block
        found = self._inputs.get(id(array.storage))
        return None if found is None else ("input", found[0])

    def start_of(self, base: Base, array: DeviceArray) -> int:
        """Return the address from which the bytes of a pointer into `base` are counted."""
        if base[0] == "block":
            return array.storage.address
        return self._inputs[id(array.storage)][1].pointer

    def end(self) -> None:
        """Let go of the inputs and of the memory of the run."""
        self._inputs.clear()
        self._ranges.clear()
        self._block_of.clear()

    def launch(self, program: Any, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Launch a kernel and note it."""
        plain = [a.plain if isinstance(a, Late) else a for a in args]
        program.launch(cubes, plain)
        if program.prints:
            self.broken = "a kernel prints"
        at = self._add(program.prepared(cubes, plain))
        for word, arg, dtype in zip(program.places, args, program.dtypes, strict=True):
            if isinstance(arg, Late):
                self.numbers.append(LateWord(at + word, dtype, arg))
            elif isinstance(arg, DeviceArray):
                base = self.base_of(arg)
                if base is None:
                    self.kept.append(arg)
                else:
                    self._point(at + word, base, arg.pointer - self.start_of(base, arg))

    def native(self, call: Call, guard: AbstractContextManager[Any] | None, keep: Any) -> None:
        """Note native code that ran; what in its words is an address of the run is found out."""
        at = self._add(call)
        if guard is not None and guard not in self.guards:
            self.guards.append(guard)
        self.kept.append(keep)
        for k, word in enumerate(np.frombuffer(call.words + call.inner, np.int64).tolist()):
            # Later memory comes first: what was freed before it may have had the same place.
            for start, size, base, origin in reversed(self._ranges):
                if start <= word < start + size:
                    self._point(at + k, base, word - origin)
                    break

    def _add(self, call: Call) -> int:
        at = self._words
        self.calls.append(call)
        self._words += (len(call.words) + len(call.inner)) // 8
        return at

    def _point(self, word: int, base: Base, delta: int) -> None:
        self.pointers.append(Pointer(word, base, delta))
        if base[0] == "block":
            block, now = self.blocks[base[1]], len(self.calls) - 1
            block.first = now if block.first < 0 else block.first
            block.last = now


def packed_blocks(
    blocks: Sequence[Block], inside: Sequence[bool], align: int
) -> tuple[list[int], int]:
    """Return places of blocks in one piece of memory, and its size.

    Blocks whose launches do not overlap share memory. The largest is placed first, each in the
    lowest gap between those that live while it does.

    Args:
        blocks: with size, first and last launch.
        inside: which of them are placed; the others get 0.
        align: bytes that every place is a multiple of.

    Example:
        >>> a, b = Block(100), Block(100)
        >>> a.first = a.last = 0
        >>> b.first = b.last = 1
        >>> packed_blocks([a, b], [True, True], 64)
        ([0, 0], 128)
    """
    places, end = [0] * len(blocks), 0
    done: list[int] = []
    wanted = [k for k, ok in enumerate(inside) if ok]
    for k in sorted(wanted, key=lambda k: (-blocks[k].size, k)):
        block, at = blocks[k], 0
        size = -(-block.size // align) * align
        together = [
            o for o in done if blocks[o].first <= block.last and block.first <= blocks[o].last
        ]
        for other in sorted(together, key=places.__getitem__):
            if places[other] - at >= size:
                break
            at = max(at, places[other] + -(-blocks[other].size // align) * align)
        places[k] = at
        done.append(k)
        end = max(end, at + size)
    return places, end
