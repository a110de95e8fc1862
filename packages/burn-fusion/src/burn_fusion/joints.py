"""Operations that put a result together of pieces, inside the group around them: `cat`, padding.

Each piece of a joint's result is a window of one input, or zeros. What is computed from the joint
element by element is computed window by window, in a kernel each that writes into its window of one
result; what makes an input is computed where the window is. So neither the joint nor its inputs are
in memory. Everything that others want of such a group has one shape, and views stand behind joints
alone, so that windows are boxes in all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn_backend import JOINTS, LEAVES
from burn_fusion.bridges import MOST_PATHS, behind, closed, is_costly, is_dear, is_part, is_view
from burn_fusion.extents import is_elementwise

if TYPE_CHECKING:
    from burn_fusion.groups import Grouping
    from burn_fusion.plan import Step

# From where a group is computed to an element of a step: views and joints, with the piece.
_Path = tuple[tuple[int, int], ...]


def is_joint(step: Step) -> bool:
    """Return whether each element of a step's result is one of an input, or zero."""
    name = step.entry.name
    return name == "cat" or (name in JOINTS and all(s == 1 for s in step.static[0]))


def is_constant(step: Step) -> bool:
    """Return whether a step makes a tensor with dims of one number."""
    return step.entry.name == "full" and not step.is_number


def join(grouping: Grouping, live: Sequence[int]) -> None:
    """Unite joints with the elementwise groups that read them and those that they read.

    Args:
        grouping: groups as they are without that.
        live: slots whose values are wanted.
    """
    steps = grouping.steps
    found = [k for k, step in enumerate(steps) if step.entry.name in JOINTS]
    if not found:
        return
    joints = _Joints(grouping, live)
    for k in found:
        if joints.takes(k):
            joints.place(k)


