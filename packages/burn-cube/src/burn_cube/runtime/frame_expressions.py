"""Expressions of Python functions as LLVM IR; see `frame_text`."""

from __future__ import annotations

import ast
import itertools
from sys import getrefcount
from typing import Any

from burn_cube.runtime.frame_pieces import Pieces, Unsupported, Value, is_table

_COMPARE = {ast.Lt: (0, "slt"), ast.LtE: (1, "sle"), ast.Eq: (2, "eq"), ast.NotEq: (3, "ne"),
            ast.Gt: (4, "sgt"), ast.GtE: (5, "sge")}  # fmt: skip
_ARITHMETIC = {ast.Add: ("PyNumber_Add", "add"), ast.Sub: ("PyNumber_Subtract", "sub"),
               ast.Mult: ("PyNumber_Multiply", "mul")}  # fmt: skip


# What the bound `__next__` of an iterator is.
_WRAPPER: Any = type(itertools.count().__next__)


class Expressions(Pieces):
    """Writes expressions."""

    # ---- expressions ----------------------------------------------------------------------------

    def _object(self, node: ast.expr) -> Value:
        """Return an object that lives until the statement ends."""
        return self._held(self._expr(node))

    def _expr(self, node: ast.expr) -> Value:
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
                return Value(self._truth(node), "truth")
            case _:
                raise Unsupported(f"the expression {type(node).__name__}")

    def _name(self, name: str) -> Value:
        if name in self.args:
            if name in self.assigned:
                raise Unsupported("a parameter that is assigned")
            return Value(f"%a.{name}", stable=True)
        if name in self.ints:
            return Value(self._set(f"load i64, ptr %n.{name}"), "int")
        if name in self.locals:
            ref = self._set(f"load ptr, ptr {self.locals[name]}")
            if name not in self.certain:
                self._not_null(ref)
            return Value(ref, stable=True, cls=self.made.get(name))
        return self._constant(self._global(name))

    def _tuple(self, elts: list[ast.expr]) -> Value:
        parts = [self._object(e) for e in elts]
        made = self._own(self._not_null(self._c("PyTuple_New", str(len(parts)))))
        for k, part in enumerate(parts):
            at = self.layout.items + 8 * k
            ref = self._moved(part)
            self._say(f"store ptr {ref}, ptr {self._set(f'getelementptr i8, ptr {made.ref}, i64 {at}')}")  # noqa: E501 # fmt: skip
        return made

    def _subscript(self, of: ast.expr, key: ast.expr) -> Value:
        whole = self._object(of)
        if isinstance(key, ast.Constant) and key.value.__class__ is int and key.value >= 0:
            return self._numbered(whole, key.value)
        k = self._object(key)
        plain = isinstance(of, ast.Name) and of.id not in self.assigned and of.id not in self.args
        table = self._global(of.id) if isinstance(of, ast.Name) and plain else None
        if not self.restarts or (table is not None and not is_table(table)):
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
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _numbered(self, whole: Value, number: int) -> Value:
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
        got = self._not_null(self._c("PyObject_GetItem", whole.ref, self._constant(number).ref))
        self._say(f"store ptr {got}, ptr {result}")
        self._say(f"br label %{end}")
        self._label(end)
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _call(self, node: ast.Call) -> Value:
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
                if known is getrefcount:
                    v = self._expr(node.args[0])
                    if not self.layout.lasting:
                        return Value(self._set(f"load i64, ptr {v.ref}"), "int")
                    count = self._set(f"load i32, ptr {v.ref}")
                    return Value(self._set(f"zext i32 {count} to i64"), "int")
                if known.__class__ is _WRAPPER and known.__name__ == "__next__":
                    counter = self._constant(known.__self__)
                    return self._own(self._not_null(self._c("PyIter_Next", counter.ref)))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and len(node.args) == 1:
            return self._get(node.func.value, node.args[0])
        return self._called(self._object(node.func), [self._object(a) for a in node.args])

    def _called(self, function: Value, args: list[Value]) -> Value:
        row = self._new("%v")
        self.numbers.append(f"{row} = alloca [{max(len(args), 1)} x ptr]")
        for k, a in enumerate(args):
            self._say(f"store ptr {a.ref}, ptr {self._set(f'getelementptr ptr, ptr {row}, i64 {k}')}")  # noqa: E501 # fmt: skip
        made = self._c("PyObject_Vectorcall", function.ref, row, str(len(args)), "null")
        return self._own(self._not_null(made))

    def _get(self, of: ast.expr, key: ast.expr) -> Value:
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
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _len(self, node: ast.expr) -> Value:
        v = self._object(node)
        n = self._c("PyObject_Size", v.ref)
        self._unless(self._set(f"icmp slt i64 {n}, 0"))
        return Value(n, "int")

    def _arithmetic(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Value:
        known = _ARITHMETIC.get(type(op))
        if known is None:
            raise Unsupported(f"the operator {type(op).__name__}")
        a, b = self._object(left), self._object(right)
        return self._own(self._not_null(self._c(known[0], a.ref, b.ref)))

    def _either(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
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
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _or(self, first: ast.expr, second: ast.expr) -> Value:
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
        return Value(self._set(f"load ptr, ptr {result}"), place=result)

    def _taken(self, v: Value) -> str:
        """Return one more reference."""
        self._say(f"call void @take(ptr {v.ref})")
        return v.ref

    # ---- truth ----------------------------------------------------------------------------------

    def _number(self, v: Value) -> str:
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

    def _is_true(self, v: Value) -> str:
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
            return self._set(
                f"icmp {'eq' if isinstance(op, ast.Is) else 'ne'} ptr {a.ref}, {b.ref}"
            )
        known = _COMPARE.get(type(op))
        if known is None:
            raise Unsupported(f"the comparison {type(op).__name__}")
        a = self._expr(left)
        whole = isinstance(right, ast.Constant) and right.value.__class__ is int
        if a.kind == "int" and isinstance(right, ast.Constant) and whole:
            return self._set(f"icmp {known[1]} i64 {a.ref}, {right.value!r}")
        if a.kind == "int":
            b = self._expr(right)
            return self._set(f"icmp {known[1]} i64 {a.ref}, {self._number(b)}")
        x, y = self._held(a), self._object(right)
        c = self._c("PyObject_RichCompareBool", x.ref, y.ref, str(known[0]))
        self._unless(self._set(f"icmp slt i32 {c}, 0"))
        return self._set(f"icmp ne i32 {c}, 0")
