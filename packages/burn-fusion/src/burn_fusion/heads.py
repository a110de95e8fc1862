"""Convolutions that go into the kernel of the elementwise operations which read them.

The kernel that makes a convolution can compute more of each element before it writes it. So a group
of elementwise operations with one result takes the convolution that nobody but it reads: the last
one, if it reads several, and the others stay what they are. Whether the extents of a run allow it
is for the backend to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
