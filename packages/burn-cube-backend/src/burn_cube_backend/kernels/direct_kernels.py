"""Kernels of convolution from windows as they lie: no columns are ever written.

A job is a band of output rows of an image, in one group. Its inputs are brought into the memory of
a task with zeros around them, and where windows are more than a step apart, split by the remainder
of rows and columns. So every tap reads neighbours, at a fixed distance, and the band is one run of
outputs, a few unused ones between its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from math import gcd
from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.epilogue import Change, EpilogueCode, Spec
from burn_cube_backend.lanes import (
    LANES,
    Cell,
    apart,
    copy_row,
    fma,
    load,
    same,
    splat,
    store,
    write_row,
)
from burn_std import DType, dtypes as d

# Vectors of sums beside the output channels of a panel: together they fill the registers.
VECTORS = {8: 3, 1: 8}
# Taps that are written out.
MOST = 16


class Windows(NamedTuple):
    """What a kernel is made for: extents of windows and how they lie.

    Attributes:
        dtype: of all operands.
        size, stride, dilation: down and across.
        rows: output channels of a panel.
    """

    dtype: DType
    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    rows: int

    def phases(self, dim: int) -> list[int]:
        """Return the remainders of places that windows read along a dim."""
        return sorted({k * self.dilation[dim] % self.stride[dim] for k in range(self.size[dim])})

    @property
    def loops(self) -> bool:
        """Whether rows of taps are walked by a loop of the kernel."""
        return len(self.taps) > MOST and self.size[0] >= self.stride[0]

    def elements(self, channels: int, rows: int, pitch: int) -> int:
        """Return the elements that a band of so many output rows takes."""
        phases = len(self.phases(0)) * len(self.phases(1))
        return channels * (phases * pitch * (rows + self.further(0)) + self.tail)

    @property
    def tail(self) -> int:
        """Elements that stand behind a channel: vectors read there.

        What they read meets zeros of a gradient, so it must be finite: zeros, too.
        """
        return -(-(self.further(1) + LANES) // LANES) * LANES

    def further(self, dim: int) -> int:
        """Return how many steps behind its own a window reads."""
        return (self.size[dim] - 1) * self.dilation[dim] // self.stride[dim]

    @property
    def taps(self) -> list[tuple[int, int]]:
        """The taps of a window, row by row."""
        return [(i, j) for i in range(self.size[0]) for j in range(self.size[1])]


class Band:
    """The inputs of a band in memory: [channel, row phase, column phase, row, column].

    Attributes:
        plane: elements of a channel.
        pitch: elements from row to row, and from output row to output row.
    """

    def __init__(self, code: Code, w: Windows, near: Buf, base: Val, pitch: Val, rows: Val) -> None:
        self.code, self.w, self.near, self.base, self.pitch = code, w, near, base, pitch
        self.tall = rows + w.further(0)
        self.down, self.across = w.phases(0), w.phases(1)
        self.plane = self.tall * pitch * (len(self.down) * len(self.across)) + w.tail

    def tap(self, i: int, j: int) -> Val:
        """Return the distance at which a tap reads."""
        w = self.w
        row, a = divmod(i * w.dilation[0], w.stride[0])
        column, b = divmod(j * w.dilation[1], w.stride[1])
        phase = self.down.index(a) * len(self.across) + self.across.index(b)
        return (self.tall * phase + row) * self.pitch + column

    def far_tap(self, i: Val, j: int) -> Val:
        """Return the distance at which a tap of a row that the kernel walks to reads."""
        w = self.w
        moved = i * w.dilation[0]
        row = moved // w.stride[0]
        # All multiples of the common divisor are phases, see `Windows.loops`.
        phase = (moved - row * w.stride[0]) // gcd(w.dilation[0], w.stride[0])
        return self.tap(0, j) + (phase * len(self.across) * self.tall + row) * self.pitch

    def fill(
        self, x: Buf, head: Val, channels: Val, first: Val, s: Jobs,
        change: Callable[[Val], Val] = same, after: Callable[[Val], None] | None = None,
    ) -> None:  # fmt: skip
        """Bring the inputs of output rows from `first` on; x begins with the plane at `head`."""
        code = self.code
        with code.loop(code.at(0), channels) as c:
            for n, a in enumerate(self.down):
                with code.loop(code.at(0), self.tall) as row:
                    y = (first + row) * self.w.stride[0] + a - s.pad_height
                    inside = (y >= 0) & (y < s.height)
                    source = head + (c * s.height + y) * s.width - s.pad_width
                    phase = self.tall * (n * len(self.across)) + row
                    to = self.base + c * self.plane + phase * self.pitch
                    self._fill_row(x, to, source, inside, s, change)
            none = code.const(0, Vector(self.w.dtype, LANES))
            for k in range(LANES, self.w.tail + LANES, LANES):
                store(self.near, self.base + (c + 1) * self.plane - k, none)
            if after is not None:
                after(c)

    def _fill_row(
        self, x: Buf, to: Val, source: Val, inside: Val, s: Jobs, change: Callable[[Val], Val]
    ) -> None:
        """Write a row of each column phase: zeros, what is inside, zeros."""
        code, step, pitch = self.code, self.w.stride[1], self.pitch
        zero = code.const(0, self.w.dtype)
        for m, b in enumerate(self.across):
            low = ((s.pad_width + (step - 1 - b)).call("max", 0) // step).call("min", pitch)
            high = (s.width + s.pad_width + (step - 1 - b)).call("max", 0) // step
            high = high.call("min", pitch).call("max", low)
            low, high = inside.pick(low, pitch), inside.pick(high, pitch)
            here = to + self.tall * pitch * m
            for start, stop in ((code.at(0), low), (high, pitch)):
                with code.loop(start, stop) as k:
                    self.near[here + k] = zero
            if step == 1:
                copy_row(self.near, here + low, x, source + low, high - low, change)
            elif step == 2:
                self._fill_halves(x, here, source + b, low, high, change)
            else:
                with code.loop(low, high) as k:
                    self.near[here + k] = change(x[source + k * step + b])

    def _fill_halves(
        self, x: Buf, here: Val, source: Val, low: Val, high: Val, change: Callable[[Val], Val]
    ) -> None:
        """Write every other element of a row, in vectors of which the last one overlaps."""
        code = self.code
        # A vector reads one element more than it needs, so the last one stands by itself.
        last = high - 1

        def pieces(width: int) -> None:
            fits = last - low >= width
            with code.when(fits) as branch, code.loop(low, last, code.at(width)) as k:
                at = k.call("min", last - width)
                first = load(x, source + at * 2, width)
                second = load(x, source + at * 2 + width, width)
                store(self.near, here + at, change(apart(first, second)[0]))
            with code.otherwise(branch):
                if width > 8:
                    pieces(width // 2)
                else:
                    with code.loop(low, last) as k:
                        self.near[here + k] = change(x[source + k * 2])

        pieces(LANES)
        with code.when(low < high):
            self.near[here + last] = change(x[source + last * 2])


class Jobs(NamedTuple):
    """Numbers that every kernel over bands gets."""

    jobs: Val
    tasks: Val
    slot: Val
    bands: Val
    rows: Val
    groups: Val
    channels: Val
    outs: Val
    height: Val
    width: Val
    out_height: Val
    out_width: Val
    pad_height: Val
    pad_width: Val
    pitch: Val
    offset: Val

    @classmethod
    def of(cls, code: Code) -> Jobs:
        """Add the parameters to a kernel."""
        return cls(*(code.place(name) for name in cls._fields))


class Job(NamedTuple):
    """A band: its image, group, first row and number of rows."""

    image: Val
    group: Val
    first: Val
    have: Val


@contextmanager
def each_job(code: Code, s: Jobs, task: Val, parts: Val | None = None) -> Iterator[tuple[Job, Val]]:
    """Run the block for the jobs of a task; yields them with the number of their part."""
    with code.loop(task, s.jobs, s.tasks) as number:
        part = code.at(0)
        job = number
        if parts is not None:
            job = number // parts
            part = number - job * parts
        plane = job // s.bands
        image = plane // s.groups
        first = (job - plane * s.bands) * s.rows
        have = (s.out_height - first).call("min", s.rows)
        yield Job(image, plane - image * s.groups, first, have), part


def pack_kernel(dtype: DType, size: tuple[int, int], rows: int) -> Kernel:
    """Write kernels as [group, panel, channel, tap, rows], one panel per unit."""
    code = Code("conv_pack", d.int64, 1)
    out, w = code.buffer("out", dtype), code.buffer("w", dtype)
    outs, channels, panels, offset = (
        code.place(n) for n in ("outs", "channels", "panels", "offset")
    )
    group_step, *steps = code.places("step", 5)
    unit = code.special("cube_pos")
    group = unit // panels
    first = (unit - group * panels) * rows
    # Rows behind the last one repeat it; nobody reads their results.
    heads = [
        offset + group * group_step + (first + r).call("min", outs - 1) * steps[0]
        for r in range(rows)
    ]
    taps = size[0] * size[1]
    with code.loop(code.at(0), channels) as c, code.loop(code.at(0), code.at(taps)) as tap:
        at = c * steps[1] + (tap // size[1]) * steps[2] + (tap % size[1]) * steps[3]
        lanes = [code.b.load(w.op, (h + at).op) for h in heads]
        made = code.b.vector(*lanes) if rows > 1 else lanes[0]
        store(out, ((unit * channels + c) * taps + tap) * rows, Val(code, made))
    return code.finish()


def forward_kernel(w: Windows, biased: bool, then: Spec | None = None) -> Kernel:
    """Write a convolution: task t does jobs t, t + tasks, ...; a job is a band and some panels."""
    code = Code("conv_direct", d.int64, 1)
    dtype, rows, vectors = w.dtype, w.rows, VECTORS[w.rows]
    out, x, u = (code.buffer(n, dtype) for n in ("out", "x", "kernels"))
    bias = code.buffer("bias", dtype) if biased else None
    near = code.buffer("scratch", dtype)
    s = Jobs.of(code)
    parts, panels, run = (code.place(n) for n in ("parts", "panels", "run"))
    bias_at = code.places("bias", 2) if biased else []
    after = None if then is None else EpilogueCode(code, then)
    task = code.special("cube_pos")
    lines = task * s.slot
    band = Band(code, w, near, lines + run * rows, s.pitch, s.rows)
    all_panels = (s.outs + (rows - 1)) // rows
    cells = [[Cell(code, dtype) for _ in range(vectors)] for _ in range(rows)]

    def block(left: Val, at: Val, vectors: int) -> None:
        used = [row[:vectors] for row in cells]
        multiply(band, used, (u, left), s.channels, at)
        for r, row in enumerate(used):
            for v, cell in enumerate(row):
                store(near, lines + run * r + at + v * LANES, cell.get())

    with each_job(code, s, task, parts) as (job, part):
        plane = job.image * s.groups + job.group
        head = s.offset + plane * s.channels * s.height * s.width
        band.fill(x, head, s.channels, job.first, s)
        count = (job.have - 1) * s.pitch + s.out_width
        first, wide = part * panels, vectors * LANES
        with code.loop(first, (first + panels).call("min", all_panels)) as panel:
            left = ((job.group * all_panels + panel) * s.channels) * (len(w.taps) * rows)
            with code.loop(code.at(0), count - (wide - 1), code.at(wide)) as at:
                block(left, at, vectors)
            done = count // wide * wide
            rest = count - done
            for few in range(1, vectors + 1):
                with code.when((rest > (few - 1) * LANES) & (rest <= few * LANES)):
                    block(left, done, few)
            with code.loop(code.at(0), (s.outs - panel * rows).call("min", rows)) as r:
                channel = job.group * s.outs + panel * rows + r
                to = (job.image * s.groups * s.outs + channel) * s.out_height + job.first
                add = None if bias is None else bias[bias_at[0] + channel * bias_at[1]]
                change: Change = partial(plus, add)
                if after is not None:
                    change = _followed(change, after.channel(channel))
                with code.loop(code.at(0), job.have) as row:
                    write_row(
                        out, (to + row) * s.out_width, near, lines + run * r + row * s.pitch,
                        s.out_width, change,
                    )  # fmt: skip
    return code.finish()


def multiply(
    band: Band, cells: list[list[Cell]], left: tuple[Buf, Val], depth: Val, at: Val
) -> None:
    """Set cells to sums over taps and channels: left [depth, tap, rows] times the band at `at`."""
    code, w, near = band.code, band.w, band.near
    rows = len(cells)
    for cell in chain(*cells):
        cell.clear()
    across = w.size[1] if w.loops else len(w.taps)

    def line(row: Val, c: Val) -> None:
        here = band.base + c * band.plane + at
        there = left[1] + (c * len(w.taps) + row * across) * rows
        for n in range(across):
            to = here + (band.far_tap(row, n) if w.loops else band.tap(*w.taps[n]))
            lanes = [load(near, to + v * LANES) for v in range(len(cells[0]))]
            for r in range(rows):
                one = splat(left[0][there + (n * rows + r)])
                for v, lane in enumerate(lanes):
                    cells[r][v].set(fma(one, lane, cells[r][v].get()))

    with code.loop(code.at(0), depth) as c:
        if w.loops:
            with code.loop(code.at(0), code.at(w.size[0])) as row:
                line(row, c)
        else:
            line(code.at(0), c)


def _followed(first: Change, second: Change) -> Change:
    return lambda value, place: second(first(value, place), place)


def plus(add: Val | None, value: Val, place: Val) -> Val:
    """Return a number or vector plus a number, wherever it is written."""
    if add is None:
        return value
    kind = value.op.type
    return value + (splat(add, kind.width) if isinstance(kind, Vector) else add)
