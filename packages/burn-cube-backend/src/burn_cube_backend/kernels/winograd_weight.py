"""The gradient of 3 x 3 kernels by the transforms of `winograd_kernels`: three kernels and a mend.

Inputs and gradients of the outputs are transformed, a run of rows of tiles at a time; per point,
the gradient of a transformed kernel is a product over tiles, whose sums stay in the lanes of the
registers until the end; what comes out is transformed back.
"""

from __future__ import annotations

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.winograd_kernels import (
    POINTS,
    ROWS,
    Sizes,
    any_bad,
    input_points,
    read_tiles,
)
from burn_cube_backend.lanes import LANES, Cell, apart, copy_row, fma, load, store, sums
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Input channels whose sums stand in registers beside 8 output channels.
COLUMNS = 3
# Transforms that are made at a time, in bytes: what stays in the third cache. Tiles that a product
# takes at a time: 8 rows of them stay in the first.
RUN, STRETCH = 12 << 20, 768


def gradient_points(pairs: list[list[Val]]) -> list[Val]:
    """Return the 16 numbers of 2 x 2 gradients."""

    def line(a: Val, b: Val) -> list[Val]:
        return [a, a + b, a - b, -b]

    across = [line(*pair) for pair in pairs]
    columns = [line(across[0][j], across[1][j]) for j in range(4)]
    return [columns[j][i] for i in range(4) for j in range(4)]


def points_kernel(dtype: DType, gradient: bool) -> Kernel:
    """Write the transforms of a run of rows of tiles: [point, channel, tile], zeros behind.

    Task t takes channels t, t + tasks, ...; flags say which have an infinity or NaN.
    """
    code = Code("winograd_points", d.int64, 1)
    out, x, near = (code.buffer(n, dtype) for n in ("out", "x", "scratch"))
    flags = code.buffer("flags", d.int32)
    s = Sizes.of(code)
    channels, first, count, span, plane = (
        code.place(n) for n in ("channels", "first", "count", "span", "plane")
    )
    tasks, wide, offset = (code.place(n) for n in ("tasks", "wide", "offset"))
    height, width = (s.out_height, s.out_width) if gradient else (s.height, s.width)
    up, back = (code.at(0), code.at(0)) if gradient else (s.pad_height, s.pad_width)
    lines = 2 if gradient else 4
    task = code.special("cube_pos")
    base = task * wide * (2 * lines)
    zero = code.const(0, load(near, base).op.type)
    bad = Cell(code, dtype)
    with code.loop(code.at(0), wide * (2 * lines), code.at(LANES)) as k:
        store(near, base + k, zero)

    def bring(line: Val) -> None:
        image = line // s.down
        top = (line - image * s.down) * 2 - up
        with code.loop(code.at(0), code.at(lines)) as i:
            to = base + ((line % 2) * lines + i) * wide
            row = top + i
            with code.when((row >= 0) & (row < height)) as branch:
                at = ((image * channels + channel) * height + row) * width
                have = (s.across * 2 + 2 - back).call("min", width)
                copy_row(near, to + back, x, offset + at, have)
            with code.otherwise(branch), code.loop(code.at(0), wide, code.at(LANES)) as k:
                store(near, to + k, zero)

    def transform(line: Val) -> None:
        origin = base + (line % 2) * lines * wide
        target = channel * span + (line - first) * s.across
        with code.loop(code.at(0), s.across, code.at(LANES)) as t:
            here = origin + t * 2
            if gradient:
                pairs = [
                    list(apart(load(near, here + wide * i), load(near, here + wide * i + LANES)))
                    for i in range(2)
                ]
                seen = [v for pair in pairs for v in pair]
                points = gradient_points(pairs)
            else:
                rows = read_tiles(near, here, wide)
                seen = [v for a, b, c, e in rows for v in (a - c, b - e)]
                points = input_points(rows)
            for v in seen:
                bad.set(fma(v, zero, bad.get()))
            for p, v in enumerate(points):
                store(out, target + t + plane * p, v)

    with code.loop(task, channels, tasks) as channel:
        bad.clear()
        bring(first)
        last = first + count - 1
        # Rows are brought ahead, so that what is read was written long enough ago.
        with code.loop(first, last) as line:
            bring(line + 1)
            transform(line)
        transform(last)
        for p in range(POINTS):
            store(out, channel * span + count * s.across + plane * p, zero)
        old = (first > 0).pick(flags[channel], code.const(0, d.int32))
        flags[channel] = old | any_bad(bad.get())
    return code.finish()


