"""The parameters of a kernel: from arguments and annotations to buffers, scalars and structs.

A struct is a dataclass: its fields that are annotated as run-time parameters become parameters of
their own, the others are compile-time values.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from burn_cube.builder import Builder
from burn_cube.errors import KernelError, LaunchError, Where
from burn_cube.frontend.expand import Expander
from burn_cube.frontend.frame import Frame
from burn_cube.frontend.memory import ArrayVal, TensorVal
from burn_cube.frontend.values import Val, describe, is_number, plain
from burn_cube.language import BufferAnnotation, Generic, IndexType
from burn_cube.types import Vector
from burn_std.dtypes import DType, bool_, float32, int32, int64, parse_dtype

RUN_TIME = BufferAnnotation | DType | Generic | IndexType
ALLOWED = (
    "a run-time parameter is an Array[...], a Tensor[...], a dtype, a Generic, index or a "
    "dataclass of them"
)


class Leaf(NamedTuple):
    """One parameter of the kernel, or one run-time field of a struct.

    Attributes:
        name: its name in the kernel.
        spec: its annotation.
        fact: kind, element type and rank of the argument.
        where: the parameter in the user's source.
    """

    name: str
    spec: Any
    fact: Any
    where: Where


def _is_struct(value: object) -> bool:
    return dataclasses.is_dataclass(value)


def _fields_of(value: object) -> tuple[tuple[str, Any], ...]:
    kind: Any = type(value)
    return _fields(kind)


@cache
def _fields(cls: type) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a struct with their annotation, None for compile-time ones."""
    names = vars(sys.modules[cls.__module__])
    out = []
    for field in dataclasses.fields(cls):
        spec: Any = field.type
        if isinstance(spec, str):
            try:
                spec = eval(spec, dict(names))
            except NameError:
                spec = None
        out.append((field.name, spec if isinstance(spec, RUN_TIME) else None))
    return tuple(out)


