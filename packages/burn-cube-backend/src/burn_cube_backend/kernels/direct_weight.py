"""The gradient of kernels over the bands of `direct_kernels`: products of shifted rows.

A task adds what its bands give to sums of its own; the sums of all tasks are added in order.
"""

from __future__ import annotations

from functools import partial

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.direct_kernels import Band, Jobs, Windows, each_job
from burn_cube_backend.kernels.winograd_kernels import any_bad
from burn_cube_backend.lanes import LANES, Cell, copy_row, fma, load, picked, splat, store, sums
from burn_std import DType, dtypes as d

# Taps whose sums stand in registers beside those of the output channels of a panel.
COLUMNS = {8: 3, 1: 12}


def watched(bad: Cell, value: Val) -> Val:
    """Return numbers, after a note in `bad` of an infinity or NaN among them."""
    kind = value.op.type
    width = kind.width if isinstance(kind, Vector) else 1
    lanes = splat(value) if width == 1 else value
    if 1 < width < LANES:
        lanes = picked((value,) * (LANES // width), range(LANES))
    bad.set(fma(lanes, bad.code.const(0, bad.kind), bad.get()))
    return value


def total(v: Val) -> Val:
    """Return the sum of lanes."""
    width: int = v.op.type.width
    while width > 2:
        width //= 2
        v = picked((v,), range(width)) + picked((v,), range(width, 2 * width))
    b = v.code.b
    return Val(v.code, b.extract(v.op, 0)) + Val(v.code, b.extract(v.op, 1))


def products_kernel(w: Windows) -> Kernel:
    """Write the sums of each task: [task, group, panel, channel, tap, rows]."""
    code = Code("conv_direct_weight", d.int64, 1)
    dtype, rows = w.dtype, w.rows
    out, g, x, near = (code.buffer(n, dtype) for n in ("out", "g", "x", "scratch"))
    flags = code.buffer("flags", d.int32)
    s = Jobs.of(code)
    g_offset, run, size = code.place("g_offset"), code.place("run"), code.place("size")
    task = code.special("cube_pos")
    lines, own = task * s.slot, task * size
    panels = (s.outs + (rows - 1)) // rows
    band = Band(code, w, near, lines + run * panels * rows, s.pitch, s.rows)
    zero, none, bad = code.const(0, dtype), code.const(0, Vector(dtype, LANES)), Cell(code, dtype)
    with code.loop(code.at(0), size) as k:
        out[own + k] = zero

    def note(head: Val, c: Val) -> None:
        flag = any_bad(bad.get())
        with code.when(flag > 0):
            flags[head + c] = flag
            bad.clear()

    with each_job(code, s, task) as (job, _):
        plane = job.image * s.groups + job.group
        head = s.offset + plane * s.channels * s.height * s.width
        band.fill(x, head, s.channels, job.first, s, partial(watched, bad),
                  partial(note, job.group * s.channels))  # fmt: skip
        with code.loop(code.at(0), s.outs) as k:
            at = ((plane * s.outs + k) * s.out_height + job.first) * s.out_width + g_offset
            with code.loop(code.at(0), job.have) as row:
                to = lines + run * k + row * s.pitch
                copy_row(near, to, g, at + row * s.out_width, s.out_width)
                with code.loop(s.out_width, s.pitch) as gap:
                    near[to + gap] = zero
            store(near, lines + run * k + job.have * s.pitch, none)
        with code.loop(code.at(0), panels) as panel:
            left = lines + run * rows * panel
            with code.loop(code.at(0), s.channels) as c:
                to = own + ((job.group * panels + panel) * s.channels + c) * (len(w.taps) * rows)
                _add(band, out, to, left, run, band.base + c * band.plane, job.have * s.pitch)
    return code.finish()


def _add(band: Band, out: Buf, to: Val, left: Val, run: Val, here: Val, stop: Val) -> None:
    """Add the products of the rows of a panel with a channel, at every tap."""
    code, w, near = band.code, band.w, band.near
    rows = w.rows
    across = w.size[1] if w.loops else len(w.taps)
    per = -(-across // -(-across // COLUMNS[rows]))

    def line(row: Val, first: int) -> None:
        some = range(first, min(first + per, across))
        taps = [band.far_tap(row, n) if w.loops else band.tap(*w.taps[n]) for n in some]
        cells = [[Cell(code, w.dtype) for _ in range(rows)] for _ in some]
        with code.loop(code.at(0), stop, code.at(LANES)) as q:
            columns = [load(near, here + tap + q) for tap in taps]
            for r in range(rows):
                one = load(near, left + run * r + q)
                for cell, column in zip(cells, columns, strict=True):
                    cell[r].set(fma(one, column, cell[r].get()))
        for n, cell in zip(some, cells, strict=True):
            at = to + (row * across + n) * rows
            lanes = [c.get() for c in cell]
            if rows == 1:
                out[at] = out[at] + total(lanes[0])
            else:
                store(out, at, load(out, at, rows) + sums(lanes))

    lines = code.at(w.size[0] if w.loops else 1)
    with code.loop(code.at(0), lines) as row:
        for first in range(0, across, per):
            line(row, first)


def gather_kernel(dtype: DType, rows: int, taps: int) -> Kernel:
    """Write the gradient from the sums of all tasks, a panel of a group per unit."""
    code = Code("conv_direct_gather", d.int64, 1)
    out, parts = code.buffer("out", dtype), code.buffer("parts", dtype)
    tasks, size, panels, outs, channels = (
        code.place(n) for n in ("tasks", "size", "panels", "outs", "channels")
    )
    unit = code.special("cube_pos")
    group = unit // panels
    panel = unit - group * panels
    with code.loop(code.at(0), channels * taps) as k:
        at = (unit * channels * taps + k) * rows
        made = Cell(code, dtype, rows) if rows > 1 else code.local(dtype)
        made.set(load(parts, at, rows))
        with code.loop(code.at(1), tasks) as task:
            made.set(made.get() + load(parts, at + task * size, rows))
        for r in range(rows):
            row = panel * rows + r
            with code.when(row < outs):
                value = made.get()
                lane = Val(code, code.b.extract(value.op, r)) if rows > 1 else value
                out[(group * outs + row) * channels * taps + k] = lane
    return code.finish()


def mend_kernel(w: Windows) -> Kernel:
    """Compute anew what an infinity or NaN of the input went into, an output channel per unit.

    Between the rows of a band, zeros meet inputs that they have nothing to do with.
    """
    code = Code("conv_direct_mend", d.int64, 1)
    out, g, x = (code.buffer(n, w.dtype) for n in ("out", "g", "x"))
    flags = code.buffer("flags", d.int32)
    channels, outs, images, groups, height, width, out_height, out_width = (
        code.place(n)
        for n in (
            "channels", "outs", "images", "groups", "height", "width", "out_height", "out_width"
        )
    )  # fmt: skip
    pads, offset, g_offset = code.places("padding", 2), code.place("offset"), code.place("g_offset")
    k = code.special("cube_pos")
    group = k // outs
    sum_ = code.local(w.dtype)
    with code.loop(code.at(0), channels) as c:
        flag = flags[group * channels + c]
        with code.when(flag > 0), code.loop(code.at(0), code.at(len(w.taps))) as tap:
            i = (tap // w.size[1]) * w.dilation[0] - pads[0]
            j = (tap % w.size[1]) * w.dilation[1] - pads[1]
            sum_.set(0)
            with code.loop(code.at(0), images) as n, code.loop(code.at(0), out_height) as row:
                y = row * w.stride[0] + i
                x_at = (
                    offset + ((n * groups * channels + group * channels + c) * height + y) * width
                )
                g_at = g_offset + ((n * groups * outs + k) * out_height + row) * out_width
                inside = (y >= 0) & (y < height)
                with code.when(inside), code.loop(code.at(0), out_width) as column:
                    z = column * w.stride[1] + j
                    with code.when((z >= 0) & (z < width)):
                        sum_.set(fma(g[g_at + column], x[x_at + z], sum_.get()))
                with code.when(sum_.get().call("isnan")):
                    code.b.break_()
            out[(k * channels + c) * len(w.taps) + tap] = sum_.get()
    return code.finish()
