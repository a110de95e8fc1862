"""Where the memory of a list of launches lies: intervals packed, inputs taken over.

What is made and dies inside lies in one piece of memory, places used again as soon as they are
free, or in the memory of a result that is not written yet. A result lies in the memory of an input
that dies before it, or that dies in the very launch that makes it, where that launch may write over
it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

ALIGN = 64
# What is smaller has a place of its own, so that its address depends on no result's.
HOSTED = 1 << 16


class Span:
    """Memory taken in a run.

    Attributes:
        size: bytes.
        first: the first launch that touches it; `last` the last one. -1 while none does.
    """

    __slots__ = ("first", "last", "size")

    def __init__(self, size: int, first: int = -1, last: int = -1) -> None:
        self.size = size
        self.first = first
        self.last = last

    def rested(self, launches: int, end: int) -> Span:
        """Return one that is touched for longer by some launches, within so many in all."""
        last = self.last if self.last < 0 else min(self.last + launches, end - 1)
        return Span(self.size, self.first, last)

    def touched(self, launch: int) -> None:
        """Note a launch that reads or writes it."""
        self.first = launch if self.first < 0 else self.first
        self.last = launch


class Wish(NamedTuple):
    """A launch may write `out` over `x`, a block or, as -1 - k, the input k.

    Attributes:
        launch: which one.
        out, x: numbers of what is written and of what is read.
        more: further launches that walk through both, each writing over what it alone reads.
    """

    launch: int
    out: int
    x: int
    more: int = 0


class Arrangement(NamedTuple):
    """Places of blocks.

    Attributes:
        places: of each block, (-1, offset) in the one piece of memory, or the number of a result
            and an offset in it; a result is at (its own number, 0).
        size: bytes of the one piece.
        over: the input whose memory a result may take, by the result's number.
        live: the most bytes of blocks that live at once, results from their first launch to the
            end of the list.
    """

    places: list[tuple[int, int]]
    size: int
    over: dict[int, int]
    live: int


def arranged(
    blocks: Sequence[Span], results: Sequence[int], wishes: Sequence[Wish],
    inputs: Mapping[int, Span], heirs: Mapping[int, int], launches: int,
) -> Arrangement:  # fmt: skip
    """Return places for blocks.

    Args:
        blocks: with size, first and last launch.
        results: numbers of those that live on.
        wishes: what may be written over what.
        inputs: the inputs whose memory may be taken, with their last launch.
        heirs: the input that a result succeeds, by the result's number.
        launches: how many there are.

    Example:
        >>> blocks = [Span(100, 0, 0), Span(100, 1, 1)]
        >>> arranged(blocks, [], [], {}, {}, 2)
        Arrangement(places=[(-1, 0), (-1, 0)], size=128, over={}, live=100)
    """
    over = _taken_over(blocks, results, wishes, inputs, heirs)
    root = _rooted(blocks, results, wishes, over)
    wholes: dict[int, Span] = {}
    for k, span in enumerate(blocks):
        if root[k] in over or (span.first < 0 and k not in results):
            continue
        whole = wholes.setdefault(root[k], Span(span.size, span.first, span.last))
        whole.first = min(whole.first, span.first)
        whole.last = max(whole.last, span.last)
    free: dict[int, Span] = {}
    for r in results:
        if r in wholes:
            free[r] = Span(wholes[r].size, 0, wholes[r].first - 1)
            wholes[r].first = max(wholes[r].first, 0)
            wholes[r].last = launches - 1
    live = most_live(wholes.values(), launches)
    inner = {k: whole for k, whole in wholes.items() if k not in free}
    placed, size = _packed(inner, free, in_time=False)
    if size > 1.02 * most_live(inner.values(), launches):
        # The largest first is good on the whole; where it is not, the order of time may be.
        other = _packed(inner, free, in_time=True)
        placed, size = min((placed, size), other, key=lambda made: made[1])
    places = [placed.get(root[k], (root[k], 0)) for k in range(len(blocks))]
    return Arrangement(places, size, over, live)


def most_live(spans: Iterable[Span], launches: int) -> int:
    """Return the most bytes that live during one launch.

    Example:
        >>> most_live([Span(100, 0, 1), Span(50, 1, 2), Span(80, 2, 2)], 3)
        150
    """
    change = [0] * (launches + 1)
    for span in spans:
        if span.first >= 0:
            change[span.first] += span.size
            change[span.last + 1] -= span.size
    return max(accumulate(change), default=0)


def _taken_over(
    blocks: Sequence[Span], results: Sequence[int], wishes: Sequence[Wish],
    inputs: Mapping[int, Span], heirs: Mapping[int, int],
) -> dict[int, int]:  # fmt: skip
    """Return which input's memory each result may take; the one that it succeeds comes first."""
    in_place = {(w.out, -1 - w.x): w.launch for w in wishes if w.x < 0 and not w.more}

    def fits(r: int, k: int) -> bool:
        span, given = blocks[r], inputs[k]
        if span.first < 0 or span.size != given.size:
            return False
        met = in_place.get((r, k)) == span.first == given.last
        return met or given.last < span.first

    over = {r: k for r, k in heirs.items() if k in inputs and r in results and fits(r, k)}
    left = [k for k in inputs if k not in over.values()]
    for r in sorted(set(results) - set(over), key=lambda r: -blocks[r].size):
        # One that dies in the launch itself can serve no other result of that launch.
        found = sorted((k for k in left if fits(r, k)), key=lambda k: (-inputs[k].last, k))
        if found:
            over[r] = found[0]
            left.remove(found[0])
    return over


