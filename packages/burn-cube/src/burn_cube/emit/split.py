"""Barriers on a machine without them: the body of a cube is cut where its units meet.

Between two cuts every unit runs to the end before the next begins: a *group*, emitted as one loop
over the units. Control around a barrier belongs to the cube as a whole. Values that cross a cut
are kept in an array with one element a unit.
"""

from __future__ import annotations

from burn_cube.ir import Kernel, Op, Region, walk

CUBE_LEVEL = -1


class Split:
    """The groups of a kernel with barriers.

    Attributes:
        cube_level: control operations that the cube runs as a whole.
        group: the group of every other operation.
        crossing: values, locals and arrays that more than one group uses.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.cube_level: set[Op] = set()
        self.group: dict[Op, int] = {}
        self.crossing: set[Op] = set()
        self._find(kernel.body)
        self._count = 0
        self._number(kernel.body)
        self._cross(kernel.body)

    def segments(self, region: Region) -> list[list[Op]]:
        """Return the operations of a cube-level region: groups, and single cube-level ones."""
        out: list[list[Op]] = []
        last = None
        for op in region:
            if op.name in ("alloc", "slot", "index", "yield"):
                continue
            alone = op in self.cube_level or op.name == "barrier"
            number = None if alone else self.group[op]
            if out and number is not None and number == last:
                out[-1].append(op)
            else:
                out.append([op])
            last = number
        return out

    def _find(self, region: Region) -> None:
        """Mark control that holds a barrier, then control that jumps out of it."""
        before = -1
        while before != len(self.cube_level):
            before = len(self.cube_level)
            for op in walk(region):
                if op.regions and op not in self.cube_level and self._holds(op):
                    self.cube_level.add(op)

    def _holds(self, op: Op) -> bool:
        return any(
            inner.name == "barrier"
            or inner in self.cube_level
            or inner.attrs.get("target") in self.cube_level
            for region in op.regions
            for inner in walk(region)
        )

    def _number(self, region: Region) -> None:
        self._count += 1
        for op in region:
            if op.name in ("alloc", "slot", "index", "yield"):
                continue
            jump = op.attrs.get("target") in self.cube_level
            if op in self.cube_level or op.name == "barrier" or jump:
                self.cube_level.add(op)
                self._count += 1
                for inner in op.regions:
                    self._number(inner)
                self._count += 1
            else:
                self._own(op)

    def _own(self, op: Op) -> None:
        self.group[op] = self._count
        for region in op.regions:
            for inner in walk(region):
                self.group[inner] = self._count

    def _cross(self, region: Region) -> None:
        users: dict[Op, set[int]] = {}
        for op in walk(region):
            number = self.group.get(op, CUBE_LEVEL)
            for arg in op.args:
                users.setdefault(arg, set()).add(number)
        for op, groups in users.items():
            if op.name == "slot":
                if len(groups) > 1:
                    self.crossing.add(op)
            elif op in self.group and groups != {self.group[op]}:
                self.crossing.add(op)