def flat(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with structs replaced by their run-time fields.

    Example:
        >>> flat((1, 2.0))
        (1, 2.0)
    """
    if not any(_is_struct(arg) for arg in args):
        return tuple(args)
    out: list[Any] = []
    for arg in args:
        if _is_struct(arg):
            out += [getattr(arg, name) for name, spec in _fields_of(arg) if spec is not None]
        else:
            out.append(arg)
    return tuple(out)


def facts_of(arg: Any) -> tuple[Any, ...]:
    """Return kind, element type and rank of an argument: all that a kernel depends on."""
    arg = plain(arg)
    if isinstance(arg, DType | Vector):
        return ("type", arg, None)
    if isinstance(arg, tuple) and len(arg) == 2 and isinstance(arg[0], DType):
        return ("buffer", arg[0], int(arg[1]))
    if is_number(arg):
        if isinstance(arg, bool):
            return ("number", bool_, None)
        if isinstance(arg, float):
            return ("number", float32, None)
        return ("number", int32 if -(2**31) <= arg < 2**31 else int64, None)
    if _is_struct(arg) and not isinstance(arg, type):
        values = [
            (name, getattr(arg, name) if spec is None else facts_of(getattr(arg, name)))
            for name, spec in _fields_of(arg)
        ]
        return ("struct", type(arg), tuple(values))
    dtype = getattr(arg, "dtype", None)
    if dtype is None:
        raise LaunchError("launch", "an argument is a buffer, a dtype or a number", got=repr(arg))
    elem = dtype if isinstance(dtype, DType) else parse_dtype(dtype.name)
    shape = getattr(arg, "shape", None)
    return ("buffer", elem, None if shape is None else len(shape))


class Parameters:
    """Adds the parameters of a kernel to its builder and its frame.

    Args:
        kernel: name of the kernel.
        builder: takes the parameters.
        frame: takes what their names hold.
    """

    def __init__(self, kernel: str, builder: Builder, frame: Frame) -> None:
        self.kernel = kernel
        self.builder = builder
        self.frame = frame
        self._expander = Expander(builder)

    def add(self, params: list[ast.arg], facts: tuple[Any, ...]) -> None:
        """Add them all.

        Args:
            params: the run-time parameters of the function.
            facts: what `facts_of` says of each argument.
        """
        wanted = [(arg, self._annotation(arg), fact) for arg, fact in zip(params, facts,
                                                                         strict=True)]  # fmt: skip
        leaves = [leaf for arg, spec, fact in wanted for leaf in self._leaves(arg, spec, fact)]
        # Buffers first: they settle the generics that scalars use.
        for leaf in leaves:
            if isinstance(leaf.spec, BufferAnnotation):
                self._settle(leaf)
        made = {leaf.name: self._value(leaf) for leaf in leaves}
        for arg, spec, fact in wanted:
            if not isinstance(spec, type):
                self.frame.env[arg.arg] = made[arg.arg]
                continue
            fields = dict(fact[2])
            for name, run_time in _fields(spec):
                if run_time is not None:
                    fields[name] = made[f"{arg.arg}_{name}"]
            self.frame.env[arg.arg] = spec(**fields)

    def _annotation(self, arg: ast.arg) -> Any:
        where = self.frame.source.where(arg)
        if arg.annotation is None:
            raise KernelError(
                arg.arg, ALLOWED, got="no annotation",
                remedy="Compile-time parameters come after `*`.", where=where,
            )  # fmt: skip
        value = self._expander.annotation(self.frame, arg.annotation)
        if not isinstance(value, RUN_TIME) and not (isinstance(value, type) and _is_struct(value)):
            raise KernelError(
                arg.arg, ALLOWED, got=describe(value),
                remedy="Compile-time parameters come after `*`.", where=where,
            )  # fmt: skip
        return value

    def _leaves(self, arg: ast.arg, spec: Any, fact: Any) -> list[Leaf]:
        where = self.frame.source.where(arg)
        if not isinstance(spec, type):
            if fact[0] == "struct":
                raise LaunchError(f"{self.kernel}, {arg.arg}", f"the parameter is a {spec!r}",
                                  got=fact[1].__name__)  # fmt: skip
            return [Leaf(arg.arg, spec, fact, where)]
        if fact[:2] != ("struct", spec):
            got = fact[1].__name__ if fact[0] == "struct" else fact[0]
            rule = f"the parameter is a {spec.__name__}"
            raise LaunchError(f"{self.kernel}, {arg.arg}", rule, got=got)
        facts = dict(fact[2])
        return [
            Leaf(f"{arg.arg}_{name}", inner, facts[name], where)
            for name, inner in _fields(spec)
            if inner is not None
        ]

    def _error(self, leaf: Leaf, rule: str, got: Any, remedy: str | None = None) -> LaunchError:
        return LaunchError(f"{self.kernel}, {leaf.name}", rule, got=got, remedy=remedy)

    def _settle(self, leaf: Leaf) -> None:
        kind, elem, _ = leaf.fact
        if kind == "number" or elem is None:
            raise self._error(leaf, f"the parameter is a {leaf.spec!r}", "a number")
        dtype = elem.dtype if isinstance(elem, Vector) else elem
        if leaf.spec.elem is not None:
            self.frame.unify(leaf.name, leaf.spec.elem, dtype, leaf.where)

    def _value(self, leaf: Leaf) -> Any:
        self.builder.where = leaf.where
        if isinstance(leaf.spec, BufferAnnotation):
            return self._buffer(leaf)
        return Val(self.builder.scalar(leaf.name, self._scalar(leaf)))

    def _buffer(self, leaf: Leaf) -> ArrayVal | TensorVal:
        spec, (_, elem, rank) = leaf.spec, leaf.fact
        if spec.width > 1 and isinstance(elem, DType):
            elem = Vector(elem, spec.width)
        if spec.kind == "array":
            return ArrayVal(self.builder.buffer(leaf.name, elem))
        if rank is None and spec.rank is None:
            raise self._error(
                leaf, "a Tensor has a rank", elem, "Give an array, or a pair (dtype, rank)."
            )
        if spec.rank is not None and rank is not None and spec.rank != rank:
            raise self._error(leaf, f"the parameter is a Tensor of rank {spec.rank}", rank)
        wanted = spec.rank if spec.rank is not None else rank
        return TensorVal(self.builder.buffer(leaf.name, elem, wanted))

    def _scalar(self, leaf: Leaf) -> DType:
        kind, dtype, _ = leaf.fact
        if kind == "buffer":
            raise self._error(leaf, "the parameter is a scalar", "a buffer")
        if isinstance(leaf.spec, IndexType):
            return self.builder.index
        if isinstance(leaf.spec, Generic):
            known = self.frame.types.get(leaf.spec)
            return known or self.frame.unify(leaf.name, leaf.spec, dtype, leaf.where)
        made: DType = leaf.spec
        return made