def products_kernel(dtype: DType) -> Kernel:
    """Add products over tiles: [point, panel, channel, 8], a panel of a point per unit."""
    code = Code("winograd_products", d.int64, 1)
    out, g, x = (code.buffer(n, dtype) for n in ("out", "g", "x"))
    panels, channels, span, tiles, again = (
        code.place(n) for n in ("panels", "channels", "span", "tiles", "again")
    )
    unit = code.special("cube_pos")
    point = unit // panels
    left = (point * panels + (unit - point * panels)) * ROWS * span
    right, to = point * channels * span, unit * channels * ROWS
    cells = [[Cell(code, dtype) for _ in range(COLUMNS)] for _ in range(ROWS)]
    with code.loop(code.at(0), tiles, code.at(STRETCH)) as t0:
        stop = (t0 + STRETCH).call("min", tiles)
        with code.loop(code.at(0), channels, code.at(COLUMNS)) as c:
            for row in cells:
                for cell in row:
                    cell.clear()
            with code.loop(t0, stop, code.at(LANES)) as t:
                columns = [load(x, right + (c + n) * span + t) for n in range(COLUMNS)]
                for r in range(ROWS):
                    one = load(g, left + span * r + t)
                    for n in range(COLUMNS):
                        cells[r][n].set(fma(one, columns[n], cells[r][n].get()))
            for n in range(COLUMNS):
                at = to + (c + n) * ROWS
                total = sums([cells[r][n].get() for r in range(ROWS)])
                with code.when((t0 > 0) | (again > 0)) as branch:
                    store(out, at, load(out, at, ROWS) + total)
                with code.otherwise(branch):
                    store(out, at, total)
    return code.finish()


def kernels_kernel(dtype: DType) -> Kernel:
    """Write the gradient of kernels from that of their transforms, a panel per unit."""
    code = Code("winograd_kernels", d.int64, 1)
    out, u = code.buffer("out", dtype), code.buffer("points", dtype)
    panels, channels, padded, outs = (
        code.place(n) for n in ("panels", "channels", "padded", "outs")
    )
    panel = code.special("cube_pos")

    def line(a: Val, b: Val, c: Val, e: Val) -> list[Val]:
        plus, minus = (b + c) * 0.5, (b - c) * 0.5
        return [a + plus, minus, plus + e]

    with code.loop(code.at(0), channels) as c:
        points = [load(u, ((panels * p + panel) * padded + c) * ROWS, ROWS) for p in range(POINTS)]
        across = [line(*points[4 * i : 4 * i + 4]) for i in range(4)]
        down = [line(*(across[i][j] for i in range(4))) for j in range(3)]
        for r in range(ROWS):
            k = panel * ROWS + r
            with code.when(k < outs):
                for i in range(3):
                    for j in range(3):
                        lane = Val(code, code.b.extract(down[j][i].op, r))
                        out[(k * channels + c) * 9 + (3 * i + j)] = lane
    return code.finish()


