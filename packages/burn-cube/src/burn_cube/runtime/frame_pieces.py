"""What compiled frames are made of: the layout of objects, references, slots of classes.

The base of the writer in `frame_text`.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MemberDescriptorType
from typing import Any, NamedTuple


class Unsupported(Exception):
    """The function uses more of the language than is known here."""


class Layout(NamedTuple):
    """Where this Python keeps things, in bytes.

    Attributes:
        kind: the class of an object.
        size: the length of a tuple or list.
        items: the first element of a tuple.
        elements: the address of the elements of a list.
        lasting: some objects live for ever, and their counts do not change.
        slot: returns the place of a slot.
    """

    kind: int
    size: int
    items: int
    elements: int
    lasting: bool
    slot: Callable[[MemberDescriptorType], int]


class Written(NamedTuple):
    """A function in IR.

    Attributes:
        text: the module; its function is `burn_frame`.
        objects: what the function's `self` has to hold.
    """

    text: str
    objects: tuple[Any, ...]


# Name, result, arguments of the C functions that are called.
C_FUNCTIONS = {
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyObject_GetAttr": ("ptr", "ptr, ptr"),
    "PyObject_SetAttr": ("i32", "ptr, ptr, ptr"),
    "PyObject_GetItem": ("ptr", "ptr, ptr"),
    "PyObject_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyObject_DelItem": ("i32", "ptr, ptr"),
    "PyObject_IsTrue": ("i32", "ptr"),
    "PyObject_Size": ("i64", "ptr"),
    "PyObject_RichCompareBool": ("i32", "ptr, ptr, i32"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "PyTuple_New": ("ptr", "i64"),
    "PyList_New": ("ptr", "i64"),
    "PyDict_New": ("ptr", ""),
    "PyList_Append": ("i32", "ptr, ptr"),
    "PyDict_GetItemWithError": ("ptr", "ptr, ptr"),
    "PyIter_Next": ("ptr", "ptr"),
    "PyLong_FromSsize_t": ("ptr", "i64"),
    "PyLong_AsSsize_t": ("i64", "ptr"),
    "PyNumber_Add": ("ptr", "ptr, ptr"),
    "PyNumber_Subtract": ("ptr", "ptr, ptr"),
    "PyNumber_Multiply": ("ptr", "ptr, ptr"),
    "PyNumber_Negative": ("ptr", "ptr"),
    "PyErr_Occurred": ("ptr", ""),
    "PyErr_ExceptionMatches": ("i32", "ptr"),
    "PyErr_Clear": ("void", ""),
    "PyErr_SetNone": ("void", "ptr"),
    "PySequence_Tuple": ("ptr", "ptr"),
    "_Py_Dealloc": ("void", "ptr"),
}


class Value(NamedTuple):
    """A result in the text.

    Attributes:
        ref: its name.
        kind: `obj`, `int` or `truth`.
        place: where the reference that this function owns is kept; None of a borrowed one.
        stable: a borrowed one that nothing can free while the function runs.
        cls: the class it is certainly of.
    """

    ref: str
    kind: str = "obj"
    place: str | None = None
    stable: bool = False
    cls: type | None = None


class Pieces:
    """What a writer of a function keeps: its lines, constants, references and locals."""

    def __init__(
        self, function: Any, source: str, layout: Layout, restarts: bool, classes: Sequence[type]
    ) -> None:
        tree = ast.parse(source).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise Unsupported("no function")
        a = tree.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise Unsupported("other than plain parameters")
        self.tree = tree
        inside = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.globals = {**function.__globals__, **{n: c.cell_contents for n, c in inside}}
        self.layout = layout
        self.restarts = restarts
        self.args = [p.arg for p in a.args]
        self.lines: list[str] = []
        self.places: list[str] = []
        self.numbers: list[str] = []
        self.count = itertools.count()
        self.objects: list[Any] = [function]
        self.known: dict[int, int] = {}
        self.used: set[str] = set()
        self.locals: dict[str, str] = {}
        self.live: list[str] = []
        # New references that have no place yet: most are given away at once.
        self.pending: list[str] = []
        # Locals that have a value here, and slots of new objects that have one, by loop depth.
        self.certain: set[str] = set()
        self.filled: dict[str, tuple[int, set[str]]] = {}
        self.loops: list[tuple[str, str]] = []
        self.failing = "failed"
        self.classes = classes_of([*self.globals.values(), *classes])
        self.slots: dict[str, dict[int, list[type]]] = {}
        self._kinds()

    # ---- what the locals are --------------------------------------------------------------------

    def _kinds(self) -> None:
        """Find which locals are numbers, and which hold new objects of one class."""
        assigned: dict[str, list[ast.expr | None]] = {}
        for node in _statements(self.tree.body):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        assigned.setdefault(target.id, []).append(node.value)
                    elif isinstance(target, ast.Tuple):
                        elts = node.value.elts if isinstance(node.value, ast.Tuple) else None
                        for k, e in enumerate(target.elts):
                            if isinstance(e, ast.Name):
                                assigned.setdefault(e.id, []).append(elts[k] if elts else None)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).append(None)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.For):
                parts = [n for n in ast.walk(node.target) if isinstance(n, ast.Name)]
                for part in parts:
                    assigned.setdefault(part.id, []).append(None)
        self.assigned = assigned
        self.ints = {
            name for name, values in assigned.items()
            if name not in self.args and all(self._is_len(v) for v in values)
        }  # fmt: skip
        self.made: dict[str, type] = {}
        for name, values in assigned.items():
            classes = {self._allocated(v) for v in values}
            if len(classes) == 1 and name not in self.args:
                (cls,) = classes
                if cls is not None:
                    self.made[name] = cls

    def _is_len(self, value: ast.expr | None) -> bool:
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and self._global(value.func.id) is len
        )

    def _allocated(self, value: ast.expr | None) -> type | None:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
            found = self._global(value.func.id)
            if isinstance(found, type) and is_plain(found):
                return found
        return None

    def _global(self, name: str) -> Any:
        if name in self.args or name in self.assigned:
            return None
        if name in self.globals:
            return self.globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise Unsupported(f"the name {name}")

    def _say(self, line: str) -> None:
        if line.startswith("br "):
            self._settle()
        self.lines.append("  " + line)

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def _settle(self) -> None:
        """Give new references a place, where the ways out find them."""
        pending, self.pending = self.pending, []
        for ref in pending:
            self.lines.append(f"  store ptr {ref}, ptr {self._place(ref)}")

    def _place(self, ref: str) -> str:
        place = f"%o{ref[1:]}"
        self.places.append(place)
        self.live.append(place)
        return place

    def _result(self) -> str:
        """Return the place of a reference that several branches make."""
        place = self._new("%r")
        self.places.append(place)
        self.live.append(place)
        return place

    def _forget(self, place: str) -> None:
        """Drop what a place has."""
        old = self._set(f"load ptr, ptr {place}")
        self._say(f"store ptr null, ptr {place}")
        self._say(f"call void @drop_any(ptr {old})")

    def _new(self, prefix: str = "%t") -> str:
        return f"{prefix}{next(self.count)}"

    def _set(self, what: str) -> str:
        name = self._new()
        self._say(f"{name} = {what}")
        return name

    def _c(self, name: str, *args: str) -> str:
        result, kinds = C_FUNCTIONS[name]
        self.used.add(name)
        given = ", ".join(f"{k} {a}" for k, a in zip(kinds.split(", "), args, strict=True) if k) \
            if kinds else ""  # fmt: skip
        if result == "void":
            self._say(f"call void @{name}({given})")
            return ""
        return self._set(f"call {result} @{name}({given})")

    def _unless(self, condition: str, hint: str = "ok") -> None:
        """Go on where an i1 is false; else fail."""
        on = self._new(hint)
        self._say(f"br i1 {condition}, label %{self.failing}, label %{on}")
        self._label(on)

    def _not_null(self, ref: str) -> str:
        self._unless(self._set(f"icmp eq ptr {ref}, null"))
        return ref

    def _loaded(self, number: int) -> str:
        at = self.layout.items + 8 * number
        return self._set(f"load ptr, ptr {self._set(f'getelementptr i8, ptr %self, i64 {at}')}")

    def _constant(self, value: Any) -> Value:
        number = self.known.get(id(value))
        if number is None:
            number = self.known[id(value)] = len(self.objects)
            self.objects.append(value)
        return Value(self._loaded(number), stable=True)

    # ---- references -----------------------------------------------------------------------------

    def _own(self, ref: str, cls: type | None = None) -> Value:
        """Keep a new reference until the statement ends."""
        self.pending.append(ref)
        return Value(ref, place=f"%o{ref[1:]}", cls=cls)

    def _held(self, v: Value) -> Value:
        """Return an object that stays alive for this statement."""
        v = self._boxed(v)
        if v.place is None and not v.stable:
            # Under a name of its own: one borrowed object may be kept twice.
            self._say(f"call void @take(ptr {v.ref})")
            return self._own(self._set(f"getelementptr i8, ptr {v.ref}, i64 0"), v.cls)
        return v

    def _moved(self, v: Value) -> str:
        """Return a new reference to give away."""
        v = self._boxed(v)
        if v.ref in self.pending:
            self.pending.remove(v.ref)
        elif v.place is not None:
            self._say(f"store ptr null, ptr {v.place}")
        else:
            self._say(f"call void @take(ptr {v.ref})")
        return v.ref

    def _boxed(self, v: Value) -> Value:
        if v.kind == "int":
            return self._own(self._not_null(self._c("PyLong_FromSsize_t", v.ref)))
        if v.kind == "truth":
            yes, no = self._constant(True).ref, self._constant(False).ref
            chosen = self._set(f"select i1 {v.ref}, ptr {yes}, ptr {no}")
            return Value(chosen, stable=True)
        return v

    @contextmanager
    def _statement(self) -> Iterator[None]:
        before = self.live
        self.live = []
        yield
        self._end()
        self.live = before

    def _end(self) -> None:
        for ref in self.pending:
            self._say(f"call void @drop(ptr {ref})")
        for place in self.live:
            self._forget(place)
        self.pending, self.live = [], []

    def _item(self, whole: str, k: int) -> str:
        at = self.layout.items + 8 * k
        return self._set(f"load ptr, ptr {self._set(f'getelementptr i8, ptr {whole}, i64 {at}')}")

    def _keep(self, place: str, ref: str) -> None:
        """Give a reference to a place, and drop what it had."""
        old = self._set(f"load ptr, ptr {place}")
        self._say(f"store ptr {ref}, ptr {place}")
        self._say(f"call void @drop_any(ptr {old})")

    # ---- attributes -----------------------------------------------------------------------------

    def _class_of(self, ref: str) -> str:
        return self._set(
            f"load ptr, ptr {self._set(f'getelementptr i8, ptr {ref}, i64 {self.layout.kind}')}"
        )

    def _slots(self, attr: str) -> dict[int, list[type]]:
        """Return the classes that have a slot of this name, by its place."""
        found = self.slots.get(attr)
        if found is None:
            found = self.slots[attr] = {}
            for cls in self.classes:
                at = slot_of(cls, attr)
                if at is not None:
                    found.setdefault(self.layout.slot(at), []).append(cls)
        return found

    def _place_of(self, v: Value, attr: str, other: str) -> str | None:
        """Return the address of a slot; objects of other classes go to a label."""
        if v.cls is not None:
            at = slot_of(v.cls, attr)
            if at is None:
                return None
            offset = self.layout.slot(at)
            return self._set(f"getelementptr i8, ptr {v.ref}, i64 {offset}")
        slots = self._slots(attr)
        if not slots:
            return None
        kind = self._class_of(v.ref)
        found, places = self._new("found"), []
        for offset, classes in slots.items():
            here = self._new("here")
            for cls in classes:
                following = self._new("class")
                same = self._set(f"icmp eq ptr {kind}, {self._constant(cls).ref}")
                self._say(f"br i1 {same}, label %{here}, label %{following}")
                self._label(following)
            last = self._new("more")
            self._say(f"br label %{last}")
            self._label(here)
            place = self._set(f"getelementptr i8, ptr {v.ref}, i64 {offset}")
            self._say(f"br label %{found}")
            places.append((place, here))
            self._label(last)
        self._say(f"br label %{other}")
        self._label(found)
        return self._set("phi ptr " + ", ".join(f"[{p}, %{at}]" for p, at in places))

    def _attribute(self, v: Value, attr: str) -> Value:
        if attr == "__class__":
            return Value(self._class_of(v.ref), stable=True)
        if self.restarts:
            place = self._place_of(v, attr, self.failing)
            if place is not None:
                return Value(self._not_null(self._set(f"load ptr, ptr {place}")))
            name = self._constant(attr).ref
            return self._own(self._not_null(self._c("PyObject_GetAttr", v.ref, name)))
        other, fast, end = self._new("other"), self._new("fast"), self._new("end")
        place = self._place_of(v, attr, other)
        result = self._result()
        if place is not None:
            got = self._set(f"load ptr, ptr {place}")
            unset = self._set(f"icmp eq ptr {got}, null")
            self._say(f"br i1 {unset}, label %{other}, label %{fast}")
            self._label(fast)
            self._say(f"call void @take(ptr {got})")
            self._say(f"store ptr {got}, ptr {result}")
            self._say(f"br label %{end}")
        else:
            self._say(f"br label %{other}")
        self._label(other)
        name = self._constant(attr).ref
        slow = self._not_null(self._c("PyObject_GetAttr", v.ref, name))
        self._say(f"store ptr {slow}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _store_attribute(self, of: Value, attr: str, v: Value, empty: bool = False) -> None:
        other, end = self._new("other"), self._new("end")
        held = self._held(v)
        place = self._place_of(of, attr, self.failing if self.restarts else other)
        if place is not None:
            ref = self._moved(held)
            if empty:
                self._say(f"store ptr {ref}, ptr {place}")
            else:
                self._keep(place, ref)
            if self.restarts or of.cls is not None:
                return
        elif self.restarts:
            raise Unsupported(f"no slot {attr}")
        self._say(f"br label %{end}")
        self._label(other)
        c = self._c("PyObject_SetAttr", of.ref, self._constant(attr).ref, held.ref)
        self._unless(self._set(f"icmp slt i32 {c}, 0"))
        self._say(f"br label %{end}")
        self._label(end)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body and those inside them; names are assigned by no others."""
    for node in body:
        yield node
        for inner in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, inner, ()))
        for handler in getattr(node, "handlers", ()):
            yield from _statements(handler.body)


