"""Statements and calls: walks a function's tree and appends what it does to the kernel."""

from __future__ import annotations

import ast
import threading
from typing import TYPE_CHECKING, Any

from burn_cube.errors import KernelError
from burn_cube.frontend.calls import Calls, Closure
from burn_cube.frontend.frame import (
    MISSING,
    Frame,
    Loop,
    Return,
    UnrolledBreak,
    UnrolledContinue,
    read_result,
)
from burn_cube.frontend.source import Assigned, jumps_in, returns_inside
from burn_cube.frontend.values import (
    MemoryVal,
    Slot,
    Val,
    Waiting,
    coerce_to,
    describe,
    is_number,
    plain,
    swap_builder,
)
from burn_cube.ir import Op, Region
from burn_std.dtypes import DType

if TYPE_CHECKING:
    from burn_cube.builder import Builder

ALLOWED = (
    "assignments, if, for, while, break, continue, return, assert, pass, calls and nested functions"
)


class Expander(Calls):
    """Expands one kernel."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self.builder = builder

    def function(self, frame: Frame, body: list[ast.stmt]) -> Any:
        """Run the body of a function in its frame and return its result."""
        outer, self.frame = getattr(self, "frame", None), frame
        before = swap_builder(self.builder)
        try:
            if not returns_inside(body):
                return self._body(body)
            return self._body_with_block(frame, body)
        finally:
            swap_builder(before)
            if outer is not None:
                self.frame = outer

    def _body(self, body: list[ast.stmt]) -> Any:
        try:
            self.statements(body)
        except Return as result:
            return result.value
        return None

    def _body_with_block(self, frame: Frame, body: list[ast.stmt]) -> Any:
        builder, parent = self.builder, self.builder.region
        with builder.block() as block:
            frame.block = block
            value = self._body(body)
            if frame.left and not builder.ended:
                where = self.where(body[-1])
                frame.store_result(value, where)
        if not frame.left:
            _splice(parent, block)
            return value
        return read_result(frame.results)

    def statements(self, body: list[ast.stmt]) -> None:
        """Run statements until the region ends in a jump."""
        for node in body:
            if self.builder.ended:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Run one statement."""
        method = getattr(self, f"do_{type(node).__name__}", None)
        self.where(node)
        if method is None:
            word = type(node).__name__.lower()
            raise self.error(
                node, word, "this statement is not part of the kernel language",
                remedy=f"A kernel has {ALLOWED}.",
            )  # fmt: skip
        try:
            method(node)
        except KernelError as error:
            if error.where is None:
                error.where = self.frame.source.where(node)
            raise

    # --- simple statements -----------------------------------------------------------------

    def do_Pass(self, node: ast.Pass) -> None:  # noqa: D102
        pass

    def do_Expr(self, node: ast.Expr) -> None:  # noqa: D102
        self.eval(node.value)

    def do_Assign(self, node: ast.Assign) -> None:  # noqa: D102
        value = self.eval(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: D102
        dtype = self.eval(node.annotation)
        if node.value is None:
            raise self.error(node, "assignment", "a local gets a value where it is declared")
        value = self.eval(node.value)
        if isinstance(dtype, DType) and (isinstance(value, Val) or is_number(plain(value))):
            self.where(node)
            value = Val(coerce_to(value, dtype, "assignment"))
        self.assign(node.target, value)

    def do_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: D102
        if isinstance(node.target, ast.Name):
            old = self.eval_Name(node.target)
            value = self.binary(node, type(node.op), old, self.eval(node.value))
            self.assign(node.target, value)
            return
        if isinstance(node.target, ast.Subscript):
            base, index = self.eval(node.target.value), self.eval(node.target.slice)
            old = self.present(self.run(node, lambda: base[index]))
            value = self.binary(node, type(node.op), old, self.eval(node.value))
            self.set_item(node.target, base, index, value)
            return
        old = self.eval(node.target)
        self.assign(node.target, self.binary(node, type(node.op), old, self.eval(node.value)))

    def do_Assert(self, node: ast.Assert) -> None:  # noqa: D102
        cond = self.eval(node.test)
        message = str(self.eval(node.msg)) if node.msg else ast.unparse(node.test)
        if isinstance(cond, Val):
            self.builder.assert_(self.truth(node, "assert", cond), message)
        elif not cond:
            raise self.error(node, "assert", message)

    def do_Raise(self, node: ast.Raise) -> None:  # noqa: D102
        if self.frame.depth:
            raise self.error(
                node, "raise", "a run-time branch cannot raise", remedy="Use assert cond, text."
            )
        value = self.eval(node.exc) if node.exc else "raised"
        raise self.error(node, self.frame.source.name, str(value))

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: D102
        self.frame.env[node.name] = Closure(node, self.frame, self)

    def do_Return(self, node: ast.Return) -> None:  # noqa: D102
        frame = self.frame
        value = self.eval(node.value) if node.value is not None else None
        if isinstance(value, Waiting):
            value.settle()
        where = self.where(node)
        if not frame.depth:
            raise Return(value)
        frame.store_result(value, where)
        frame.left = True
        if frame.block is None:
            raise self.error(node, "return", "stands in a function")
        self.builder.leave(frame.block)

    def do_Break(self, node: ast.Break) -> None:  # noqa: D102
        self._jump(node, "break")

    def do_Continue(self, node: ast.Continue) -> None:  # noqa: D102
        self._jump(node, "continue")

    def _jump(self, node: ast.stmt, word: str) -> None:
        loop = self.frame.loops[-1]
        if loop.op is not None:
            self.builder.emit(word, None, (), {"target": loop.op})
        elif self.frame.depth == loop.depth:
            raise UnrolledBreak if word == "break" else UnrolledContinue
        else:
            block = loop.breaks if word == "break" else loop.continues
            if block is None:
                raise self.error(node, word, "stands in a loop")
            self.builder.leave(block)

    # --- binding ---------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target of an assignment."""
        self.where(target)
        if isinstance(target, ast.Name):
            self._assign_name(target, plain(value))
        elif isinstance(target, ast.Tuple | ast.List):
            items = self.sequence(target, value)
            if len(items) != len(target.elts):
                rule = f"{len(target.elts)} names take as many values"
                raise self.error(target, "assignment", rule, len(items))
            for inner, item in zip(target.elts, items, strict=True):
                self.assign(inner, item)
        elif isinstance(target, ast.Subscript):
            self.set_item(target, self.eval(target.value), self.eval(target.slice), value)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target, self.eval(target.value), value)
        else:
            raise self.error(target, "assignment", "assigns names, elements and attributes")

    def _assign_name(self, target: ast.Name, value: Any) -> None:
        frame, name = self.frame, target.id
        held = frame.env.get(name, MISSING)
        if isinstance(held, Slot):
            if not isinstance(value, Val) and not is_number(value):
                raise self.error(
                    target, name, f"the name holds a run-time {held.type.short}", describe(value)
                )
            held.write(value)
            return
        entry = frame.saved[-1] if frame.saved else {}
        if held is not MISSING and name in entry and held is not value:
            raise self.error(
                target, name, "a compile-time object cannot be replaced under a run-time condition",
                describe(value), "Use numbers, or decide at compile time.",
            )  # fmt: skip
        frame.env[name] = value

    def set_item(self, node: ast.Subscript, base: Any, index: Any, value: Any) -> None:
        """Assign one item of memory or of a compile-time container."""
        self.where(node)
        if isinstance(base, Val):
            raise self.error(
                node, "assignment", "the lanes of a vector do not change",
                remedy="Make a new one with vector(...).",
            )  # fmt: skip
        if isinstance(base, list | dict):
            held = self.run(node, base.__getitem__, index) if not isinstance(base, dict) else (
                base.get(index)
            )  # fmt: skip
            if isinstance(held, Slot):
                held.write(value)
                return
            self._check_change(node, base, held)
        self.run(node, lambda: base.__setitem__(index, value))

    def _set_attribute(self, node: ast.Attribute, base: Any, value: Any) -> None:
        held = getattr(base, node.attr, None)
        if isinstance(held, Slot):
            held.write(value)
            return
        if isinstance(base, Val | MemoryVal):
            raise self.error(node, node.attr, "the attribute is read-only", describe(base))
        self._check_change(node, base, held)
        self.run(node, setattr, base, node.attr, value)

    def _check_change(self, node: ast.AST, base: Any, held: Any) -> None:
        """Refuse to change a container in a region it was not made in.

        Expansion passes each region once, so a loop would not see the change of the round before.
        """
        if self.builder.region is self.builder.body or held is None:
            return
        made = self.made.get(id(base))
        at_head = self._block_of_region() is not None
        if at_head or (made is not None and made[1] is self.builder.region):
            return
        if isinstance(held, Val) or is_number(held):
            raise self.error(
                node, "assignment", "an item of a compile-time container changes in a run-time "
                "region that did not make it", describe(held), "Fill it with local(value) cells.",
            )  # fmt: skip

    def _block_of_region(self) -> Op | None:
        """Return the kernel's outermost block where the current region is its body."""
        ops = self.builder.body.ops
        last = ops[-1] if ops else None
        if last is not None and last.name == "block" and last.regions[0] is self.builder.region:
            return last
        return None

    def enter(self, body: list[ast.stmt]) -> None:
        """Turn what a run-time region will assign into mutable locals."""
        assigned = Assigned(body)
        env = self.frame.env
        for name in sorted(assigned.names):
            held = env.get(name, MISSING)
            if not isinstance(held, Slot) and (isinstance(held, Val) or is_number(held)):
                env[name] = Slot(held.slot if isinstance(held, Waiting) else held)
        for name, parts in assigned.elements.items():
            if name in env:
                _cells(env[name], parts)

    # --- control ---------------------------------------------------------------------------

    def do_If(self, node: ast.If) -> None:  # noqa: D102
        cond = self.eval(node.test)
        self.where(node)
        if not isinstance(cond, Val):
            if isinstance(cond, MemoryVal):
                raise self.error(node.test, "if", "a condition is a bool", describe(cond))
            self.statements(node.body if cond else node.orelse)
            return
        test = self.truth(node.test, "if", cond)
        if not isinstance(test.type, DType):
            raise self.error(
                node.test, "if", "a condition is one bool", describe(cond),
                "Use select(cond, a, b) for lanes.",
            )  # fmt: skip
        self.enter([*node.body, *node.orelse])
        self.where(node)
        branch = self.builder.branch(test)
        made = [
            self._region(region, body)
            for region, body in zip(branch.regions, (node.body, node.orelse), strict=True)
        ]
        self._merge(branch, made)

    def _region(self, region: Region, body: list[ast.stmt]) -> dict[str, Any]:
        """Run statements in a region; return the names that are new in it."""
        frame = self.frame
        frame.saved.append(dict(frame.env))
        frame.depth += 1
        try:
            with self.builder.inside(region):
                self.statements(body)
        finally:
            frame.depth -= 1
            before = frame.saved.pop()
            new = {name: held for name, held in frame.env.items() if name not in before}
            frame.env = before
        return new

    def _merge(self, branch: Op, made: list[dict[str, Any]]) -> None:
        frame, builder = self.frame, self.builder
        open_ = [not _ended(region) for region in branch.regions]
        for name in sorted({*made[0], *made[1]}):
            held = [new.get(name, MISSING) for new in made]
            live = [value for value, going in zip(held, open_, strict=True) if going]
            if all(isinstance(v, Val) or is_number(v) for v in live) and live:
                slot: Slot | None = None
                for value, region, going in zip(held, branch.regions, open_, strict=True):
                    if going:
                        with builder.inside(region):
                            if slot is None:
                                slot = Slot(value)
                            else:
                                slot.write(value)
                frame.env[name] = slot
            elif live and all(value is live[0] for value in live) and live[0] is not MISSING:
                frame.env[name] = live[0]
            else:
                frame.maybe[name] = "in one branch only"

    def do_For(self, node: ast.For) -> None:  # noqa: D102
        if node.orelse:
            raise self.error(node.orelse[0], "for", "a kernel's loop has no else")
        if isinstance(node.iter, ast.Call) and self.eval(node.iter.func) is range:
            self._range(node, [self.eval(arg) for arg in node.iter.args])
            return
        self._unrolled(node, self.sequence(node.iter, self.eval(node.iter)))

    def _range(self, node: ast.For, args: list[Any]) -> None:
        self.where(node.iter)
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "for", "the target of a range is one name")
        if not 1 <= len(args) <= 3:
            raise self.error(node.iter, "range", "takes start, stop and step", len(args))
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if not isinstance(step, Val) and step == 0:
            raise self.error(node.iter, "range", "the step is not 0", 0)
        type_ = self._range_type(node, start, stop, step)
        first, end, by = (coerce_to(value, type_, "range") for value in (start, stop, step))
        self.enter(node.body)
        self.where(node)
        frame, builder = self.frame, self.builder
        with builder.for_(first, end, by) as index:
            loop = builder.region
            frame.loops.append(Loop(_owner(builder.loops), frame.depth + 1))
            shadowed = frame.env.get(node.target.id, MISSING)
            frame.env[node.target.id] = Val(index)
            try:
                new = self._region(loop, node.body)
            finally:
                frame.loops.pop()
            del frame.env[node.target.id]
            new[node.target.id] = index
        self._forget(new, "inside the loop only")
        if isinstance(shadowed, Slot):
            frame.env[node.target.id] = shadowed

    def _range_type(self, node: ast.For, *args: Any) -> DType:
        for value in args:
            if isinstance(value, Waiting):
                value.settle()
        types: dict[int, Any] = {id(v.type): v.type for v in args if isinstance(v, Val)}
        for type_ in types.values():
            if not isinstance(type_, DType) or not type_.is_int:
                raise self.error(node.iter, "range", "counts with integers", type_.short)
        if any(isinstance(v, float) for v in args):
            raise self.error(node.iter, "range", "counts with integers", "a float")
        if not types:
            return self.builder.index
        widest: DType = max(types.values(), key=lambda t: t.bits)
        return widest

    def _forget(self, names: dict[str, Any], reason: str) -> None:
        for name in names:
            self.frame.maybe[name] = reason

    def _unrolled(self, node: ast.For, items: list[Any]) -> None:
        frame, builder = self.frame, self.builder
        loop = Loop(None, frame.depth)
        frame.loops.append(loop)
        jumps = jumps_in(node.body)
        try:
            if not jumps:
                for item in items:
                    self.bind_fresh(node.target, item)
                    self.statements(node.body)
                return
            # Whether a jump happens at run time shows only on the way, so all is made ready.
            self.enter(node.body)
            before = set(frame.env)
            parent = builder.region
            with builder.block() as block:
                loop.breaks = block
                for item in items:
                    if self._round(node, item, loop) or builder.ended:
                        break
            if not _splice_unused(parent, block):
                new = [name for name in frame.env if name not in before]
                self._forget({name: frame.env.pop(name) for name in new}, "inside the loop only")
        finally:
            frame.loops.pop()

    def _round(self, node: ast.For, item: Any, loop: Loop) -> bool:
        """Run one round of an unrolled loop; return whether it broke out at expansion."""
        builder, parent = self.builder, self.builder.region
        broke = False
        with builder.block() as block:
            loop.continues = block
            self.bind_fresh(node.target, item)
            try:
                self.statements(node.body)
            except UnrolledContinue:
                pass
            except UnrolledBreak:
                broke = True
        _splice_unused(parent, block)
        return broke

    def do_While(self, node: ast.While) -> None:  # noqa: D102
        if node.orelse:
            raise self.error(node.orelse[0], "while", "a kernel's loop has no else")
        frame, builder = self.frame, self.builder
        self.enter(node.body)
        self.where(node)
        with builder.while_() as op:
            with builder.inside(op.regions[0]):
                cond = self.eval(node.test)
                if cond is not True and not isinstance(cond, Val):
                    raise self.error(
                        node.test, "while", "the condition changes at run time", describe(cond),
                        "A loop that is known at compile time is a for over a sequence.",
                    )  # fmt: skip
                builder.until_false(self.truth(node.test, "while", cond))
            frame.loops.append(Loop(op, frame.depth + 1))
            try:
                new = self._region(op.regions[1], node.body)
            finally:
                frame.loops.pop()
        self._forget(new, "inside the loop only")


