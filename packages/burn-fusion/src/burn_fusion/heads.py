"""Convolutions and random numbers that go into the kernel of the elementwise operations after them.

The kernel that makes a convolution can compute more of each element before it writes it. So a group
of elementwise operations with one result takes the convolution that nobody but it reads: the last
one, if it reads several, and the others stay what they are. Whether the extents of a run allow it
is for the backend to say. Random numbers need no memory where one kernel draws and uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn_backend import LEAVES
from burn_fusion.bridges import is_view

if TYPE_CHECKING:
    from burn_fusion.extents import Node
    from burn_fusion.groups import Grouping

HEADS = ("conv",)


def attach(grouping: Grouping, live: Sequence[int]) -> None:
    """Unite convolutions with the groups that read them alone.

    Args:
        grouping: groups of elementwise operations, without views between them.
        live: slots whose values are wanted.
    """
    steps = grouping.steps
    heads = [k for k, step in enumerate(steps) if step.entry.name in HEADS]
    if not heads:
        return
    wanted = set(live)
    readers: dict[int, list[int]] = {}
    for k, step in enumerate(steps):
        for slot in step.reads():
            readers.setdefault(slot, []).append(k)
    for k in reversed(heads):
        step = steps[k]
        groups = {grouping.group[r] for r in readers.get(step.slot, ())}
        if step.slot in wanted or len(groups) != 1:
            continue
        (g,) = groups
        # What took a convolution joins nothing any more.
        if not grouping.joins[g] or grouping.rows[g] is not None:
            continue
        same = grouping.shape[g] == grouping.extents.root(step.slot)
        if not same or not grouping.is_taken(step):
            continue
        made = [steps[j].slot for j in grouping.members[g]]
        others = {s for s in made if any(grouping.group[r] != g for r in readers.get(s, ()))}
        if len(others | wanted.intersection(made)) != 1:
            continue
        grouping.arrays[k] = {*step.reads(), step.slot}
        pair = sorted((k, g))
        if grouping.can_unite(pair):
            grouping.unite(pair)
            for j in grouping.members[pair[0]]:
                grouping.joins[j] = False


def draw(grouping: Grouping) -> None:
    """Unite operations that draw random numbers with a group of elementwise ones that reads them.

    Args:
        grouping: groups as they are otherwise, with their views.
    """
    steps = grouping.steps
    drawn = {s.slot: k for k, s in enumerate(steps) if s.entry.name in LEAVES}
    if not drawn:
        return
    readers: dict[int, list[int]] = {}
    for k, step in enumerate(steps):
        for slot in drawn.keys() & set(step.reads()):
            readers.setdefault(slot, []).append(k)
    for slot, k in drawn.items():
        shape = grouping.extents.root(slot)
        if 0 in grouping.extents.classes(slot) or not grouping.is_taken(steps[k]):
            continue
        for g in dict.fromkeys(grouping.group[r] for r in readers.get(slot, ())):
            if not grouping.joins[g] or not _is_over(grouping, g, shape):
                continue
            grouping.arrays[k] = {slot}
            pair = sorted((k, g))
            if grouping.can_unite(pair):
                grouping.unite(pair)
                first, rows = pair[0], grouping.rows[g]
                grouping.rows[first], grouping.joins[first] = rows, True
                grouping.shape[first] = None if rows is not None else shape
                break


def _is_over(grouping: Grouping, g: int, shape: Node) -> bool:
    """Return whether a group is computed over elements of a shape."""
    rows = grouping.rows[g]
    if rows is not None:
        return rows.forms.get(shape) == "full"
    views = any(is_view(grouping.steps[j]) for j in grouping.members[g])
    return grouping.shape[g] == shape and not views
