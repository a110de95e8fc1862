"""Stable sorting on the cpu by digits of eight bits, the lowest first, and the first k of a line.

A unit sorts a line whole in memory of its own; a long line is cut into pieces, whose digits are
counted and moved by all units. Keys of 32 bits carry their place in the same word. A digit that
all keys share is skipped: which half of the memory has the keys is then known to the kernels alone.
For the first k of a line only what shares the leading bits of one of them is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Local, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels.radix import DIGIT, DIGITS, ordered
from burn_cube_backend.kernels.sort_keys import PLACE, Lines, Pairs, cleared
from burn_cube_backend.kernels.sort_pieces import (
    count_kernel,
    move_kernel,
    pairs_kernel,
    result_kernel,
    start_kernel,
)
from burn_cube_backend.payload import CubeTensor
from burn_std import dtypes as d

# Lines above this length are cut where there are few; a piece has at least half as many elements.
LONG = 1 << 15
# Leading bits by which the first k are found.
LEADING = 11
# Work of an element and of a line, in the operations that the runtime counts.
ELEMENT, LINE = 60.0, 6000.0


class _Source:
    """The elements of lines, in any layout, with what is chosen of them and what is written."""

    def __init__(self, code: Code, s: Lines, values: bool) -> None:
        self.code, self.s = code, s
        self.values = code.buffer("values", s.source) if values else None
        self.order = code.buffer("order", d.int64)
        self.x = code.buffer("x", s.source)
        self.chosen = code.buffer("chosen", d.int64) if s.chosen else None
        self.pairs = Pairs(code, s)

    def arguments(self) -> None:
        """Add the numbers that say where lines lie."""
        code = self.code
        self.length, self.hop, self.offset = (
            code.place(name) for name in ("length", "hop", "offset")
        )
        self.extents = code.places("extent", self.s.rank)
        self.strides = code.places("stride", self.s.rank)

    def base(self, line: Val) -> Val:
        """Return where a line begins."""
        return self.code.walk(self.offset, self.code.coords(line, self.extents), self.strides)

    def place(self, line: Val, at: Val) -> Val:
        """Return the place in its line of element `at`."""
        if self.chosen is None:
            return at
        return self.chosen[line * self.length + at].cast(self.code.index)

    def key(self, base: Val, place: Val) -> Val:
        """Return the key of an element; smaller ones come first."""
        key = ordered(self.x[base + place * self.hop])
        return ~key if self.s.descending else key

    def write(self, to: Val, base: Val, place: Val) -> None:
        """Write the place of an element, and the element."""
        self.order[to] = place.cast(d.int64)
        if self.values is not None:
            self.values[to] = self.x[base + place * self.hop]


def _begun(code: Code, counts: Buf, head: Val) -> None:
    """Write over the counts of a digit how many come before each."""
    running = code.local(d.int32)
    with code.loop(code.at(0), code.at(DIGITS)) as k:
        found = counts[head + k]
        counts[head + k] = running.get()
        running.set(running.get() + found)


def _sorted(
    code: Code, s: Lines, pairs: Pairs, counts: Buf, base: Val, count: Val, size: Val
) -> Local:
    """Sort so many pairs at `base`, with as much memory `size` behind them; return where they are.

    The digits are counted all at once.
    """
    many = len(s.shifts)
    cleared(code, counts, many * DIGITS)
    with code.loop(code.at(0), count) as i:
        word = pairs.words[base + i]
        for n, bits in enumerate(s.shifts):
            at = pairs.digit(word, code.const(bits, d.uint64)) + n * DIGITS
            counts[at] = counts[at] + 1
    here = code.local(code.index, base)
    with code.loop(code.at(0), code.at(many)) as k:
        shift = (k * DIGIT + s.shifts.start).cast(d.uint64)
        head = k * DIGITS
        first = pairs.digit(pairs.words[here.get()], shift)
        with code.when(counts[head + first].cast(code.index).ne(count)):
            _begun(code, counts, head)
            from_ = here.get()
            to = base + (base + size - from_)
            with code.loop(code.at(0), count) as i:
                word = pairs.words[from_ + i]
                at = head + pairs.digit(word, shift)
                place = counts[at]
                counts[at] = place + 1
                pairs.move(word, from_ + i, to + place.cast(code.index))
            here.set(to)
    return here


def line_kernel(s: Lines, values: bool) -> Kernel:
    """Write the lines of a unit in order, each whole."""
    code = Code("sort_lines", s.places, 1)
    source = _Source(code, s, values)
    lines, each = code.place("lines"), code.place("each")
    source.arguments()
    pairs, length = source.pairs, source.length
    counts = code.shared(d.int32, len(s.shifts) * DIGITS)
    unit = code.special("cube_pos")
    head = unit * length * 2
    with code.loop(unit * each, ((unit + 1) * each).call("min", lines)) as line:
        base = source.base(line)
        with code.loop(code.at(0), length, independent=True) as i:
            pairs.put(head + i, source.key(base, i), i)
        here = _sorted(code, s, pairs, counts, head, length, length).get()
        with code.loop(code.at(0), length, independent=True) as i:
            source.write(line * length + i, base, pairs.place(here + i))
    return code.finish()


def top_kernel(s: Lines, values: bool) -> Kernel:
    """Write the first k of each piece of the lines of a unit, in order.

    Parameters behind the memory: lines, lines of a unit, pieces of one, elements of a piece, k.
    """
    code = Code("sort_top", s.places, 1)
    source = _Source(code, s, values)
    keys = code.buffer("keys", s.key)
    lines, each, pieces, piece, k = (
        code.place(name) for name in ("lines", "each", "pieces", "piece", "k")
    )
    source.arguments()
    pairs, length = source.pairs, source.length
    counts = code.shared(d.int32, max(1 << LEADING, len(s.shifts) * DIGITS))
    shift = code.const(s.key.bits - LEADING, s.key)
    unit = code.special("cube_pos")
    head, own = unit * piece * 2, unit * piece
    with code.loop(unit * each, ((unit + 1) * each).call("min", lines * pieces)) as number:
        line = number // pieces
        start = (number - line * pieces) * piece
        count = (length - start).call("min", piece)
        base = source.base(line)
        with code.loop(code.at(0), count, independent=True) as i:
            keys[own + i] = source.key(base, source.place(line, start + i))
        cleared(code, counts, 1 << LEADING)
        with code.loop(code.at(0), count) as i:
            at = (keys[own + i] >> shift).cast(code.index)
            counts[at] = counts[at] + 1
        end, enough = code.local(code.index), code.local(code.index)
        with code.b.while_() as loop:
            with code.b.inside(loop.regions[0]):
                code.b.until_false((enough.get() < k).op)
            with code.b.inside(loop.regions[1]):
                enough.set(enough.get() + counts[end.get()].cast(code.index))
                end.set(end.get() + 1)
        found = code.local(code.index)
        with code.loop(code.at(0), count) as i:
            key = keys[own + i]
            with code.when((key >> shift).cast(code.index) < end.get()):
                pairs.put(head + found.get(), key, start + i)
                found.set(found.get() + 1)
        here = _sorted(code, s, pairs, counts, head, found.get(), piece).get()
        with code.loop(code.at(0), k) as i:
            place = source.place(line, pairs.place(here + i))
            source.write(number * k + i, base, place)
    return code.finish()


# ---- launches ----------------------------------------------------------------------------------


class _Sort:
    """One call: the operand as lines, and memory for their pairs."""

    def __init__(
        self, engine: Engine, x: CubeTensor, extents: Ints, strides: Ints, descending: bool
    ) -> None:
        self.engine, self.x = engine, x
        self.length, self.count = extents[-1], size_of(extents)
        self.lines = self.count // self.length
        self.outer, self.steps = extents[:-1] or (1,), strides[:-1] or (0,)
        self.where = [strides[-1], x.offset, *self.outer, *self.steps]
        places = engine.index_dtype(x, count=2 * self.count)
        self.s = Lines(x.dtype, descending, len(self.outer), False, places)
        self.threads: int = engine.client.runtime.threads  # type: ignore[attr-defined]  # of the cpu

    def pairs(self, size: int) -> list[Any]:
        """Return memory for so many pairs, twice."""
        held = [self.engine.flat(2 * size, d.uint64)]
        return held if self.s.packed else [*held, self.engine.flat(2 * size, d.uint32)]

    def start(
        self, make: Callable[..., Kernel], spec: tuple[Any, ...], cubes: int, work: float,
        args: Sequence[Any],
    ) -> None:  # fmt: skip
        """Launch a kernel whose cubes each do so much work."""
        program = self.engine.loaded(make, spec)
        program.cost = max(1.0, work)  # type: ignore[attr-defined]
        self.engine.start(program, (cubes, 1, 1), args)

    def units(self, lines: int) -> tuple[int, int]:
        """Return how many units so many lines take, and how many each does."""
        each = -(-lines // (8 * self.threads))
        return -(-lines // each), each

    def sorted(self, values: CubeTensor | None, order: CubeTensor) -> None:
        """Write all lines in order."""
        wanted = [] if values is None else [values.buf]
        if self.length > LONG and self.lines < 2 * self.threads:
            self._cut(wanted, order)
            return
        units, each = self.units(self.lines)
        args = [
            *wanted, order.buf, self.x.buf, *self.pairs(units * self.length), self.lines, each,
            self.length, *self.where,
        ]  # fmt: skip
        work = each * (LINE + ELEMENT * self.length)
        self.start(line_kernel, (self.s, values is not None), units, work, args)

    def _cut(self, wanted: list[Any], order: CubeTensor) -> None:
        s, engine = self.s, self.engine
        pieces = max(1, min(8 * self.threads // self.lines, 2 * self.length // LONG))
        piece = -(-self.length // pieces)
        pieces = -(-self.length // piece)
        units, digits = self.lines * pieces, len(s.shifts)
        pairs = self.pairs(self.count)
        kept = [
            engine.flat(units * DIGITS, d.int32), engine.flat(self.lines * (digits + 1), d.int32)
        ]  # fmt: skip
        where = [self.length, pieces, piece, digits]
        args = [self.x.buf, *pairs, *kept, *where, 0, *self.where]
        self.start(pairs_kernel, (s,), units, 2.0 * piece, args)
        for number, shift in enumerate(s.shifts):
            now = [*kept, *where, number]
            self.start(count_kernel, (s,), units, 6.0 * piece, [*pairs, *now, shift])
            self.start(start_kernel, (s,), self.lines, 4.0 * pieces * DIGITS, now)
            self.start(move_kernel, (s,), units, 12.0 * piece, [*pairs, *now, shift])
        args = [*wanted, order.buf, self.x.buf, *pairs, *kept, *where, digits, *self.where]
        self.start(result_kernel, (s, bool(wanted)), units, 6.0 * piece, args)

    def top(self, values: CubeTensor, order: CubeTensor, k: int) -> None:
        """Write the first k of all lines in order."""
        pieces = 1
        if self.length > LONG and self.lines < 2 * self.threads:
            pieces = max(1, min(8 * self.threads // self.lines, self.length // (4 * k)))
        piece = -(-self.length // pieces)
        pieces = -(-self.length // piece)
        if pieces > 1 and self.length - (pieces - 1) * piece < k:
            pieces, piece = 1, self.length
        made = order
        if pieces > 1:
            made = self.engine.empty((self.lines, pieces * k), d.int64)
            self._top(None, made, [], pieces, piece, k)
            self.length = pieces * k
        chosen = [made.buf] if pieces > 1 else []
        self._top(values, order, chosen, 1, self.length, k)

    def _top(
        self, values: CubeTensor | None, order: CubeTensor, chosen: list[Any], pieces: int,
        piece: int, k: int,
    ) -> None:  # fmt: skip
        units, each = self.units(self.lines * pieces)
        s = self.s._replace(chosen=bool(chosen))
        args = [
            *([] if values is None else [values.buf]), order.buf, self.x.buf, *chosen,
            *self.pairs(units * piece), self.engine.flat(units * piece, s.key), self.lines, each,
            pieces, piece, k, self.length, *self.where,
        ]  # fmt: skip
        work = each * (LINE + 12.0 * piece)
        self.start(top_kernel, (s, values is not None), units, work, args)


def fits(length: int) -> bool:
    """Return whether places of a line fit into a word beside a key, and counts into 32 bits."""
    return length < 1 << (PLACE - 1)


def sorted_lines(
    engine: Engine, x: CubeTensor, extents: Ints, strides: Ints, descending: bool, values: bool
) -> tuple[CubeTensor | None, CubeTensor]:
    """Return lines in order, if they are wanted, and their stable order, [*extents].

    Args:
        engine: the cpu.
        x: the operand, not empty.
        extents: its dims, that of the lines last.
        strides: along them.
        descending: largest first; among equals the lowest place first.
        values: elements are wanted too.
    """
    made = engine.empty(extents, x.dtype) if values else None
    order = engine.empty(extents, d.int64)
    _Sort(engine, x, extents, strides, descending).sorted(made, order)
    return made, order


def top_lines(
    engine: Engine, x: CubeTensor, extents: Ints, strides: Ints, largest: bool, k: int
) -> tuple[CubeTensor, CubeTensor]:
    """Return the first k of lines in order and their places, [*extents[:-1], k]."""
    shape = (*extents[:-1], k)
    values, order = engine.empty(shape, x.dtype), engine.empty(shape, d.int64)
    _Sort(engine, x, extents, strides, largest).top(values, order, k)
    return values, order