def _owner(loops: list[Op]) -> Op:
    return loops[-1]


def _ended(region: Region) -> bool:
    return bool(region.ops) and region.ops[-1].name in ("break", "continue", "leave")


def _left(region: Region, block: Op) -> bool:
    return any(
        op.attrs.get("target") is block or any(_left(inner, block) for inner in op.regions)
        for op in region.ops
    )


def _splice(parent: Region, block: Op) -> None:
    """Replace a block that nothing leaves by its operations."""
    at = parent.ops.index(block)
    parent.ops[at : at + 1] = block.regions[0].ops


def _splice_unused(parent: Region, block: Op) -> bool:
    """Remove a block that nothing leaves; return whether it was one."""
    unused = not _left(block.regions[0], block)
    if unused:
        _splice(parent, block)
    return unused


def _cells(held: Any, parts: set[str]) -> None:
    """Turn the items or attributes that a region will assign into mutable locals."""
    if isinstance(held, list):
        for at, item in enumerate(held):
            if not isinstance(item, Slot) and (isinstance(item, Val) or is_number(item)):
                held[at] = Slot(item)
    elif not isinstance(held, Val | MemoryVal | dict | tuple):
        for name in parts:
            item = getattr(held, name, None)
            if not isinstance(item, Slot) and isinstance(item, Val | bool | int | float):
                object.__setattr__(held, name, Slot(item))


_CURRENT = threading.local()


def current_expander(what: str) -> Expander:
    """Return the expander of this thread, for a `@cube` function that plain Python calls."""
    expander: Expander | None = getattr(_CURRENT, "expander", None)
    if expander is None:
        raise KernelError(
            what, "a @cube function runs in a kernel", got="a plain call",
            remedy=f"Launch it: {what}.launch(client, cubes, ...), or call it from another one.",
        )  # fmt: skip
    return expander


def expand(builder: Builder, frame: Frame) -> None:
    """Expand the body of a kernel into its builder."""
    before = getattr(_CURRENT, "expander", None)
    _CURRENT.expander = expander = Expander(builder)
    tree = frame.source.tree
    try:
        value = expander.function(frame, tree.body)
    except KernelError as error:
        if error.where is None:
            error.where = builder.where
        raise
    finally:
        _CURRENT.expander = before
    if value is not None:
        raise KernelError(
            frame.source.name, "a kernel returns nothing", got=describe(value),
            remedy="Store the result into a buffer.", where=frame.source.where(tree),
        )  # fmt: skip
