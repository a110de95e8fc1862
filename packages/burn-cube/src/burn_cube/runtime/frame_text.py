"""Writes a Python function as LLVM IR over Python's C functions, for a small part of the language.

What it knows: names, attributes, subscripts, tuples, calls, comparisons, `and`, `or`, `not`, `if`,
`while`, `for` over a tuple or list, and return. Attributes that are slots of known classes are read
and written at their place, after a look at the class of the object.

Two manners of failing. A function that `restarts` leaves to the Python function, with the same
arguments, whatever is not on its straight path: a handler of exceptions, an object of an unknown
class, an unset slot, an exception. So its words and tracebacks are those of Python, and it is for
functions that may begin again at any place. Others have Python's own meaning everywhere, raise what
is raised, and enter `except Exception:`.

The text holds no address: objects come in a tuple, and C functions are named.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount
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
        inline: counts are plain numbers at the start of an object.
        slot: returns the place of a slot.
    """

    kind: int
    size: int
    items: int
    elements: int
    inline: bool
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
    "Py_IncRef": ("void", "ptr"),
    "Py_DecRef": ("void", "ptr"),
}
_COMPARE = {ast.Lt: (0, "slt"), ast.LtE: (1, "sle"), ast.Eq: (2, "eq"), ast.NotEq: (3, "ne"),
            ast.Gt: (4, "sgt"), ast.GtE: (5, "sge")}  # fmt: skip
_ARITHMETIC = {ast.Add: ("PyNumber_Add", "add"), ast.Sub: ("PyNumber_Subtract", "sub"),
               ast.Mult: ("PyNumber_Multiply", "mul")}  # fmt: skip

_INLINE_COUNTS = """
define internal void @take(ptr %o) alwaysinline {
  %n = load i64, ptr %o
  %m = add i64 %n, 1
  store i64 %m, ptr %o
  ret void
}
define internal void @drop(ptr %o) {
  %n = load i64, ptr %o
  %m = sub i64 %n, 1
  store i64 %m, ptr %o
  %last = icmp eq i64 %m, 0
  br i1 %last, label %free, label %done
free:
  call void @_Py_Dealloc(ptr %o)
  br label %done
done:
  ret void
}
"""
_CALLED_COUNTS = """
define internal void @take(ptr %o) alwaysinline {
  call void @Py_IncRef(ptr %o)
  ret void
}
define internal void @drop(ptr %o) {
  call void @Py_DecRef(ptr %o)
  ret void
}
"""
# Not inlined: there are many, and compiling them takes longer than the calls ever will.
_DROP_ANY = """
define internal void @drop_any(ptr %o) noinline {
  %none = icmp eq ptr %o, null
  br i1 %none, label %done, label %some
some:
  call void @drop(ptr %o)
  br label %done
done:
  ret void
}
"""


class _Value(NamedTuple):
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


def write(
    function: Any, source: str, layout: Layout, restarts: bool, classes: Sequence[type] = ()
) -> Written:
    """Return a function in IR.

    Args:
        function: the Python function.
        source: its text.
        layout: of this Python.
        restarts: see the module.
        classes: further ones whose slots it uses.

    Raises:
        Unsupported: it uses more than is known here.
    """
    return _Writer(function, source, layout, restarts, classes).written()


