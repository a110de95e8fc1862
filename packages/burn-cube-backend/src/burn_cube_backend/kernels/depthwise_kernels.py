"""Kernels of convolutions of which each channel has a window of its own, and of their gradients.

There is no depth to multiply over, so the time goes into moving: a plane of the input is brought
into the memory of a task once, with zeros around it and, for windows two apart, even and odd
columns by themselves; a vector of outputs is a sum over taps of vectors that stand there, and is
written where it belongs. The last vector of a row overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.direct_kernels import plus
from burn_cube_backend.kernels.direct_weight import total
from burn_cube_backend.kernels.epilogue import Change, EpilogueCode, Spec
from burn_cube_backend.lanes import LANES, Cell, apart, fma, load, splat, store, together
from burn_std import DType, dtypes as d

# Taps whose sums stand in registers.
SUMS = 12


class Down(NamedTuple):
    """A tap along rows: its number, and how many rows of the plane behind the first it reads."""

    tap: int
    shift: int


class Across(NamedTuple):
    """A tap along columns: its number, and the columns it reads, of those with one remainder."""

    tap: int
    phase: int
    shift: int


class Plan(NamedTuple):
    """What a kernel is made for.

    Attributes:
        dtype: of all operands.
        size: taps down and across.
        down, across: the taps of every output with one remainder: an entry for each remainder.
        step: rows of the plane from output row to output row.
        phases: columns of the plane with so many remainders stand by themselves, one or two.
        pad: rows and columns of zeros before the plane.
        lanes: of a vector of outputs.
        block: rows of outputs that are computed together.
        near: of a vector that is brought near.
    """

    dtype: DType
    size: tuple[int, int]
    down: tuple[tuple[Down, ...], ...]
    across: tuple[tuple[Across, ...], ...]
    step: int
    phases: int
    pad: tuple[int, int]
    lanes: int
    block: int
    near: int

    @property
    def reach(self) -> int:
        """Rows behind its first that an output reads."""
        return max((tap.shift for taps in self.down for tap in taps), default=0)


class Sizes(NamedTuple):
    """Numbers that every kernel gets: of what is read near (`height`, `width`) and of outputs."""

    jobs: Val
    tasks: Val
    slot: Val
    bands: Val
    rows: Val
    channels: Val
    height: Val
    width: Val
    out_height: Val
    out_width: Val
    pitch: Val
    offset: Val

    @classmethod
    def of(cls, code: Code) -> Sizes:
        """Add the parameters to a kernel."""
        return cls(*(code.place(name) for name in cls._fields))


class Job(NamedTuple):
    """A band of a plane: its number, channel, first row of outputs and how many there are."""

    plane: Val
    channel: Val
    first: Val
    have: Val


class Near:
    """A band of a plane in the memory of a task: [row, remainder of the column, column]."""

    def __init__(self, code: Code, p: Plan, s: Sizes, near: Buf, base: Val) -> None:
        self.code, self.p, self.s, self.near, self.base = code, p, s, near, base
        self.line = s.pitch * p.phases
        # Zeros around the columns are written once for all jobs of the task.
        with code.loop(code.at(0), s.slot, code.at(LANES)) as k:
            store(near, base + k, code.const(0, Vector(p.dtype, LANES)))

    def fill(self, x: Buf, job: Job) -> None:
        """Bring what the rows of a job read."""
        code, p, s = self.code, self.p, self.s
        head = s.offset + job.plane * s.height * s.width
        with code.loop(code.at(0), (job.have - 1) * p.step + (p.reach + 1)) as row:
            y = job.first * p.step + row - p.pad[0]
            to = self.base + row * self.line
            with code.when((y >= 0) & (y < s.height)) as branch:
                if p.phases == 1:
                    self._copied(x, head + y * s.width, to + p.pad[1])
                else:
                    self._apart(x, head + y * s.width, to)
            with code.otherwise(branch), code.loop(code.at(0), self.line, code.at(LANES)) as k:
                store(self.near, to + k, code.const(0, Vector(p.dtype, LANES)))

    def _copied(self, x: Buf, source: Val, to: Val) -> None:
        with overlapping(self.code, self.s.width, self.p.near) as k:
            store(self.near, to + k, load(x, source + k, self.p.near))

    def _apart(self, x: Buf, source: Val, to: Val) -> None:
        """Write a row of which even and odd columns come to stand by themselves."""
        code, width, pad = self.code, self.p.near, self.p.pad[1]
        places = [to + self.s.pitch * ((pad + odd) % 2) + (pad + odd) // 2 for odd in range(2)]
        pairs = self.s.width // 2
        with overlapping(code, pairs, width) as k:
            first, second = (load(x, source + k * 2 + n * width, width) for n in range(2))
            for at, value in zip(places, apart(first, second), strict=True):
                store(self.near, at + k, value)
        with code.when((pairs * 2).ne(self.s.width)):
            self.near[places[0] + pairs] = x[source + pairs * 2]

    def at(self, row: Val, down: int, tap: Across) -> Val:
        """Return where a tap of the outputs of a row begins to read."""
        line = self.base + (row + down) * self.line
        return line + self.s.pitch * tap.phase + tap.shift


@contextmanager
def overlapping(code: Code, count: Val, width: int) -> Iterator[Val]:
    """Add a loop over vectors, of which the last one overlaps the one before."""
    with code.loop(code.at(0), count, code.at(width)) as k:
        yield k.call("min", count - width)


@contextmanager
def each_job(code: Code, s: Sizes, task: Val) -> Iterator[Job]:
    """Run the block for the jobs of a task."""
    with code.loop(task, s.jobs, s.tasks) as number:
        plane = number // s.bands
        first = (number - plane * s.bands) * s.rows
        yield Job(plane, plane % s.channels, first, (s.out_height - first).call("min", s.rows))


def sums_kernel(p: Plan, wide: tuple[int, int], biased: bool, then: Spec | None = None) -> Kernel:
    """Write sums over taps: a convolution, or the gradient of its input.

    Args:
        p: what it is made for; its outputs with all remainders stand side by side.
        wide: rows and columns of the result for each of them.
        biased: a number is added to each channel.
        then: what is computed of the results.
    """
    code = Code("conv_depthwise", d.int64, 1)
    out, x, w = (code.buffer(n, p.dtype) for n in ("out", "x", "weight"))
    bias = code.buffer("bias", p.dtype) if biased else None
    scratch = code.buffer("scratch", p.dtype)
    s = Sizes.of(code)
    # Rows and columns of the result.
    height, width = code.place("full_height"), code.place("full_width")
    weight_at, *weight_steps = code.places("weight", 4)
    bias_at = code.places("bias", 2) if biased else []
    after = None if then is None else EpilogueCode(code, then)
    task = code.special("cube_pos")
    near = Near(code, p, s, scratch, task * s.slot)
    with each_job(code, s, task) as job:
        near.fill(x, job)
        head = weight_at + job.channel * weight_steps[0]
        weights = {
            (i, j): w[head + weight_steps[1] * i + weight_steps[2] * j]
            for i in range(p.size[0])
            for j in range(p.size[1])
        }
        add = None if bias is None else bias[bias_at[0] + job.channel * bias_at[1]]
        change: Change = partial(plus, add)
        if after is not None:
            change = _followed(change, after.channel(job.channel))
        group = _Group(near, weights, out, change, job.plane * height, wide)
        whole = width // wide[1]

        def rows(row: Val, block: int) -> None:
            with overlapping(code, whole, p.lanes) as k:
                group.write(job.first, row, k, p.lanes, block, height, width)
            if wide[1] > 1:
                # The last column of an odd number has no neighbour.
                with code.when((whole * wide[1]).ne(width)):
                    group.write(job.first, row, whole, 1, block, height, width)

        block = code.at(p.block)
        with code.when(job.have >= block) as branch, code.loop(code.at(0), job.have, block) as row:
            rows(row.call("min", job.have - block), p.block)
        with code.otherwise(branch), code.loop(code.at(0), job.have) as row:
            rows(row, 1)
    return code.finish()


class _Group:
    """Outputs of neighbouring rows and columns, which share what they read."""

    def __init__(
        self, near: Near, weights: dict[tuple[int, int], Val], out: Buf, change: Change,
        head: Val, wide: tuple[int, int],
    ) -> None:  # fmt: skip
        self.near, self.weights, self.out = near, weights, out
        self.change, self.head, self.wide = change, head, wide

    def write(
        self, first: Val, row: Val, k: Val, lanes: int, block: int, height: Val, width: Val
    ) -> None:
        """Write the outputs from a row of the band and a column on."""
        # A single column is the last one, which has no neighbour with another remainder.
        columns = range(self.wide[1] if lanes > 1 else 1)
        # All sums come before the first is written: LLVM would read everything again behind it.
        made = [
            (r * self.wide[0] + a, [self._sum(row, r, a, b, k, lanes) for b in columns])
            for r in range(block)
            for a in range(self.wide[0])
        ]
        begin = (first + row) * self.wide[0]
        for down, values in made:
            y = begin + down
            at = (self.head + y) * width + k * self.wide[1]
            if len(values) > 1:
                values = list(together(values[0], values[1]))
            # With an odd number of rows the last ones have no neighbour either.
            there = self.near.code.when(y < height) if self.wide[0] > 1 else nullcontext()
            with there:
                for n, value in enumerate(values):
                    place = at + n * lanes
                    store(self.out, place, self.change(value, place))

    def _sum(self, row: Val, r: int, a: int, b: int, k: Val, lanes: int) -> Val:
        near, p = self.near, self.near.p
        made = near.code.const(0, Vector(p.dtype, lanes) if lanes > 1 else p.dtype)
        for down in p.down[a]:
            for tap in p.across[b]:
                weight = self.weights[down.tap, tap.tap]
                read = load(
                    near.near, near.at(row * p.step, r * p.step + down.shift, tap) + k, lanes
                )
                made = fma(splat(weight, lanes) if lanes > 1 else weight, read, made)
        return made


def _followed(first: Change, second: Change) -> Change:
    return lambda value, place: second(first(value, place), place)


def products_kernel(p: Plan) -> Kernel:
    """Write the gradient of the window of each band: [band, channel, taps]."""
    code = Code("conv_depthwise_weight", d.int64, 1)
    out, g, x = (code.buffer(n, p.dtype) for n in ("out", "g", "x"))
    scratch = code.buffer("scratch", p.dtype)
    s, g_offset = Sizes.of(code), code.place("g_offset")
    task = code.special("cube_pos")
    near = Near(code, p, s, scratch, task * s.slot)
    taps = [(i, j) for i in p.down[0] for j in p.across[0]]
    with each_job(code, s, task) as job:
        near.fill(x, job)
        image = job.plane // s.channels
        number = (image * s.bands + job.first // s.rows) * s.channels + job.channel
        head = g_offset + (job.plane * s.out_height + job.first) * s.out_width
        for first in range(0, len(taps), SUMS):
            some = taps[first : first + SUMS]
            for n, value in enumerate(_products(near, g, head, job.have, some)):
                out[number * len(taps) + first + n] = value
    return code.finish()


def _products(
    near: Near, g: Buf, head: Val, have: Val, taps: Sequence[tuple[Down, Across]]
) -> list[Val]:
    """Return the sums of g, of which a band begins at `head`, times what each tap reads."""
    code, p, count = near.code, near.p, near.s.out_width
    lanes, none = p.lanes, code.const(0, Vector(p.dtype, p.lanes))
    numbers = Val(code, code.b.vector(*[code.at(k).op for k in range(lanes)]))
    cells = [Cell(code, p.dtype, lanes) for _ in taps]

    def add(row: Val, k: Val, kept: Val | None) -> None:
        one = load(g, head + row * count + k, lanes)
        if kept is not None:
            one = kept.pick(one, none)
        for cell, (i, j) in zip(cells, taps, strict=True):
            read = load(near.near, near.at(row * p.step, i.shift, j) + k, lanes)
            # Zero times what is not finite is not zero.
            cell.set(fma(one, read if kept is None else kept.pick(read, none), cell.get()))

    with code.loop(code.at(0), have) as row:
        whole = count // lanes * lanes
        with code.loop(code.at(0), whole, code.at(lanes)) as k:
            add(row, k, None)
        with code.when(whole < count):
            # Lanes that the vector before had do not count again.
            last = count - lanes
            add(row, last, numbers >= splat(whole - last, lanes))
    return [total(cell.get()) for cell in cells]
