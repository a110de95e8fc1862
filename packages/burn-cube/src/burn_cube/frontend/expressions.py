"""Expressions: everything without a run-time value runs as plain Python, the rest is appended."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burn_cube.errors import KernelError, Where
from burn_cube.frontend.frame import Frame
from burn_cube.frontend.memory import ArrayVal
from burn_cube.frontend.values import (
    MemoryVal,
    Slot,
    Val,
    Waiting,
    binary,
    builder_of,
    describe,
    is_number,
    plain,
)
from burn_cube.ir import Op, Region
from burn_cube.language import Generic, IndexType, Position, cast, select
from burn_cube.operations import is_pure
from burn_std.dtypes import DType, bool_

if TYPE_CHECKING:
    from burn_cube.builder import Builder

BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
}  # fmt: skip
COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: operator.contains(b, a),
    ast.NotIn: lambda a, b: not operator.contains(b, a),
}  # fmt: skip
UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


class Expressions:
    """Evaluates expressions in the current frame; the base of the expander."""

    builder: Builder
    frame: Frame

    def __init__(self) -> None:
        # Objects made in a region, kept alive so that an id means one object.
        self.made: dict[int, tuple[Any, Region]] = {}

    def where(self, node: ast.AST) -> Where:
        """Return the place of a node and make it the builder's current one."""
        self.builder.where = self.frame.source.where(node)
        return self.builder.where

    def error(
        self, node: ast.AST, op: str, rule: str, got: Any = None, remedy: str | None = None
    ) -> KernelError:
        """Return the error of a broken rule at a node."""
        return KernelError(op, rule, got=got, remedy=remedy, where=self.where(node))

    def eval(self, node: ast.expr) -> Any:
        """Evaluate one expression."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        if method is None:
            word = type(node).__name__
            raise self.error(
                node, "expression", f"{word} is not part of the kernel language",
                remedy="Compute it before the kernel and pass it after `*`.",
            )  # fmt: skip
        try:
            return method(node)
        except KernelError as error:
            if error.where is None:
                error.where = self.frame.source.where(node)
            raise

    def run(self, node: ast.AST, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run plain Python for a node; what it raises becomes an error at the node."""
        self.where(node)
        try:
            return fn(*args, **kwargs)
        except KernelError:
            raise
        except RecursionError:
            raise self.error(node, "call", "calls nest too deeply at expansion") from None
        except Exception as error:
            name = getattr(fn, "__name__", type(fn).__name__)
            raise self.error(
                node, name, f"plain Python raised {type(error).__name__} at expansion", str(error)
            ) from error

    def present(self, value: Any, where: Where | None = None) -> Any:
        """Return a looked-up object as the kernel sees it here."""
        if isinstance(value, Slot):
            return value.read()
        if isinstance(value, Position | IndexType):
            return value.read()
        if isinstance(value, Generic):
            return self.frame.generic(value, where)
        return value

    # --- leaves ----------------------------------------------------------------------------

    def eval_Constant(self, node: ast.Constant) -> Any:  # noqa: D102
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:  # noqa: D102
        where = self.where(node)
        return self.present(self.frame.lookup(node.id, where), where)

    def eval_Attribute(self, node: ast.Attribute) -> Any:  # noqa: D102
        base = self.eval(node.value)
        where = self.where(node)
        if isinstance(base, Val | MemoryVal) and not hasattr(type(base), node.attr):
            known = sorted(n for n in dir(type(base)) if not n.startswith("_") and n != "op")
            raise self.error(
                node, node.attr, f"{describe(base)} has no such attribute",
                remedy=f"It has {', '.join(known)}.",
            )  # fmt: skip
        return self.present(self.run(node, getattr, base, node.attr), where)

    def eval_Tuple(self, node: ast.Tuple) -> Any:  # noqa: D102
        return tuple(self._items(node.elts))

    def eval_List(self, node: ast.List) -> Any:  # noqa: D102
        return self.remember(list(self._items(node.elts)))

    def eval_Set(self, node: ast.Set) -> Any:  # noqa: D102
        return set(self._items(node.elts))

    def eval_Dict(self, node: ast.Dict) -> Any:  # noqa: D102
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made.update(self.eval(value))
            else:
                made[self.eval(key)] = self.eval(value)
        return self.remember(made)

    def _items(self, nodes: list[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.eval(node.value)
            else:
                yield self.eval(node)

    def remember(self, made: Any) -> Any:
        """Note in which region an object was made; it may be changed there."""
        self.made[id(made)] = (made, self.builder.region)
        return made

    def eval_JoinedStr(self, node: ast.JoinedStr) -> str:  # noqa: D102
        return "".join(
            self._formatted(node, part) if isinstance(part, ast.FormattedValue)
            else str(self.eval(part))
            for part in node.values
        )  # fmt: skip

    def _formatted(self, node: ast.JoinedStr, part: ast.FormattedValue) -> str:
        # Older Pythons know no column inside of the string, so errors point at its start.
        spec = self.eval(part.format_spec) if part.format_spec else ""
        value = self.eval(part.value)
        if isinstance(value, Val):
            raise self.error(
                node, "f-string", "holds compile-time values", describe(value),
                "Print it: print('x =', x).",
            )  # fmt: skip
        return format(value, spec)

    # --- operators -------------------------------------------------------------------------

    def eval_BinOp(self, node: ast.BinOp) -> Any:  # noqa: D102
        left, right = self.eval(node.left), self.eval(node.right)
        return self.binary(node, type(node.op), left, right)

    def binary(self, node: ast.AST, op: type[ast.AST], left: Any, right: Any) -> Any:
        """Apply an operator to two values."""
        for side in (left, right):
            if isinstance(side, MemoryVal):
                raise self.error(
                    node, op.__name__.lower(), "takes values, not memory", describe(side),
                    "Read an element: x[i].",
                )  # fmt: skip
        return self.run(node, BINARY[op], left, right)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: D102
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            if not isinstance(value, Val):
                return not value
            return Val(self.builder.op("not", self.truth(node, "not", value)))
        return self.run(node, UNARY[type(node.op)], value)

    def truth(self, node: ast.AST, what: str, value: Any) -> Op:
        """Return a run-time condition as an operation; only a bool is one."""
        if isinstance(value, bool):
            return self.builder.const(value, bool_)
        if not isinstance(value, Val) or value.dtype is not bool_:
            raise self.error(
                node, what, "a condition is a bool", describe(value), "Compare it: x != 0."
            )
        return value.op

    def eval_Compare(self, node: ast.Compare) -> Any:  # noqa: D102
        left = self.eval(node.left)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.eval(right_node)
            run_time = isinstance(left, Val) or isinstance(right, Val)
            if isinstance(op, ast.Is | ast.IsNot):
                # Whether a value is None is known at expansion.
                step: Any = COMPARE[type(op)](left, right)
            elif run_time and (left is None or right is None):
                raise self.error(node, "compare", "None has no order", remedy="Use `is None`.")
            elif run_time and isinstance(op, ast.In | ast.NotIn):
                raise self.error(node, "in", "looks into compile-time sequences", describe(left))
            else:
                step = self.run(node, COMPARE[type(op)], left, right)
            if result is True:
                result = step
            elif isinstance(result, Val) or isinstance(step, Val):
                result = binary("and", result, step)
            if result is False:
                return False
            left = right
        return result

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: D102
        is_and = isinstance(node.op, ast.And)
        word = "and" if is_and else "or"
        value = self.eval(node.values[0])
        for right in node.values[1:]:
            if not isinstance(value, Val):
                if bool(value) is not is_and:
                    return value
                value = self.eval(right)
                continue
            value = self._short_circuit(node, word, value, right)
        return value

    def _short_circuit(self, node: ast.BoolOp, word: str, left: Val, right: ast.expr) -> Any:
        builder = self.builder
        cond = self.truth(node.values[0], word, left)
        region = Region()
        with builder.inside(region):
            value = self.eval(right)
            if not isinstance(value, Val):
                value = cast(self.run(right, bool, value), bool_)
            other = self.truth(right, word, value)
        self.where(node)
        if _skippable(region):
            builder.region.ops.extend(region.ops)
            return Val(builder.op(word, cond, other))
        slot = builder.slot(bool_)
        builder.set(slot, cond)
        test = cond if word == "and" else builder.op("not", cond)
        builder.emit("if", None, (test,), {}, (region, Region()))
        with builder.inside(region):
            builder.set(slot, other)
        return Val(builder.get(slot))

    def eval_IfExp(self, node: ast.IfExp) -> Any:  # noqa: D102
        cond = self.eval(node.test)
        if not isinstance(cond, Val):
            return self.eval(node.body if cond else node.orelse)
        builder = self.builder
        test = self.truth(node.test, "if", cond)
        regions = (Region(), Region())
        values = []
        for region, side in zip(regions, (node.body, node.orelse), strict=True):
            with builder.inside(region):
                value = plain(self.eval(side))
            if not isinstance(value, Val) and not is_number(value):
                raise self.error(
                    side, "if", "a run-time condition chooses between numbers", describe(value)
                )
            values.append(value)
        self.where(node)
        if all(map(_skippable, regions)):
            for region in regions:
                builder.region.ops.extend(region.ops)
            return select(cond, *values)
        if isinstance(test.type, DType):
            builder.emit("if", None, (test,), {}, regions)
        with builder.inside(regions[0]):
            slot = Slot(values[0])
        with builder.inside(regions[1]):
            slot.write(values[1])
        return slot.read()

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:  # noqa: D102
        value = self.eval(node.value)
        self.assign(node.target, value)
        return value

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target; the expander defines how."""
        raise NotImplementedError

    # --- items -----------------------------------------------------------------------------

    def eval_Subscript(self, node: ast.Subscript) -> Any:  # noqa: D102
        base = self.eval(node.value)
        index = self.eval(node.slice)
        if isinstance(index, Val) and not isinstance(base, MemoryVal | Val):
            if hasattr(base, "__getitem__") and not isinstance(base, list | tuple | dict | str):
                return self.run(node, operator.getitem, base, index)
            raise self.error(
                node, "index", "a compile-time sequence takes a compile-time index",
                describe(index), "Use LocalArray, or loop with unroll(...).",
            )  # fmt: skip
        return self.present(self.run(node, operator.getitem, base, index))

    def eval_Slice(self, node: ast.Slice) -> slice:  # noqa: D102
        parts = (node.lower, node.upper, node.step)
        return slice(*[None if part is None else self.eval(part) for part in parts])

    # --- comprehensions and functions ------------------------------------------------------

    def eval_ListComp(self, node: ast.ListComp) -> list[Any]:  # noqa: D102
        made: list[Any] = self.remember([])
        self._comprehend(node.generators, lambda: made.append(self.eval(node.elt)))
        return made

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> list[Any]:  # noqa: D102
        made: list[Any] = []
        self._comprehend(node.generators, lambda: made.append(self.eval(node.elt)))
        return made

    def eval_DictComp(self, node: ast.DictComp) -> dict[Any, Any]:  # noqa: D102
        made: dict[Any, Any] = {}

        def add() -> None:
            made[self.eval(node.key)] = self.eval(node.value)

        self._comprehend(node.generators, add)
        return made

    def _comprehend(self, parts: list[ast.comprehension], add: Callable[[], None]) -> None:
        saved = dict(self.frame.env)
        try:
            self._generate(parts, add)
        finally:
            self.frame.env = saved

    def _generate(self, parts: list[ast.comprehension], add: Callable[[], None]) -> None:
        if not parts:
            add()
            return
        first, *rest = parts
        for item in self.sequence(first.iter, self.eval(first.iter)):
            self.bind_fresh(first.target, item)
            if all(self.decided(test) for test in first.ifs):
                self._generate(rest, add)

    def decided(self, node: ast.expr) -> bool:
        """Return a condition that must be known at compile time."""
        value = self.eval(node)
        if isinstance(value, Val):
            raise self.error(node, "if", "must be known at compile time here", describe(value))
        return bool(value)

    def sequence(self, node: ast.AST, value: Any) -> list[Any]:
        """Return the items of a compile-time sequence."""
        if isinstance(value, MemoryVal) or (isinstance(value, Val) and value.width == 1):
            raise self.error(
                node, "for", "loops over a range or a compile-time sequence", describe(value),
                "Loop over range(len(x)).",
            )  # fmt: skip
        return [self.present(item) for item in self.run(node, iter, value)]

    def bind_fresh(self, target: ast.expr, value: Any) -> None:
        """Bind the target of a loop or comprehension, whatever the name held before."""
        if isinstance(target, ast.Name):
            self.frame.env[target.id] = value
            return
        if isinstance(target, ast.Tuple | ast.List):
            items = list(value)
            if len(items) != len(target.elts):
                rule = f"{len(target.elts)} names take as many values"
                raise self.error(target, "for", rule, len(items))
            for inner, item in zip(target.elts, items, strict=True):
                self.bind_fresh(inner, item)
            return
        raise self.error(target, "for", "the target is a name or a tuple of names")


def _skippable(region: Region) -> bool:
    """Return whether computing a region for nothing does no harm."""
    return all(is_pure(op.name) or op.name == "get" for op in region.ops)


def call_builtin(fn: Any, args: list[Any]) -> Any:
    """Return what a builtin means for run-time values; NotImplemented where it means itself."""
    builder = builder_of()
    values = [a for a in args if isinstance(a, Val | MemoryVal)]
    if fn is print:
        _print(builder, args)
        return None
    if not values:
        return NotImplemented
    if fn is len:
        (memory,) = args
        return memory.length() if hasattr(memory, "length") else len(memory)
    if fn in (min, max):
        name = "min" if fn is min else "max"
        result = args[0]
        for other in args[1:]:
            result = binary(name, result, other)
        return result
    if fn in (float, int, bool):
        rule = "a run-time value converts with cast"
        raise builder.error(fn.__name__, rule, describe(args[0]), "cast(value, int32).")
    if fn is round:
        return Val(builder.op("round", args[0].op))
    if fn is range:
        raise builder.error("range", "a run-time range stands in the head of a for loop")
    return NotImplemented


def _print(builder: Builder, args: list[Any]) -> None:
    words, values = [], []
    for arg in args:
        if isinstance(arg, Waiting):
            arg.settle()
        if isinstance(arg, Val):
            if arg.width > 1:
                raise builder.error("print", "prints scalars", describe(arg), "Print each lane.")
            words.append("{}")
            values.append(arg.op)
        elif isinstance(arg, ArrayVal):
            raise builder.error("print", "prints values", describe(arg))
        else:
            words.append(str(arg).replace("{", "(").replace("}", ")"))
    builder.print(" ".join(words), *values)
