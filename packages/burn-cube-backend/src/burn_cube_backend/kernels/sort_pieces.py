"""The kernels that sort long lines on the cpu: pieces of a line, one digit at a time.

Which half of the memory has the keys before a digit stands in memory: a digit that all keys share
is skipped, and only the kernels know which are.
"""

from __future__ import annotations

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.kernels.radix import DIGITS, ordered
from burn_cube_backend.kernels.sort_keys import Lines, Pairs, cleared
from burn_std import dtypes as d


class Cut:
    """A piece of a long line, and where the kernels of one digit keep what they count."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.counts, self.halves = code.buffer("counts", d.int32), code.buffer("halves", d.int32)

    def arguments(self) -> None:
        """Add the numbers that say which piece and digit these are."""
        code = self.code
        self.length, self.pieces, self.piece, self.digits, self.number = (
            code.place(name) for name in ("length", "pieces", "piece", "digits", "number")
        )
        unit = self.unit = code.special("cube_pos")
        self.line = unit // self.pieces
        self.start = (unit - self.line * self.pieces) * self.piece
        self.stop = (self.start + self.piece).call("min", self.length)
        self.mark = self.line * (self.digits + 1) + self.number

    def memory(self) -> tuple[Val, Val]:
        """Return where the pairs of the line are before this digit, and the other half."""
        half = self.halves[self.mark].cast(self.code.index)
        first = self.line * 2
        return (first + half) * self.length, (first + 1 - half) * self.length


def pairs_kernel(s: Lines) -> Kernel:
    """Write keys and places of a piece of a line."""
    code = Code("sort_pairs", s.places, 1)
    x, pairs, cut = code.buffer("x", s.source), Pairs(code, s), Cut(code)
    cut.arguments()
    hop, offset = code.place("hop"), code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    base = code.walk(offset, code.coords(cut.line, extents), strides)
    head = cut.line * 2 * cut.length
    with code.loop(cut.start, cut.stop, independent=True) as i:
        key = ordered(x[base + i * hop])
        pairs.put(head + i, ~key if s.descending else key, i)
    cut.halves[cut.line * (cut.digits + 1)] = code.const(0, d.int32)
    return code.finish()


def count_kernel(s: Lines) -> Kernel:
    """Write how often each digit is in a piece."""
    code = Code("sort_count", s.places, 1)
    pairs, cut = Pairs(code, s), Cut(code)
    cut.arguments()
    shift = code.scalar("shift", d.uint64)
    near = code.shared(d.int32, DIGITS)
    cleared(code, near, DIGITS)
    head, _ = cut.memory()
    with code.loop(cut.start, cut.stop) as i:
        at = pairs.digit(pairs.words[head + i], shift)
        near[at] = near[at] + 1
    with code.loop(code.at(0), code.at(DIGITS)) as k:
        cut.counts[cut.unit * DIGITS + k] = near[k]
    return code.finish()


def start_kernel(s: Lines) -> Kernel:
    """Write over the counts of a line where each piece puts each digit; note what is skipped."""
    code = Code("sort_starts", s.places, 1)
    cut = Cut(code)
    cut.arguments()
    line = code.special("cube_pos")
    mark = line * (cut.digits + 1) + cut.number
    running, all_ = code.local(d.int32), code.local(d.int32)
    with code.loop(code.at(0), code.at(DIGITS)) as k:
        before = running.get()
        with code.loop(code.at(0), cut.pieces) as p:
            at = (line * cut.pieces + p) * DIGITS + k
            found = cut.counts[at]
            cut.counts[at] = running.get()
            running.set(running.get() + found)
        one = (running.get() - before).cast(code.index).eq(cut.length)
        all_.set(one.pick(code.const(1, d.int32), all_.get()))
    half = cut.halves[mark]
    cut.halves[mark + 1] = all_.get().eq(1).pick(half, 1 - half)
    return code.finish()


def move_kernel(s: Lines) -> Kernel:
    """Write the pairs of a piece behind those of smaller digits and earlier pieces."""
    code = Code("sort_move", s.places, 1)
    pairs, cut = Pairs(code, s), Cut(code)
    cut.arguments()
    shift = code.scalar("shift", d.uint64)
    near = code.shared(d.int32, DIGITS)
    head, other = cut.memory()
    with code.when(cut.halves[cut.mark].ne(cut.halves[cut.mark + 1])):
        with code.loop(code.at(0), code.at(DIGITS)) as k:
            near[k] = cut.counts[cut.unit * DIGITS + k]
        with code.loop(cut.start, cut.stop) as i:
            word = pairs.words[head + i]
            at = pairs.digit(word, shift)
            place = near[at]
            near[at] = place + 1
            pairs.move(word, head + i, other + place.cast(code.index))
    return code.finish()


def result_kernel(s: Lines, values: bool) -> Kernel:
    """Write a piece of a line in order."""
    code = Code("sort_result", s.places, 1)
    target = code.buffer("values", s.source) if values else None
    order, x = code.buffer("order", d.int64), code.buffer("x", s.source)
    pairs, cut = Pairs(code, s), Cut(code)
    cut.arguments()
    hop, offset = code.place("hop"), code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    base = code.walk(offset, code.coords(cut.line, extents), strides)
    head, _ = cut.memory()
    with code.loop(cut.start, cut.stop, independent=True) as i:
        place = pairs.place(head + i)
        to = cut.line * cut.length + i
        order[to] = place.cast(d.int64)
        if target is not None:
            target[to] = x[base + place * hop]
    return code.finish()
