"""Stable sorting along a dim by merging runs of doubling length, the short ones in shared memory.

Lines on the cpu and long lines on a GPU with planes are sorted by digits, see `sort_cpu`, `radix`.
On a GPU a cube sorts a piece in shared memory, where each unit finds the places of its elements by
bisection; on a processor a unit sorts a short piece by insertion. Then passes merge runs, each unit
a stretch of the result. Left runs come before equal elements of right ones, so the order is stable.
Keys are unsigned integers in the order of the values, NaN largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels import sort_cpu
from burn_cube_backend.kernels.index import taken
from burn_cube_backend.kernels.radix import key_dtype, ordered, sorted_lines
from burn_cube_backend.kernels.sort_cpu import fits
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Elements that a cube sorts in shared memory, and the rounds that takes.
BLOCK = 2 * UNITS
ROUNDS = BLOCK.bit_length() - 1
# Elements that a unit of a processor sorts by insertion.
SHORT = 32
# Lines above this length are sorted by digits where planes are quick.
FROM = 512
# Elements that a unit merges in a pass, on a GPU and on a processor.
EACH, EACH_SERIAL = 16, 2048


def bisected(code: Code, keys: Buf, base: Val, own: Val, right: Val, span: tuple[Val, Val]) -> Val:
    """Return how many keys of the partner run, places `span` behind `base`, come before a key.

    A right element stands behind equal left ones, a left one before equal right ones.
    """
    start, stop = span
    low, high = code.local(code.index, start), code.local(code.index, stop)
    with code.b.while_() as loop:
        with code.b.inside(loop.regions[0]):
            code.b.until_false((low.get() < high.get()).op)
        with code.b.inside(loop.regions[1]):
            middle = low.get() + ((high.get() - low.get()) >> 1)
            other = keys[base + middle]
            before = (other < own) | (right & other.eq(own))
            low.set(before.pick(middle + 1, low.get()))
            high.set(before.pick(high.get(), middle))
    return low.get() - start


def merged_place(code: Code, keys: Buf, base: Val, own: Val, at: Val, run: Val, end: Val) -> Val:
    """Return the place of the key at `at` after runs of a length became runs of twice it."""
    number = at // run
    right = (number & 1).eq(1)
    start = (right.pick(number - 1, number + 1) * run).call("min", end)
    stop = (start + run).call("min", end)
    passed = bisected(code, keys, base, own, right, (start, stop))
    left = right.pick(number - 1, number) * run
    return left + (at - number * run) + passed


def block_kernel(dtype: DType, descending: bool, rank: int, index: DType) -> Kernel:
    """Write keys and places of the elements of lines, each piece of `BLOCK` of them in order.

    The sorted dim is the last one. A cube sorts a piece in shared memory.
    """
    code = Code("sort_blocks", index)
    key = key_dtype(dtype)
    keys, places = code.buffer("keys", key), code.buffer("places", d.int64)
    x, length, pieces = code.buffer("x", dtype), code.place("length"), code.place("pieces")
    offset = code.place("offset")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    # Two copies of the piece: a round reads one and writes the other.
    near, where = code.shared(key, 2 * BLOCK), code.shared(d.int32, 2 * BLOCK)
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    line = cube // pieces
    start = (cube - line * pieces) * BLOCK
    size = (length - start).call("min", BLOCK)
    head = line * length + start
    mine = [unit + part * UNITS for part in range(BLOCK // UNITS)]
    for at in mine:
        with code.when(at < size):
            value = ordered(x[code.walk(offset, code.coords(head + at, extents), strides)])
            near[at] = ~value if descending else value
            where[at] = at.cast(d.int32)
    code.barrier()
    with code.loop(0, code.at(ROUNDS)) as r:
        run = code.at(1) << r
        here = (r & 1) * BLOCK
        there = BLOCK - here
        for at in mine:
            with code.when(at < size):
                own = near[here + at]
                place = there + merged_place(code, near, here, own, at, run, size)
                near[place] = own
                where[place] = where[here + at]
        code.barrier()
    last = (ROUNDS & 1) * BLOCK
    for at in mine:
        with code.when(at < size):
            keys[head + at] = near[at + last]
            places[head + at] = where[at + last].cast(d.int64) + start.cast(d.int64)
    return code.finish()


def insertion_kernel(dtype: DType, descending: bool, rank: int, index: DType) -> Kernel:
    """Write keys and places of lines, each piece of `SHORT` in order: one unit inserts them."""
    code = Code("sort_insertion", index)
    key = key_dtype(dtype)
    keys, places = code.buffer("keys", key), code.buffer("places", d.int64)
    x, count, length, pieces = (
        code.buffer("x", dtype), code.place("count"), code.place("length"), code.place("pieces")
    )  # fmt: skip
    offset = code.place("offset")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    with code.each(count) as i:
        line = i // pieces
        start = (i - line * pieces) * SHORT
        head = line * length
        with code.loop(start, (start + SHORT).call("min", length)) as at:
            value = ordered(x[code.walk(offset, code.coords(head + at, extents), strides)])
            own = ~value if descending else value
            hole = code.local(code.index, at)
            with code.b.while_() as loop:
                with code.b.inside(loop.regions[0]):
                    before = keys[head + (hole.get() - 1).call("max", start)]
                    code.b.until_false(((hole.get() > start) & (before > own)).op)
                with code.b.inside(loop.regions[1]):
                    hole.set(hole.get() - 1)
                    to = head + hole.get()
                    keys[to + 1] = keys[to]
                    places[to + 1] = places[to]
            keys[head + hole.get()] = own
            places[head + hole.get()] = at.cast(d.int64)
    return code.finish()


def merge_kernel(key: DType, index: DType) -> Kernel:
    """Write one pass: pairs of runs of `run` elements become runs of twice the length.

    Each unit writes `each` elements behind each other: it finds by bisection where they begin in
    both runs, then takes the smaller of two keys in turn.
    """
    code = Code("sort_merge", index)
    keys, places = code.buffer("keys", key), code.buffer("places", d.int64)
    new_keys, new_places = code.buffer("new_keys", key), code.buffer("new_places", d.int64)
    count, length, run = code.place("count"), code.place("length"), code.place("run")
    pieces, each = code.place("pieces"), code.place("each")
    with code.each(count) as i:
        line = i // pieces
        start = (i - line * pieces) * each
        base = line * length + start // (run * 2) * (run * 2)
        first = start % (run * 2)
        # Extents of the two runs, short at the end of a line.
        rest = length - (start - first)
        left = rest.call("min", run)
        right = (rest - left).call("min", run)
        low = code.local(code.index, (first - right).call("max", 0))
        high = code.local(code.index, first.call("min", left))
        with code.b.while_() as loop:
            with code.b.inside(loop.regions[0]):
                code.b.until_false((low.get() < high.get()).op)
            with code.b.inside(loop.regions[1]):
                middle = low.get() + ((high.get() - low.get()) >> 1)
                taken_first = keys[base + middle] <= keys[base + left + (first - 1 - middle)]
                low.set(taken_first.pick(middle + 1, low.get()))
                high.set(taken_first.pick(high.get(), middle))
        a, b = low, code.local(code.index, first - low.get())
        with code.loop(0, each.call("min", left + right - first)) as k:
            at_a, at_b = a.get(), b.get()
            one = keys[base + at_a.call("min", left - 1)]
            two = keys[base + left + at_b.call("min", right - 1)]
            from_a = (at_a < left) & ((at_b >= right) | (one <= two))
            source = base + from_a.pick(at_a, left + at_b)
            new_keys[base + first + k] = from_a.pick(one, two)
            new_places[base + first + k] = places[source]
            a.set(from_a.pick(at_a + 1, at_a))
            b.set(from_a.pick(at_b, at_b + 1))
    return code.finish()


class Lines(NamedTuple):
    """A tensor whose sorted dim comes last: extents, strides, and how to turn a result back."""

    extents: Ints
    strides: Ints
    back: Ints

    def turned(self, made: CubeTensor) -> CubeTensor:
        """Return a row-major result of these extents in the shape of the operand."""
        shape = tuple(self.extents[k] for k in self.back)
        return made.view(shape, tuple(made.strides[k] for k in self.back))


def lines_of(x: CubeTensor, dim: int) -> Lines:
    """Return the lines of a tensor along a dim."""
    turn = [*(k for k in range(len(x.shape)) if k != dim), dim]
    back = tuple(sorted(range(len(turn)), key=turn.__getitem__))
    return Lines(tuple(x.shape[k] for k in turn), tuple(x.strides[k] for k in turn), back)


def by_digits(engine: Engine, length: int) -> bool:
    """Return whether lines of a length are sorted by digits."""
    return length > FROM and "planes" in engine.client.properties.capabilities


def on_cpu(engine: Engine, x: CubeTensor, dim: int) -> bool:
    """Return whether lines are sorted by the digits of the cpu."""
    length = x.shape[dim]
    return engine.client.name == "cpu" and x.size > 0 and length > SHORT and fits(length)


def order(engine: Engine, x: CubeTensor, dim: int, descending: bool) -> CubeTensor:
    """Return the stable order along a dim, int64, in the shape of x."""
    lines = lines_of(x, dim)
    if on_cpu(engine, x, dim):
        _, places = sort_cpu.sorted_lines(
            engine, x, lines.extents, lines.strides, descending, False
        )
        return lines.turned(places)
    by = sorted_lines if x.size and by_digits(engine, x.shape[dim]) else merged_lines
    _, places = by(engine, x, lines.extents, lines.strides, descending)
    return lines.turned(places)


def arranged(engine: Engine, keys: CubeTensor, bits: int) -> tuple[CubeTensor, CubeTensor]:
    """Return unsigned keys in order, and their stable order.

    Args:
        engine: the device.
        keys: of one dim, uint32 or uint64.
        bits: how many they use.
    """
    if by_digits(engine, keys.shape[0]):
        values, places = sorted_lines(engine, keys, keys.shape, keys.strides, False, bits)
        assert values is not None  # noqa: S101 - of integers there are
        return values, places
    return merged_lines(engine, keys, keys.shape, keys.strides, False)


def merged_lines(
    engine: Engine, x: CubeTensor, extents: Ints, strides: Ints, descending: bool
) -> tuple[CubeTensor, CubeTensor]:
    """Return the keys of lines in order, and the stable order, by merging, [*extents]."""
    key = key_dtype(x.dtype)
    length, count = extents[-1], size_of(extents)
    keys, places = engine.empty(extents, key), engine.empty(extents, d.int64)
    if count:
        index = engine.index_dtype(x, count=2 * count)
        serial = engine.client.properties.kind == "cpu"
        run = SHORT if serial else BLOCK
        pieces, lines = -(-length // run), count // length
        spec = (x.dtype, descending, len(extents), index)
        tail = [length, pieces, x.offset, *extents, *strides]
        if serial:
            args = [keys.buf, places.buf, x.buf, lines * pieces, *tail]
            engine.run(insertion_kernel, spec, lines * pieces, args)
        else:
            engine.cubes(block_kernel, spec, lines * pieces, [keys.buf, places.buf, x.buf, *tail])
        if run < length:
            new_keys, new_places = engine.empty(extents, key), engine.empty(extents, d.int64)
        while run < length:
            each = min(2 * run, EACH_SERIAL if serial else EACH)
            pieces = -(-length // each)
            args = [
                keys.buf, places.buf, new_keys.buf, new_places.buf, lines * pieces, length, run,
                pieces, each,
            ]  # fmt: skip
            engine.run(merge_kernel, (key, index), lines * pieces, args)
            keys, new_keys, places, new_places = new_keys, keys, new_places, places
            run *= 2
    return keys, places


@kernel("sort")
def sort(engine: Engine, x: CubeTensor, dim: int, descending: bool) -> Sequence[CubeTensor]:
    """(values, indices), stable; descending keeps the lowest index first among equals."""
    if not x.shape:
        from burn_cube_backend.kernels.create import filled

        return x, filled(engine, d.int64, (), 0)
    lines = lines_of(x, dim)
    if on_cpu(engine, x, dim):
        made, found = sort_cpu.sorted_lines(
            engine, x, lines.extents, lines.strides, descending, True
        )
        assert made is not None  # noqa: S101 - they were asked for
        return lines.turned(made), lines.turned(found)
    if x.size and by_digits(engine, x.shape[dim]):
        values, found = sorted_lines(engine, x, lines.extents, lines.strides, descending)
        places = lines.turned(found)
        if values is not None:
            return lines.turned(values), places
    else:
        places = order(engine, x, dim, descending)
    return taken(engine, "sort", x, places, dim), places


@kernel("topk", runtime="cpu")
def topk(
    engine: Engine, x: CubeTensor, dim: int, largest: bool, ordered: bool, k: int
) -> Sequence[CubeTensor]:
    """(values, indices) of the first k of a stable sort, in order even where that is not asked."""
    if not x.shape:
        alone: Ints = () if k else (0,)
        found = sort(engine, x.view((1,), (1,)), 0, largest)
        return [v.view(alone, dense(alone)) for v in found]
    lines = lines_of(x, dim)
    if on_cpu(engine, x, dim) and 0 < 2 * k < x.shape[dim]:
        found = sort_cpu.top_lines(engine, x, lines.extents, lines.strides, largest, k)
        lines = lines._replace(extents=(*lines.extents[:-1], k))
        return [lines.turned(v) for v in found]
    shape = tuple(k if n == dim else size for n, size in enumerate(x.shape))
    return [v.view(shape, v.strides) for v in sort(engine, x, dim, largest)]
