"""Launches of the opencl runtime put together beforehand, and enqueued one behind the other.

Each launch of a list has a kernel object of its own, so that arguments stay set from run to run;
a run sets those that differ from what is set, straight from the words, and enqueues. A place in
memory is two words: the driver's handle, and an offset in elements.

Source: OpenCL 3.0, clSetKernelArg and clEnqueueNDRangeKernel.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn_cube.runtime.base import Grid

if TYPE_CHECKING:
    from burn_cube.runtime.opencl import OpenClRuntime


class OpenClCall(NamedTuple):
    """One launch.

    Attributes:
        function: the program.
        words: its arguments, eight bytes each, two words for a place in memory.
        parts: cubes.
        grain: nothing: OpenCL cuts launches itself.
        items: bytes of an element by number of the word, for places in memory.
        sizes: bytes that the driver takes of each word.
        about: arguments in words, if the kernel can fault.
        number: by which a fault names the launch, 0 if it cannot.
        inner: there are no further words.
    """

    function: Any
    words: bytes
    parts: Grid
    grain: int
    items: dict[int, int]
    sizes: list[int]
    about: str = ""
    number: int = 0
    inner: bytes = b""


@cache
def _driver() -> Any:
    """Return the functions of the OpenCL library that pyopencl is linked with."""
    import pyopencl as cl

    library = ctypes.CDLL(cl._cl.__file__)
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    library.clSetKernelArg.argtypes = (pointer, number, ctypes.c_size_t, pointer)
    library.clEnqueueNDRangeKernel.argtypes = (
        pointer, pointer, number, pointer, pointer, pointer, number, pointer, pointer,
    )  # fmt: skip
    return library


class OpenClCalls:
    """Launches in order.

    Attributes:
        words: the arguments of all of them.
    """

    def __init__(self, runtime: OpenClRuntime, calls: Sequence[OpenClCall]) -> None:
        self._runtime = runtime
        self.words = np.frombuffer(bytearray(b"".join(c.words for c in calls)), np.int64)
        self._set = self.words.copy()
        # Buffers were given back since: a handle may be of another one than the one that was set.
        self._released = -1
        self._items = np.zeros(len(self.words), np.int64)
        self._kernels = [call.function.copied() for call in calls]  # live as long as we do
        # What the driver is given for each word, and for each launch.
        self._arguments: list[tuple[int, int, int, int]] = []
        self._starts: list[int] = []
        self._launches: list[tuple[int, int, int]] = []
        self._sizes: list[Any] = []
        first: int = self.words.ctypes.data
        for call, kernel in zip(calls, self._kernels, strict=True):
            at = len(self._arguments)
            self._starts.append(at)
            for word, item in call.items.items():
                self._items[at + word + 1] = item
            self._arguments += [
                (kernel.int_ptr, k, size, first + 8 * (at + k)) for k, size in enumerate(call.sizes)
            ]
            local = call.function.kernel.cube_dim
            sizes = (ctypes.c_size_t * 6)(
                *(n * m for n, m in zip(call.parts, local, strict=True)), *local
            )
            self._sizes.append(sizes)
            place = ctypes.addressof(sizes)
            self._launches.append(
                (kernel.int_ptr, place, place + 3 * ctypes.sizeof(ctypes.c_size_t))
            )
        self._calls = [(c.function, c.parts) for c in calls]
        self._faulting = [(c.number, c.function.source, c.about) for c in calls if c.number]
        self._places: tuple[list[int], list[int]] | None = None

    def __len__(self) -> int:
        return len(self._launches)

    def locate(self, words: Any, rows: Any, deltas: Any, arrays: Sequence[Any]) -> None:
        """Write handles and offsets into words.

        Args:
            words: numbers of the words that are handles; an offset follows each.
            rows: the array, by its number, that each lies in.
            deltas: bytes from there.
            arrays: this run's memory.
        """
        places = ([a.storage.handle.int_ptr for a in arrays], [a.offset for a in arrays])
        if places != self._places:
            handles, offsets = (np.array(p, np.int64) for p in places)
            self.words[words] = handles[rows]
            self.words[words + 1] = (offsets[rows] + deltas) // self._items[words + 1]
            self._places = places

    def blank(self, words: Any, at: Any) -> None:
        """Take what depends on the place of memory out of a copy of the words."""
        words[at] = words[at + 1] = 0

    def run(self) -> None:
        """Put the launches into the queue; returns at once."""
        runtime = self._runtime
        runtime.alive()
        driver = _driver()
        set_argument, enqueue = driver.clSetKernelArg, driver.clEnqueueNDRangeKernel
        with runtime.lock:
            words, arguments = self.words, self._arguments
            changed: Sequence[int] = range(len(arguments))
            if self._released == runtime.released:
                changed = np.flatnonzero(words != self._set).tolist()
            for k in changed:
                if set_argument(*arguments[k]):
                    self._released = -1
                    program, cubes = self._calls[bisect_right(self._starts, k) - 1]
                    raise program.refused(cubes, f"argument {arguments[k][1]}, refused,")
            np.copyto(self._set, words)
            self._released = runtime.released
            for fault in self._faulting:
                runtime.remember(*fault)
            queue = runtime.queue.int_ptr
            for k, (kernel, sizes, local) in enumerate(self._launches):
                status = enqueue(queue, kernel, 3, None, sizes, local, 0, None, None)
                if status:
                    program, cubes = self._calls[k]
                    raise program.refused(cubes, runtime.cl.status_code.to_string(status))
