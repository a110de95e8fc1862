"""Launches that are made twice so that what they make need not wait in memory for a late reader.

A value that is made by a cheap launch, lies through the peak and is read after it, is made again
in front of that reader, by the same launch on the same inputs: the bits are the same. What the
launch reads must be in memory then, or wait for it, if what it makes is larger: several launches
may read the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple

from burn_cube_backend.launch_log import READS, WRITES, Base, LateWord, LaunchLog, Pointer
from burn_cube_backend.memory_plan import Span, Wish
from burn_cube_backend.packs import Packing

# No list grows by more than this share of its launches.
MOST = 0.5


class _Piece(NamedTuple):
    """One launch: its number in the log, and the blocks that stand in for those of the log."""

    call: int
    instead: dict[int, int]


class _Again(NamedTuple):
    """A launch that may be made again: in front of what, where it stands, and what it makes."""

    reader: int
    maker: int
    blocks: tuple[int, ...]


class _List:
    """Launches in order, and when each block is touched."""

    def __init__(self, log: LaunchLog, results: Collection[int]) -> None:
        self.log = log
        self.results = set(results)
        self.pieces = [_Piece(k, {}) for k in range(len(log.calls))]
        self.sizes = [b.size for b in log.blocks]
        self.origin = list(range(len(log.blocks)))
        self.touched: list[list[tuple[Base, int]]] = [[] for _ in log.calls]
        for p in log.pointers:
            self.touched[p.call].append((p.base, p.mode))
        self.look()

    def look(self) -> None:
        """Find out where each block is touched, and what lives at each place."""
        self.uses: dict[int, list[int]] = {}
        self.maker: dict[int, int] = {}
        self.often: set[int] = set()
        for at, piece in enumerate(self.pieces):
            for (kind, number), mode in self.touched[piece.call]:
                if kind != "block":
                    continue
                block = piece.instead.get(number, number)
                places = self.uses.setdefault(block, [])
                if not places or places[-1] != at:
                    places.append(at)
                if mode & WRITES and self.maker.setdefault(block, at) != at:
                    self.often.add(block)
        change = [0] * (len(self.pieces) + 1)
        for block, places in self.uses.items():
            change[places[0]] += self.sizes[block]
            last = len(self.pieces) - 1 if block in self.results else places[-1]
            change[last + 1] -= self.sizes[block]
        self.live = list(accumulate(change))[:-1]

    def candidates(self, peak: int) -> dict[frozenset[int], list[_Again]]:
        """Return what may be made again after the peak, by the blocks that must wait for it."""
        late: dict[int, list[int]] = {}
        for block, places in self.uses.items():
            if block in self.results or block in self.often or peak in places:
                continue
            if places[0] < peak < places[-1] and places[0] == self.maker.get(block):
                late.setdefault(places[0], []).append(block)
        found: dict[frozenset[int], list[_Again]] = {}
        for maker, blocks in late.items():
            reader = min(at for b in blocks for at in self.uses[b] if at > peak)
            needs = self._needs(maker, reader, blocks)
            if needs is not None:
                found.setdefault(needs, []).append(_Again(reader, maker, tuple(blocks)))
        return found

    def saved(self, peak: int, needs: frozenset[int], group: Sequence[_Again]) -> int:
        """Return the bytes that fewer live at the peak, if a group is made again."""
        gone = sum(self.sizes[b] for again in group for b in again.blocks)
        return gone - sum(self.sizes[b] for b in needs if not self._lives(b, peak))

    def _lives(self, block: int, at: int) -> bool:
        places = self.uses[block]
        return places[0] <= at and (at <= places[-1] or block in self.results)

    def _needs(self, maker: int, reader: int, blocks: Collection[int]) -> frozenset[int] | None:
        """Return the blocks that must wait for a launch to be made again; None if it cannot be."""
        piece = self.pieces[maker]
        if not self.log.again[piece.call]:
            return None
        needs = set()
        for (kind, number), mode in self.touched[piece.call]:
            if kind == "input":
                # A result may take an input's memory when nobody reads it any more.
                if mode & WRITES or self.log.last[number] < self.pieces[reader].call:
                    return None
                continue
            other = piece.instead.get(number, number)
            if mode & WRITES:
                # What it makes beside is made again as well, and let go.
                if other not in blocks and (mode & READS or other in self.results):
                    return None
            elif other in self.often:
                return None
            elif not self._lives(other, reader):
                needs.add(other)
        return frozenset(needs)

    def make_again(self, again: _Again) -> None:
        """Put a launch in front of the late reader of what it makes, a second time."""
        made = self.pieces[again.maker]
        instead = dict(made.instead)
        twins = {}
        for (kind, number), mode in self.touched[made.call]:
            if kind == "block" and mode & WRITES:
                block = made.instead.get(number, number)
                instead[number] = twins[block] = self._twin(block)
        for at in range(again.reader, len(self.pieces)):
            piece = self.pieces[at]
            swapped = {
                number: twins[block]
                for (kind, number), _ in self.touched[piece.call]
                if kind == "block" and (block := piece.instead.get(number, number)) in again.blocks
            }
            if swapped:
                self.pieces[at] = _Piece(piece.call, {**piece.instead, **swapped})
        self.pieces.insert(again.reader, _Piece(made.call, instead))

    def _twin(self, block: int) -> int:
        self.sizes.append(self.sizes[block])
        return len(self.sizes) - 1


def rematerialised(log: LaunchLog, results: Collection[int]) -> LaunchLog:
    """Return a log with launches that are made twice; the same log where none is worth it.

    Args:
        log: a run, noted.
        results: numbers of the blocks that live on.
    """
    todo = _List(log, results)
    most = int(MOST * len(log.calls))
    best, kept = max(todo.live, default=0), list(todo.pieces)
    refused: set[Any] = set()
    for _ in range(4 * most):
        top = max(todo.live, default=0)
        if top < best:
            best, kept = top, list(todo.pieces)
        if len(todo.pieces) - len(log.calls) >= most:
            break
        peak = todo.live.index(top)
        groups = [
            (todo.saved(peak, needs, group), group)
            for needs, group in todo.candidates(peak).items()
            if tuple(group) not in refused
        ]
        saved, group = max(groups, default=(0, []))
        if saved <= 0:
            break
        before = list(todo.pieces)
        # From the last on, so that the places of the others stay.
        for again in sorted(group, reverse=True):
            todo.make_again(again)
        todo.look()
        if max(todo.live) > top:
            todo.pieces = before
            refused.add(tuple(group))
            todo.look()
    return _written(log, kept, todo.sizes) if len(kept) > len(log.calls) else log


def without(log: LaunchLog, packings: Sequence[Packing]) -> LaunchLog:
    """Return a log without launches that pack; memory that they made has bases `packed`.

    Those are numbered through all packings.
    """
    left_out = {call for p in packings for call in p.calls}
    made = [block for p in packings for block in p.blocks]
    packed = {block: ("packed", k) for k, block in enumerate(made)}
    pieces = [_Piece(k, {}) for k in range(len(log.calls)) if k not in left_out]
    sizes = [0 if k in packed else b.size for k, b in enumerate(log.blocks)]
    return _written(log, pieces, sizes, packed)


def _written(
    log: LaunchLog, pieces: list[_Piece], sizes: list[int],
    bases: Mapping[int, Base] = MappingProxyType({}),
) -> LaunchLog:  # fmt: skip
    """Return the log of the launches of a list; some blocks have another base."""
    made = log.empty()
    made.blocks = [Span(size) for size in sizes]
    pointers: dict[int, list[Pointer]] = {}
    numbers: dict[int, list[LateWord]] = {}
    wishes: dict[int, list[Wish]] = {}
    for p in log.pointers:
        pointers.setdefault(p.call, []).append(p)
    for n in log.numbers:
        numbers.setdefault(n.call, []).append(n)
    for w in log.wishes:
        wishes.setdefault(w.launch, []).append(w)
    places = {piece.call: k for k, piece in enumerate(pieces)}
    for piece in pieces:
        call, at = log.calls[piece.call], made.words
        shift = at - log.starts[piece.call]
        now = made.add(call, again=log.again[piece.call])
        if piece.call in log.fixed:
            made.fixed.append(now)
        for p in pointers.get(piece.call, ()):
            kind, number = p.base
            base = p.base
            if kind == "block":
                base = bases.get(number) or (kind, piece.instead.get(number, number))
            made.point(p.word + shift, base, p.delta, p.mode)
        made.numbers += [
            n._replace(word=n.word + shift, call=now) for n in numbers.get(piece.call, ())
        ]
        for w in wishes.get(piece.call, ()):
            # A walk is one only while nothing was put between its launches.
            if w.x in bases or (w.more and places.get(w.launch + w.more) != now + w.more):
                continue
            x = piece.instead.get(w.x, w.x) if w.x >= 0 else w.x
            made.wishes.append(Wish(now, piece.instead.get(w.out, w.out), x, w.more))
    return made
