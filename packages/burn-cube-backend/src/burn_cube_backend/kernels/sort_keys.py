"""Keys and places of elements that the cpu sorts by digits, in words or beside each other."""

from __future__ import annotations

from typing import NamedTuple

from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.radix import DIGIT, DIGITS, key_dtype, shifts
from burn_std import DType, dtypes as d

# Bits of a place in a packed word.
PLACE = 32


class Lines(NamedTuple):
    """What a kernel depends on.

    Attributes:
        source: dtype of the elements.
        descending: largest first.
        rank: dims of the lines.
        chosen: elements are named by places in memory.
        places: dtype of places.
    """

    source: DType
    descending: bool
    rank: int
    chosen: bool
    places: DType

    @property
    def key(self) -> DType:
        """Dtype of the keys."""
        return key_dtype(self.source)

    @property
    def packed(self) -> bool:
        """Whether keys and places share words."""
        return self.key.bits == 32

    @property
    def shifts(self) -> range:
        """Where the digits begin in a word."""
        found = shifts(self.source)
        by = PLACE if self.packed else 0
        return range(found.start + by, found.stop + by, DIGIT)


class Pairs:
    """Memory for keys and places."""

    def __init__(self, code: Code, s: Lines) -> None:
        self.code, self.s = code, s
        self.words = code.buffer("words", d.uint64)
        self.numbers = None if s.packed else code.buffer("numbers", d.uint32)

    def put(self, at: Val, key: Val, place: Val) -> None:
        """Write a key and its place."""
        if self.numbers is None:
            word = (key.cast(d.uint64) << PLACE) | place.cast(d.uint32).cast(d.uint64)
            self.words[at] = word
            return
        self.words[at] = key
        self.numbers[at] = place.cast(d.uint32)

    def move(self, word: Val, from_: Val, to: Val) -> None:
        """Write a word that was read at a place, and what belongs to it, at another."""
        self.words[to] = word
        if self.numbers is not None:
            self.numbers[to] = self.numbers[from_]

    def place(self, at: Val) -> Val:
        """Return the place of what is at a place."""
        number = self.words[at].cast(d.uint32) if self.numbers is None else self.numbers[at]
        return number.cast(self.code.index)

    def digit(self, word: Val, shift: Val) -> Val:
        """Return the digit of a word as a place."""
        return ((word >> shift) & (DIGITS - 1)).cast(self.code.index)


def cleared(code: Code, memory: Buf, size: int) -> None:
    """Write zeros to memory of a cube."""
    with code.loop(code.at(0), code.at(size), independent=True) as k:
        memory[k] = code.const(0, d.int32)
