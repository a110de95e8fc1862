"""Operations that move to the group that reads them: what they give is not written for it.

A group takes in what reads the same tensors, so that these are read once. What it computes only for
a later group is written by the one and read by the other, although the later group could compute it
from what was there before. It does, where that moves fewer elements: `x - mean` for the result of
a norm stands beside `x - mean` for its variance, and is cheaper computed than read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_fusion.bridges import is_costly
from burn_fusion.extents import MOST_ARRAYS, MOST_PARTS, is_elementwise

if TYPE_CHECKING:
    from burn_fusion.groups import Grouping


def sink(grouping: Grouping) -> None:
    """Move operations from groups that only write them to the one that reads them.

    Args:
        grouping: groups of elementwise operations, rows and columns.
    """
    sinking = _Sinking(grouping)
    for k in reversed(range(len(grouping.steps))):
        sinking.visit(k)


class _Sinking:
    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.live = grouping.live
        self.readers = grouping.users

    def visit(self, k: int) -> None:
        """Move a step, and what it alone needs, if that saves anything."""
        grouping = self.grouping
        slot, a = grouping.steps[k].slot, grouping.group[k]
        if slot in self.live or len(grouping.members[a]) < 2 or not self._moves(k):
            return
        targets = {grouping.group[r] for r in self.readers.get(slot, ())}
        if len(targets) != 1:
            return
        (b,) = targets
        if b == a or not grouping.joins[b]:
            return
        moved = self._needed(k, a, b)
        # The result was written and read: that is two.
        if self._cost(moved, a, b) < 2 and self._fits(moved, b):
            self._move(moved, a, b)

    def _moves(self, k: int) -> bool:
        step = self.grouping.steps[k]
        return is_elementwise(step) and not step.is_number and self.grouping.joins[k]

    def _needed(self, k: int, a: int, b: int) -> set[int]:
        """Return a step with those of its group that are computed for it alone."""
        grouping, moved = self.grouping, {k}
        waiting = [k]
        while waiting:
            for s in grouping.steps[waiting.pop()].reads():
                j = grouping.maker.get(s)
                if j is None or j in moved or grouping.group[j] != a or s in self.live:
                    continue
                if not self._moves(j):
                    continue
                if all(r in moved or grouping.group[r] == b for r in self.readers[s]):
                    moved.add(j)
                    waiting.append(j)
        return moved

    def _cost(self, moved: set[int], a: int, b: int) -> int:
        """Return how many tensors are read more by the later group, or written by the first."""
        grouping = self.grouping
        root = grouping.extents.root
        here = {root(grouping.steps[k].slot) for k in moved}
        cost = 0
        for s in {s for k in moved for s in grouping.steps[k].reads()}:
            j = grouping.maker.get(s)
            if j in moved or grouping.is_number(s) or root(s) not in here:
                continue
            cost += s not in grouping.arrays[b]
            if j is not None and grouping.group[j] == a:
                asked = s in self.live or any(
                    grouping.group[r] not in (a, b) or (grouping.group[r] == b and r not in moved)
                    for r in self.readers[s]
                )
                cost += not asked
        return cost

    def _fits(self, moved: set[int], b: int) -> bool:
        """Return whether the later group can compute the steps."""
        grouping = self.grouping
        rows = grouping.rows[b]
        root = grouping.extents.root
        slots = [grouping.steps[k].slot for k in moved]
        given = {s for k in moved for s in grouping.steps[k].reads()}
        arrays = grouping.arrays[b] - set(slots) | (given - set(slots))
        if len(arrays) > MOST_ARRAYS or len(grouping.members[b]) + len(moved) > MOST_PARTS:
            return False
        if rows is None:
            return all(root(s) == grouping.shape[b] for s in slots)
        # Walks of a row might compute it more than once.
        if any(is_costly(grouping.steps[k].entry) for k in moved):
            return False
        return grouping.fit([*grouping.members[b], *moved], rows)

    def _move(self, moved: set[int], a: int, b: int) -> None:
        # What is read is made before the first group, and so before the later one too.
        grouping = self.grouping
        for k in moved:
            grouping.group[k] = b
            grouping.arrays[b].update(grouping.steps[k].reads(), grouping.steps[k].writes())
        grouping.members[a] = [k for k in grouping.members[a] if k not in moved]
        grouping.members[b] = sorted([*grouping.members[b], *moved])
        grouping.arrays[b] = grouping.crossing(grouping.arrays[b], (b,))
