"""Launches of the cpu runtime put together beforehand, and made by one native call.

What a launch needs stands in two arrays: a row (function, words, parts, grain) per launch, and all
words behind one another. Whoever runs the list again writes other addresses and numbers into the
words first.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn_cube.builder import wrap
from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.runtime.native_builtins import HEADER, Builtin, python_addresses
from burn_cube.runtime.words import FORMATS, within
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

# The same as a builtin of Python, since a call through ctypes takes longer than small launches.
# Its `self` is `_BLOCK`, its arguments are base addresses, which it writes into the words first.
BUILTIN = """
define ptr @burn_calls_builtin(ptr %self, ptr %args, i64 %given) {{
entry:
  %block = getelementptr i8, ptr %self, i64 {header}
{loads}
  %bases = alloca i64, i64 %given
  br label %read
read:
  %r = phi i64 [0, %entry], [%r1, %one]
  %unread = icmp slt i64 %r, %given
  br i1 %unread, label %one, label %patch
one:
  %argp = getelementptr ptr, ptr %args, i64 %r
  %arg = load ptr, ptr %argp
  %base = call i64 %integer(ptr %arg)
  %basep = getelementptr i64, ptr %bases, i64 %r
  store i64 %base, ptr %basep
  %r1 = add i64 %r, 1
  br label %read
patch:
  %p = phi i64 [0, %read], [%p1, %word]
  %left = icmp slt i64 %p, %patched
  br i1 %left, label %word, label %go
word:
  %at = mul i64 %p, 3
  %wherep = getelementptr i64, ptr %patches, i64 %at
  %rowp = getelementptr i64, ptr %wherep, i64 1
  %deltap = getelementptr i64, ptr %wherep, i64 2
  %where = load i64, ptr %wherep
  %row = load i64, ptr %rowp
  %delta = load i64, ptr %deltap
  %frombase = getelementptr i64, ptr %bases, i64 %row
  %from = load i64, ptr %frombase
  %address = add i64 %from, %delta
  %target = getelementptr i64, ptr %words, i64 %where
  store i64 %address, ptr %target
  %p1 = add i64 %p, 1
  br label %patch
go:
  %state = call ptr %save()
  %done = call i64 @burn_calls_run(ptr %table, i64 %count, ptr %fault, ptr %pool)
  call void %restore(ptr %state)
  %out = call ptr %number(i64 %done)
  ret ptr %out
}}
"""
_BLOCK = (
    "table", "count", "fault", "pool", "words", "patches", "patched", "integer", "number", "save",
    "restore",
)  # fmt: skip
_PYTHON = ("PyLong_AsLongLong", "PyLong_FromLongLong", "PyEval_SaveThread", "PyEval_RestoreThread")


def text() -> str:
    """Return the module with the function that makes a list of launches, and the builtin."""
    return TEXT + builtin_text()


def builtin_text() -> str:
    """Return the builtin over a function `burn_calls_run`."""
    loads = []
    for k, name in enumerate(_BLOCK):
        kind = "i64" if name in ("count", "patched") else "ptr"
        loads += [
            f"  %{name}p = getelementptr i64, ptr %block, i64 {k}",
            f"  %{name} = load {kind}, ptr %{name}p",
        ]
    return BUILTIN.format(header=HEADER, loads="\n".join(loads))


def block(arguments: Sequence[int], words: Any, patches: Any) -> bytes:
    """Return what the builtin finds in its `self`.

    Args:
        arguments: of `burn_calls_run`.
        words: where addresses are written.
        patches: rows of the word, the base and the bytes from there.
    """
    values = [
        *arguments, words.ctypes.data, patches.ctypes.data, len(patches),
        *python_addresses(*_PYTHON),
    ]  # fmt: skip
    return np.array(values, np.int64).tobytes()  # in the order of `_BLOCK`


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


class Addressed:
    """Launches whose words hold addresses.

    Attributes:
        words: the arguments of all of them.
        guard: what is entered around a native call of `placed`, if anything.
        note: what is called behind it, if anything.
    """

    words: Any
    guard: AbstractContextManager[Any] | None = None
    note: Callable[[], object] | None = None
    _bases: list[int] | None = None

    def locate(self, words: Any, rows: Any, deltas: Any, arrays: Sequence[Any]) -> None:
        """Write addresses into words.

        Args:
            words: numbers of the words.
            rows: the array, by its number, that each lies in.
            deltas: bytes from there.
            arrays: this run's memory.
        """
        bases = [array.pointer for array in arrays]
        if bases != self._bases:
            self.words[words] = np.array(bases, np.int64)[rows] + deltas
            self._bases = bases

    def blank(self, words: Any, at: Any) -> None:
        """Take what depends on the place of memory out of a copy of the words."""
        words[at] = 0


class NativeCalls(Addressed):
    """Launches that one native call makes, in order.

    Attributes:
        words: the arguments of all of them.
    """

    def __init__(self, runtime: CpuRuntime, calls: Sequence[NativeCall]) -> None:
        self._runtime = runtime
        self._calls = [(call.kernel, call.about) for call in calls]
        everything = b"".join(c.words + c.inner for c in calls)
        self.words = np.frombuffer(bytearray(everything), np.int64)
        first: int = self.words.ctypes.data
        self._table = np.empty((len(calls), 4), np.int64)
        at = 0
        for row, call in zip(self._table, calls, strict=True):
            row[:] = call.function, first + at * 8, call.parts, call.grain
            inner = at + len(call.words) // 8
            if call.inner:
                self.words[at + call.inner_at] = first + inner * 8
            at = inner + len(call.inner) // 8
        self._runner = runtime.calls_runner()
        self._arguments = (
            self._table.ctypes.data, len(calls), runtime.fault_address, runtime.pool_address,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._calls)

    def run(self) -> None:
        """Make the launches; a fault ends them and is raised by the next `sync`."""
        reached = self._runner.call(*self._arguments)
        if reached < len(self._calls):
            self.faulted(reached)

    def faulted(self, reached: int) -> None:
        """Note that a launch ended in a fault."""
        self._runtime.note_fault(*self._calls[reached])

    def placed(
        self, words: Sequence[int], rows: Sequence[int], deltas: Sequence[int]
    ) -> Callable[..., int]:
        """Return a builtin that takes base addresses, writes addresses and makes the launches.

        It returns how many launches were made; for less than all, `faulted` wants to know. What it
        reads belongs to this object, which has to live as long; one thread calls it at a time.

        Args:
            words: where addresses stand.
            rows: which base each of them counts from.
            deltas: bytes from there.
        """
        self._patches = np.array([words, rows, deltas], np.int64).T.copy()
        return self._runner.builtin.over(block(self._arguments, self.words, self._patches))


def number_word(dtype: DType) -> tuple[struct.Struct, Callable[[Any], Any]]:
    """Return how a number of a dtype is written into a word: the format, and what it is given."""
    word = struct.Struct("=" + FORMATS[dtype.name])
    if dtype is bfloat16:
        return word, lambda v: int(to_bfloat16(np.array([v], np.float32))[0])
    if dtype.is_float:
        return word, within(dtype)
    if dtype.is_bool:
        return word, bool
    return word, lambda v: wrap(int(v), dtype)


class Runner:
    """The native function that makes a list of launches.

    Attributes:
        call: the function as ctypes calls it; the call lets go of the GIL.
        builtin: the one that writes addresses first, which lets go of it too.
    """

    def __init__(self, jit: Any, image: bytes) -> None:
        address, builtin = jit.link(image, "burn_calls_run", "burn_calls_builtin")
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.call = ctypes.CFUNCTYPE(number, pointer, number, pointer, pointer)(address)
        self.builtin = Builtin("launches", builtin)
