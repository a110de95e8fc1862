"""Which launches of a list wait for which: those that touch the same memory, one of them writing.

A device that takes a list as a graph runs the others side by side: a small product leaves most of
a large device idle, and the gradients of a layer's weight and of its input need nothing of each
other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from burn_cube_backend.launch_log import WRITES, LaunchLog, Pointer
from burn_cube_backend.memory_plan import Arrangement

# The one piece of memory for what dies inside.
SCRATCH = "scratch"


class Access(NamedTuple):
    """What a launch does with a piece of memory: bytes `start` to `end` of a space."""

    call: int
    space: Hashable
    start: int
    end: int
    writes: bool


def accesses(log: LaunchLog, plan: Arrangement) -> list[Access]:
    """Return what the launches of a log do with memory that is arranged so, in their order."""
    whole = 1 << 62

    def access(p: Pointer) -> Access:
        writes = bool(p.mode & WRITES)
        if p.base[0] != "block":
            return Access(p.call, p.base, 0, whole, writes)
        block = p.base[1]
        host, at = plan.places[block]
        if host < 0:
            return Access(p.call, SCRATCH, at, at + log.blocks[block].size, writes)
        # It may be the memory of an input, in some runs.
        space = ("input", plan.over[host]) if host in plan.over else ("block", host)
        return Access(p.call, space, at, at + log.blocks[block].size, writes)

    return sorted({access(p) for p in log.pointers}, key=lambda a: a.call)


def waits(
    touched: Sequence[Access], launches: int, alone: Sequence[int] = ()
) -> list[list[int]]:  # fmt: skip
    """Return the launches that each one has to wait for, without those that others wait for.

    Args:
        touched: what the launches do with memory, in their order.
        launches: how many there are.
        alone: those that run when all before are done, and before all that follow.

    Example:
        >>> spaces = [("w", True), ("x", True), ("w", False), ("x", False)]
        >>> waits([Access(k, s, 0, 8, w) for k, (s, w) in enumerate(spaces)], 4)
        [[], [], [0], [1]]
    """
    before: list[set[int]] = [set() for _ in range(launches)]
    # Of each space what nobody has written over since.
    live: dict[Hashable, list[Access]] = {}
    for a in touched:
        mine = before[a.call]
        kept: list[Access] = []
        for b in live.get(a.space, ()):
            meets = b.start < a.end and a.start < b.end
            if meets and b.call != a.call and (a.writes or b.writes):
                mine.add(b.call)
            if not (a.writes and a.start <= b.start and b.end <= a.end and b.call != a.call):
                kept.append(b)
        kept.append(a)
        live[a.space] = kept
    for k in alone:
        before[k].update(range(k))
        for mine in before[k + 1 :]:
            mine.add(k)
    return reduced(before)


def reduced(before: Sequence[set[int]]) -> list[list[int]]:
    """Return the same order without launches that are waited for anyway."""
    behind: list[int] = []  # of each launch all that are done before it, one bit each
    out: list[list[int]] = []
    for mine in before:
        known, direct = 0, []
        for k in sorted(mine, reverse=True):
            if not known >> k & 1:
                direct.append(k)
                known |= behind[k] | 1 << k
        behind.append(known)
        out.append(sorted(direct))
    return out


def order_of(log: LaunchLog, plan: Arrangement) -> list[list[int]]:
    """Return the launches of a log that each one has to wait for."""
    return waits(accesses(log, plan), len(log.calls), log.fixed)
