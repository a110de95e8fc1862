"""Which externals of a segment nobody reads after it, so that results may take their memory."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount

from burn_fusion.segment import BASE, Segment, Value


class Unread:
    """Says it when it is asked, as most plans ask of few externals or of none.

    A note of what a parameter held before does not count: its object gets the new value from the
    very run that may write over the old one.
    """

    __slots__ = ("_ext", "_live", "_seg")

    def __init__(self, seg: Segment, ext: list[Value], live: Sequence[int]) -> None:
        self._seg = seg
        self._ext = ext
        self._live = live

    def __call__(self, numbers: Sequence[int]) -> list[bool]:
        """Return of externals whether only the segment and its notes hold them."""
        if BASE is None:
            return [False] * len(numbers)
        notes: dict[int, int] = {}
        for _, old, _, _ in self._seg.rebinds:
            held = id(old)
            notes[held] = notes.get(held, 0) + 1
        ext = self._ext
        values = [ext[k] for k in numbers]
        # references beside the list: the segment's list and slots, the list of the run
        alone = BASE + 3
        counts = map(getrefcount, values)
        return [c == alone + notes.get(id(v), 0) for c, v in zip(list(counts), values, strict=True)]

    @property
    def heirs(self) -> dict[int, int]:
        """The external that an object held before it was given a result, by the result."""
        place = {slot: k for k, slot in enumerate(self._live)}
        number = {id(v): k for k, v in enumerate(self._ext)}
        found: dict[int, int] = {}
        for ref, old, _, _ in self._seg.rebinds:
            obj = ref()
            if obj is None or obj.v.__class__ is not Value or obj.v.seg is not self._seg:
                continue
            if id(old) in number and obj.v.slot in place:
                found[place[obj.v.slot]] = number[id(old)]
        return found
