"""What the modules of a captured step hold beside parameters, and whether it is as it was.

Python that a replay leaves out could have read any of it: settings, nested containers, attributes
of plain objects, arrays. Dicts and lists are compared by the backend, all at once; what else can
change is looked at one by one, so that modules without such things cost nothing more. What can
change without being seen to is refused.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from numbers import Number
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

from burn_core.tree import REPARAMETERIZED, is_module
from burn_dispatch import Device
from burn_std import CaptureError, DType
from burn_tensor import Tensor

# Values that say by themselves whether they changed.
VALUES = (type(None), str, bytes, Number, Enum, DType, Device)
# What else is no data of a step, or cannot change; by the package of its class, since to import
# them would cost more than they are worth.
_FIXED = (type, FunctionType, ModuleType, CodeType, range, slice, property, type(...))
_NO_DATA = {
    "_contextvars", "_io", "_thread", "_weakref", "contextvars", "datetime", "inspect", "io",
    "logging", "pathlib", "re", "threading", "typing", "uuid", "weakref", "zoneinfo",
}  # fmt: skip
# Whose state no attribute shows.
_HIDDEN = {"itertools", "random", "_random"}
# Bytes of an array that are compared at every call, and objects that are looked through.
COMPARED, MOST = 1 << 16, 20_000
_NOTHING = object()
_OUTSIDE = "Keep it outside of the module, and give what comes of it as an argument."


class Holdings:
    """What modules hold.

    Args:
        modules: looked through, with what is inside of them.
        known: tensors whose values a replay reads anew.

    Attributes:
        containers: dicts and lists, for the backend to compare.
        looks: functions that return what is equal as long as nothing changed.

    Raises:
        CaptureError: something may change without being seen to.
    """

    def __init__(self, modules: Iterable[Any], known: Iterable[Tensor]) -> None:
        self.containers: list[Any] = []
        self.looks: list[Callable[[], Any]] = []
        self._known = {id(t) for t in known}
        # Of containers: name, whether it is that of an object, and their keys; of looks: name.
        self._keys: list[tuple[str, bool, list[Any]]] = []
        self._names: list[str] = []
        self._seen: set[int] = set()
        # Alive, so that no other object can get one of their ids.
        self._kept: list[Any] = []
        for module in modules:
            self._see(module, type(module).__name__)

    def now(self) -> list[Any]:
        """Return what is held now, in a form that is equal for the same."""
        held = [[*map(id, h.values() if h.__class__ is dict else h)] for h in self.containers]
        return held + [look() for look in self.looks]

    def difference(self, before: list[Any]) -> str | None:
        """Return the name of the first thing that is not as it was."""
        now = self.now()
        if now == before:
            return None
        for (where, is_object, keys), held, old, new in zip(
            self._keys, self.containers, before, now, strict=False
        ):
            if old != new:
                then = dict(zip(keys, old, strict=True))
                here = dict(zip(_keys_of(held), new, strict=True))
                key = next((k for k in {**then, **here} if then.get(k) != here.get(k)), "order")
                return f"{where}.{key}" if is_object else f"{where}[{key!r}]"
        looked = zip(self._names, before[len(self._keys) :], now[len(self._keys) :], strict=True)
        return next(where for where, old, new in looked if old != new)

    # ---- looking ------------------------------------------------------------------------------

    def _see(self, value: Any, where: str) -> None:
        """Note what can change of a value."""
        if isinstance(value, (VALUES, _FIXED)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if len(self._seen) > MOST:
            raise _unseen(where, f"more than {MOST} objects", "Keep large data outside of it.")
        if isinstance(value, Tensor):
            if id(value) not in self._known:
                self._objects(where, lambda: [value.v])
        elif is_module(value):
            self._attributes(value, where)
        elif isinstance(value, (tuple, frozenset)):
            self._all(value, where)
        elif isinstance(value, (list, dict, set, deque, MappingProxyType)):
            self._container(value, where)
        elif isinstance(value, functools.partial):
            self._objects(where, lambda: [value.func, value.args, value.keywords])
            self._all((value.func, value.args, value.keywords), where)
        elif isinstance(value, (MethodType, BuiltinFunctionType)):
            self._see(value.__self__, where)
        elif hasattr(value, "tobytes") or isinstance(value, bytearray):
            self._array(value, where)
        else:
            self._object(value, where)

    def _all(self, values: Iterable[Any], where: str) -> None:
        for k, value in enumerate(values):
            self._see(value, f"{where}[{k}]")

    def _held(self, held: Any, where: str, is_object: bool) -> None:
        self.containers.append(held)
        self._keys.append((where, is_object, _keys_of(held)))

    def _look(self, where: str, look: Callable[[], Any]) -> None:
        self.looks.append(look)
        self._names.append(where)

    def _objects(self, where: str, look: Callable[[], list[Any]]) -> None:
        self._kept.append(look())
        self._look(where, lambda: [*map(id, look())])

    def _container(self, value: Any, where: str) -> None:
        kind, keyed = value.__class__, isinstance(value, Mapping)
        if kind is dict or kind is list:
            self._held(value, where, False)
        else:
            self._objects(where, lambda: [*(value.values() if keyed else value)])
        if keyed:
            # The backend compares what stands in a dict, not under which names.
            self._objects(where, lambda: [*value])
            for key, inner in value.items():
                self._see(inner, f"{where}[{key!r}]")
        else:
            self._all(value, where)
        if hasattr(value, "__dict__"):
            self._attributes(value, where)

    def _attributes(self, value: Any, where: str) -> None:
        held = vars(value)
        self._held(held, where, True)
        for name, inner in held.items():
            # What begins so is the framework's: how a module was made, what it is a copy of.
            if name[:2] != "__" or name == REPARAMETERIZED:
                self._see(inner, f"{where}.{name}")

    def _array(self, value: Any, where: str) -> None:
        """Note an array of numpy, or what else has bytes."""
        base = value
        while base is not None and not _is_writeable(base):
            base = getattr(base, "base", None)
        if base is None:
            return
        if getattr(getattr(value, "dtype", None), "hasobject", False):
            self._objects(where, lambda: [*value.flat])
            self._all(value.flat, where)
            return
        # Not every dtype of an array is one that other code may look at.
        is_array = hasattr(value, "flags")
        size = value.nbytes if is_array else memoryview(value).nbytes
        if size > COMPARED:
            raise _unseen(
                where, f"a {type(value).__name__} of {size} bytes",
                "Make it a Buffer, or freeze it: array.flags.writeable = False.",
            )  # fmt: skip
        if is_array:
            self._look(where, lambda: (value.shape, value.tobytes()))
        else:
            self._look(where, lambda: memoryview(value).tobytes())

    def _object(self, value: Any, where: str) -> None:
        kind = type(value)
        package = kind.__module__
        if package.partition(".")[0] in _NO_DATA or kind.__name__ == "ufunc":
            return
        if package in _HIDDEN or package.startswith("numpy.random"):
            raise _unseen(where, f"a {kind.__name__}", _OUTSIDE)
        listed = [base.__dict__.get("__slots__", ()) for base in kind.__mro__]
        slots = [n for names in listed for n in ([names] if isinstance(names, str) else names)]
        slots = [n for n in slots if n not in ("__dict__", "__weakref__")]
        if not slots and not hasattr(value, "__dict__"):
            raise _unseen(where, f"a {kind.__name__}", _OUTSIDE)
        if slots:
            self._objects(where, lambda: [getattr(value, n, _NOTHING) for n in slots])
            for n in slots:
                self._see(getattr(value, n, None), f"{where}.{n}")
        if hasattr(value, "__dict__"):
            self._attributes(value, where)


def _keys_of(held: Any) -> list[Any]:
    return [*held] if held.__class__ is dict else [*range(len(held))]


def _is_writeable(array: Any) -> bool:
    flags = getattr(array, "flags", None)
    if flags is None:
        return not getattr(array, "readonly", isinstance(array, bytes))
    return bool(flags.writeable)


def _unseen(where: str, got: str, remedy: str) -> CaptureError:
    return CaptureError(
        "capture", f"{where} may change without a captured step seeing it", got=got, remedy=remedy
    )