def is_plain(cls: Any) -> bool:
    """Return whether calling a class without arguments only makes an object with unset slots."""
    return (
        cls.__new__ is object.__new__
        and cls.__init__ is object.__init__
        and type(cls).__call__ is type.__call__
        and not cls.__dictoffset__
        and not cls.__itemsize__
        and "__slots__" in cls.__dict__
    )


def is_table(value: Any) -> bool:
    """Return whether a value is a dict that is asked as dicts are."""
    return isinstance(value, dict) and type(value).__getitem__ is dict.__getitem__


def slot_of(cls: Any, name: str) -> MemberDescriptorType | None:
    """Return the slot of a class under a name, None where another thing stands there."""
    own = cls.__getattribute__ is object.__getattribute__ and cls.__setattr__ is object.__setattr__
    for base in cls.__mro__ if own else ():
        if name in base.__dict__:
            found = base.__dict__[name]
            return found if isinstance(found, MemberDescriptorType) else None
    return None


def classes_of(values: Any) -> list[type]:
    """Return classes among values and the classes derived from them, in a fixed order."""
    found: dict[type, None] = {}

    def add(cls: type) -> None:
        if cls not in found:
            found[cls] = None
            subs: list[type] = type.__subclasses__(cls)
            for sub in subs:
                add(sub)

    for value in values:
        slotted = isinstance(value, type) and isinstance(
            value.__dict__.get("__slots__", None), tuple
        )
        if slotted:
            add(value)
    return list(found)
