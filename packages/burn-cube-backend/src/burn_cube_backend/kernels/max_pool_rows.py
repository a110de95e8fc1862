"""Maxima of windows on the cpu, a row of results at a time, in vectors.

Windows that reach into the padding on the left or right are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels.reduction import first_value
from burn_cube_backend.lanes import LANES, Cell, apart, load, splat, store
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Windows up to this many elements are written out.
MOST = 16
# Cost of an element of a window, in the operations that the runtime counts.
WORK = 2.0


def serves(
    engine: Engine, x: CubeTensor, kernel: Ints, stride: Ints, dilation: Ints
) -> bool:  # fmt: skip
    """Return whether maxima are computed here."""
    # With steps of two, the neighbour of every element that is read must be part of the window.
    steps = stride[-1] == 1 or (stride[-1] == 2 and kernel[-1] > 1)
    return (
        engine.client.runtime.name == "cpu" and x.dtype is d.float32 and len(kernel) == 2
        and size_of(kernel) <= MOST and steps and dilation == (1, 1)
        and size_of(x.shape[2:]) < 1 << 31
    )  # fmt: skip


def rows_kernel(dtype: DType, kernel: Ints, stride: Ints) -> Kernel:
    """Write maxima and their flat indices, one row of a plane per unit."""
    code = Code("max_pool_rows", d.int64, 1)
    out, places, x = (
        code.buffer("out", dtype),
        code.buffer("places", d.int64),
        code.buffer("x", dtype),
    )
    offset, height, width, out_height, out_width, pad_height, pad_width = (
        code.place(n)
        for n in ("offset", "height", "width", "out_height", "out_width", "pad_height", "pad_width")
    )
    unit = code.special("cube_pos")
    plane = unit // out_height
    top = (unit - plane * out_height) * stride[0] - pad_height
    base, to = offset + plane * height * width, unit * out_width
    step = stride[1]
    # Windows from `low` to before `high` have all their columns inside.
    low = ((pad_width + (step - 1)) // step).call("min", out_width)
    room = (width + pad_width - kernel[1]).call("max", -1) + step
    high = (room // step).call("min", out_width).call("max", low)
    first = top.call("max", 0)
    worst = first_value("max", dtype)

    def vector(at: Val, lanes: int) -> None:
        best, winner = Cell(code, dtype, lanes), Cell(code, d.int32, lanes)
        best.set(code.const(worst, Vector(dtype, lanes)))
        left = at * step - pad_width
        order = [code.const(k * step, d.int32) for k in range(lanes)]
        lane = Val(code, code.b.vector(*(o.op for o in order)))
        winner.set(lane + splat((first * width + left).cast(d.int32), lanes))
        for i in range(kernel[0]):
            row = top + i
            with code.when((row >= 0) & (row < height)):
                begin = row * width + left
                for j, value in enumerate(_taps(x, base + begin, kernel[1], step, lanes)):
                    now = best.get()
                    # A NaN is no smaller than what there is, unless that is one, too.
                    better = ~(value <= now) & ~now.call("isnan")
                    best.set(better.pick(value, now))
                    place = lane + splat((begin + j).cast(d.int32), lanes)
                    winner.set(better.pick(place, winner.get()))
        store(out, to + at, best.get())
        store(places, to + at, winner.get().cast(d.int64))

    def single(at: Val) -> None:
        best, winner = code.local(dtype, worst), code.local(code.index, -1)
        left = at * step - pad_width
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                row, column = top + i, left + j
                inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
                with code.when(inside):
                    value, now = x[base + row * width + column], best.get()
                    better = (~(value <= now) & ~now.call("isnan")) | (winner.get() < 0)
                    best.set(better.pick(value, now))
                    winner.set(better.pick(row * width + column, winner.get()))
        out[to + at] = best.get()
        # A window in ceil mode may see nothing but padding: its index must still lie in the plane.
        places[to + at] = winner.get().call("max", 0)

    def each(begin: Val, end: Val) -> None:
        with code.loop(begin, end) as at:
            single(at)

    each(code.at(0), low)
    _spread(code, low, high, vector, each)
    each(high, out_width)
    return code.finish()


def _spread(
    code: Code, low: Val, high: Val, vector: Callable[[Val, int], None],
    each: Callable[[Val, Val], None],
) -> None:  # fmt: skip
    """Cover a range with vectors; the last one overlaps the one before."""

    def short(lanes: int) -> None:
        with code.when(high - low >= lanes) as branch:
            if lanes == LANES:
                with code.loop(low, high - (lanes - 1), code.at(lanes)) as at:
                    vector(at, lanes)
            else:
                vector(low, lanes)
            vector(high - lanes, lanes)
        with code.otherwise(branch):
            if lanes > 4:
                short(lanes // 2)
            else:
                each(low, high)

    short(LANES)


def _taps(x: Buf, at: Val, count: int, step: int, lanes: int) -> list[Val]:
    """Return the elements of windows that begin `step` apart, column by column of the window."""
    if step == 1:
        return [load(x, at + j, lanes) for j in range(count)]
    taps: list[Val] = []
    for j in range(0, count - 1, 2):
        taps += apart(load(x, at + j, lanes), load(x, at + (j + lanes), lanes))
    if count % 2:  # read with the column before it, so that nothing behind the row is
        j = count - 2
        taps.append(apart(load(x, at + j, lanes), load(x, at + (j + lanes), lanes))[1])
    return taps


def run(
    engine: Engine, x: CubeTensor, out: CubeTensor, places: CubeTensor, kernel: Ints,
    stride: Ints, padding: Ints,
) -> None:  # fmt: skip
    """Write the maxima of the windows of row-major x [N, C, H, W]."""
    program = engine.loaded(rows_kernel, (x.dtype, kernel, stride))
    program.cost = 32 * size_of(kernel) * WORK  # type: ignore[attr-defined]
    rows = size_of(out.shape[:3])
    args = [out.buf, places.buf, x.buf, x.offset, *x.shape[2:], *out.shape[2:], *padding]
    engine.start(program, (rows, 1, 1), args)
