"""Combining at indices on a GPU without sorting: equal places are chained in order.

A plane looks for the next position that writes to the same place as its own, and whether there is
one before; it compares with all of them, which for some thousand positions takes less than to sort
them. The first position of a place then walks the chain for each of the lines, several side by
side at once: what is combined is in the order of the positions, and the same in every run.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.kernels.writers_rows import merged
from burn_cube_backend.tiles import PLANE
from burn_std import DType, dtypes as d

# Positions up to which they are compared with each other.
MOST = 16384
# Positions that a unit compares at once.
STEP = 4


def links_kernel(key: DType, index: DType) -> Kernel:
    """Write for each position the next one of the same place, else the count.

    Of positions that are not the first of their place, what is written is -1 less that number.
    Parameters after the buffers: count. Grid: a plane for each position.
    """
    code = Code("put_links", index)
    links, keys = code.buffer("links", d.int32), code.buffer("keys", key)
    count = code.place("count")
    number = code.special("cube_pos") * (UNITS // PLANE) + code.special("plane_pos")
    lane = code.special("unit_pos_plane")
    own = number.call("min", count - 1)
    place = keys[own]
    earlier = code.local(d.int32)
    with code.loop(lane, own, code.at(PLANE * STEP)) as first:
        for n in range(STEP):
            at = first + n * PLANE
            # The position itself stands for what is behind it, and counts for nothing.
            same = keys[at.call("min", own)].eq(place) & (at < own)
            earlier.set(earlier.get() | same.cast(d.int32))
    following = code.local(index, count)
    now = code.local(index, own + 1 + lane)
    with code.b.while_() as loop:
        with code.b.inside(loop.regions[0]):
            more = (now.get() < count) & following.get().eq(count)
            code.b.until_false(more.op)
        with code.b.inside(loop.regions[1]):
            for n in range(STEP):
                at = now.get() + n * PLANE
                same = keys[at.call("min", count - 1)].eq(place) & (at < count)
                following.set(same.pick(following.get().call("min", at), following.get()))
            now.set(now.get() + PLANE * STEP)
    after = Val(code, code.b.plane("min", following.get().cast(d.int32).op))
    before = Val(code, code.b.plane("max", earlier.get().op))
    with code.when((number < count) & lane.eq(0)):
        links[number] = before.eq(0).pick(after, -1 - after)
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

            def read(buffer: Val, place: Val) -> list[Val]:
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
