"""Arithmetic of float16 and bfloat16 as arithmetic of float32.

Every operation rounds to its dtype: operands widen, the operation runs in float32, its result is
rounded once. What is left on halves is memory, selection and casts. Integers reach halves through
float32 and float64 does as well, on every target, so all agree.
"""

from __future__ import annotations

from burn_cube.builder import Builder
from burn_cube.ir import Kernel, Op
from burn_cube.lowering.rewrite import rewrite, same
from burn_cube.operations import PURE
from burn_cube.types import Vector, like, scalar_of
from burn_std.dtypes import DType, bfloat16, bool_, float16, float32

HALVES = (float16, bfloat16)


def is_half(op: Op) -> bool:
    """Return whether a value is of float16 or bfloat16."""
    return isinstance(op.type, DType | Vector) and scalar_of(op.type) in HALVES


def widen_halves(kernel: Kernel) -> Kernel:
    """Apply the rule of this module in place; return the kernel."""
    return rewrite(kernel, _rule)


def _rule(op: Op, builder: Builder) -> Op | None:
    if op.name in PURE and is_half(op.args[0]):
        wide = [builder.cast(arg, float32) for arg in op.args]
        made = builder.op(op.name, *wide)
        return made if PURE[op.name].result == "truth" else builder.cast(made, scalar_of(op.type))
    if op.name == "plane" and is_half(op) and "shuffle" not in op.attrs["kind"]:
        wide = [builder.cast(op.args[0], float32), *op.args[1:]]
        return builder.cast(same(op, float32, *wide, builder=builder), op.type)
    if op.name == "cast":
        return _cast(op, builder)
    return None


def _cast(op: Op, builder: Builder) -> Op | None:
    old, new = scalar_of(op.args[0].type), scalar_of(op.type)
    if old is float32 or new is float32 or (old not in HALVES and new not in HALVES):
        return None
    if new is bool_:
        zero = builder.const(0.0, like(op.type, float32))
        return builder.op("ne", builder.cast(op.args[0], float32), zero)
    return builder.cast(builder.cast(op.args[0], float32), new)
