"""Transcendental functions as polynomials, so that a loop over them is vectorised.

Everything is branch-free. exp, log, log1p, pow, atan2, tanh and erf of float32 are computed in
float32, sin, cos and tan but for the reduction of their argument; the others of float32 run in
float64 and round once, which needs no care for the last bits. Errors stay within 4 units in the
last place.
"""

from __future__ import annotations

from burn_cube.builder import Builder
from burn_cube.frontend.values import Val, swap_builder
from burn_cube.ir import Kernel, Op
from burn_cube.language import cast
from burn_cube.lowering.circle import MIXED
from burn_cube.lowering.double import WIDE
from burn_cube.lowering.rewrite import rewrite
from burn_cube.lowering.single import NARROW
from burn_cube.types import scalar_of
from burn_std.dtypes import float32, float64


def expand_math(kernel: Kernel, use_float64: bool = True) -> Kernel:
    """Replace transcendental operations in place; return the kernel."""

    def rule(op: Op, builder: Builder) -> Op | None:
        if op.name not in WIDE:
            return None
        before = swap_builder(builder)
        try:
            args = [Val(arg) for arg in op.args]
            if scalar_of(op.type) is float32:
                narrow = NARROW.get(op.name)
                if narrow is not None:
                    return narrow(*args).op
                if not use_float64:
                    return None
                mixed = MIXED.get(op.name)
                if mixed is not None:
                    return mixed(*args).op
                wide = WIDE[op.name](*[cast(arg, float64) for arg in args])
                return cast(wide, float32).op
            return WIDE[op.name](*args).op
        finally:
            swap_builder(before)

    return rewrite(kernel, rule)
