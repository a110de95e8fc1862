"""From scalar expressions of the catalogue to operations of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burn_cube.spi import width_of
from burn_cube_backend.code import Code, Val
from burn_ir import Node
from burn_std import DType, dtypes as d

LARGEST = {
    d.float16: 65504.0,
    d.bfloat16: 3.3895313892515355e38,
    d.float32: 3.4028234663852886e38,
    d.float64: 1.7976931348623157e308,
}

# Operators of the expression language by operations of the IR that mean the same.
_SAME = {
    "sub": "sub", "div": "div", "floordiv": "floordiv", "mod": "mod", "and": "and", "or": "or",
    "xor": "xor", "lshift": "shl", "rshift": "shr", "eq": "eq", "ne": "ne", "neg": "neg",
    "invert": "not", "not": "not", "atan2": "atan2", "hypot": "hypot", "fmod": "rem",
}  # fmt: skip
_ORDER = ("lt", "le", "gt", "ge")
# Of bools: `+` is or, `*` is and; the larger of two is their or.
_OF_BOOLS = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}
_OF_NUMBERS = {"add": "add", "mul": "mul", "maximum": "max", "minimum": "min"}
# Functions that take longer than to write an element and to read it again.
_COSTLY = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "pow",
})  # fmt: skip


class Expression:
    """Appends the operations of one expression to a kernel.

    Args:
        code: the kernel.
        env: value of each name.
        dtype: dtype of numbers that meet no value.
    """

    def __init__(self, code: Code, env: Mapping[str, Any], dtype: DType) -> None:
        self.code = code
        self.env = env
        self.dtype = dtype
        self.done: dict[Node, Any] = {}

    def value(self, node: Node, like: DType | None = None) -> Val:
        """Return the value of an expression; a bare number becomes one of `like`."""
        made = self.part(node)
        return made if isinstance(made, Val) else self.code.const(made, like or self.dtype)

    def part(self, node: Node) -> Any:
        """Return the value of an expression, or a Python number."""
        if node.op == "const":
            return node.value
        if node.op == "name":
            return self.env[node.value]
        found = self.done.get(node)
        if found is None:
            found = self.done[node] = self._made(node)
        return found

    def _made(self, node: Node) -> Any:
        op = node.op
        if op == "cast":
            target: DType = node.args[1].value
            return self.value(node.args[0]).cast(target)
        args = [self.part(a) for a in node.args]
        first = next((a for a in args if isinstance(a, Val)), None)
        if op == "where":
            return self._where(args)
        kind = self.dtype if first is None else first.dtype
        vals = [a if isinstance(a, Val) else self.code.const(a, kind) for a in args]
        return self._operation(op, even(vals))

    def _where(self, args: list[Any]) -> Any:
        cond, then, other = args
        if not isinstance(cond, Val):
            return then if cond else other
        known = next((a for a in (then, other) if isinstance(a, Val)), None)
        kind = known.dtype if known is not None else self.dtype
        a, b = (v if isinstance(v, Val) else self.code.const(v, kind) for v in (then, other))
        cond, a, b = even([cond, a, b])
        return cond.pick(a, b)

    def _operation(self, op: str, vals: list[Val]) -> Val:
        x, rest = vals[0], vals[1:]
        is_bool = x.dtype.is_bool
        if op in _OF_NUMBERS:
            return x.call((_OF_BOOLS if is_bool else _OF_NUMBERS)[op], *rest)
        if op in _ORDER:
            if is_bool:
                x, rest = x.cast(d.uint8), [r.cast(d.uint8) for r in rest]
            return x.call(op, *rest)
        if op == "pow" and not x.dtype.is_float:
            return integer_power(self.code, x, rest[0])
        return x.call(_SAME.get(op, op), *rest)


def even(vals: list[Val]) -> list[Val]:
    """Return values as vectors of one width, where one of them is a vector."""
    width = max(width_of(v.op.type) for v in vals)
    if width == 1:
        return vals
    return [
        v if width_of(v.op.type) == width else Val(v.code, v.code.b.splat(v.op, width))
        for v in vals
    ]


def integer_power(code: Code, x: Val, y: Val) -> Val:
    """Return x to the power y by squaring; of negative powers only those of 1 and -1 are left."""
    dtype = x.dtype
    width = width_of(x.op.type)
    if width > 1:
        lanes = [
            integer_power(code, *(Val(code, code.b.extract(v.op, k)) for v in (x, y))).op
            for k in range(width)
        ]
        return Val(code, code.b.vector(*lanes))
    result, base, left = code.local(dtype, 1), code.local(dtype, x), code.local(dtype, y)
    bits = code.const(dtype.bits - (1 if dtype.is_signed else 0), d.int32)
    with code.loop(0, bits):
        odd = (left.get() & 1).eq(1)
        result.set(odd.pick(result.get() * base.get(), result.get()))
        base.set(base.get() * base.get())
        left.set(left.get() >> 1)
    if not dtype.is_signed:
        return result.get()
    parity = (y & 1).eq(1).pick(x, 1)
    inverse = x.eq(1).pick(x, x.eq(-1).pick(parity, 0))
    return (y < 0).pick(inverse, result.get())


def costly(node: Node) -> int:
    """Return how many functions of an expression take longer than to write and read an element."""
    return (node.op in _COSTLY) + sum(map(costly, node.args))
