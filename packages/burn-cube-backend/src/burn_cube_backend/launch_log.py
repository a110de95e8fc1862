"""What a run of a plan does on a device with addresses, written down to be done again.

Kernels stay as they are: they choose and launch, and the engine tells the log. A pointer in the
words of a launch belongs to an input of the plan, to memory taken in the run, or to memory that
stays (tables, say); only the last is kept as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from burn_cube import DeviceArray, Kernel
from burn_cube.spi import CudaCall, NativeCall, OpenClCall, Over, overlays, read, walk, written
from burn_cube_backend.late import Late
from burn_cube_backend.memory_plan import Span, Wish
from burn_cube_backend.packs import Arrays, Make, Packing
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

Call = NativeCall | CudaCall | OpenClCall
# What a base of pointers is: input, memory of the run or packed form, and its number.
Base = tuple[str, int]


# What a launch does with memory.
READS, WRITES = 1, 2


class Pointer(NamedTuple):
    """A word that is an address: `base` plus `delta` bytes; of which launch, and what for."""

    word: int
    base: Base
    delta: int
    call: int = 0
    mode: int = READS | WRITES


class LateWord(NamedTuple):
    """A word that is a late number of a dtype."""

    word: int
    dtype: DType
    number: Any
    call: int = 0


class LaunchLog:
    """Launches of one thread, from the making of the log on.

    Attributes:
        calls: the launches; `starts` has the first word of each, `words` counts them.
        again: which launches may be made again: cheap ones that only write what they do not read.
        pointers, numbers: what to write into their words before they run again.
        blocks: memory taken.
        last: the last launch that touches an input, by its number.
        wishes: what a launch may write over what it reads.
        kept: owners of memory that stays where it is.
        fixed: the launches that write to such memory.
        guards: what native code wants to be entered around it.
        broken: why the run cannot be done again, None while it can.
        watches: indices were checked on the device.
        within: plans that ran as part of it.
        packings: which launches pack inputs.
    """

    def __init__(self, inputs: Sequence[CubeTensor]) -> None:
        self.thread = threading.get_ident()
        self.calls: list[Call] = []
        self.pointers: list[Pointer] = []
        self.numbers: list[LateWord] = []
        self.blocks: list[Span] = []
        self.last: dict[int, int] = {}
        self.wishes: list[Wish] = []
        self.kept: list[Any] = []
        self.fixed: list[int] = []
        self.guards: list[AbstractContextManager[Any]] = []
        self.broken: str | None = None
        self.watches = False
        self.within: list[Any] = []
        self.packings: list[Packing] = []
        self.words = 0
        self.starts: list[int] = []
        self.again: list[bool] = []
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
        self.blocks.append(Span(array.storage.bytes))
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

    def packed(self, engine: Any, x: CubeTensor, make: Make, args: tuple[Any, ...]) -> Arrays:
        """Pack a tensor, and note the launches that do if it is a window on an input."""
        first = len(self.calls)
        made = make(engine, x, *args)
        found = None if x.buf is None else self._inputs.get(id(x.buf.storage))
        if found is not None and found[1] is x.buf:
            window = (x.shape, x.strides, x.dtype, x.offset)
            blocks = tuple(self._block_of[a.storage] for a in made)
            calls = range(first, len(self.calls))
            self.packings.append(Packing(found[0], make, args, window, calls, blocks))
        return made

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
        kernel = program.kernel
        at = self.words
        now = self.add(program.prepared(cubes, plain), again=_cheap(kernel))
        self._wished(kernel, cubes, args)
        modes = _modes(kernel)
        for word, arg, dtype, mode in zip(program.places, args, program.dtypes, modes, strict=True):
            if isinstance(arg, Late):
                self.numbers.append(LateWord(at + word, dtype, arg, now))
            elif isinstance(arg, DeviceArray):
                base = self.base_of(arg)
                if base is None:
                    self.kept.append(arg)
                    # What notes faults may be written by several at once.
                    if mode & WRITES and arg.storage.keep is None:
                        self.fixed.append(now)
                else:
                    self.point(at + word, base, arg.pointer - self.start_of(base, arg), mode)

    def _wished(self, kernel: Kernel, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Note which results of a launch may lie over what it reads."""
        found = _overlays(kernel)
        if not found:
            return
        bases = [self.base_of(a) if a.__class__ is DeviceArray else None for a in args]
        allowed = {(o.out, o.x) for o in found if _sure(o, args) and o.holds(args, cubes)}
        for out, x in sorted(allowed):
            to, given = bases[out], bases[x]
            if to is None or given is None or to[0] != "block":
                continue
            # Whatever else of the same memory the launch touches must be as harmless.
            same = [k for k, base in enumerate(bases) if base == given]
            whole = args[out].offset == 0 == args[x].offset
            if whole and bases.count(to) == 1 and all((out, k) in allowed for k in same):
                number = given[1] if given[0] == "block" else -1 - given[1]
                self.wishes.append(Wish(len(self.calls) - 1, to[1], number))

    def walked(self, out: DeviceArray, x: DeviceArray, launches: int) -> None:
        """Note that the last so many launches may write one block over another: see `Wish`."""
        to, given = self.base_of(out), self.base_of(x)
        if to is None or given is None or not to[0] == given[0] == "block":
            return
        if out.offset == 0 == x.offset:
            first = len(self.calls) - launches
            self.wishes.append(Wish(first, to[1], given[1], launches - 1))

    def native(
        self, call: Call, guard: AbstractContextManager[Any] | None, keep: Any,
        writes: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Note native code that ran; what in its words is an address of the run is found out.

        Args:
            call: it.
            guard: what it wants to be entered around it, if anything.
            keep: what its words point to beside memory of the run.
            writes: the words whose memory alone it writes, and does not read before; None if
                unknown.
        """
        at = self.words
        self.add(call)
        if guard is not None and guard not in self.guards:
            self.guards.append(guard)
        self.kept.append(keep)
        for k, word in enumerate(np.frombuffer(call.words + call.inner, np.int64).tolist()):
            # Later memory comes first: what was freed before it may have had the same place.
            for start, size, base, origin in reversed(self._ranges):
                if start <= word < start + size:
                    mode = READS | WRITES
                    if writes is not None:
                        mode = WRITES if k in writes else READS
                    self.point(at + k, base, word - origin, mode)
                    break

    def empty(self) -> LaunchLog:
        """Return a log without launches that is otherwise as this one."""
        made = LaunchLog(())
        made.kept, made.guards, made.watches = self.kept, self.guards, self.watches
        made.within, made.broken = self.within, self.broken
        return made

    def add(self, call: Call, again: bool = False) -> int:
        """Note a launch; return its number."""
        self.starts.append(self.words)
        self.calls.append(call)
        self.again.append(again)
        self.words += (len(call.words) + len(call.inner)) // 8
        return len(self.calls) - 1

    def point(self, word: int, base: Base, delta: int, mode: int = READS | WRITES) -> None:
        """Note that a word of the last launch is an address."""
        self.pointers.append(Pointer(word, base, delta, len(self.calls) - 1, mode))
        now = len(self.calls) - 1
        if base[0] == "block":
            self.blocks[base[1]].touched(now)
        elif base[0] == "input":
            self.last[base[1]] = now


def _sure(over: Over, args: Sequence[Any]) -> bool:
    """Return whether the numbers that a condition asks for are the same in every run."""
    asked = [*over.zeros, *(k for pair in over.equals for k in pair)]
    return not any(isinstance(args[k], Late) for k in asked)


@lru_cache(4096)
def _overlays(kernel: Kernel) -> list[Over]:
    return overlays(kernel)


@lru_cache(4096)
def _modes(kernel: Kernel) -> list[int]:
    """Return what a kernel does with each parameter."""
    reads, writes = read(kernel), written(kernel)
    return [(READS if p in reads else 0) | (WRITES if p in writes else 0) for p in kernel.params]


# Kernels whose loops walk what they read a few times, and no more.
_WALKS = ("rows_", "columns_", "copy", "layer_norm", "rms_norm", "softmax", "log_softmax")


@lru_cache(4096)
def _cheap(kernel: Kernel) -> bool:
    """Return whether a launch costs little more than its memory, and can be made again."""
    names = {op.name for op in walk(kernel.body)}
    if names & {"atomic", "atomic_cas", "print"} or read(kernel) & written(kernel):
        return False
    return not names & {"for", "while"} or kernel.name.startswith(_WALKS)