def mend_kernel(dtype: DType) -> Kernel:
    """Compute anew what an infinity or NaN went into, an output channel per unit."""
    code = Code("winograd_weight_mend", d.int64, 1)
    out, g, x = (code.buffer(n, dtype) for n in ("out", "g", "x"))
    g_flags, x_flags = code.buffer("g_flags", d.int32), code.buffer("x_flags", d.int32)
    s = Sizes.of(code)
    channels, outs, images = (code.place(n) for n in ("channels", "outs", "images"))
    offset, g_offset = code.place("offset"), code.place("g_offset")
    k = code.special("cube_pos")
    total = code.local(dtype)

    def stop_at_nan() -> None:
        with code.when(total.get().call("isnan")):
            code.b.break_()

    with code.loop(code.at(0), channels) as c:
        flag = g_flags[k] | x_flags[c]
        with code.when(flag > 0), code.loop(code.at(0), code.at(9)) as tap:
            i, j = tap // 3 - s.pad_height, tap % 3 - s.pad_width
            total.set(0)
            with code.loop(code.at(0), images) as n:
                with code.loop(code.at(0), s.out_height) as row:
                    y = row + i
                    with code.when((y >= 0) & (y < s.height)):
                        low = (-j).call("max", 0)
                        high = (s.width - j).call("min", s.out_width)
                        x_at = offset + ((n * channels + c) * s.height + y) * s.width + j
                        g_at = g_offset + ((n * outs + k) * s.out_height + row) * s.out_width
                        with code.loop(low, high) as column:
                            total.set(fma(g[g_at + column], x[x_at + column], total.get()))
                    stop_at_nan()
                stop_at_nan()
            out[(k * channels + c) * 9 + tap] = total.get()
    return code.finish()


def weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, padding: Ints, shape: Ints
) -> CubeTensor:
    """Return the gradient of a weight of `shape` from g [N, O, *out] and x [N, C, H, W]."""
    if not g.size or not x.size:
        return filled(engine, x.dtype, shape, 0)
    g, x = engine.row_major(g), engine.row_major(x)
    dtype, threads = x.dtype, engine.client.properties.units
    outs, channels = shape[:2]
    out = g.shape[2:]
    down, across = -(-out[0] // 2), -(-out[1] // 2)
    lines = x.shape[0] * down
    panels = -(-outs // ROWS)
    g_rows, x_rows = panels * ROWS, -(-channels // COLUMNS) * COLUMNS
    item = POINTS * dtype.itemsize
    most = max(1, RUN // (item * across * (g_rows + x_rows)))
    runs = -(-lines // most)
    most = -(-lines // runs)
    span = -(-most * across // LANES) * LANES + LANES
    wide = -(-(2 * across + max(padding) + 2 * LANES + 4) // LANES) * LANES
    points_g = engine.flat(POINTS * g_rows * span, dtype)
    points_x = engine.flat(POINTS * x_rows * span, dtype)
    u = engine.flat(POINTS * panels * x_rows * ROWS, dtype)
    flags_g, flags_x = engine.flat(outs, d.int32), engine.flat(channels, d.int32)
    scratch = engine.flat(4 * threads * 8 * wide, dtype)
    sizes = [*x.shape[2:], *out, *padding, down, across]
    for first in range(0, lines, most):
        count = min(most, lines - first)
        for to, source, flags, rows, padded, gradient in (
            (points_g, g, flags_g, outs, g_rows, True),
            (points_x, x, flags_x, channels, x_rows, False),
        ):
            tasks = min(rows, 4 * threads)
            args = [to, source.buf, scratch, flags, *sizes, rows, first, count, span,
                    padded * span, tasks, wide, source.offset]  # fmt: skip
            engine.cubes(points_kernel, (dtype, gradient), tasks, args)
        tiles = -(-count * across // LANES) * LANES
        engine.cubes(
            products_kernel, (dtype,), POINTS * panels,
            [u, points_g, points_x, panels, x_rows, span, tiles, int(first > 0)],
        )  # fmt: skip
    made = engine.empty(shape, dtype)
    engine.cubes(kernels_kernel, (dtype,), panels, [made.buf, u, panels, channels, x_rows, outs])
    engine.cubes(
        mend_kernel, (dtype,), outs,
        [made.buf, g.buf, x.buf, flags_g, flags_x, *sizes, channels, outs, x.shape[0], x.offset,
         g.offset],
    )  # fmt: skip
    return made
