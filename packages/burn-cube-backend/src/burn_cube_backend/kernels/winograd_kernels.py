"""Kernels of convolution by small transforms: 2 x 2 outputs of a 3 x 3 kernel by 16 products.

Tiles of 4 x 4 inputs, two apart, and kernels are transformed to 16 numbers each; their products,
added over channels, are transformed back. That takes 16 multiplications where 36 would be, with
factors of 1 and 1/2 alone, so sums round as those of the plain way do. Tiles are numbered row by
row over all images; a block is a run of them whose transforms stay in the second cache of a core.

An infinity or NaN would spread over its tile. A block that has one is done with a zero in its
place, and `mend_kernel` adds its products where they belong.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.epilogue import EpilogueCode, Spec
from burn_cube_backend.lanes import (
    LANES,
    Cell,
    apart,
    copy_row,
    fma,
    load,
    narrow_loop,
    splat,
    store,
    together,
)
from burn_std import DType, dtypes as d

# Output channels of a panel, and tiles of a block: 8 x 3 vectors of sums fill the registers.
ROWS, VECTORS = 8, 3
TILES = VECTORS * LANES
POINTS = 16


def finite(v: Val) -> Val:
    """Return the value with zeros in the place of infinities and NaN."""
    return (v - v).eq(0).pick(v, v.code.const(0, v.op.type))


def weights_kernel(dtype: DType) -> Kernel:
    """Write the transforms of kernels: [panel, point, channel, 8], one panel per unit."""
    code = Code("winograd_weights", d.int64, 1)
    out, flags, w = (
        code.buffer(n, t) for n, t in (("out", dtype), ("flags", d.int32), ("w", dtype))
    )
    rows, channels, offset = (code.place(n) for n in ("rows", "channels", "offset"))
    steps = code.places("step", 4)
    panel = code.special("cube_pos")
    bad = Cell(code, dtype, ROWS)
    # Rows behind the last one repeat it; nobody reads their results.
    heads = [offset + (panel * ROWS + r).call("min", rows - 1) * steps[0] for r in range(ROWS)]
    with narrow_loop(code, code.at(0), channels) as c:
        taps = []
        for i in range(3):
            for j in range(3):
                at = c * steps[1] + steps[2] * i + steps[3] * j
                lanes = [code.b.load(w.op, (h + at).op) for h in heads]
                v = Val(code, code.b.vector(*lanes))
                bad.set(fma(v, code.const(0, bad.kind), bad.get()))
                taps.append(finite(v))
        for p, v in enumerate(kernel_points(taps)):
            store(out, ((panel * POINTS + p) * channels + c) * ROWS, v)
    flags[panel] = any_bad(bad.get())
    return code.finish()


def any_bad(v: Val) -> Val:
    """Return 1 if a lane is NaN, else 0, as int32."""
    b = v.code.b
    total = Val(v.code, b.extract(v.op, 0))
    for k in range(1, v.op.type.width):
        total = total + Val(v.code, b.extract(v.op, k))
    return total.call("isnan").pick(v.code.const(1, d.int32), v.code.const(0, d.int32))


def kernel_points(taps: list[Val]) -> list[Val]:
    """Return the 16 numbers of a 3 x 3 kernel."""

    def line(a: Val, b: Val, c: Val) -> list[Val]:
        outer = (a + c) * 0.5
        return [a, outer + b * 0.5, outer - b * 0.5, c]

    columns = [line(*(taps[3 * i + j] for i in range(3))) for j in range(3)]
    return [v for i in range(4) for v in line(*(columns[j][i] for j in range(3)))]


def input_points(rows: list[list[Val]]) -> list[Val]:
    """Return the 16 numbers of 4 x 4 inputs, given per row as even, odd, even, odd columns."""

    def line(a: Val, b: Val, c: Val, e: Val) -> list[Val]:
        return [a - c, b + c, c - b, b - e]

    across = [line(*row) for row in rows]
    columns = [line(*(across[i][j] for i in range(4))) for j in range(4)]
    return [columns[j][i] for i in range(4) for j in range(4)]


def output_tile(points: list[Val]) -> list[list[Val]]:
    """Return the 2 x 2 outputs of 16 sums."""

    def line(a: Val, b: Val, c: Val, e: Val) -> list[Val]:
        return [a + b + c, b - c - e]

    across = [line(*points[4 * i : 4 * i + 4]) for i in range(4)]
    down = [line(*(across[i][j] for i in range(4))) for j in range(2)]
    return [[down[j][i] for j in range(2)] for i in range(2)]


class Sizes(NamedTuple):
    """Extents that kernels get: of input and output, of padding, and of rows of tiles."""

    height: Val
    width: Val
    out_height: Val
    out_width: Val
    pad_height: Val
    pad_width: Val
    down: Val
    across: Val

    @classmethod
    def of(cls, code: Code) -> Sizes:
        """Add the parameters to a kernel."""
        return cls(*(code.place(name) for name in cls._fields))


class Segment(NamedTuple):
    """What a block has of a row of tiles."""

    image: Val
    row: Val
    first: Val
    stop: Val
    at: Val


class Block:
    """A run of tiles: numbers, and the rows of tiles from `head` to before `end` they are in."""

    def __init__(self, code: Code, s: Sizes, start: Val, stop: Val) -> None:
        self.code, self.s, self.start, self.stop = code, s, start, stop
        self.head, self.end = start // s.across, (stop - 1) // s.across + 1
        self.image = self.head // s.down
        self.row = self.head - self.image * s.down

    @contextmanager
    def lines(self) -> Iterator[tuple[Val, Segment]]:
        """Run the code that follows for every row of tiles."""
        code, s = self.code, self.s
        image, row = code.local(d.int64, self.image), code.local(d.int64, self.row)
        with code.loop(self.head, self.end) as line:
            head = line * s.across
            first = (self.start - head).call("max", 0)
            last = (self.stop - head).call("min", s.across)
            yield line, Segment(image.get(), row.get(), first, last, head + first - self.start)
            following = row.get() + 1
            over = following.eq(s.down)
            row.set(over.pick(0, following))
            image.set(image.get() + over.pick(code.at(1), code.at(0)))


def read_tiles(near: Buf, at: Val, width: Val, count: int = 4) -> list[list[Val]]:
    """Return rows of 16 tiles, two columns apart: even, odd, next even, next odd columns."""
    rows = []
    for i in range(count):
        here = at + width * i
        first = apart(load(near, here), load(near, here + LANES))
        second = apart(load(near, here + 2), load(near, here + (LANES + 2)))
        rows.append([*first, *second])
    return rows


class Scratch(NamedTuple):
    """Places in the memory of a task: transforms, sums, rows of the input, rows of the output."""

    points: Val
    sums: Val
    rows: Val
    lines: Val
    plane: Val


def forward_kernel(dtype: DType, biased: bool, then: Spec | None = None) -> Kernel:
    """Write a convolution: task t does jobs t, t + tasks, ...; a job is a block and some panels.

    Flags of the jobs say which of them have an infinity or NaN among their inputs or weights. What
    these write is mended, and an epilogue computed then.
    """
    code = Code("winograd", d.int64, 1)
    out, x, u = (code.buffer(n, dtype) for n in ("out", "x", "kernels"))
    bias = code.buffer("bias", dtype) if biased else None
    scratch, flags = code.buffer("scratch", dtype), code.buffer("flags", d.int32)
    worse = code.buffer("weight_flags", d.int32)
    s = Sizes.of(code)
    channels, outs, total, jobs, tasks = (
        code.place(n) for n in ("channels", "outs", "total", "jobs", "tasks")
    )
    parts, panels, slot, wide, offset = (
        code.place(n) for n in ("parts", "panels", "slot", "wide", "offset")
    )
    bias_at = code.places("bias", 2) if biased else []
    after = None if then is None else EpilogueCode(code, then)
    task = code.special("cube_pos")
    lines = (s.across - 1 + TILES) // s.across + 1
    plane = channels * TILES + LANES
    base = task * slot
    sums = base + plane * POINTS
    rows = sums + (POINTS * ROWS * TILES + LANES)
    place = Scratch(base, sums, rows, rows + lines * 4 * wide, plane)
    last_panel = (outs + (ROWS - 1)) // ROWS
    with code.loop(task, jobs, tasks) as job:
        block = job // parts
        start = block * TILES
        stop = (start + TILES).call("min", total)
        count = stop - start
        run = Block(code, s, start, stop)
        bad = Cell(code, dtype)

        flag = code.local(d.int32)
        with code.loop(code.at(0), code.at(2)) as turn:
            again = turn > 0
            with code.when(~again | (flag.get() > 0)):
                bad.clear()
                _gather(run, place, (scratch, x), bad, (channels, offset, wide), again)
                flag.set(flag.get() | any_bad(bad.get()))
        first = (job - block * parts) * panels
        behind = (first + panels).call("min", last_panel)
        with code.loop(first, behind) as panel:
            flag.set(flag.get() | (worse[panel] << 1))
        flags[job] = flag.get()
        raw = flag.get() > 0
        with code.loop(first, behind) as panel:
            for vectors in range(1, VECTORS + 1):
                low, high = (vectors - 1) * LANES, vectors * LANES
                inside = (count > low) & (count <= high)
                with code.when(inside), code.loop(code.at(0), code.at(POINTS)) as p:
                    multiply(
                        code, dtype, (u, ((panel * POINTS + p) * channels) * ROWS),
                        (scratch, base + plane * p), (scratch, sums + p * (ROWS * TILES)),
                        channels, vectors,
                    )  # fmt: skip
            extents = (outs, panel * ROWS, (outs - panel * ROWS).call("min", ROWS), wide)
            _scatter(run, place, (out, scratch), extents, (bias, *bias_at), (after, raw))
    return code.finish()


def multiply(
    code: Code, dtype: DType, left: tuple[Buf, Val], right: tuple[Buf, Val], out: tuple[Buf, Val],
    depth: Val, vectors: int,
) -> None:  # fmt: skip
    """Write 8 rows of sums over the depth: left [depth, 8] times right [depth, TILES]."""
    cells = [[Cell(code, dtype) for _ in range(vectors)] for _ in range(ROWS)]
    with code.loop(code.at(0), depth) as k:
        lanes = [load(right[0], right[1] + k * TILES + v * LANES) for v in range(vectors)]
        for r in range(ROWS):
            one = splat(left[0][left[1] + k * ROWS + r])
            for v in range(vectors):
                cells[r][v].set(fma(one, lanes[v], cells[r][v].get()))
    for r in range(ROWS):
        for v in range(vectors):
            store(out[0], out[1] + (r * TILES + v * LANES), cells[r][v].get())


def _gather(
    block: Block, place: Scratch, memory: tuple[Buf, Buf], bad: Cell,
    extents: tuple[Val, Val, Val], clean: Val,
) -> None:  # fmt: skip
    """Write the transforms of a block: [point, channel, TILES]; `clean` ones of finite numbers."""
    code, s, (near, x), (channels, offset, wide) = block.code, block.s, memory, extents
    head, end = block.head, block.end
    alone = (end - head).eq(1)
    # Of a single row only the columns of the block are read, else all.
    skipped = alone.pick(block.start - head * s.across, code.at(0))
    begin = skipped * 2 - s.pad_width
    tiles = alone.pick(block.stop - block.start, s.across)
    low = begin.call("max", 0)
    have = (begin + tiles * 2 + 2).call("min", s.width) - low
    zero = code.const(0, bad.kind)

    def first_row(line: Val, image: Val) -> Val:
        # Neighbours of an image share two rows; between images there are two more.
        return place.rows + (line - head + image - block.image) * 2 * wide

    used = first_row(end, (end - 1) // s.down + 1) - place.rows
    with code.loop(code.at(0), used, code.at(LANES)) as k:
        store(near, place.rows + k, zero)
    with code.loop(code.at(0), channels) as c:
        with block.lines() as (line, seg):
            top = seg.row * 2 - s.pad_height
            source = offset + (seg.image * channels + c) * s.height * s.width + low
            to = first_row(line, seg.image) + (low - begin)
            fresh = line.eq(head) | seg.row.eq(0)
            with code.loop(fresh.pick(code.at(0), code.at(2)), code.at(4)) as i:
                row = top + i
                with code.when((row >= 0) & (row < s.height)):
                    copy_row(near, to + wide * i, x, source + row * s.width, have)
        with code.when(clean), code.loop(code.at(0), used, code.at(LANES)) as k:
            store(near, place.rows + k, finite(load(near, place.rows + k)))
        with block.lines() as (line, seg):
            origin = first_row(line, seg.image)
            target = place.points + c * TILES + seg.at
            with narrow_loop(code, seg.first, seg.stop, LANES) as t:
                rows = read_tiles(near, origin + (t - skipped) * 2, wide)
                for even, odd, further, last in rows:
                    for v in (even - further, odd - last):
                        bad.set(fma(v, zero, bad.get()))
                for p, v in enumerate(input_points(rows)):
                    store(near, target + (t - seg.first) + place.plane * p, v)


def _scatter(
    block: Block, place: Scratch, memory: tuple[Buf, Buf], extents: tuple[Val, Val, Val, Val],
    bias: tuple[Buf | None, *tuple[Val, ...]], then: tuple[EpilogueCode | None, Val],
) -> None:  # fmt: skip
    """Write the outputs of a block in the channels of a panel, what is mended without epilogue."""
    code, s, (out, near), (outs, first, count, wide) = block.code, block.s, memory, extents
    buf, *bias_at = bias
    after, raw = then
    with block.lines() as (_, seg), code.loop(code.at(0), count) as r:
        channel = first + r
        add = None
        if buf is not None:
            add = splat(buf[bias_at[0] + channel * bias_at[1]])
        change = after.channel(channel) if after is not None else None

        source = place.sums + r * TILES + seg.at
        with narrow_loop(code, seg.first, seg.stop, LANES) as t:
            at = source + (t - seg.first)
            points = [load(near, at + p * (ROWS * TILES)) for p in range(POINTS)]
            for n, pair in enumerate(output_tile(points)):
                for k, v in enumerate(together(*pair)):
                    to = place.lines + wide * n + (t - seg.first) * 2 + k * LANES
                    v = v if add is None else v + add
                    # No epilogue with an operand for each place comes here: `to` is none.
                    store(near, to, v if change is None else raw.pick(v, change(v, to)))
        length = (seg.stop * 2).call("min", s.out_width) - seg.first * 2
        with code.loop(code.at(0), (s.out_height - seg.row * 2).call("min", 2)) as i:
            row = seg.row * 2 + i
            to = ((seg.image * outs + channel) * s.out_height + row) * s.out_width
            copy_row(out, to + seg.first * 2, near, place.lines + wide * i, length)


def mend_kernel(dtype: DType, then: Spec | None = None) -> Kernel:
    """Add the products of infinities and NaN, one job per unit; most have none.

    What was mended is computed further then.
    """
    code = Code("winograd_mend", d.int64, 1)
    out, x, w = (code.buffer(n, dtype) for n in ("out", "x", "w"))
    flags = code.buffer("flags", d.int32)
    s = Sizes.of(code)
    channels, outs, total = (code.place(n) for n in ("channels", "outs", "total"))
    parts, panels, offset, w_offset = (
        code.place(n) for n in ("parts", "panels", "offset", "w_offset")
    )
    steps = code.places("step", 4)
    after = None if then is None else EpilogueCode(code, then)
    job = code.special("cube_pos")
    block = job // parts
    low = (job - block * parts) * panels
    high = (low + panels).call("min", (outs + (ROWS - 1)) // ROWS)
    start = block * TILES
    stop = (start + TILES).call("min", total)
    flag = flags[job]
    bad_weight = (flag & 2).ne(0)
    first, last = low * ROWS, (high * ROWS).call("min", outs)

    def corner(image: Val, row: Val, column: Val) -> None:
        with code.loop(code.at(0), channels * 9) as number:
            c, tap = number // 9, number % 9
            i, j = tap // 3, tap % 3
            y, z = row + i - s.pad_height, column + j - s.pad_width
            with code.when((y >= 0) & (y < s.height) & (z >= 0) & (z < s.width)):
                value = x[offset + ((image * channels + c) * s.height + y) * s.width + z]
                bad = (value - value).ne(0)
                at = w_offset + c * steps[1] + i * steps[2] + j * steps[3]
                with code.when(bad | bad_weight), code.loop(first, last) as k:
                    factor = w[at + k * steps[0]]
                    with code.when(bad | (factor - factor).ne(0)):
                        to = ((image * outs + k) * s.out_height + row) * s.out_width + column
                        out[to] = fma(factor, value, out[to])
        if after is not None:
            with code.loop(first, last) as k:
                to = ((image * outs + k) * s.out_height + row) * s.out_width + column
                out[to] = after.channel(k)(out[to], to)

    with code.when(flag > 0), code.loop(start, stop) as tile:
        line = tile // s.across
        image = line // s.down
        with code.loop(code.at(0), code.at(4)) as k:
            row = (line - image * s.down) * 2 + k // 2
            column = (tile - line * s.across) * 2 + k % 2
            with code.when((row < s.out_height) & (column < s.out_width)):
                corner(image, row, column)
    return code.finish()