def _rooted(
    blocks: Sequence[Span], results: Sequence[int], wishes: Sequence[Wish], over: Mapping[int, int]
) -> list[int]:
    """Return the block that each one shares its place with: the last that is written over it."""
    after: dict[int, int] = {}
    before: dict[int, int] = {}
    taken: set[int] = set(over)
    own = set(results)
    for w in wishes:
        if w.x < 0 or w.x in own or w.x in after or w.out in taken:
            continue
        x, out = blocks[w.x], blocks[w.out]
        # What it reads was made before, so that no two can wait for each other.
        met = w.launch == out.first and w.launch + w.more == x.last
        # No two walks through the same place may meet.
        earlier, later = before.get(w.x), after.get(w.out)
        alone = earlier is None or blocks[earlier].last < w.launch
        alone = alone and (later is None or x.last < blocks[later].first)
        if x.first < w.launch and met and alone and x.size == out.size:
            after[w.x] = w.out
            before[w.out] = w.x
            taken.add(w.out)
    roots = []
    for k in range(len(blocks)):
        while k in after:
            k = after[k]
        roots.append(k)
    return roots


def _packed(
    spans: Mapping[int, Span], free: Mapping[int, Span], in_time: bool
) -> tuple[dict[int, tuple[int, int]], int]:
    """Return places of spans and the size of the piece of memory they need.

    Each gets the lowest gap between those that live while it does, in a result's memory while that
    is free, else in the piece.

    Args:
        spans: what is placed.
        free: the memory of results, with the launches until which it is free.
        in_time: in the order of their first launches, not of their sizes.
    """
    placed: dict[int, tuple[int, int]] = {}
    taken: dict[int, list[tuple[int, int, Span]]] = {-1: [], **{r: [] for r in free}}
    hosts = sorted(free, key=lambda r: free[r].size)
    size = 0

    def order(k: int) -> tuple[int, ...]:
        span = spans[k]
        return (span.first, -span.size, k) if in_time else (-span.size, span.first, k)

    for k in sorted(spans, key=order):
        span = spans[k]
        length = -(-span.size // ALIGN) * ALIGN
        where = [-1]
        if span.size >= HOSTED:
            where = [r for r in hosts if free[r].size >= length and free[r].last >= span.last]
            where.append(-1)
        for host in where:
            at = _gap(taken[host], span, length)
            if host < 0 or at + length <= free[host].size:
                break
        placed[k] = host, at
        insort(taken[host], (at, at + length, span), key=itemgetter(0))
        if host < 0:
            size = max(size, at + length)
    return placed, size


def _gap(taken: Sequence[tuple[int, int, Span]], span: Span, length: int) -> int:
    """Return the lowest place where nothing lies that lives at the same time."""
    at = 0
    first, last = span.first, span.last
    for start, end, other in taken:
        if start - at >= length:
            break
        if end > at and other.first <= last and first <= other.last:
            at = end
    return at
