"""Copies between layouts on the cpu: squares in registers, and short rows several at a time.

Between layouts that are each other's transpose an elementwise copy would touch a cache line for
every element on one side. Here a square of elements is read by its rows and written by its columns,
a whole line of the cache each.
"""

from __future__ import annotations

from typing import Any

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, collapse, dense, size_of
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

LINE = 64
# Elements below which a copy is over before a better one would begin.
LEAST = 1 << 10
# Elements of an array, and along both sides, from which on it is copied before it is read across.
WORTH, LONG = 1 << 14, 16
# Elements of a row above which a row is enough for a cube; and about so many a cube copies.
SHORT, PIECE = 1 << 10, 1 << 12


def is_turned(engine: Engine, shape: Ints, strides: Ints) -> bool:
    """Return whether to copy an array first is faster than to read it along its rows.

    It is where each element of a row lies in another line of the cache, while columns do not.
    """
    if engine.client.name != "cpu" or size_of(shape) < WORTH:
        return False
    extents, (_, steps) = collapse(shape, [dense(shape), strides])
    if extents[-1] < LONG or abs(steps[-1]) < 2 or 0 in steps:
        return False
    return any(step == 1 and n >= LONG for n, step in zip(extents, steps, strict=True))


def turned_kernel(dtype: DType, lanes: int, rank: int, index: DType) -> Kernel:
    """Write a copy: along `i` the result lies in one piece, along `j` the source does.

    A cube copies a strip, `lanes` places of `i` by all of `j`. Where an extent is no multiple, the
    last square begins earlier and copies some elements a second time.
    """
    code = Code("copy_turned", index, 1)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    out0, x0, many_i, many_j, out_j, x_i = (
        code.place(p) for p in ("out_offset", "x_offset", "i", "j", "out_step", "x_step")
    )
    extents = code.places("extent", rank)
    outs, xs = code.places("out_stride", rank), code.places("x_stride", rank)
    strips = (many_i + (lanes - 1)) // lanes
    cube = code.special("cube_pos")
    other = cube // strips
    i = ((cube - other * strips) * lanes).call("min", many_i - lanes)
    coords = code.coords(other, extents)
    target, source = code.walk(out0, coords, outs) + i, code.walk(x0, coords, xs) + i * x_i
    with code.loop(0, many_j, code.at(lanes)) as start:
        j = start.call("min", many_j - lanes)
        rows = [
            Val(code, code.b.load(x.op, (source + x_i * r + j).op, lanes)) for r in range(lanes)
        ]
        for c, column in enumerate(transposed(code, rows)):
            code.b.store(out.op, (target + (j + c) * out_j).op, column.op)
    return code.finish()


def transposed(code: Code, rows: list[Val]) -> list[Val]:
    """Return the columns of a square of vectors, by exchanging blocks of 1, 2, 4, ... lanes."""
    count, b = len(rows), code.b
    rows = list(rows)
    step = 1
    while step < count:
        for k in range(count):
            if k & step:
                continue
            first = [b.extract(rows[k].op, lane) for lane in range(count)]
            second = [b.extract(rows[k + step].op, lane) for lane in range(count)]
            low = [second[n - step] if n & step else first[n] for n in range(count)]
            high = [second[n] if n & step else first[n + step] for n in range(count)]
            rows[k], rows[k + step] = Val(code, b.vector(*low)), Val(code, b.vector(*high))
        step *= 2
    return rows


def rows_kernel(dtype: DType, lanes: int, rank: int, index: DType) -> Kernel:
    """Write a copy of rows that lie in one piece on both sides; a cube copies `each` of them."""
    code = Code("copy_short_rows", index, 1)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    out0, x0, many, length, out_row, x_row, each = (
        code.place(p)
        for p in ("out_offset", "x_offset", "rows", "length", "out_step", "x_step", "each")
    )
    extents = code.places("extent", rank)
    outs, xs = code.places("out_stride", rank), code.places("x_stride", rank)
    pieces = (many + (each - 1)) // each
    cube = code.special("cube_pos")
    other = cube // pieces
    first = (cube - other * pieces) * each
    coords = code.coords(other, extents)
    target, source = code.walk(out0, coords, outs), code.walk(x0, coords, xs)
    whole = length // lanes * lanes

    def vector(to: Val, from_: Val) -> None:
        code.b.store(out.op, to.op, code.b.load(x.op, from_.op, lanes))

    with code.loop(first, (first + each).call("min", many)) as row:
        to, from_ = target + row * out_row, source + row * x_row
        with code.loop(0, whole, code.at(lanes)) as k:
            vector(to + k, from_ + k)
        with code.when(whole < length):
            last = length - lanes
            vector(to + last, from_ + last)  # copies some a second time
    return code.finish()


def copied_well(engine: Engine, out: CubeTensor, x: CubeTensor) -> bool:
    """Copy x into a tensor of its shape and dtype where this can be done well; say if it was.

    Args:
        engine: the device.
        out: the target, written as it lies.
        x: the source.
    """
    if engine.client.name != "cpu" or out.size < LEAST or x.dtype is not out.dtype:
        return False
    extents, (outs, xs) = collapse(out.shape, [out.strides, x.strides])
    lanes = min(16, LINE // x.dtype.itemsize)
    index = engine.index_dtype(out, x, count=out.size)
    last = len(extents) - 1

    def start(
        make: Any, cubes: int, cost: float, numbers: list[int], done: tuple[int, int]
    ) -> None:
        rest = [k for k in range(len(extents)) if k not in done]
        sizes = [extents[k] for k in rest] or [1]
        program = engine.loaded(make, (x.dtype, lanes, len(sizes), index))
        program.cost = max(1.0, cost)  # type: ignore[attr-defined]
        args = [out.buf, x.buf, out.offset, x.offset, *numbers, *sizes]
        args += [outs[k] for k in rest] or [0]
        args += [xs[k] for k in rest] or [0]
        engine.start(program, (size_of(sizes) * cubes, 1, 1), args)

    if last and outs[last] == xs[last] == 1 and lanes <= extents[last] < SHORT:
        length, many = extents[last], extents[last - 1]
        each = min(max(1, PIECE // length), many)
        numbers = [many, length, outs[last - 1], xs[last - 1], each]
        # What a word of 4 bytes costs that comes from the third cache and goes there.
        cost = each * length * x.dtype.itemsize / 4
        start(rows_kernel, -(-many // each), cost, numbers, (last - 1, last))
        return True
    long = [k for k, n in enumerate(extents) if n >= lanes]
    i = next((k for k in long if outs[k] == 1), -1)
    j = next((k for k in long if xs[k] == 1 and k != i), -1)
    if i < 0 or j < 0 or xs[i] in (0, 1):
        return False
    numbers = [extents[i], extents[j], outs[j], xs[i]]
    start(turned_kernel, -(-extents[i] // lanes), 0.5 * lanes * extents[j], numbers, (i, j))
    return True
