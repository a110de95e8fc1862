"""Plane operations written with shared memory and barriers, for targets without planes.

Each unit puts its value where its neighbours find it. Sums combine in the order of a butterfly,
as the shuffles of a GPU do, so results agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube.builder import Builder
from burn_cube.frontend.memory import ArrayVal
from burn_cube.frontend.values import Val, binary, swap_builder
from burn_cube.ir import Kernel, Op
from burn_cube.language import cast, select
from burn_cube.lowering.rewrite import rewrite
from burn_std.dtypes import uint32


def planes_in_memory(kernel: Kernel) -> Kernel:
    """Replace plane operations and plane barriers in place; return the kernel."""
    made: dict[object, ArrayVal] = {}

    def rule(op: Op, builder: Builder) -> Op | None:
        if op.name == "barrier":
            op.attrs["scope"] = "cube"
            return None
        if op.name != "plane":
            return None
        before = swap_builder(builder)
        try:
            return _Plane(kernel, builder, made).result(op).op
        finally:
            swap_builder(before)

    return rewrite(kernel, rule)


class _Plane:
    def __init__(self, kernel: Kernel, builder: Builder, made: dict[object, ArrayVal]) -> None:
        self.builder = builder
        self.cube = kernel.cube_size
        self.size = kernel.plane_dim
        self.made = made
        self.unit = Val(builder.special("unit_pos"))
        self.lane = Val(builder.special("unit_pos_plane"))
        self.first = self.unit - self.lane
        # Units of this plane: the last one of a cube may be short.
        rest = self.first * -1 + self.cube
        self.count: Val = select(rest < self.size, rest, self.size)

    def scratch(self, value: Val) -> ArrayVal:
        key = value.type
        if key not in self.made:
            self.made[key] = ArrayVal(self.builder.shared(value.type, self.cube), self.cube)
        return self.made[key]

    def shared(self, value: Val) -> ArrayVal:
        """Put the value of each unit into memory, where the others read it after a barrier."""
        memory = self.scratch(value)
        # Others may still read what was there before.
        self.builder.barrier()
        memory[self.unit] = value
        self.builder.barrier()
        return memory

    def at(self, memory: ArrayVal, lane: Val, own: Val) -> Val:
        """Return the value of a unit of the plane; the own one where there is none."""
        inside = (lane >= 0) & (lane < self.count)
        value: Val = select(inside, memory[self.first + select(inside, lane, self.lane)], own)
        return value

    def result(self, op: Op) -> Val:
        kind, value = op.attrs["kind"], Val(op.args[0])
        if kind in ("sum", "prod", "min", "max"):
            return self.fold(value, {"sum": "add", "prod": "mul"}.get(kind, kind))
        if kind in ("all", "any", "ballot"):
            mask = self.ballot(value)
            if kind == "ballot":
                return mask
            full: Val = select(
                self.count == 32, 0xFFFFFFFF,
                cast((cast(self.count * 0 + 1, uint32) << cast(self.count, uint32)) - 1, uint32),
            )  # fmt: skip
            return mask == full if kind == "all" else mask != 0
        if kind.endswith(("_sum", "_prod")):
            return self.scan(value, kind)
        other = cast(Val(op.args[1]), self.builder.index)
        places = {
            "shuffle": lambda: other, "broadcast": lambda: other,
            "shuffle_xor": lambda: self.lane ^ other, "shuffle_up": lambda: self.lane - other,
            "shuffle_down": lambda: self.lane + other,
        }  # fmt: skip
        return self.at(self.shared(value), places[kind](), value)

    def fold(self, value: Val, name: str) -> Val:
        step = 1
        while step < self.size:
            memory = self.shared(value)
            partner = self.lane ^ step
            met = binary(name, value, self.at(memory, partner, value))
            value = select(partner < self.count, met, value)
            step *= 2
        # In a short plane the butterfly has holes; its first unit met all the others.
        if self.cube % self.size:
            first = self.shared(value)[self.first]
            value = select(self.count == self.size, value, first)
        return value

    def scan(self, value: Val, kind: str) -> Val:
        """Add up one after the other: the order that has one result for every target."""
        memory = self.shared(value)
        name, start = ("add", 0) if kind.endswith("sum") else ("mul", 1)
        total = cast(start, value.dtype)
        inclusive = kind.startswith("inclusive")
        for at in range(min(self.size, self.cube)):
            reached = self.lane >= at if inclusive else self.lane > at
            item = self.at(memory, self.lane * 0 + at, value)
            total = select(reached, binary(name, total, item) if at or not inclusive else item,
                           total)  # fmt: skip
        return total

    def ballot(self, value: Val) -> Val:
        bit: Callable[[Val], Val] = lambda v: select(v, cast(1, uint32), cast(0, uint32))  # noqa: E731
        word = bit(value) << cast(self.lane, uint32)
        step = 1
        while step < self.size:
            memory = self.shared(word)
            partner = self.lane ^ step
            word = select(
                partner < self.count, word | self.at(memory, partner, word), word
            )  # fmt: skip
            step *= 2
        if self.cube % self.size:
            first = self.shared(word)[self.first]
            word = select(self.count == self.size, word, first)
        return word
