"""Elementwise groups with views between them, which one kernel reads through.

A view between two groups says where the elements that one makes are read by the other. One kernel
computes both if it computes the first group at the places that the second asks for. The elements of
one group are its *space*; a group may consist of several, linked by views, all of which lead to one
space, over which the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from burn_fusion.extents import is_elementwise

if TYPE_CHECKING:
    from burn_fusion.groups import Grouping
    from burn_fusion.plan import Step
    from burn_ir import Entry

# Views that show each element once, so that what lies before them can be written through them.
_WHOLE = ("permute", "reshape", "squeeze", "unsqueeze", "flip")
_PARTS = ("slice", "select")
_VIEWS = (*_WHOLE, *_PARTS, "expand")
# Times that the operations of a group are computed at places of their own, at most.
MOST_PATHS = 6
# Functions that are not worth computing twice to save writing and reading an element; and those
# that are not worth computing again for each element that shows one.
_DEAR = ("div", "/", "%", "sqrt")
_COSTLY = ("exp", "log", "sin", "cos", "tan", "pow", "erf", "gelu", "sigmoid", "silu", "mish")


def is_view(step: Step) -> bool:
    """Return whether a step shows elements of its input in other places."""
    return step.entry.name in _VIEWS


def is_costly(entry: Entry) -> bool:
    """Return whether an operation takes longer than to write an element and to read it."""
    return any(word in f"{entry.name} {entry.expr}" for word in _COSTLY)


def is_dear(entry: Entry) -> bool:
    """Return whether an operation takes longer than to read an element that stays in the cache."""
    return is_costly(entry) or any(word in f"{entry.name} {entry.expr}" for word in _DEAR)


def is_part(step: Step) -> bool:
    """Return whether a step shows a part of its input."""
    return step.entry.name in _PARTS


def behind(grouping: Grouping, slot: int) -> tuple[tuple[int, ...], int | None]:
    """Return the views through which a slot shows a result, and the step that makes that."""
    views: list[int] = []
    while (k := grouping.maker.get(slot)) is not None and is_view(grouping.steps[k]):
        views.append(k)
        slot = grouping.steps[k].inputs[0]
    return tuple(views), k


def closed(
    grouping: Grouping, groups: set[int], counts: Callable[[int], bool] = lambda k: True
) -> set[int]:
    """Add the groups of the views between the steps of groups; return the steps of all of them.

    Args:
        grouping: of the program.
        groups: numbers of groups.
        counts: which steps it is that views stand between.
    """
    members: set[int] = set()
    while True:
        members.update(k for g in groups for k in grouping.members[g])
        ends = set(filter(counts, members))
        reads = [s for k in ends for s in grouping.steps[k].reads()]
        shown = [views for views, k in (behind(grouping, s) for s in reads) if k in ends]
        more = {grouping.group[v] for views in shown for v in views} - groups
        if not more:
            return members
        groups |= more


class _Link(NamedTuple):
    """Views by which a space reads another.

    Attributes:
        source: the space that is read; `target` the one that reads.
        views: the steps, the one nearest to the target first.
    """

    source: int
    target: int
    views: tuple[int, ...]


def bridge(grouping: Grouping, live: Sequence[int]) -> None:
    """Unite elementwise groups that views stand between.

    Args:
        grouping: groups as they are without that.
        live: slots whose values are wanted.
    """
    steps = grouping.steps
    if not any(is_view(s) for s in steps):
        return
    bridges = _Bridges(grouping, live)
    for k in range(len(steps)):
        if bridges.space[k] is not None:
            for s in steps[k].reads():
                bridges.cross(k, s)
    for members in grouping.members:
        if len(members) > 1:
            grouping.through.update(bridges.through(set(members)))


class _Bridges:
    """The spaces of a program, and which of them are one group."""

    def __init__(self, grouping: Grouping, live: Sequence[int]) -> None:
        self.grouping = grouping
        self.live = set(live)
        self.space: list[int | None] = [None] * len(grouping.steps)
        for k, step in enumerate(grouping.steps):
            g = grouping.group[k]
            if is_elementwise(step) and grouping.joins[k] and grouping.rows[g] is None:
                self.space[k] = g
        self.users: dict[int, list[int]] = {}
        for k, step in enumerate(grouping.steps):
            for s in step.reads():
                self.users.setdefault(s, []).append(k)

    def cross(self, k: int, slot: int) -> None:
        """Unite the group of a step with the one whose elements it reads through views."""
        grouping = self.grouping
        found = self._behind(slot)
        if found is None:
            return
        views, source = found
        groups = {grouping.group[j] for j in (source, *views, k)}
        if len(groups) == 1:
            return
        members = closed(grouping, groups, lambda j: self.space[j] is not None)
        if any(grouping.rows[g] is not None for g in groups):
            return
        if grouping.can_unite(list(groups)) and self._fits(members):
            grouping.unite(sorted(groups))

    def through(self, members: set[int]) -> dict[int, tuple[int, ...]]:
        """Return by which views the elements of steps of a united group are read in the end."""
        spaces = {x for k in members if (x := self.space[k]) is not None}
        if len(spaces) < 2:
            return {}
        links = self._links(members) or []
        paths = self._paths(links, spaces, *spaces - {link.source for link in links}) or {}
        return {k: paths[x][0] for k in members if (x := self.space[k]) is not None}

    def _behind(self, slot: int) -> tuple[tuple[int, ...], int] | None:
        """Return the views through which a slot shows an elementwise result, and its step."""
        views, k = behind(self.grouping, slot)
        return (views, k) if views and k is not None and self.space[k] is not None else None

    def _links(self, members: set[int]) -> list[_Link] | None:
        """Return how the spaces of a group read each other, None where not by views alone."""
        grouping, links = self.grouping, []
        for k in members:
            target = self.space[k]
            if target is None:
                continue
            step = grouping.steps[k]
            for s in step.reads():
                maker = grouping.maker.get(s)
                if maker not in members or self.space[maker] == target:
                    continue
                found = self._behind(s)
                # Read directly it has another shape, or both would have one space.
                if found is None:
                    return None
                views, source = found
                if source not in members or not members.issuperset(views):
                    continue
                if grouping.extents.root(s) != grouping.extents.root(step.slot):
                    return None
                space = self.space[source]
                assert space is not None  # noqa: S101 - `_behind` ends at an elementwise step
                links.append(_Link(space, target, views))
        return list(dict.fromkeys(links))

    def _fits(self, members: set[int]) -> bool:
        """Return whether one kernel can compute so many steps."""
        links = self._links(members)
        if links is None:
            return False
        spaces = {x for k in members if (x := self.space[k]) is not None}
        ends = spaces - {link.source for link in links}
        if len(ends) != 1:
            return False
        paths = self._paths(links, spaces, *ends)
        if paths is None or sum(map(len, paths.values())) > MOST_PATHS:
            return False
        asked = self._asked(members)
        steps = self.grouping.steps
        for space, found in paths.items():
            if space in ends:
                continue
            named = [[steps[v].entry.name for v in path] for path in found]
            parts = [any(n in _PARTS for n in names) for names in named]
            repeated = any("expand" in names for names in named)
            if space in asked and (len(found) > 1 or any(parts) or repeated):
                return False
            if repeated and self._has(is_dear, space, members):
                return False
            if len(found) > 1 and not all(parts) and self._has(is_costly, space, members):
                return False
        return True

    def _paths(
        self, links: list[_Link], spaces: set[int], end: int
    ) -> dict[int, list[tuple[int, ...]]] | None:
        """Return by which views each space is read in the end, None where there is a circle."""
        found: dict[int, list[tuple[int, ...]]] = {end: [()]}
        waiting = spaces - {end}
        while waiting:
            ready = [
                x for x in waiting
                if all(link.target in found for link in links if link.source == x)
            ]  # fmt: skip
            if not ready:
                return None
            for x in ready:
                here = [
                    (*path, *link.views)
                    for link in links
                    if link.source == x
                    for path in found[link.target]
                ]
                found[x] = list(dict.fromkeys(here))
                if len(here) > MOST_PATHS:
                    return None
            waiting.difference_update(ready)
        return found

    def _asked(self, members: set[int]) -> set[int]:
        """Return the spaces of which somebody else wants a result."""
        grouping, asked = self.grouping, set()
        for k in members:
            slot = grouping.steps[k].slot
            if slot not in self.live and members.issuperset(self.users.get(slot, ())):
                continue
            space = self.space[k]
            if space is None:
                found = self._behind(slot)
                space = None if found is None else self.space[found[1]]
            if space is not None:
                asked.add(space)
        return asked

    def _has(self, what: Callable[[Entry], bool], space: int, members: set[int]) -> bool:
        steps = self.grouping.steps
        return any(what(steps[k].entry) for k in members if self.space[k] == space)
