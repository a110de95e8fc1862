"""Launches of the cpu runtime put together beforehand, and made by one native call.

What a launch needs stands in two arrays: a row (function, words, parts, grain) per launch, and all
words behind one another. Whoever runs the list again writes other addresses and numbers into the
words first.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn_cube.builder import wrap
from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.runtime.words import FORMATS
from burn_std.dtypes import DType, bfloat16

if TYPE_CHECKING:
    from burn_cube.runtime.cpu import CpuRuntime

TEXT = """
define i64 @burn_calls_run(ptr %table, i64 %count, ptr %fault, ptr %pool) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %ran]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %i, 4
  %pf = getelementptr i64, ptr %table, i64 %at
  %pw = getelementptr i64, ptr %pf, i64 1
  %pt = getelementptr i64, ptr %pf, i64 2
  %pg = getelementptr i64, ptr %pf, i64 3
  %f = load ptr, ptr %pf
  %w = load ptr, ptr %pw
  %total = load i64, ptr %pt
  %grain = load i64, ptr %pg
  call void %pool(ptr %f, ptr %w, i64 %total, i64 %grain)
  %fault0 = load i64, ptr %fault
  %bad = icmp ne i64 %fault0, 0
  br i1 %bad, label %done, label %ran
ran:
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 %i
}
"""


class NativeCall(NamedTuple):
    """One launch as the thread pool takes it.

    Attributes:
        function: address of what runs parts `lo` to `hi`.
        words: its arguments.
        parts: how many parts there are.
        grain: parts that a thread takes at a time.
        kernel: what a fault is reported of, None for code that cannot fault.
        about: its arguments in words, for that report.
        inner: further words, whose address is written into the word number `inner_at`.
    """

    function: int
    words: bytes
    parts: int
    grain: int
    kernel: Any = None
    about: str = ""
    inner: bytes = b""
    inner_at: int = -1


class NativeCalls:
    """Launches that one native call makes, in order.

    Attributes:
        words: the arguments of all of them.
        inner_words: the words that are addresses of others.
    """

    def __init__(self, runtime: CpuRuntime, calls: Sequence[NativeCall]) -> None:
        self._runtime = runtime
        self._calls = [(call.kernel, call.about) for call in calls]
        everything = b"".join(c.words + c.inner for c in calls)
        self.words = np.frombuffer(bytearray(everything), np.int64)
        self.inner_words: list[int] = []
        first: int = self.words.ctypes.data
        self._table = np.empty((len(calls), 4), np.int64)
        at = 0
        for row, call in zip(self._table, calls, strict=True):
            row[:] = call.function, first + at * 8, call.parts, call.grain
            inner = at + len(call.words) // 8
            if call.inner:
                self.words[at + call.inner_at] = first + inner * 8
                self.inner_words.append(at + call.inner_at)
            at = inner + len(call.inner) // 8
        self._run = runtime.calls_runner()
        self._arguments = (
            self._table.ctypes.data, len(calls), runtime.fault_address, runtime.pool_address,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._calls)

    def run(self) -> None:
        """Make the launches; a fault ends them and is raised by the next `sync`."""
        reached = self._run(*self._arguments)
        if reached < len(self._calls):
            self._runtime.note_fault(*self._calls[reached])


def number_word(dtype: DType) -> tuple[struct.Struct, Callable[[Any], Any]]:
    """Return how a number of a dtype is written into a word: the format, and what it is given."""
    word = struct.Struct("=" + FORMATS[dtype.name])
    if dtype is bfloat16:
        return word, lambda v: int(to_bfloat16(np.array([v], np.float32))[0])
    if dtype.is_float:
        return word, float
    if dtype.is_bool:
        return word, bool
    return word, lambda v: wrap(int(v), dtype)


def runner(jit: Any, image: bytes) -> Any:
    """Return the native function as Python calls it; the call lets go of the GIL."""
    (address,) = jit.link(image, "burn_calls_run")
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return ctypes.CFUNCTYPE(number, pointer, number, pointer, pointer)(address)
