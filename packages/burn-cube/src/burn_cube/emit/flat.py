"""Kernels whose units know nothing but their absolute position.

Where a range of positions lies below every limit that such a kernel compares its position with,
guards hold and accesses at the position are inside: a loop over the range tests nothing, which is
what lets a compiler fill it with vectors.
"""

from __future__ import annotations

from burn_cube.ir import Kernel, Op, walk
from burn_cube.types import Memory, Vector

# What units do together, and memory that they share.
_TOGETHER = frozenset({"barrier", "plane", "async_copy", "async_commit", "async_wait"})
_POSITIONS = frozenset({"absolute_pos", "unit_pos", "cube_pos", "unit_pos_plane", "plane_pos"})


class Flat:
    """What holds for positions below all limits.

    Attributes:
        guards: comparisons with a limit, and what they give.
        linear: accesses at the position that are inside.
        limits: the limits: buffers, for their lengths, and numbers of the launch.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.guards: dict[Op, bool] = {}
        self.linear: set[Op] = set()
        self.limits: list[Op] = []
        # Where no access is checked, lengths bound nothing; a launch may not even pass them.
        checked = kernel.bounds != "unchecked"
        for op in walk(kernel.body):
            limit = self._guard(op)
            if limit is None and op.name in ("load", "store") and is_position(op.args[1]):
                memory, value = op.args[0], op.args[2] if op.name == "store" else op
                # Neighbours may reach over an end that the position is below of.
                whole = isinstance(memory.type.elem, Vector) or not isinstance(value.type, Vector)
                if memory.name == "param" and whole and checked:
                    self.linear.add(op)
                    limit = memory
            if limit is not None and limit not in self.limits:
                self.limits.append(limit)

    def _guard(self, op: Op) -> Op | None:
        # pos < limit, limit > pos; or their opposites, which leave early.
        if op.name in ("lt", "ge") and is_position(op.args[0]):
            limit, holds = op.args[1], op.name == "lt"
        elif op.name in ("gt", "le") and is_position(op.args[1]):
            limit, holds = op.args[0], op.name == "gt"
        else:
            return None
        if limit.name == "length":
            limit = limit.args[0]
        elif isinstance(limit.type, Memory):
            return None
        if limit.name != "param":
            return None
        self.guards[op] = holds
        return limit


def is_position(op: Op) -> bool:
    """Return whether a value is the absolute position."""
    return op.name == "special" and op.attrs["name"] == "absolute_pos"


def flat(kernel: Kernel) -> Flat | None:
    """Return what holds below the limits of a kernel, or None where it is not flat."""
    if kernel.cube_dim[1:] != (1, 1):
        return None
    for op in walk(kernel.body):
        if op.name in _TOGETHER or op.name.startswith(("tile_", "group_")):
            return None
        if op.name == "special" and op.attrs["name"] not in _POSITIONS:
            return None
        if op.name == "alloc" and op.type.space == "shared":
            return None
    return Flat(kernel)
