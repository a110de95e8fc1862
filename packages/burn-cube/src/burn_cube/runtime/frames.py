"""Python functions as native builtins: written by `frame_text`, compiled, tried out, linked.

A native frame takes and returns what the Python function does. Where it cannot serve it calls that
function. The kind of Python has to be known, and a few frames are tried on objects of their own
before the first is handed out: places of slots, counts of references, and what happens off the
straight path.
"""

from __future__ import annotations

import ctypes
import linecache
import platform
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from sys import getrefcount
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from burn_cube.runtime.cache import digest_of, kernel_cache
from burn_cube.runtime.frame_pieces import C_FUNCTIONS, Layout, Unsupported
from burn_cube.runtime.frame_text import write
from burn_cube.runtime.native_builtins import (
    FASTCALL,
    KEYWORDS,
    SAME,
    Builtin,
    python_addresses,
    same_words,
)

if TYPE_CHECKING:
    from burn_cube.runtime.llvm_jit import Jit

# The C functions and structures were tried on these versions.
KNOWN = ((3, 11), (3, 12), (3, 13), (3, 14))


def refusal() -> str | None:
    """Return why this Python runs no native frames, None if it does."""
    if platform.python_implementation() != "CPython":
        return f"the interpreter is {platform.python_implementation()}"
    if sys.version_info[:2] not in KNOWN:
        return f"Python {platform.python_version()} is not one that is known"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no lock of the interpreter"
    if hasattr(sys, "gettotalrefcount"):
        return "this Python is built for debugging"
    return None


