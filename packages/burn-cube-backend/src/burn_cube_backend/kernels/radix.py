"""Stable sorting of long lines on a GPU with planes: digits of eight bits, the lowest first.

Each pass counts the digits of every tile, sums the counts over the tiles, and moves keys and
places: a cube ranks its tile by digit with ballots of its planes, puts it in order in shared
memory, and writes runs of equal digits. Keys are unsigned integers in the order of the values.
The first pass makes them from the operand, the last one writes int64 places, and integers from
their keys.

Source: Merrill and Grimshaw, High Performance and Scalable Radix Sorting, 2011.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

DIGIT = 8
DIGITS = 1 << DIGIT
PLANE = 32
PLANES = UNITS // PLANE
# Counts that a unit sums in a round of the scan.
EACH = 8


class Pass(NamedTuple):
    """What a kernel of a pass depends on.

    Attributes:
        source: dtype of what it reads: of the operand in the first pass, else of the keys.
        key: dtype of the keys.
        rank: dims of the operand in the first pass, else 0.
        values: in the last pass the dtype in which keys are written as values, or None if they
            are not wanted; else that of the keys.
        last: whether it is the last one.
        descending: largest first.
        places: dtype of places in memory.
    """

    source: DType
    key: DType
    rank: int
    values: DType | None
    last: bool
    descending: bool
    places: DType


def key_dtype(dtype: DType) -> DType:
    """Return the unsigned dtype that holds the order of a dtype."""
    return d.uint64 if dtype.bits == 64 else d.uint32


def ordered(x: Val) -> Val:
    """Return an unsigned value in the order of x: NaN is the largest, -0 equals 0."""
    dtype = x.dtype
    key = key_dtype(dtype)
    if dtype.is_float:
        x = x.cast(d.float64 if dtype.bits == 64 else d.float32)
        nan = x.call("isnan")
        bits = (x + 0.0).bits(key)
        top = 1 << (key.bits - 1)
        negative = (bits & top).ne(0)
        flipped = negative.pick(~bits, bits | top)
        return nan.pick((1 << key.bits) - 1, flipped)
    if dtype.is_signed:
        signed = d.int64 if key is d.uint64 else d.int32
        return x.cast(signed).bits(key) + (1 << (dtype.bits - 1))
    return x.cast(key)


def restored(key: Val, dtype: DType) -> Val:
    """Return the integer whose key this is."""
    if not dtype.is_signed:
        return key.cast(dtype)
    signed = d.int64 if key.dtype is d.uint64 else d.int32
    return (key - (1 << (dtype.bits - 1))).bits(signed).cast(dtype)


def shifts(dtype: DType, bits: int | None = None) -> range:
    """Return where the digits of a key begin that can differ.

    Args:
        dtype: of the elements.
        bits: of unsigned elements, how many they use; None for all.

    Example:
        >>> list(shifts(d.int32)), list(shifts(d.bfloat16)), list(shifts(d.uint32, 9))
        ([0, 8, 16, 24], [16, 24], [0, 8])
    """
    if dtype.is_float and dtype.bits == 16:
        # As float32 the low bits of a half are all zero, or all one.
        return range(16 if dtype is d.bfloat16 else 8, 32, DIGIT)
    used = bits if bits is not None else 1 if dtype.is_bool else dtype.bits
    return range(0, max(used, 1), DIGIT)


def items_of(key: DType) -> int:
    """Return the elements of a tile that each unit takes: both arrays of a tile stay small."""
    return 16 if key.bits == 32 else 8


class _Tile:
    """One tile of a line: the elements of a cube, those of a plane behind each other."""

    def __init__(self, code: Code, p: Pass) -> None:
        self.code, self.p = code, p
        self.items = items_of(p.key)
        self.size = UNITS * self.items
        self.x = code.buffer("x", p.source)

    def arguments(self) -> None:
        """Add the numbers that say where the tile lies."""
        code, p = self.code, self.p
        self.length, self.tiles = code.place("length"), code.place("tiles")
        self.shift = code.scalar("shift", p.key)
        self.offset = code.place("offset")
        self.extents, self.strides = code.places("extent", p.rank), code.places("stride", p.rank)
        cube = code.special("cube_pos")
        self.line = cube // self.tiles
        self.tile = cube - self.line * self.tiles
        self.unit = code.special("unit_pos")
        self.plane, self.lane = code.special("plane_pos"), code.special("unit_pos_plane")
        self.first = self.tile * self.size + self.plane * (PLANE * self.items) + self.lane
        self.head = self.line * self.length

    def key(self, at: Val) -> Val:
        """Return the key of an element of the line."""
        code, p = self.code, self.p
        if not p.rank:
            return self.x[self.head + at]
        value = ordered(self.x[code.walk(
            self.offset, code.coords(self.head + at, self.extents), self.strides
        )])  # fmt: skip
        return ~value if p.descending else value

    def digit(self, key: Val) -> Val:
        """Return the digit of a key as a place."""
        return _digit(key, self.shift, self.code.index)

    def count_at(self, digit: Val) -> Val:
        """Return the place of the count of a digit in this tile."""
        return (self.line * DIGITS + digit) * self.tiles + self.tile


def count_kernel(p: Pass, index: DType) -> Kernel:
    """Write how often each digit is in each tile, [lines, digits, tiles]."""
    code = Code("radix_count", index)
    counts = code.buffer("counts", d.int32)
    tile = _Tile(code, p)
    tile.arguments()
    found = code.shared(d.int32, DIGITS)
    unit, one = tile.unit, code.const(1, d.int32)
    found[unit] = code.const(0, d.int32)
    code.barrier()
    # All reads first, so that they are under way together.
    keys = []
    for k in range(tile.items):
        at = tile.first + k * PLANE
        keys.append((at, tile.key(at.call("min", tile.length - 1))))
    for at, key in keys:
        with code.when(at < tile.length):
            code.b.atomic("add", found.op, tile.digit(key).op, one.op)
    code.barrier()
    counts[tile.count_at(unit)] = found[unit]
    return code.finish()


def _summed(code: Code, value: Val, unit: Val, shelf: Buf) -> tuple[Val, Val]:
    """Return the sum over the units of the cube before this one, and over all of them."""
    plane, lane = code.special("plane_pos"), code.special("unit_pos_plane")
    before = Val(code, code.b.plane("exclusive_sum", value.op))
    with code.when(lane.eq(PLANE - 1)):
        shelf[plane] = before + value
    code.barrier()
    start = code.local(value.dtype)
    total = code.local(value.dtype)
    for k in range(PLANES):
        part = shelf[code.at(k)]
        start.set((plane > k).pick(start.get() + part, start.get()))
        total.set(total.get() + part)
    code.barrier()
    return before + start.get(), total.get()


def scan_kernel(index: DType) -> Kernel:
    """Write over the counts of a digit in the tiles of a line their sums before each tile.

    Each cube has one digit of one line; `totals` gets the sum of all.
    """
    code = Code("radix_scan", index)
    counts, totals = code.buffer("counts", d.int32), code.buffer("totals", d.int32)
    tiles = code.place("tiles")
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    shelf = code.shared(d.int32, PLANES)
    head = cube * tiles
    carried = code.local(d.int32)
    zero = code.const(0, d.int32)
    with code.loop(0, tiles, code.at(UNITS * EACH)) as first:
        places = [first + unit * EACH + k for k in range(EACH)]
        values = [
            (at < tiles).pick(counts[head + at.call("min", tiles - 1)], zero) for at in places
        ]
        sums = [zero]
        for value in values:
            sums.append(sums[-1] + value)
        before, total = _summed(code, sums[-1], unit, shelf)
        start = carried.get() + before
        for at, own in zip(places, sums[:-1], strict=True):
            with code.when(at < tiles):
                counts[head + at] = start + own
        carried.set(carried.get() + total)
    with code.when(unit.eq(0)):
        totals[cube] = carried.get()
    return code.finish()


def _digit(key: Val, shift: Val, index: DType) -> Val:
    return ((key >> shift) & (DIGITS - 1)).cast(index)


class _Ranker:
    """Ranks the elements of a tile by a digit.

    Element k of a unit stands at `plane * PLANE * items + k * PLANE + lane` of the tile.
    """

    def __init__(self, code: Code, items: int) -> None:
        self.code, self.items = code, items
        self.found = code.shared(d.int32, PLANES * DIGITS)
        self.starts = code.shared(d.int32, DIGITS)
        self.shelf = code.shared(d.int32, PLANES)
        self.unit, self.lane = code.special("unit_pos"), code.special("unit_pos_plane")
        self.own = code.special("plane_pos") * DIGITS

    def ranks(self, digits: list[Val]) -> tuple[list[Val], Val]:
        """Return the places of elements in the sorted tile, and where the unit's digit begins.

        Digits are as many as units: each unit has one.
        """
        code, b, found, unit = self.code, self.code.b, self.found, self.unit
        for k in range(PLANES):
            found[unit + k * UNITS] = code.const(0, d.int32)
        code.barrier()
        below = (code.const(1, d.uint32) << self.lane.cast(d.uint32)) - 1
        ranks: list[Val] = []
        for digit in digits:
            same = code.const((1 << PLANE) - 1, d.uint32)
            for bit in range(DIGIT):
                has = ((digit >> bit) & 1).ne(0)
                votes = Val(code, b.plane("ballot", has.op))
                same = same & has.pick(votes, ~votes)
            before = (same & below).call("popcount").cast(d.int32)
            place = self.own + digit
            old = found[place]
            b.barrier("plane")
            with code.when(before.eq(0)):
                found[place] = old + same.call("popcount").cast(d.int32)
            b.barrier("plane")
            ranks.append(old + before)
        code.barrier()
        running = code.local(d.int32)
        for k in range(PLANES):
            at = unit + k * DIGITS
            here = found[at]
            found[at] = running.get()
            running.set(running.get() + here)
        start, _ = _summed(code, running.get(), unit, self.shelf)
        self.starts[unit] = start
        code.barrier()
        places = [
            (self.starts[digit] + found[self.own + digit] + rank).cast(code.index)
            for digit, rank in zip(digits, ranks, strict=True)
        ]
        return places, start


def move_kernel(p: Pass, index: DType) -> Kernel:
    """Write the elements of each tile behind those of smaller digits and earlier tiles."""
    code = Code("radix_move", index)
    out_keys = code.buffer("out_keys", p.values) if p.values is not None else None
    out_places = code.buffer("out_places", d.int64 if p.last else p.places)
    in_places = None if p.rank else code.buffer("in_places", p.places)
    counts, totals = code.buffer("counts", d.int32), code.buffer("totals", d.int32)
    tile = _Tile(code, p)
    tile.arguments()
    unit, items = tile.unit, tile.items
    keys, places = code.shared(p.key, tile.size), code.shared(p.places, tile.size)
    targets = code.shared(index, DIGITS)
    ranker = _Ranker(code, items)
    mine: list[Val] = []
    for k in range(items):
        at = tile.first + k * PLANE
        # What lies behind the line has the largest key, and comes behind its equals.
        key = tile.key(at.call("min", tile.length - 1))
        mine.append((at < tile.length).pick(key, (1 << p.key.bits) - 1))
    near, start = ranker.ranks([tile.digit(key) for key in mine])
    line, _ = _summed(code, totals[tile.line * DIGITS + unit], unit, ranker.shelf)
    targets[unit] = (line + counts[tile.count_at(unit)] - start).cast(index) + tile.head
    for k, (key, at) in enumerate(zip(mine, near, strict=True)):
        keys[at] = key
        number = tile.first + k * PLANE
        if in_places is None:
            places[at] = number.cast(p.places)
        else:
            places[at] = in_places[tile.head + number.call("min", tile.length - 1)]
    code.barrier()
    size = tile.length - tile.tile * tile.size
    for k in range(items):
        at = unit + k * UNITS
        key = keys[at]
        with code.when(at < size):
            to = targets[tile.digit(key)] + at
            if out_keys is not None:
                made = key
                if p.last and p.values is not None:
                    made = restored(~key if p.descending else key, p.values)
                out_keys[to] = made
            out_places[to] = places[at].cast(d.int64) if p.last else places[at]
    return code.finish()


def line_kernel(p: Pass, items: int, index: DType) -> Kernel:
    """Write sorted lines that fit into one tile: a cube has one line for all digits."""
    code = Code("radix_line", index)
    out_keys = code.buffer("out_keys", p.values) if p.values is not None else None
    out_places, x = code.buffer("out_places", d.int64), code.buffer("x", p.source)
    length, digits = code.place("length"), code.place("digits")
    shift, offset = code.scalar("shift", p.key), code.place("offset")
    extents, strides = code.places("extent", p.rank), code.places("stride", p.rank)
    unit = code.special("unit_pos")
    first = code.special("plane_pos") * (PLANE * items) + code.special("unit_pos_plane")
    head = code.special("cube_pos") * length
    keys, places = code.shared(p.key, UNITS * items), code.shared(d.int32, UNITS * items)
    ranker = _Ranker(code, items)
    mine, numbers = [], []
    for k in range(items):
        at = first + k * PLANE
        place = head + at.call("min", length - 1)
        key = ordered(x[code.walk(offset, code.coords(place, extents), strides)])
        key = ~key if p.descending else key
        # What lies behind the line has the largest key, and comes behind its equals.
        mine.append(code.local(p.key, (at < length).pick(key, (1 << p.key.bits) - 1)))
        numbers.append(code.local(d.int32, at.cast(d.int32)))
    now = code.local(p.key, shift)
    with code.loop(0, digits):
        own = [cell.get() for cell in mine]
        near, _ = ranker.ranks([_digit(key, now.get(), index) for key in own])
        for at, key, number in zip(near, own, numbers, strict=True):
            keys[at] = key
            places[at] = number.get()
        code.barrier()
        for k, (cell, number) in enumerate(zip(mine, numbers, strict=True)):
            cell.set(keys[first + k * PLANE])
            number.set(places[first + k * PLANE])
        now.set(now.get() + DIGIT)
        code.barrier()
    for k in range(items):
        at = unit + k * UNITS
        key = keys[at]
        with code.when(at < length):
            if out_keys is not None and p.values is not None:
                out_keys[head + at] = restored(~key if p.descending else key, p.values)
            out_places[head + at] = places[at].cast(d.int64)
    return code.finish()


def sorted_lines(
    engine: Engine, x: CubeTensor, extents: Ints, strides: Ints, descending: bool,
    bits: int | None = None,
) -> tuple[CubeTensor | None, CubeTensor]:  # fmt: skip
    """Return sorted values of integers, else None, and the stable order, [*extents].

    Args:
        engine: a device with planes.
        x: the operand.
        extents: its dims, that of the lines last.
        strides: along them.
        descending: largest first; among equals the lowest place first.
        bits: of unsigned elements, how many they use; None for all.
    """
    length, count = extents[-1], size_of(extents)
    lines, key = count // length, key_dtype(x.dtype)
    index = engine.index_dtype(x, count=2 * count)
    near = d.int32 if length < 1 << 31 else d.int64
    order = engine.empty(extents, d.int64)
    values = None if x.dtype.is_float else engine.empty(extents, x.dtype)
    digits = shifts(x.dtype, bits)
    size = UNITS * items_of(key)
    tiles = -(-length // size)
    if tiles <= 2:
        items = next(n for n in (2, 4, 8, 16, 32) if n * UNITS >= length)
        kind = None if values is None else x.dtype
        p = Pass(x.dtype, key, len(extents), kind, True, descending, d.int32)
        args = [
            *([] if values is None else [values.buf]), order.buf, x.buf, length, len(digits),
            digits.start, x.offset, *extents, *strides,
        ]  # fmt: skip
        engine.cubes(line_kernel, (p, items, index), lines, args)
        return values, order
    counts = engine.empty((lines * DIGITS * tiles,), d.int32)
    totals = engine.empty((lines * DIGITS,), d.int32)
    keys: CubeTensor | None = None
    places: CubeTensor | None = None
    for number, shift in enumerate(digits):
        first, last = number == 0, number == len(digits) - 1
        p = Pass(
            x.dtype if first else key, key, len(extents) if first else 0,
            (None if values is None else x.dtype) if last else key, last, descending, near,
        )  # fmt: skip
        source = x if keys is None else keys
        where = [length, tiles, shift, x.offset, *extents, *strides] if first else [
            length, tiles, shift, 0
        ]  # fmt: skip
        # A count does not know what becomes of the keys.
        counted = p._replace(values=None, last=False)
        args = [counts.buf, source.buf, *where]
        engine.cubes(count_kernel, (counted, index), lines * tiles, args)
        engine.cubes(
            scan_kernel, (index,), lines * DIGITS, [counts.buf, totals.buf, tiles]
        )  # fmt: skip
        new_keys = values if last else engine.empty(extents, key)
        new_places = order if last else engine.empty(extents, near)
        args = [
            *([] if new_keys is None else [new_keys.buf]), new_places.buf,
            *([] if places is None else [places.buf]), counts.buf, totals.buf, source.buf, *where,
        ]  # fmt: skip
        engine.cubes(move_kernel, (p, index), lines * tiles, args)
        keys, places = new_keys, new_places
    return values, order
