"""Asynchronous copies where there are none: a read and a write, at once."""

from __future__ import annotations

from burn_cube.builder import Builder
from burn_cube.ir import Kernel, Op, walk
from burn_cube.lowering.rewrite import rewrite

# What orders copies, and means nothing where they are made at once.
ORDER = ("async_commit", "async_wait")


def copies_at_once(kernel: Kernel) -> Kernel:
    """Replace asynchronous copies and waits in place; return the kernel."""
    if not any(op.name in ("async_copy", *ORDER) for op in walk(kernel.body)):
        return kernel

    def rule(op: Op, builder: Builder) -> Op | None:
        if op.name == "async_copy":
            target, at, source, start, *inside = op.args
            width = op.attrs["width"]
            if not inside:
                value = builder.load(source, start, width)
                builder.store(target, at, value)
                return value
            with builder.if_(inside[0]) as branch:
                builder.store(target, at, builder.load(source, start, width))
            with builder.else_(branch):
                zero = builder.const(0, source.type.elem)
                builder.store(target, at, zero if width == 1 else builder.splat(zero, width))
            return branch
        return None

    rewrite(kernel, rule)
    _drop_waits(kernel)
    return kernel


def _drop_waits(kernel: Kernel) -> None:
    regions = [kernel.body, *(region for op in walk(kernel.body) for region in op.regions)]
    for region in regions:
        region.ops = [op for op in region.ops if op.name not in ORDER]
