"""Native functions as builtins of Python: a call costs a tenth of one through ctypes.

Such a function finds what it works on in its `self`, a bytes object of words. Functions of Python
stand among them as addresses, since not every build exports them to a linker.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

# The text of a bytes object ends with a zero that its size counts.
HEADER = bytes.__basicsize__ - 1
# How a builtin is called: with an array of arguments, and with names behind it.
FASTCALL, KEYWORDS = 0x80, 0x02


class _Method(ctypes.Structure):
    """What Python knows a builtin by (PyMethodDef)."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


class Builtin:
    """A native function `(self, arguments, their count) -> object`, for any number of selves.

    Args:
        name: what it prints as.
        address: of the function.
        flags: with `KEYWORDS` it takes the names of further arguments too.
    """

    def __init__(self, name: str, address: int, flags: int = FASTCALL) -> None:
        self._method = _Method(name.encode(), address, flags, None)
        # Builtins point to the description, and may outlive us.
        _METHODS.append(self._method)
        self._make = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p
        )(("PyCMethod_New", ctypes.pythonapi))

    def over(self, words: bytes | tuple[Any, ...]) -> Callable[..., Any]:
        """Return the function with some words, or objects, as its `self`."""
        made: Callable[..., Any] = self._make(ctypes.addressof(self._method), words, None, None)
        return made


_METHODS: list[_Method] = []


def python_addresses(*names: str) -> list[int]:
    """Return the addresses of functions of Python."""
    found = [ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p).value for n in names]
    return [address or 0 for address in found]


# Whether dicts and lists hold, in order, the objects of a list. A row is container, kind, count and
# as many addresses.
SAME = f"""
define ptr @burn_same_objects(ptr %self, ptr %args, i64 %given) {{
entry:
  %block = getelementptr i8, ptr %self, i64 {HEADER}
  %dictsizep = getelementptr ptr, ptr %block, i64 0
  %dictsize = load ptr, ptr %dictsizep
  %dictnextp = getelementptr ptr, ptr %block, i64 1
  %dictnext = load ptr, ptr %dictnextp
  %listsizep = getelementptr ptr, ptr %block, i64 2
  %listsize = load ptr, ptr %listsizep
  %listitemp = getelementptr ptr, ptr %block, i64 3
  %listitem = load ptr, ptr %listitemp
  %truthp = getelementptr ptr, ptr %block, i64 4
  %truth = load ptr, ptr %truthp
  %countp = getelementptr i64, ptr %block, i64 5
  %count = load i64, ptr %countp
  %first = getelementptr i64, ptr %block, i64 6
  %key = alloca ptr
  %value = alloca ptr
  %place = alloca i64
  br label %head
head:
  %c = phi i64 [0, %entry], [%c1, %next]
  %row = phi ptr [%first, %entry], [%follows, %next]
  %more = icmp slt i64 %c, %count
  br i1 %more, label %container, label %end
container:
  %object = load ptr, ptr %row
  %kindp = getelementptr i64, ptr %row, i64 1
  %kind = load i64, ptr %kindp
  %np = getelementptr i64, ptr %row, i64 2
  %n = load i64, ptr %np
  %items = getelementptr i64, ptr %row, i64 3
  %isdict = icmp eq i64 %kind, 0
  br i1 %isdict, label %dict, label %list
dict:
  %ds = call i64 %dictsize(ptr %object)
  %dsame = icmp eq i64 %ds, %n
  store i64 0, ptr %place
  br i1 %dsame, label %dictloop, label %end
dictloop:
  %i = phi i64 [0, %dict], [%i1, %dictsame]
  %got = call i32 %dictnext(ptr %object, ptr %place, ptr %key, ptr %value)
  %over = icmp eq i32 %got, 0
  br i1 %over, label %next, label %dictcheck
dictcheck:
  %here = load ptr, ptr %value
  %expectedp = getelementptr ptr, ptr %items, i64 %i
  %expected = load ptr, ptr %expectedp
  %is = icmp eq ptr %here, %expected
  br i1 %is, label %dictsame, label %end
dictsame:
  %i1 = add i64 %i, 1
  br label %dictloop
list:
  %ls = call i64 %listsize(ptr %object)
  %lsame = icmp eq i64 %ls, %n
  br i1 %lsame, label %listloop, label %end
listloop:
  %j = phi i64 [0, %list], [%j1, %listsame]
  %left = icmp slt i64 %j, %n
  br i1 %left, label %listcheck, label %next
listcheck:
  %there = call ptr %listitem(ptr %object, i64 %j)
  %wantedp = getelementptr ptr, ptr %items, i64 %j
  %wanted = load ptr, ptr %wantedp
  %like = icmp eq ptr %there, %wanted
  br i1 %like, label %listsame, label %end
listsame:
  %j1 = add i64 %j, 1
  br label %listloop
next:
  %follows = getelementptr i64, ptr %items, i64 %n
  %c1 = add i64 %c, 1
  br label %head
end:
  %yes = phi i64 [1, %head], [0, %dict], [0, %dictcheck], [0, %list], [0, %listcheck]
  %out = call ptr %truth(i64 %yes)
  ret ptr %out
}}
"""


def same_words(containers: Sequence[dict[Any, Any] | list[Any]]) -> bytes:
    """Return the words of `SAME` for what containers hold now."""
    names = ("PyDict_Size", "PyDict_Next", "PyList_Size", "PyList_GetItem", "PyBool_FromLong")
    words = [*python_addresses(*names), len(containers)]
    for held in containers:
        is_dict = held.__class__ is dict
        objects = [*(held.values() if isinstance(held, dict) else held)]
        words += [id(held), 0 if is_dict else 1, len(objects), *map(id, objects)]
    return struct.pack(f"{len(words)}q", *words)