class _Writer:
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
        self.live: list[str] = []
        # New references that have no place yet: most are given away at once.
        self.pending: list[str] = []
        # Locals that have a value here, and slots of new objects that have one, by loop depth.
        self.certain: set[str] = set()
        self.filled: dict[str, tuple[int, set[str]]] = {}
        self.loops: list[tuple[str, str]] = []
        self.failing = "failed"
        self.classes = _classes([*self.globals.values(), *classes])
        self._kinds()

    # ---- what the locals are --------------------------------------------------------------------

    def _kinds(self) -> None:
        """Find which locals are numbers, and which hold new objects of one class."""
        assigned: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        assigned.setdefault(target.id, []).append(node.value)
                    elif isinstance(target, ast.Tuple):
                        parts = node.value.elts if isinstance(node.value, ast.Tuple) else None
                        for k, e in enumerate(target.elts):
                            if isinstance(e, ast.Name):
                                assigned.setdefault(e.id, []).append(parts[k] if parts else None)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).append(None)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.For):
                for e in ast.walk(node.target):
                    if isinstance(e, ast.Name):
                        assigned.setdefault(e.id, []).append(None)
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
            if isinstance(found, type) and _is_plain(found):
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

    # ---- the text -------------------------------------------------------------------------------

    def written(self) -> Written:
        self.locals = {
            n: f"%l.{n}" for n in self.assigned if n not in self.args and n not in self.ints
        }
        body: list[ast.stmt] = self.tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # a docstring
        self._statements(body)
        self._return(self._constant(None))
        inner, self.lines = self.lines, []
        whole = self._frame(inner)
        counts = _INLINE_COUNTS if self.layout.inline else _CALLED_COUNTS
        self.used |= {"_Py_Dealloc"} if self.layout.inline else {"Py_IncRef", "Py_DecRef"}
        declares = [
            f"declare {C_FUNCTIONS[n][0]} @{n}({C_FUNCTIONS[n][1]})" for n in sorted(self.used)
        ]
        return Written("\n".join([*declares, counts, _DROP_ANY, *whole]), tuple(self.objects))

    def _frame(self, inner: list[str]) -> list[str]:
        kept = [*self.locals.values(), *self.places]
        out = ["define ptr @burn_frame(ptr %self, ptr %args, i64 %given, ptr %names) {", "entry:"]
        out += [f"  {p} = alloca ptr" for p in [*kept, "%result"]]
        out += [f"  %n.{n} = alloca i64" for n in self.ints]
        out += [f"  {n}" for n in self.numbers]
        out += [f"  store ptr null, ptr {p}" for p in [*kept, "%result"]]
        if self.restarts:
            out += ["  %restarts = alloca i1", "  store i1 false, ptr %restarts"]
        first = len(self.lines)
        self._say("%exact = icmp eq i64 %given, " + str(len(self.args)))
        self._say("%bare = icmp eq ptr %names, null")
        self._say("%fits = and i1 %exact, %bare")
        self._say("br i1 %fits, label %begin, label %python")
        self._label("begin")
        for k, name in enumerate(self.args):
            self._say(f"%p.{name} = getelementptr ptr, ptr %args, i64 {k}")
            self._say(f"%a.{name} = load ptr, ptr %p.{name}")
        self.lines += inner
        # What is no Exception, Ctrl-C above all, is not for another try.
        self._label("failed")
        if self.restarts:
            raised = self._c("PyErr_Occurred")
            self._say(f"%quiet = icmp eq ptr {raised}, null")
            self._say("br i1 %quiet, label %again, label %loud")
            self._label("loud")
            exception = self._constant(Exception).ref
            known = self._c("PyErr_ExceptionMatches", exception)
            self._say(f"%stops = icmp eq i32 {known}, 0")
            self._say("br i1 %stops, label %leave, label %clear")
            self._label("clear")
            self._c("PyErr_Clear")
            self._say("br label %again")
            self._label("again")
            self._say("store i1 true, ptr %restarts")
        self._say("br label %leave")
        self._label("leave")
        for place in kept:
            self._forget(place)
        if self.restarts:
            self._say("%once = load i1, ptr %restarts")
            self._say("br i1 %once, label %python, label %given.back")
            self._label("given.back")
        self._say("%out = load ptr, ptr %result")
        self._say("ret ptr %out")
        self._label("python")
        function = self._loaded(0)
        made = self._c("PyObject_Vectorcall", function, "%args", "%given", "%names")
        self._say(f"ret ptr {made}")
        out += self.lines[first:]
        return [*out, "}"]

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

    def _constant(self, value: Any) -> _Value:
        number = self.known.get(id(value))
        if number is None:
            number = self.known[id(value)] = len(self.objects)
            self.objects.append(value)
        return _Value(self._loaded(number), stable=True)

    # ---- references -----------------------------------------------------------------------------

    def _own(self, ref: str, cls: type | None = None) -> _Value:
        """Keep a new reference until the statement ends."""
        self.pending.append(ref)
        return _Value(ref, place=f"%o{ref[1:]}", cls=cls)

    def _held(self, v: _Value) -> _Value:
        """Return an object that stays alive for this statement."""
        v = self._boxed(v)
        if v.place is None and not v.stable:
            # Under a name of its own: one borrowed object may be kept twice.
            self._say(f"call void @take(ptr {v.ref})")
            return self._own(self._set(f"getelementptr i8, ptr {v.ref}, i64 0"), v.cls)
        return v

    def _moved(self, v: _Value) -> str:
        """Return a new reference to give away."""
        v = self._boxed(v)
        if v.ref in self.pending:
            self.pending.remove(v.ref)
        elif v.place is not None:
            self._say(f"store ptr null, ptr {v.place}")
        else:
            self._say(f"call void @take(ptr {v.ref})")
        return v.ref

    def _boxed(self, v: _Value) -> _Value:
        if v.kind == "int":
            return self._own(self._not_null(self._c("PyLong_FromSsize_t", v.ref)))
        if v.kind == "truth":
            yes, no = self._constant(True).ref, self._constant(False).ref
            chosen = self._set(f"select i1 {v.ref}, ptr {yes}, ptr {no}")
            return _Value(chosen, stable=True)
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

    # ---- statements -----------------------------------------------------------------------------

    def _statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._one(node)

    def _one(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                with self._statement():
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                with self._statement():
                    self._assign(target, value)
            case ast.AugAssign(target=target, op=op, value=value):
                with self._statement():
                    before = _loading(target)
                    self._store(target, self._arithmetic(op, before, value))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                with self._statement():
                    self._effect(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self._while(test, body)
            case ast.For(target=target, iter=over, body=body, orelse=[]):
                self._for(target, over, body)
            case ast.Break():
                self._jump(self.loops[-1][1])
            case ast.Continue():
                self._jump(self.loops[-1][0])
            case ast.Return(value=value):
                self._return_statement(value)
            case ast.Delete(targets=[ast.Subscript(value=of, slice=key)]):
                with self._statement():
                    c = self._c("PyObject_DelItem", self._object(of).ref, self._object(key).ref)
                    self._unless(self._set(f"icmp slt i32 {c}, 0"))
            case ast.Try(body=body, handlers=handlers, orelse=[], finalbody=[]):
                self._try(body, handlers)
            case _:
                raise Unsupported(f"the statement {type(node).__name__}")

    def _jump(self, label: str) -> None:
        self._say(f"br label %{label}")
        self._label(self._new("dead"))
        self.certain = set(self.locals)  # nothing comes by here

    def _return_statement(self, value: ast.expr | None) -> None:
        if self.restarts and isinstance(value, ast.Call):
            self._jump("failed")  # the slow way, which Python goes
            return
        with self._statement():
            v = self._constant(None) if value is None else self._expr(value)
            self._say(f"store ptr {self._moved(v)}, ptr %result")
        self._jump("leave")

    def _return(self, v: _Value) -> None:
        self._say(f"store ptr {self._moved(v)}, ptr %result")
        self._say("br label %leave")

    def _effect(self, value: ast.expr) -> None:
        match value:
            case ast.Call(func=ast.Attribute(value=of, attr="append"), args=[item], keywords=[]):
                # Python's own answer to what is no list is another error; it is one all the same.
                items = self._object(of)
                c = self._c("PyList_Append", items.ref, self._object(item).ref)
                self._unless(self._set(f"icmp slt i32 {c}, 0"))
            case _ if self.restarts:
                self._jump("failed")
            case _:
                self._expr(value)

    def _if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        yes, no, end = self._new("then"), self._new("else"), self._new("end")
        self._branch(test, yes, no)
        before = set(self.certain)
        self._label(yes)
        self._statements(body)
        self._say(f"br label %{end}")
        there, self.certain = self.certain, before
        self._label(no)
        self._statements(orelse)
        self._say(f"br label %{end}")
        self._label(end)
        self.certain &= there

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Go one way or the other, with nothing left over from the question."""
        before, self.live = self.live, []
        truth = self._truth(test)
        if self.live or self.pending:
            place = self._new("%c")
            self.numbers.append(f"{place} = alloca i1")
            self._say(f"store i1 {truth}, ptr {place}")
            self._end()
            truth = self._set(f"load i1, ptr {place}")
        self.live = before
        self._say(f"br i1 {truth}, label %{yes}, label %{no}")

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        head, inside, end = self._new("head"), self._new("body"), self._new("end")
        self._say(f"br label %{head}")
        self._label(head)
        if isinstance(test, ast.Constant) and test.value is True:
            self._say(f"br label %{inside}")
        else:
            self._branch(test, inside, end)
        self._label(inside)
        before = set(self.certain)
        self.loops.append((head, end))
        self._statements(body)
        self.loops.pop()
        self.certain = before
        self._say(f"br label %{head}")
        self._label(end)

    def _for(self, target: ast.expr, over: ast.expr, body: list[ast.stmt]) -> None:
        """Go over a tuple or list, or over what another sequence holds when the loop begins."""
        several = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
        rows: list[ast.expr] = [over]
        if isinstance(over, ast.Call) and several and self._global(over.func.id) is zip:  # type: ignore[attr-defined]
            if over.keywords or not isinstance(target, ast.Tuple):
                raise Unsupported("zip with more than plain arguments")
            rows = over.args
        at = self._new("%i")
        self.numbers.append(f"{at} = alloca i64")
        wholes = []
        for row in rows:
            name = f"over{next(self.count)}"
            place = self.locals[name] = f"%l.{name}"
            with self._statement():
                v = self._object(row)
                kind = self._class_of(v.ref)
                is_list = self._set(f"icmp eq ptr {kind}, {self._constant(list).ref}")
                copied, there = self._new("copied"), self._new("there")
                result = self._result()
                self._say(f"store ptr {self._taken(v)}, ptr {result}")
                self._say(f"br i1 {is_list}, label %{there}, label %{copied}")
                self._label(copied)
                self._forget(result)
                made = self._not_null(self._c("PySequence_Tuple", v.ref))
                self._say(f"store ptr {made}, ptr {result}")
                self._say(f"br label %{there}")
                self._label(there)
                whole = self._set(f"load ptr, ptr {result}")
                self._say(f"store ptr null, ptr {result}")
                self._keep(place, whole)
            wholes.append((whole, is_list))
        head, inside = self._new("head"), self._new("body")
        following, end = self._new("next"), self._new("end")
        self._say(f"store i64 0, ptr {at}")
        self._say(f"br label %{head}")
        self._label(head)
        k = self._set(f"load i64, ptr {at}")
        for whole, _ in wholes:
            more = self._new("more")
            size = self._set(f"getelementptr i8, ptr {whole}, i64 {self.layout.size}")
            n = self._set(f"load i64, ptr {size}")
            self._say(f"br i1 {self._set(f'icmp slt i64 {k}, {n}')}, label %{more}, label %{end}")
            self._label(more)
        self._say(f"br label %{inside}")
        self._label(inside)
        before = set(self.certain)
        self.loops.append((following, end))
        targets = target.elts if len(rows) > 1 and isinstance(target, ast.Tuple) else [target]
        for one, (whole, is_list) in zip(targets, wholes, strict=True):
            with self._statement():
                inside = self._set(f"getelementptr i8, ptr {whole}, i64 {self.layout.items}")
                # A list points to its elements, and may be another length by now.
                apart = self._set(
                    f"load ptr, ptr {self._set(f'getelementptr i8, ptr {whole}, i64 {self.layout.elements}')}"
                )
                first = self._set(f"select i1 {is_list}, ptr {apart}, ptr {inside}")
                here = self._set(f"getelementptr ptr, ptr {first}, i64 {k}")
                self._assign_value(one, self._held(_Value(self._set(f"load ptr, ptr {here}"))))
        self._statements(body)
        self.loops.pop()
        self.certain = before
        self._say(f"br label %{following}")
        self._label(following)
        self._say(f"store i64 {self._set(f'add i64 {k}, 1')}, ptr {at}")
        self._say(f"br label %{head}")
        self._label(end)

    def _try(self, body: list[ast.stmt], handlers: list[ast.ExceptHandler]) -> None:
        if self.restarts:  # whatever a handler is for, Python does it
            self._statements(body)
            return
        match handlers:
            case [ast.ExceptHandler(type=ast.Name(id=kind), name=None, body=other)]:
                pass
            case _:
                raise Unsupported("more than one handler")
        caught, end = self._new("caught"), self._new("end")
        outer, self.failing = self.failing, caught
        before, self.live = self.live, []
        first = len(self.places)
        known = set(self.certain)
        self._statements(body)
        self.live, self.failing, self.certain = before, outer, known
        self._say(f"br label %{end}")
        self._label(caught)
        for place in self.places[first:]:
            self._forget(place)
        c = self._c("PyErr_ExceptionMatches", self._constant(self._global(kind)).ref)
        self._unless(self._set(f"icmp eq i32 {c}, 0"))
        self._c("PyErr_Clear")
        self._statements(other)
        self._say(f"br label %{end}")
        self._label(end)

    def _assign_value(self, target: ast.expr, v: _Value) -> None:
        if isinstance(target, ast.Tuple):
            parts = self._unpacked(v, len(target.elts))
            for t, part in zip(target.elts, parts, strict=True):
                self._store(t, part)
        else:
            self._store(target, v)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                parts = [self._held(self._expr(e)) for e in value.elts]
                for t, v in zip(target.elts, parts, strict=True):
                    self._store(t, v)
            else:
                self._assign_value(target, self._object(value))
            return
        if isinstance(target, ast.Name) and target.id in self.ints:
            v = self._expr(value)
            self._say(f"store i64 {v.ref}, ptr %n.{target.id}")
            return
        self._store(target, self._expr(value))

    def _unpacked(self, v: _Value, count: int) -> list[_Value]:
        whole = v.ref
        kind = self._class_of(v.ref)
        is_tuple = self._set(f"icmp eq ptr {kind}, {self._constant(tuple).ref}")
        if self.restarts:
            self._unless(self._set(f"xor i1 {is_tuple}, true"))
        else:  # a copy that is one, which of a tuple is the tuple itself
            whole = self._own(self._not_null(self._c("PySequence_Tuple", v.ref))).ref
        at = self._set(f"getelementptr i8, ptr {whole}, i64 {self.layout.size}")
        wrong = self._set(f"icmp ne i64 {self._set(f'load i64, ptr {at}')}, {count}")
        if self.restarts:
            self._unless(wrong)
        else:
            bad, good = self._new("bad"), self._new("good")
            self._say(f"br i1 {wrong}, label %{bad}, label %{good}")
            self._label(bad)
            self._c("PyErr_SetNone", self._constant(ValueError).ref)
            self._say(f"br label %{self.failing}")
            self._label(good)
        return [self._held(_Value(self._item(whole, k))) for k in range(count)]

    def _item(self, whole: str, k: int) -> str:
        at = self.layout.items + 8 * k
        return self._set(f"load ptr, ptr {self._set(f'getelementptr i8, ptr {whole}, i64 {at}')}")

    def _keep(self, place: str, ref: str) -> None:
        """Give a reference to a place, and drop what it had."""
        old = self._set(f"load ptr, ptr {place}")
        self._say(f"store ptr {ref}, ptr {place}")
        self._say(f"call void @drop_any(ptr {old})")

    def _store(self, target: ast.expr, v: _Value) -> None:
        match target:
            case ast.Name(id=name) if name in self.locals:
                self._keep(self.locals[name], self._moved(v))
                self.certain.add(name)
                if name in self.made:
                    self.filled[name] = len(self.loops), set()
            case ast.Attribute(value=of, attr=attr):
                empty = isinstance(of, ast.Name) and self._is_empty(of.id, attr)
                self._store_attribute(self._object(of), attr, v, empty)
            case ast.Subscript(value=of, slice=key):
                held = self._held(v)
                c = self._c(
                    "PyObject_SetItem", self._object(of).ref, self._object(key).ref, held.ref
                )
                self._unless(self._set(f"icmp slt i32 {c}, 0"))
            case _:
                raise Unsupported("the target of an assignment")

    def _is_empty(self, name: str, attr: str) -> bool:
        """Return whether a slot of a new object is written for the first time, and note it."""
        depth, slots = self.filled.get(name, (-1, set()))
        first = depth == len(self.loops) and attr not in slots
        slots.add(attr)
        return first

    # ---- attributes -----------------------------------------------------------------------------

    def _class_of(self, ref: str) -> str:
        return self._set(
            f"load ptr, ptr {self._set(f'getelementptr i8, ptr {ref}, i64 {self.layout.kind}')}"
        )

    def _slots(self, attr: str) -> dict[int, list[type]]:
        """Return the classes that have a slot of this name, by its place."""
        found: dict[int, list[type]] = {}
        for cls in self.classes:
            at = slot_of(cls, attr)
            if at is not None:
                found.setdefault(self.layout.slot(at), []).append(cls)
        return found

    def _place_of(self, v: _Value, attr: str, other: str) -> str | None:
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

    def _attribute(self, v: _Value, attr: str) -> _Value:
        if attr == "__class__":
            return _Value(self._class_of(v.ref), stable=True)
        if self.restarts:
            place = self._place_of(v, attr, self.failing)
            if place is not None:
                return _Value(self._not_null(self._set(f"load ptr, ptr {place}")))
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
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _store_attribute(self, of: _Value, attr: str, v: _Value, empty: bool = False) -> None:
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

    # ---- expressions ----------------------------------------------------------------------------

    def _object(self, node: ast.expr) -> _Value:
        """Return an object that lives until the statement ends."""
        return self._held(self._expr(node))

    def _expr(self, node: ast.expr) -> _Value:
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Attribute(value=of, attr=attr):
                v = self._expr(of)
                # Of what a slot holds only a slot is read, or it is kept.
                slot = attr == "__class__" or bool(self._slots(attr))
                return self._attribute(v if self.restarts and slot else self._held(v), attr)
            case ast.Tuple(elts=elts):
                return self._tuple(elts)
            case ast.List(elts=[]):
                return self._own(self._not_null(self._c("PyList_New", "0")))
            case ast.Dict(keys=[]):
                return self._own(self._not_null(self._c("PyDict_New")))
            case ast.Subscript(value=of, slice=key):
                return self._subscript(of, key)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(op, left, right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                v = self._object(operand)
                return self._own(self._not_null(self._c("PyNumber_Negative", v.ref)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(test, body, orelse)
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                return self._or(first, second)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return _Value(self._truth(node), "truth")
            case _:
                raise Unsupported(f"the expression {type(node).__name__}")

    def _name(self, name: str) -> _Value:
        if name in self.args:
            if name in self.assigned:
                raise Unsupported("a parameter that is assigned")
            return _Value(f"%a.{name}", stable=True)
        if name in self.ints:
            return _Value(self._set(f"load i64, ptr %n.{name}"), "int")
        if name in self.locals:
            ref = self._set(f"load ptr, ptr {self.locals[name]}")
            if name not in self.certain:
                self._not_null(ref)
            return _Value(ref, stable=True, cls=self.made.get(name))
        return self._constant(self._global(name))

    def _tuple(self, elts: list[ast.expr]) -> _Value:
        parts = [self._object(e) for e in elts]
        made = self._own(self._not_null(self._c("PyTuple_New", str(len(parts)))))
        for k, part in enumerate(parts):
            at = self.layout.items + 8 * k
            ref = self._moved(part)
            self._say(f"store ptr {ref}, ptr {self._set(f'getelementptr i8, ptr {made.ref}, i64 {at}')}")  # noqa: E501 # fmt: skip
        return made

    def _subscript(self, of: ast.expr, key: ast.expr) -> _Value:
        whole = self._object(of)
        if isinstance(key, ast.Constant) and key.value.__class__ is int and key.value >= 0:
            return self._numbered(whole, key.value)
        k = self._object(key)
        plain = isinstance(of, ast.Name) and of.id not in self.assigned and of.id not in self.args
        table = self._global(of.id) if isinstance(of, ast.Name) and plain else None
        if not self.restarts or (table is not None and not _is_table(table)):
            return self._own(self._not_null(self._c("PyObject_GetItem", whole.ref, k.ref)))
        # Of a slot too: what is no dict, or lacks the key, is left to Python.
        # A dict may make what it lacks.
        lacks, there, end = self._new("lacks"), self._new("there"), self._new("end")
        result = self._result()
        got = self._c("PyDict_GetItemWithError", whole.ref, k.ref)
        none = self._set(f"icmp eq ptr {got}, null")
        self._say(f"br i1 {none}, label %{lacks}, label %{there}")
        self._label(there)
        self._say(f"call void @take(ptr {got})")
        self._say(f"store ptr {got}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(lacks)
        raised = self._c("PyErr_Occurred")
        self._unless(self._set(f"icmp ne ptr {raised}, null"))
        made = self._not_null(self._c("PyObject_GetItem", whole.ref, k.ref))
        self._say(f"store ptr {made}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _numbered(self, whole: _Value, number: int) -> _Value:
        kind = self._class_of(whole.ref)
        fast, slow, end = self._new("fast"), self._new("slow"), self._new("end")
        sized = self._new("sized")
        result = self._result()
        is_tuple = self._set(f"icmp eq ptr {kind}, {self._constant(tuple).ref}")
        self._say(f"br i1 {is_tuple}, label %{sized}, label %{slow}")
        self._label(sized)
        at = self._set(f"getelementptr i8, ptr {whole.ref}, i64 {self.layout.size}")
        longer = self._set(f"icmp sgt i64 {self._set(f'load i64, ptr {at}')}, {number}")
        self._say(f"br i1 {longer}, label %{fast}, label %{slow}")
        self._label(fast)
        item = self._item(whole.ref, number)
        self._say(f"call void @take(ptr {item})")
        self._say(f"store ptr {item}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(slow)
        got = self._not_null(
            self._c("PyObject_GetItem", whole.ref, self._constant(number).ref)
        )
        self._say(f"store ptr {got}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _call(self, node: ast.Call) -> _Value:
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise Unsupported("a call with more than plain arguments")
        if isinstance(node.func, ast.Name) and node.func.id not in self.assigned:
            cls = self._allocated(node)
            if cls is not None:
                ref = self._c("PyType_GenericAlloc", self._constant(cls).ref, "0")
                return self._own(self._not_null(ref), cls)
            if node.func.id not in self.args:
                known = self._global(node.func.id)
                if known is len:
                    return self._len(node.args[0])
                if known is getrefcount and self.layout.inline:
                    v = self._expr(node.args[0])
                    return _Value(self._set(f"load i64, ptr {v.ref}"), "int")
                if known.__class__ is _WRAPPER and known.__name__ == "__next__":
                    counter = self._constant(known.__self__)
                    return self._own(self._not_null(self._c("PyIter_Next", counter.ref)))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and len(node.args) == 1:
            return self._get(node.func.value, node.args[0])
        return self._called(self._object(node.func), [self._object(a) for a in node.args])

    def _called(self, function: _Value, args: list[_Value]) -> _Value:
        row = self._new("%v")
        self.numbers.append(f"{row} = alloca [{max(len(args), 1)} x ptr]")
        for k, a in enumerate(args):
            self._say(f"store ptr {a.ref}, ptr {self._set(f'getelementptr ptr, ptr {row}, i64 {k}')}")  # noqa: E501 # fmt: skip
        made = self._c("PyObject_Vectorcall", function.ref, row, str(len(args)), "null")
        return self._own(self._not_null(made))

    def _get(self, of: ast.expr, key: ast.expr) -> _Value:
        """Return what `.get(key)` does, at once where it is asked of a dict."""
        whole, k = self._object(of), self._object(key)
        fast, slow, end = self._new("fast"), self._new("slow"), self._new("end")
        result = self._result()
        kind = self._class_of(whole.ref)
        is_dict = self._set(f"icmp eq ptr {kind}, {self._constant(dict).ref}")
        self._say(f"br i1 {is_dict}, label %{fast}, label %{slow}")
        self._label(fast)
        got = self._c("PyDict_GetItemWithError", whole.ref, k.ref)
        lacks, there = self._new("lacks"), self._new("there")
        none = self._set(f"icmp eq ptr {got}, null")
        self._say(f"br i1 {none}, label %{lacks}, label %{there}")
        self._label(lacks)
        raised = self._c("PyErr_Occurred")
        self._unless(self._set(f"icmp ne ptr {raised}, null"))
        nothing = self._constant(None).ref
        self._say(f"call void @take(ptr {nothing})")
        self._say(f"store ptr {nothing}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(there)
        self._say(f"call void @take(ptr {got})")
        self._say(f"store ptr {got}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(slow)
        name = self._constant("get").ref
        function = self._own(self._not_null(self._c("PyObject_GetAttr", whole.ref, name)))
        made = self._moved(self._called(function, [k]))
        self._say(f"store ptr {made}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _len(self, node: ast.expr) -> _Value:
        v = self._object(node)
        n = self._c("PyObject_Size", v.ref)
        self._unless(self._set(f"icmp slt i64 {n}, 0"))
        return _Value(n, "int")

    def _arithmetic(self, op: ast.operator, left: ast.expr, right: ast.expr) -> _Value:
        known = _ARITHMETIC.get(type(op))
        if known is None:
            raise Unsupported(f"the operator {type(op).__name__}")
        a, b = self._object(left), self._object(right)
        return self._own(self._not_null(self._c(known[0], a.ref, b.ref)))

    def _either(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> _Value:
        yes, no, end = self._new("then"), self._new("else"), self._new("end")
        result = self._result()
        # What the branches make is dropped at the end of the statement, the other one's is null.
        truth = self._truth(test)
        self._say(f"br i1 {truth}, label %{yes}, label %{no}")
        for label, part in ((yes, body), (no, orelse)):
            self._label(label)
            ref = self._moved(self._expr(part))
            self._say(f"store ptr {ref}, ptr {result}")
            self._say(f"br label %{end}")
        self._label(end)
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _or(self, first: ast.expr, second: ast.expr) -> _Value:
        more, end = self._new("else"), self._new("end")
        result = self._result()
        one = self._object(first)
        truth = self._is_true(one)
        self._say(f"store ptr {self._taken(one)}, ptr {result}")
        self._say(f"br i1 {truth}, label %{end}, label %{more}")
        self._label(more)
        self._forget(result)
        ref = self._moved(self._expr(second))
        self._say(f"store ptr {ref}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return _Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _taken(self, v: _Value) -> str:
        """Return one more reference."""
        self._say(f"call void @take(ptr {v.ref})")
        return v.ref

    # ---- truth ----------------------------------------------------------------------------------

    def _number(self, v: _Value) -> str:
        if v.kind == "int":
            return v.ref
        n = self._c("PyLong_AsSsize_t", self._held(v).ref)
        odd, on = self._new("odd"), self._new("on")
        self._say(f"br i1 {self._set(f'icmp eq i64 {n}, -1')}, label %{odd}, label %{on}")
        self._label(odd)
        raised = self._c("PyErr_Occurred")
        self._say(f"br i1 {self._set(f'icmp ne ptr {raised}, null')}, label %{self.failing}, label %{on}")  # noqa: E501 # fmt: skip
        self._label(on)
        return n

    def _is_true(self, v: _Value) -> str:
        c = self._c("PyObject_IsTrue", v.ref)
        self._unless(self._set(f"icmp slt i32 {c}, 0"))
        return self._set(f"icmp ne i32 {c}, 0")

    def _truth(self, node: ast.expr) -> str:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(left, op, right)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._set(f"xor i1 {self._truth(operand)}, true")
            case ast.BoolOp(op=op, values=values):
                return self._joined(isinstance(op, ast.And), values)
            case _:
                v = self._expr(node)
                if v.kind == "truth":
                    return v.ref
                if v.kind == "int":
                    return self._set(f"icmp ne i64 {v.ref}, 0")
                return self._is_true(self._held(v))

    def _joined(self, every: bool, values: list[ast.expr]) -> str:
        place, end = self._new("%c"), self._new("end")
        self.numbers.append(f"{place} = alloca i1")
        for k, value in enumerate(values):
            self._say(f"store i1 {self._truth(value)}, ptr {place}")
            if k == len(values) - 1:
                break
            more = self._new("more")
            truth = self._set(f"load i1, ptr {place}")
            targets = (more, end) if every else (end, more)
            self._say(f"br i1 {truth}, label %{targets[0]}, label %{targets[1]}")
            self._label(more)
        self._say(f"br label %{end}")
        self._label(end)
        return self._set(f"load i1, ptr {place}")

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        if isinstance(op, (ast.Is, ast.IsNot)):
            a, b = self._boxed(self._expr(left)), self._boxed(self._expr(right))
            return self._set(f"icmp {'eq' if isinstance(op, ast.Is) else 'ne'} ptr {a.ref}, {b.ref}")
        known = _COMPARE.get(type(op))
        if known is None:
            raise Unsupported(f"the comparison {type(op).__name__}")
        a = self._expr(left)
        whole = isinstance(right, ast.Constant) and right.value.__class__ is int
        if a.kind == "int" and isinstance(right, ast.Constant) and whole:
            return self._set(f"icmp {known[1]} i64 {a.ref}, {right.value}")
        if a.kind == "int":
            b = self._expr(right)
            return self._set(f"icmp {known[1]} i64 {a.ref}, {self._number(b)}")
        x, y = self._held(a), self._object(right)
        c = self._c("PyObject_RichCompareBool", x.ref, y.ref, str(known[0]))
        self._unless(self._set(f"icmp slt i32 {c}, 0"))
        return self._set(f"icmp ne i32 {c}, 0")


def _loading(target: ast.expr) -> ast.expr:
    """Return what is read where an expression is written."""
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
    raise Unsupported("the target of an assignment")


def _is_plain(cls: type) -> bool:
    """Return whether calling a class without arguments only makes an object with unset slots."""
    return (
        cls.__new__ is object.__new__
        and cls.__init__ is object.__init__
        and type(cls).__call__ is type.__call__
        and not cls.__dictoffset__
        and not cls.__itemsize__
        and "__slots__" in cls.__dict__
    )


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and type(value).__getitem__ is dict.__getitem__


def slot_of(cls: type, name: str) -> MemberDescriptorType | None:
    """Return the slot of a class under a name, None where another thing stands there."""
    own = cls.__getattribute__ is object.__getattribute__ and cls.__setattr__ is object.__setattr__
    for base in cls.__mro__ if own else ():
        if name in base.__dict__:
            found = base.__dict__[name]
            return found if isinstance(found, MemberDescriptorType) else None
    return None


def _classes(values: Any) -> list[type]:
    """Return classes among values and the classes derived from them, in a fixed order."""
    found: dict[type, None] = {}

    def add(cls: type) -> None:
        if cls not in found:
            found[cls] = None
            for sub in type.__subclasses__(cls):
                add(sub)

    for value in values:
        slotted = isinstance(value, type) and isinstance(value.__dict__.get("__slots__", None), tuple)
        if slotted:
            add(value)
    return list(found)


_WRAPPER = type(itertools.count().__next__)