class _Joints:
    def __init__(self, grouping: Grouping, live: Sequence[int]) -> None:
        self.grouping = grouping
        self.live = frozenset(live)
        # Groups that have joints.
        self.made: set[int] = set()
        self.drawn = {s.slot for s in grouping.steps if s.entry.name in LEAVES}

    def takes(self, k: int) -> bool:
        """Return whether the backend has a joint as a part; its arrays are noted then."""
        grouping, step = self.grouping, self.grouping.steps[k]
        if not is_joint(step) or not grouping.tensor(step.slot).shape:
            return False
        dtypes = {grouping.tensor(s).dtype for s in (*step.reads(), step.slot)}
        if len(dtypes) > 1 or not grouping.is_taken(step):
            return False
        grouping.arrays[k] = {*step.reads(), step.slot}
        return True

    def place(self, k: int) -> None:
        """Unite a joint with what reads it, and then with what the group reads, where it may be."""
        grouping = self.grouping
        for r in grouping.users.get(grouping.steps[k].slot, ()):
            self._meet(k, r)
        waiting = [k, *grouping.members[grouping.group[k]]]
        refused: set[int] = set()
        while waiting:
            j = waiting.pop()
            for s in grouping.steps[j].reads():
                _, source = behind(grouping, s)
                if source is None or grouping.group[source] in refused:
                    continue
                if self._meet(k, source):
                    waiting += grouping.members[grouping.group[k]]
                    refused.clear()
                else:
                    refused.add(grouping.group[source])

    def _meet(self, k: int, other: int) -> bool:
        """Unite the groups of two steps, with the views between them; say if that was news."""
        grouping = self.grouping
        groups = {grouping.group[k], grouping.group[other]}
        if len(groups) == 1 or not self._is_open(other):
            return False
        members = closed(grouping, groups)
        if not grouping.can_unite(list(groups)) or not self._fits(members):
            return False
        self.made -= groups
        grouping.unite(sorted(groups))
        first = min(groups)
        self.made.add(first)
        # Nothing else takes such a group in.
        for j in members:
            grouping.joins[j] = False
        return True

    def _is_open(self, k: int) -> bool:
        """Return whether the group of a step can have joints."""
        grouping = self.grouping
        g = grouping.group[k]
        if g in self.made:
            return True
        step = grouping.steps[k]
        if step.entry.name in JOINTS:
            return self.takes(k)
        if is_constant(step):
            grouping.arrays[k] = {step.slot}
            dtype = grouping.tensor(step.slot).dtype
            return len(grouping.members[g]) == 1 and not dtype.is_quantized
        return grouping.rows[g] is None and all(
            grouping.joins[j] and is_elementwise(grouping.steps[j])
            and self.drawn.isdisjoint(grouping.steps[j].reads())
            for j in grouping.members[g] if not is_view(grouping.steps[j])
        )  # fmt: skip

    def _fits(self, members: set[int]) -> bool:
        """Return whether kernels over windows of one shape can compute all of it."""
        grouping = self.grouping
        steps, root = grouping.steps, grouping.extents.root
        if any(not is_view(steps[k]) and not self._belongs(k) for k in members):
            return False
        asked = [k for k in members if not is_view(steps[k]) and self._is_asked(k, members)]
        if len({root(steps[k].slot) for k in asked}) != 1:
            return False
        walk = _Walk(grouping, members)
        if not all(walk.visit(k, ()) for k in asked):
            return False
        if any(k not in walk.found for k in members if not is_view(steps[k])):
            return False
        return all(self._is_worth(k, paths) for k, paths in walk.found.items())

    def _belongs(self, k: int) -> bool:
        step = self.grouping.steps[k]
        return is_elementwise(step) or is_joint(step) or is_constant(step)

    def _is_asked(self, k: int, members: set[int]) -> bool:
        """Return whether somebody else reads a step, or wants it, be it through views."""
        grouping = self.grouping
        slot = grouping.steps[k].slot
        if slot in self.live:
            return True
        for r in grouping.users.get(slot, ()):
            if r not in members or (is_view(grouping.steps[r]) and self._is_asked(r, members)):
                return True
        return False

    def _is_worth(self, k: int, paths: set[_Path]) -> bool:
        """Return whether a step may be computed in so many places."""
        steps = self.grouping.steps
        named = [[steps[v] for v, _ in path] for path in paths]
        if is_dear(steps[k].entry) and any(s.entry.name == "expand" for p in named for s in p):
            return False
        if len(paths) == 1 or not is_costly(steps[k].entry):
            return True
        return all(any(is_part(s) for s in path) for path in named)


class _Walk:
    """Where the steps of a group are computed: by which views and joints they are read in the end.

    Attributes:
        found: the ways to each step.
    """

    def __init__(self, grouping: Grouping, members: set[int]) -> None:
        self.grouping = grouping
        self.members = members
        self.found: dict[int, set[_Path]] = {}

    def visit(self, k: int, path: _Path) -> bool:
        """Go to a step and to what it reads; False where windows could not be followed."""
        grouping = self.grouping
        known = self.found.setdefault(k, set())
        if path in known:
            return True
        known.add(path)
        if len(known) > MOST_PATHS:
            return False
        step = grouping.steps[k]
        if is_joint(step):
            if any(is_view(grouping.steps[v]) for v, _ in path):
                return False
            return all(
                self._follow(s, (*path, (k, n))) for n, s in enumerate(step.reads())
            )  # fmt: skip
        root = grouping.extents.root
        for s in step.reads():
            here = grouping.maker.get(s) in self.members and not grouping.is_number(s)
            if here and (root(s) != root(step.slot) or not self._follow(s, path)):
                return False
        return True

    def _follow(self, slot: int, path: _Path) -> bool:
        grouping = self.grouping
        while (k := grouping.maker.get(slot)) in self.members and not grouping.is_number(slot):
            assert k is not None  # noqa: S101 - None is no member
            if not is_view(grouping.steps[k]):
                return self.visit(k, path)
            path = (*path, (k, 0))
            slot = grouping.steps[k].inputs[0]
        return True
