"""Calls: builtins, plain Python, and functions that are inlined with their own names."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from burn_cube.errors import KernelError
from burn_cube.frontend.expressions import Expressions, call_builtin
from burn_cube.frontend.frame import Frame
from burn_cube.frontend.source import Source
from burn_cube.frontend.values import (
    MemoryVal,
    Val,
    coerce_to,
    default_dtype,
    describe,
    is_number,
)
from burn_cube.language import BufferAnnotation, Generic, cast
from burn_std.dtypes import DType

# Calls are inlined; deeper nests are taken for a recursion without an end.
MAX_CALLS = 40


class Inlined:
    """A function that is inlined where it is called.

    Attributes:
        source: its text.
        outer: names it sees beside its own.
        signature: binds arguments to its parameters.
    """

    def __init__(
        self, source: Source, outer: list[dict[str, Any]], bind: Callable[..., dict[str, Any]]
    ) -> None:
        self.source = source
        self.outer = outer
        self.bind = bind


class Closure:
    """A function or lambda defined inside a kernel; it sees the names of its place.

    Plain Python code may call it, as it may call any function of the user.
    """

    def __init__(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, owner: Calls) -> None:
        self.node = node
        self.frame = frame
        self.owner = owner

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what the parameters hold."""
        spec = self.node.args
        names = [a.arg for a in spec.args]
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
        bound = dict(zip(names, args, strict=False))
        bound.update(kwargs)
        for name in names:
            if name not in bound:
                if name not in defaults:
                    raise TypeError(f"missing argument {name!r}")
                bound[name] = self.owner.eval(defaults[name])
        if len(args) > len(names) or set(bound) - set(names):
            raise TypeError(f"takes the arguments {', '.join(names) or 'none'}")
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inline the function here."""
        return self.owner.inline_closure(self, args, kwargs)


class Calls(Expressions):
    """Evaluates calls; the base of the expander."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    @abstractmethod
    def function(self, frame: Frame, body: list[ast.stmt]) -> Any:
        """Run the body of a function in its frame and return its result."""

    def eval_Lambda(self, node: ast.Lambda) -> Closure:  # noqa: D102
        return Closure(node, self.frame, self)

    def eval_Call(self, node: ast.Call) -> Any:  # noqa: D102
        fn = self.eval(node.func)
        args = list(self._items(node.args))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            kwargs.update({keyword.arg: value} if keyword.arg else value)
        self.where(node)
        if isinstance(fn, DType):
            if len(args) != 1 or kwargs:
                raise self.error(node, fn.name, "converts one value", len(args))
            return cast(args[0], fn)
        inlined = getattr(fn, "inlined", None)
        if isinstance(inlined, Inlined):
            return self.inline(node, inlined, [*fn.bound, *args], kwargs)
        if isinstance(fn, Closure):
            return self._called(node, lambda: self.inline_closure(fn, tuple(args), kwargs))
        if isinstance(fn, type(len)) or fn in (range, float, int, bool):
            result = self.run(node, call_builtin, fn, args)
            if result is not NotImplemented:
                return result
        result = self.run(node, fn, *args, **kwargs)
        return self.remember(result) if isinstance(fn, type) else result

    def _called(self, node: ast.AST, call: Callable[[], Any]) -> Any:
        where = self.where(node)
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise self.error(
                node, "call", f"calls are inlined and nest at most {MAX_CALLS} deep",
                remedy="A recursion ends by a compile-time condition.",
            )  # fmt: skip
        try:
            return call()
        except KernelError as error:
            if error.where is None:
                error.where = where
            elif error.where != where:
                error.callers.append(where)
            raise
        finally:
            self.calls -= 1
            self.builder.where = where

    def inline(self, node: ast.AST, fn: Inlined, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Inline a `@cube` function at a call."""
        env = self.run(node, fn.bind, *args, **kwargs)
        frame = Frame(fn.source, env, fn.outer, {})
        self._parameters(frame, fn.source.tree)
        return self._called(node, lambda: self.function(frame, fn.source.tree.body))

    def _parameters(self, frame: Frame, tree: ast.FunctionDef) -> None:
        """Check arguments against annotations and bind the generics of a function."""
        for arg in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
            held = frame.env[arg.arg]
            if arg.annotation is None or not isinstance(held, Val | MemoryVal | bool | int | float):
                continue
            where = frame.source.where(arg)
            wanted = self.annotation(frame, arg.annotation)
            if isinstance(wanted, BufferAnnotation) and isinstance(held, MemoryVal):
                if wanted.elem is not None:
                    frame.unify(arg.arg, wanted.elem, held.dtype, where)
            elif isinstance(wanted, DType | Generic):
                if isinstance(held, Val):
                    frame.unify(arg.arg, wanted, held.dtype, where)
                elif is_number(held) and (isinstance(wanted, DType) or wanted in frame.types):
                    dtype = wanted if isinstance(wanted, DType) else frame.types[wanted]
                    self.builder.where = where
                    frame.env[arg.arg] = Val(coerce_to(held, dtype, arg.arg))
                elif isinstance(held, bool | int | float):
                    frame.env[arg.arg] = cast(held, default_dtype(held, self.builder))
            elif isinstance(held, MemoryVal | Val) and wanted in (int, float, bool, str):
                raise KernelError(
                    arg.arg, f"the parameter is a compile-time {wanted.__name__}",
                    got=describe(held), where=where,
                )  # fmt: skip

    def annotation(self, frame: Frame, node: ast.expr) -> Any:
        """Evaluate an annotation; generics stay what they are."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        names: dict[str, Any] = {}
        for scope in reversed([frame.env, *frame.outer]):
            names.update(scope)
        code = compile(ast.Expression(node), frame.source.file, "eval")
        try:
            value = eval(code, {"__builtins__": __builtins__}, names)
        except Exception as error:
            raise KernelError(
                "annotation", f"plain Python raised {type(error).__name__}", got=str(error),
                where=frame.source.where(node),
            ) from error  # fmt: skip
        return value

    def inline_closure(self, fn: Closure, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inline a nested function or lambda."""
        outer = fn.frame
        env = fn.bind(*args, **kwargs)
        frame = Frame(outer.source, env, [outer.env, *outer.outer], outer.types)
        if isinstance(fn.node, ast.FunctionDef):
            return self.function(frame, fn.node.body)
        before, self.frame = self.frame, frame
        try:
            return self.eval(fn.node.body)
        finally:
            self.frame = before
