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
from collections.abc import Sequence
from typing import Any

from burn_cube.runtime.frame_expressions import Expressions
from burn_cube.runtime.frame_pieces import C_FUNCTIONS, Layout, Unsupported, Value, Written

_PLAIN_COUNTS = """
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
# The lower half of the count; below zero it is of an object that lives for ever.
_LASTING_COUNTS = """
define internal void @take(ptr %o) alwaysinline {
  %n = load i32, ptr %o
  %lasts = icmp slt i32 %n, 0
  %step = select i1 %lasts, i32 0, i32 1
  %m = add i32 %n, %step
  store i32 %m, ptr %o
  ret void
}
define internal void @drop(ptr %o) {
  %n = load i32, ptr %o
  %lasts = icmp slt i32 %n, 0
  br i1 %lasts, label %done, label %counted
counted:
  %m = sub i32 %n, 1
  store i32 %m, ptr %o
  %last = icmp eq i32 %m, 0
  br i1 %last, label %free, label %done
free:
  call void @_Py_Dealloc(ptr %o)
  br label %done
done:
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


class _Writer(Expressions):
    """Writes statements, and the frame around them."""

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
        counts = _LASTING_COUNTS if self.layout.lasting else _PLAIN_COUNTS
        self.used.add("_Py_Dealloc")
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
            self._say("br i1 %stops, label %dropped, label %clear")
            self._label("clear")
            self._c("PyErr_Clear")
            self._say("br label %again")
            self._label("again")
            self._say("store i1 true, ptr %restarts")
        self._say("br label %dropped")
        # What a statement made is dropped at its end, but for one that failed.
        self._label("dropped")
        for place in self.places:
            self._forget(place)
        self._say("br label %leave")
        self._label("leave")
        for place in self.locals.values():
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
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
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

    def _return(self, v: Value) -> None:
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
                at_list = self.layout.elements
                apart = self._set(f"getelementptr i8, ptr {whole}, i64 {at_list}")
                apart = self._set(f"load ptr, ptr {apart}")
                first = self._set(f"select i1 {is_list}, ptr {apart}, ptr {inside}")
                here = self._set(f"getelementptr ptr, ptr {first}, i64 {k}")
                self._assign_value(one, self._held(Value(self._set(f"load ptr, ptr {here}"))))
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

    def _assign_value(self, target: ast.expr, v: Value) -> None:
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

    def _unpacked(self, v: Value, count: int) -> list[Value]:
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
        return [self._held(Value(self._item(whole, k))) for k in range(count)]

    def _store(self, target: ast.expr, v: Value) -> None:
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


def _loading(target: ast.expr) -> ast.expr:
    """Return what is read where an expression is written."""
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
    raise Unsupported("the target of an assignment")
