"""Combining at indices on a GPU without sorting: equal places are chained in order.

A plane looks for the next position that writes to the same place as its own, and whether there is
one before; it compares with all of them, which for some thousand positions takes less than to sort
them. The first position of a place then walks the chain for each of the lines, several side by
side at once: what is combined is in the order of the positions, and the same in every run.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.kernels.writers_rows import merged
from burn_cube_backend.tiles import PLANE
from burn_std import DType, dtypes as d

# Positions up to which they are compared with each other.
MOST = 16384
# Positions that a unit reads at once, a plane, and blocks that are read one behind the other.
LANES, BLOCK, STEP = 4, 4 * PLANE, 4


def links_kernel(key: DType, index: DType) -> Kernel:
    """Write for each position the next one of the same place, else the count.

    Of positions that are not the first of their place, what is written is -1 less that number.
    The keys are given twice, as numbers and in vectors, with whole blocks of memory. Parameter
    after the buffers: count. Grid: a plane for each position.
    """
    code = Code("put_links", index)
    b = code.b
    links, keys = code.buffer("links", d.int32), code.buffer("keys", key)
    wide = b.buffer("wide", Vector(key, LANES))
    count = code.place("count")
    number = code.special("cube_pos") * (UNITS // PLANE) + code.special("plane_pos")
    lane = code.special("unit_pos_plane")
    own = number.call("min", count - 1)
    place = keys[own]
    block, blocks = own // BLOCK, (count + (BLOCK - 1)) // BLOCK
    earlier, following = code.local(d.bool_, False), code.local(index, count)

    def equal(blk: Val) -> list[Val]:
        got = b.load(wide, (blk * PLANE + lane).op)
        return [Val(code, b.extract(got, n)).eq(place) for n in range(LANES)]

    def first_of(blk: Val, found: list[Val]) -> None:
        for n, same in enumerate(found):
            at = blk * BLOCK + lane * LANES + n
            # Behind the last position there is memory, but nothing in it.
            behind = same & (at > own) & (at < count)
            following.set(behind.pick(following.get().call("min", at), following.get()))

    def any_of(found: list[Val]) -> Val:
        return reduce(lambda x, y: x | y, found)

    with code.loop(0, block, code.at(STEP)) as first:
        # A block that is looked at twice changes nothing.
        looks = [any_of(equal((first + n).call("min", block - 1))) for n in range(STEP)]
        earlier.set(earlier.get() | any_of(looks))
    found = equal(block)
    for n, same in enumerate(found):
        earlier.set(earlier.get() | (same & (block * BLOCK + lane * LANES + n < own)))
    first_of(block, found)
    with code.loop(block + 1, blocks, code.at(STEP)) as first:
        looked = []
        for n in range(STEP):
            blk = (first + n).call("min", blocks - 1)
            looked.append((blk, equal(blk)))
        for blk, found in looked:
            with code.when(any_of(found)):
                first_of(blk, found)
    after = Val(code, b.plane("min", following.get().cast(d.int32).op))
    before = Val(code, b.plane("any", earlier.get().op))
    with code.when((number < count) & lane.eq(0)):
        links[number] = before.pick(-1 - after, after)
    return code.finish()


class Chained(NamedTuple):
    """What a kernel of chains depends on.

    Attributes:
        mode: how elements combine.
        dtype: of the result.
        source: of what is written.
        key: of places.
        lanes: neighbouring lines that a unit has.
        lines: dims of the lines.
        rank: dims of the positions.
        places: dtype of places.
    """

    mode: str
    dtype: DType
    source: DType
    key: DType
    lanes: int
    lines: int
    rank: int
    places: DType


def chains_kernel(c: Chained) -> Kernel:
    """Write the combination of each chain of equal places, in each line.

    Parameters after the buffers: units, units of a position, positions, nowhere; offset of the
    source; extents of lines, the last one in pieces, strides of out and source along them; extents
    of positions, strides of the source.
    """
    code = Code(f"put_chains_{c.mode}", c.places)
    b, lanes = code.b, c.lanes
    out, src = code.buffer("out", c.dtype), code.buffer("source", c.source)
    keys, links = code.buffer("keys", c.key), code.buffer("links", d.int32)
    count, width, length = code.place("count"), code.place("lines"), code.place("positions")
    nowhere = code.scalar("nowhere", c.key)
    offset = code.place("offset")
    outer = code.places("line", c.lines)
    out_outer, src_outer = code.places("out_line", c.lines), code.places("src_line", c.lines)
    inner, src_inner = code.places("position", c.rank), code.places("src_step", c.rank)

    with code.each(count) as i:
        first = i // width
        key, link = keys[first], links[first]
        with code.when(key.ne(nowhere) & (link >= 0)):
            line = code.coords(i - first * width, outer)
            at = code.walk(key.cast(code.index), line, out_outer)
            from_ = code.walk(offset, line, src_outer)

            def read(buffer: Buf, place: Val) -> list[Val]:
                got = b.load(buffer.op, place.op, lanes)
                return [Val(code, b.extract(got, n) if lanes > 1 else got) for n in range(lanes)]

            held = [code.local(c.dtype, v) for v in read(out, at)]
            now = code.local(code.index, first)
            after = code.local(d.int32, link)
            with code.b.while_() as loop:
                with b.inside(loop.regions[0]):
                    b.until_false((now.get() < length).op)
                with b.inside(loop.regions[1]):
                    coords = code.coords(now.get(), inner)
                    values = read(src, code.walk(from_, coords, src_inner))
                    for cell, value in zip(held, values, strict=True):
                        cell.set(merged(cell.get(), value.cast(c.dtype), c.mode))
                    now.set(after.get().cast(code.index))
                    # The last position stands for the one behind it: its link is never followed.
                    link = links[now.get().call("min", length - 1)]
                    after.set((link < 0).pick(-1 - link, link))
            made = [cell.get().op for cell in held]
            b.store(out.op, at.op, b.vector(*made) if lanes > 1 else made[0])
    return code.finish()
