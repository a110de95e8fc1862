"""Random numbers inside the kernel of a group: whole blocks of Philox, of which nothing is wasted.

A processor draws the words of a piece into memory near by, in a loop of their own, and reads them
back element by element. A unit of a GPU draws the blocks of its vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import LEAVES, Part
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.elementwise import PIECE
from burn_cube_backend.kernels.random import Drawn, Stream, drawn, key_words
from burn_cube_backend.kernels.row_walks import At
from burn_std import dtypes as d

# Parts of a group by their numbers, and what they draw.
What = tuple[tuple[int, Drawn], ...]


def is_whole(what: What, width: int) -> bool:
    """Return whether vectors of a width take whole blocks of every part."""
    return all(width * drawn.each % 4 == 0 for _, drawn in what)


class Draws:
    """The random numbers of a kernel.

    Args:
        code: the kernel; gets the parameters of each part, the key's before the distribution's.
        what: the parts.
    """

    def __init__(self, code: Code, what: What) -> None:
        self.code = code
        self.what = dict(what)
        self.streams = {p: Stream(code, f"_{p}") for p in self.what}
        self.numbers = {p: drawn.parameters(code, f"_{p}") for p, drawn in self.what.items()}
        self._near: dict[int, tuple[list[Buf], Val]] = {}
        self._words: dict[int, list[list[Val]]] = {}
        self._now: dict[int, list[Val]] = {}

    def scratch(self, first: Val, count: Val) -> None:
        """Draw the words of so many elements from a place on, as many as a piece has at most."""
        for p, one in self.what.items():
            per = 4 // one.each
            # The first block may begin before the first element, and the last end behind the last.
            bufs = [self.code.shared(d.uint32, PIECE + 2 * per) for _ in range(one.each)]
            block = first // per
            blocks = (first + count + (per - 1)) // per - block
            with self.code.loop(self.code.at(0), blocks, independent=True) as k:
                words = self.streams[p].block(block + k)
                for n, word in enumerate(words):
                    bufs[n % one.each][k * per + n // one.each] = word
            self._near[p] = (bufs, block * per)

    def near(self, place: Val) -> None:
        """Go to an element of the piece."""
        for p, (bufs, start) in self._near.items():
            self._now[p] = [buf[place - start] for buf in bufs]

    def values(self, p: int, at: At, start: Val) -> list[Val]:
        """Return the values of a part at places of a line that begins at `start`."""
        one, (bufs, first) = self.what[p], self._near[p]
        words = [at.load(buf, start - first, None) for buf in bufs]
        numbers = [at.of(n) for n in self.numbers[p]]
        return [one.value([w[k] for w in words], [n[k] for n in numbers]) for k in range(at.count)]

    def vector(self, number: Val, width: int) -> None:
        """Draw the words of a vector, which is of whole blocks."""
        for p, one in self.what.items():
            blocks = width * one.each // 4
            words = [
                word for k in range(blocks) for word in self.streams[p].block(number * blocks + k)
            ]
            each = one.each
            self._words[p] = [words[k : k + each] for k in range(0, len(words), each)]

    def go(self, lane: int) -> None:
        """Go to a lane of the vector."""
        for p, words in self._words.items():
            self._now[p] = words[lane]

    def value(self, p: int) -> Val:
        """Return the value of a part at the element."""
        return self.what[p].value(self._now[p], self.numbers[p])


class Drawing:
    """The random numbers of a group.

    Args:
        parts: of the group.

    Attributes:
        own: places of their run-time values among all: extents, two numbers and a key of each.
        shapes: places of the extents.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = [(p, part) for p, part in enumerate(parts) if part.name in LEAVES]
        starts = [sum(part.numbers for part in parts[:p]) for p, _ in self.parts]
        self.own = {at + k for at in starts for k in range(4)}
        self.shapes = starts

    def of(self, given: Sequence[Any]) -> tuple[What, list[Any]]:
        """Return what is drawn, and the arguments that say so.

        Args:
            given: the run-time values of the group.
        """
        what: list[tuple[int, Drawn]] = []
        keys: list[Any] = []
        numbers: list[Any] = []
        for (p, part), at in zip(self.parts, self.shapes, strict=True):
            one, said = drawn(part.name, part.dtype, given[at + 1], given[at + 2])
            what.append((p, one))
            keys += key_words(given[at + 3])
            numbers += said
        # The keys of all parts come first, as the parameters do.
        return tuple(what), keys + numbers