def source_lines(function: FunctionType) -> str:
    """Return the text of a function, without what stands in front of all of its lines."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if code.co_filename.startswith("<") and code.co_firstlineno == 1:
        return "".join(lines)  # generated, and all there is
    block = lines[code.co_firstlineno - 1 : _last_line(code)]
    indent = len(block[0]) - len(block[0].lstrip()) if block else 0
    return "".join(line[indent:] for line in block)


def _last_line(code: CodeType) -> int:
    """Return where a function ends; reading its text to find out takes a hundred times longer."""
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, CodeType)]
    return max([end for _, end, _, _ in code.co_positions() if end is not None] + inner, default=0)


def layout() -> Layout:
    """Return where this Python keeps things."""
    head = object.__basicsize__
    word = ctypes.sizeof(ctypes.c_void_p)
    lasting = sys.version_info >= (3, 12)
    return Layout(word, head, tuple.__basicsize__, head + word, lasting, _slot)


def _slot(descriptor: MemberDescriptorType) -> int:
    """Return the place of a slot: the third word of what its descriptor points to."""
    member = ctypes.c_void_p.from_address(
        id(descriptor) + object.__basicsize__ + 3 * ctypes.sizeof(ctypes.c_void_p)
    ).value
    if not member:
        raise Unsupported("a slot without a description")
    return ctypes.c_ssize_t.from_address(member + 2 * ctypes.sizeof(ctypes.c_void_p)).value


class Frames:
    """Compiles functions; what it made is remembered on disk.

    Args:
        jit: the compiler of this process.

    Attributes:
        serves: this Python can have functions of ours as builtins.
        made: how many were handed out.
        left: why functions stayed what they are, by name.
    """

    def __init__(self, jit: Jit) -> None:
        self._jit = jit
        self._linked: dict[str, Builtin] = {}
        self._same: Builtin | None = None
        self.made = 0
        self.left: dict[str, str] = {}
        self._left: WeakSet[Any] = WeakSet()
        self._why = refusal()
        self.serves = self._why is None
        self._tried = not self.serves
        self._lock = threading.RLock()

    @property
    def refused(self) -> str | None:
        """Why no function is compiled, None where they are; the first to ask waits for a trial."""
        with self._lock:
            if not self._tried:
                self._tried, self._why = True, "a trial was interrupted"
                try:
                    self._layout = layout()
                    addresses = python_addresses(*C_FUNCTIONS)
                    self._imports = dict(zip(C_FUNCTIONS, addresses, strict=True))
                    self._why = tried(self.compiled)
                except Exception as error:  # noqa: BLE001 - whatever it is, nothing is compiled
                    self._why = f"a trial failed: {error!r}"
                self.made = 0
            return self._why

    def frame(self, function: Any, restarts: bool, classes: Sequence[type] = ()) -> Any:
        """Return a function as a builtin, or itself where that is not possible.

        Args:
            function: of plain Python.
            restarts: it may begin again at any place; see `frame_text`.
            classes: those whose slots it uses, beside the ones that it names.
        """
        if self.refused is not None or function.__class__ is not FunctionType:
            return function
        return function if function in self._left else self.compiled(function, restarts, classes)

    def compiled(self, function: Any, restarts: bool, classes: Sequence[type] = ()) -> Any:
        """Return a function as `frame` does, without asking whether a trial went well."""
        try:
            written = write(function, source_lines(function), self._layout, restarts, classes)
        except (Unsupported, SyntaxError, IndexError, ValueError) as why:
            self.left[function.__qualname__] = f"{type(why).__name__}: {why}"
            self._left.add(function)
            return function
        builtin = self._linked.get(written.text)
        if builtin is None:
            image = self._image(written.text)
            (address,) = self._jit.link(image, "burn_frame", **self._imports)
            builtin = Builtin(function.__name__, address, FASTCALL | KEYWORDS)
            self._linked[written.text] = builtin
        self.made += 1
        return builtin.over(written.objects)

    def same_objects(self, containers: Sequence[dict[Any, Any] | list[Any]]) -> Any:
        """Return a builtin that tells whether containers still hold the same objects, in order.

        Args:
            containers: they and what they hold now live as long as the builtin.
        """
        if self._same is None:
            (address,) = self._jit.link(self._image(SAME), "burn_same_objects")
            self._same = Builtin("same_objects", address)
        return self._same.over(same_words(containers))

    def _image(self, text: str) -> bytes:
        key = digest_of("frame", text, self._jit.machine)
        disk = kernel_cache()
        image = disk.get(key)
        if image is None:
            image = self._jit.compile_soon(text)
            disk.put(key, image)
        return image


@cache
def host_frames() -> Frames | None:
    """Return the frames of devices that are no processor, None where no compiler is installed."""
    if find_spec("llvmlite") is None:
        return None
    from burn_cube.runtime.llvm_jit import jit  # needs llvmlite

    return Frames(jit())


# ---- the trial ---------------------------------------------------------------------------------


class _Box:
    __slots__ = ("first", "second")

    first: Any
    second: Any


class _Other:
    __slots__ = ("unlike", "second", "first")  # noqa: RUF023 - in another order, so at other places

    first: Any
    second: Any


def _boxing(mark: Any, slow: Callable[[Any], Any]) -> Any:
    def boxed(x: Any, table: Any, seen: Any) -> Any:
        try:
            if x.first is not mark:
                return slow(x)
            key = x.second
            n = len(seen)
            if n >= 3:
                return slow(x)
            made = _Box()
            made.first = table[key, n]
            made.second = (x, key, n)
            seen.append(made)
        except KeyError:
            return slow(x)
        return made

    return boxed


def _summed(boxes: Any, found: Any) -> Any:
    total = 0
    for box in boxes:
        one, other = box.first, box.second
        if one is None:
            continue
        try:
            total = total + one[other]
        except Exception:  # noqa: BLE001 - so are those that this is for
            found.append(other)
    return total


def tried(frame: Callable[..., Any]) -> str | None:
    """Return what frames do wrong on objects made for it, None if nothing."""
    mark, calls = object(), []

    def slow(x: Any) -> Any:
        calls.append(x)
        return mark

    python = _boxing(mark, slow)
    native = frame(python, True, (_Box, _Other))
    if native is python:
        return "the first function was not compiled"
    box, table, key = _Box(), {("k", 0): "value"}, "k"
    box.first, box.second = mark, key
    other = _Other()
    other.first, other.second = mark, key
    before = (getrefcount(box), getrefcount(mark), getrefcount(table))
    types = getrefcount(_Box)
    for _ in range(100):
        seen: list[Any] = []
        made = native(box, table, seen)
        if made.first != "value" or made.second != (box, "k", 0) or seen != [made]:
            return "a result is wrong"
        if native(box, {}, []) is not mark or native(other, {}, []) is not mark:
            return "a refusal is wrong"
        if native(other, table, []).second != (other, "k", 0):
            return "a slot of another class is wrong"
        try:
            native(1, table, [])
        except AttributeError:
            pass
        else:
            return "an error is missing"
        calls.clear()
        del made, seen
    if (getrefcount(box), getrefcount(mark), getrefcount(table)) != before:
        return "references are lost or kept"
    if getrefcount(_Box) != types:
        return "references to a class are lost or kept"
    summed = frame(_summed, False, (_Box,))
    boxes = []
    for first, second in ((None, 0), ((1, 2), 1), ((1, 2), 7)):
        boxes.append(b := _Box())
        b.first, b.second = first, second
    found: list[Any] = []
    if summed(boxes, found) != 2 or found != [7]:
        return "a loop is wrong"
    return None
