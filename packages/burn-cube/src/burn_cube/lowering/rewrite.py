"""Rewriting: copies of kernels, and rules that replace operations by simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube.builder import Builder
from burn_cube.ir import Kernel, Op, Region

Rule = Callable[[Op, Builder], Op | None]


def clone(kernel: Kernel) -> Kernel:
    """Return a copy that shares nothing that a pass changes.

    Example:
        >>> from burn_cube import Builder
        >>> kernel = Builder("empty").finish()
        >>> clone(kernel).body is kernel.body
        False
    """
    names: dict[Op, Op] = {}

    def copy_op(op: Op) -> Op:
        made = Op(op.name, op.type, tuple(names[a] for a in op.args), dict(op.attrs), (), op.where)
        names[op] = made
        if "target" in made.attrs:
            made.attrs["target"] = names[made.attrs["target"]]
        made.regions = tuple(copy_region(region) for region in op.regions)
        return made

    def copy_region(region: Region) -> Region:
        return Region([copy_op(op) for op in region.ops])

    params = [copy_op(param) for param in kernel.params]
    return Kernel(
        kernel.name, params, copy_region(kernel.body), kernel.cube_dim, kernel.plane_dim,
        kernel.index, kernel.bounds, kernel.fast_math,
    )  # fmt: skip


def rewrite(kernel: Kernel, rule: Rule) -> Kernel:
    """Apply a rule to every operation, in place; return the kernel.

    The rule may append operations to the builder it gets and returns the operation that takes the
    result's place, or None to keep the old one.
    """
    builder = Builder(
        kernel.name, kernel.cube_dim, index=kernel.index, plane_dim=kernel.plane_dim,
        bounds=kernel.bounds, fast_math=kernel.fast_math,
    )  # fmt: skip
    builder.body = kernel.body
    new: dict[Op, Op] = {}
    heads: list[Op] = []

    def run(region: Region) -> None:
        old, region.ops = region.ops, []
        with builder.inside(region):
            for op in old:
                if op.args:
                    op.args = tuple(new.get(arg, arg) for arg in op.args)
                for inner in op.regions:
                    run(inner)
                builder.where = op.where
                found = rule(op, builder)
                if found is None:
                    region.ops.append(op)
                else:
                    new[op] = found

    builder.body = Region(heads)
    run(kernel.body)
    # Locals that rules made belong to the head of the kernel.
    kernel.body.ops[:0] = builder.body.ops
    return kernel


def same(op: Op, type_: Any, *args: Op, builder: Builder) -> Op:
    """Append the operation with other operands and another type."""
    return builder.emit(op.name, type_, args, dict(op.attrs))
