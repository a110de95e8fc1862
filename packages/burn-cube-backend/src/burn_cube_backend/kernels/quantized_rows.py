"""Products of few rows by a quantised matrix on the cpu: its bytes are read inside the product.

Each integer becomes the float that `dequantize` makes of it, rounded as there, and only then is
multiplied. Two kernels: `rows` for [out, in], a transposed weight, whose sums run along its rows,
and `columns` for [in, out], whose sums are neighbours. Of two values in a byte one belongs to an
even place: in `rows` either the places of the left rows are put apart or the floats of a vector of
bytes in turn, whichever are fewer; `columns` puts its sums in turn before they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Code, Local, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.integers import Integers, blocks_of, fits
from burn_cube_backend.kernels.maps import copied
from burn_cube_backend.kernels.narrow import added
from burn_cube_backend.lanes import LANES, Cell, apart, fma, load, splat, store, together
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import DType, dtypes as d

# Rows of the left matrix up to which this is no slower than to make floats of panels first. Rows of
# a tile at most: eight of [out, in] would lie at the same places of the cache, and push each other
# out. Sums that stay in registers.
FEW = 32
MOST_ALONG, MOST_DOWN, SUMS = 4, 8, 16
# Work of a vector of bytes in the runtime's unit: to make floats of it, and to multiply each.
MADE, MULTIPLIED = 4.0, 0.75


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        bits: of an integer.
        affine: there are zero points.
        dtype: to which the floats of the matrix are rounded.
        rows: of a tile.
        columns: of a tile.
        biased: a vector is added to every row.
        odd: rows of the matrix end in the middle of a byte.
    """

    bits: int
    affine: bool
    dtype: DType
    rows: int
    columns: int
    biased: bool
    odd: bool = False


def rows_kernel(s: Spec) -> Kernel:
    """Write a product of rows by the transpose of a quantised matrix, a tile per cube.

    The left rows are of float32, of so many elements; `depth` counts bytes.
    """
    code, per = Code("quantized_rows", d.int64, 1), 8 // s.bits
    out, x = code.buffer("out", d.float32), code.buffer("x", d.float32)
    w = code.buffer("w", d.uint8 if s.bits == 4 else d.int8)
    scale = code.buffer("scale", d.float32)
    zero = code.buffer("zero", d.int8) if s.affine else None
    bias = code.buffer("bias", d.float32) if s.biased else None
    rows, elements, depth, extent, tiles = (
        code.place(p) for p in ("rows", "elements", "depth", "extent", "tiles")
    )
    x0, w0, scale0, zero0, bias0 = (
        code.place(f"{p}_offset") for p in ("x", "w", "scale", "zero", "bias")
    )
    # Blocks of a row, and from row to row, as there may be one scale for all; bytes of a block.
    blocks, step, piece = code.place("blocks"), code.place("scale_step"), code.place("piece")
    number = code.special("cube_pos")
    tile = number // tiles
    column = (tile * s.columns).call("min", extent - s.columns)
    first = (number - tile * tiles) * s.rows
    # A tile with too few rows computes its last one again.
    lefts = [x0 + (first + r).call("min", rows - 1) * elements for r in range(s.rows)]
    rights = [w0 + (column + c) * depth for c in range(s.columns)]
    sums = [[Cell(code, d.float32) for _ in range(s.columns)] for _ in range(s.rows)]
    whole = elements // per // LANES * LANES
    integers = Integers(s.bits, s.dtype)

    def facts(c: int, b: Val) -> tuple[Val, Val | None]:
        at = (column + c) * step + b
        return scale[scale0 + at], None if zero is None else zero[zero0 + at].cast(d.int32)

    with code.loop(0, blocks) as b:
        of = [facts(c, b) for c in range(s.columns)]
        many = [(splat(a), None if z is None else splat(z)) for a, z in of]
        begin = b * piece
        with code.loop(begin, (begin + piece).call("min", whole), code.at(LANES)) as k:
            made: list[Sequence[Val]] = [
                integers.floats(load(w, at + k), *f) for at, f in zip(rights, many, strict=True)
            ]
            splits = per == 2 and s.rows <= s.columns
            if per == 2 and not splits:
                made = [together(*pair) for pair in made]
            for line, left in zip(sums, lefts, strict=True):
                given: Sequence[Val] = [load(x, left + k * per + n * LANES) for n in range(per)]
                given = apart(*given) if splits else given
                for total, floats in zip(line, made, strict=True):
                    value = total.get()
                    for one, other in zip(given, floats, strict=True):
                        value = fma(one, other, value)
                    total.set(value)
    ends = [[Local(code, d.float32, added(code, t.get(), LANES)) for t in line] for line in sums]
    with code.loop(whole, depth) as k:
        b = k // piece
        made = [integers.floats(w[at + k], *facts(c, b)) for c, at in enumerate(rights)]
        for n in range(per):
            # Behind the last element of an odd row there is none.
            with code.when(k * per + n < elements) if s.odd and n else nullcontext():
                for singles, left in zip(ends, lefts, strict=True):
                    given_one = x[left + k * per + n]
                    for end, floats in zip(singles, made, strict=True):
                        end.set(fma(given_one, floats[n], end.get()))
    for r, singles in enumerate(ends):
        with code.when(first + r < rows):
            for c, end in enumerate(singles):
                value = end.get()
                if bias is not None:
                    value = value + bias[bias0 + column + c]
                out[(first + r) * extent + column + c] = value
    return code.finish()


def columns_kernel(s: Spec) -> Kernel:
    """Write a product of rows by a quantised matrix; a tile has vectors of bytes side by side."""
    code, per = Code("quantized_columns", d.int64, 1), 8 // s.bits
    out, x = code.buffer("out", d.float32), code.buffer("x", s.dtype)
    w = code.buffer("w", d.uint8 if s.bits == 4 else d.int8)
    scale = code.buffer("scale", d.float32)
    zero = code.buffer("zero", d.int8) if s.affine else None
    bias = code.buffer("bias", d.float32) if s.biased else None
    rows, depth, line, tiles = (code.place(p) for p in ("rows", "depth", "line", "tiles"))
    x_row, x_step = code.place("x_row"), code.place("x_step")
    x0, w0, scale0, zero0, bias0 = (
        code.place(f"{p}_offset") for p in ("x", "w", "scale", "zero", "bias")
    )
    step, piece = code.place("step"), code.place("piece")
    number = code.special("cube_pos")
    tile = number // tiles
    first = (number - tile * tiles) * s.rows
    lefts = [x0 + (first + r).call("min", rows - 1) * x_row for r in range(s.rows)]
    # A tile with too few vectors computes its last one again.
    starts = [((tile * s.columns + c) * LANES).call("min", line - LANES) for c in range(s.columns)]
    integers = Integers(s.bits, s.dtype)
    sums = [[[Cell(code, d.float32) for _ in range(per)] for _ in starts] for _ in lefts]
    blocks = [start // piece for start in starts]
    with code.loop(0, depth) as k:
        made = []
        for start, block in zip(starts, blocks, strict=True):
            at = k * step + block
            shift = None if zero is None else splat(zero[zero0 + at].cast(d.int32))
            memory = load(w, w0 + k * line + start)
            made.append(integers.floats(memory, splat(scale[scale0 + at]), shift))
        for cells, left in zip(sums, lefts, strict=True):
            given = splat(x[left + k * x_step].cast(d.float32))
            for pair, floats in zip(cells, made, strict=True):
                for total, value in zip(pair, floats, strict=True):
                    total.set(fma(given, value, total.get()))
    for r, cells in enumerate(sums):
        with code.when(first + r < rows):
            for start, pair in zip(starts, cells, strict=True):
                found = [total.get() for total in pair]
                for n, value in enumerate(found if per == 1 else together(*found)):
                    at = start * per + n * LANES
                    if bias is not None:
                        value = value + load(bias, bias0 + at)
                    store(out, (first + r) * line * per + at, value)
    return code.finish()


def takes(weight: QuantTensor, rows: int, transpose: bool) -> bool:
    """Return whether the bytes of a matrix are read inside a product by so many rows.

    Not where vectors do not fit, or floats of panels are faster.

    Args:
        weight: [out, in] if it is the transpose that is multiplied, else [in, out].
        rows: of the left matrix.
        transpose: which of them.
    """
    if not fits(weight) or rows > FEW:
        return False
    if transpose:
        return True
    blocks = blocks_of(weight)
    line = -(-weight.shape[1] // (8 // weight.dtype.bits))
    return line >= LANES and (blocks.each == 1 or line % LANES == 0)


def product(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor:
    """Return x [rows, in] times weight, plus bias [out], in float32.

    Args:
        engine: the device.
        x: floats of at most 32 bits; those of the matrix are rounded to its dtype.
        weight: one that `takes` took, see `even`.
        bias: float32.
        transpose: of what is multiplied.
    """
    how = _along if transpose else _down
    return how(engine, x, weight, bias)


def _tile(rows: int, most: int) -> int:
    """Return how many rows a tile has."""
    return min(most, 1 << (rows - 1).bit_length())


def _scales(engine: Engine, weight: QuantTensor) -> list[CubeTensor | None]:
    """Return scales and zero points row by row, as kernels read them; users may give views."""
    zero = None if weight.zero is None else engine.row_major(weight.zero)
    return [engine.row_major(weight.scale), zero]


def _down(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None
) -> CubeTensor:
    rows, (depth, extent) = x.shape[0], weight.shape
    blocks = blocks_of(weight)
    tile = _tile(rows, MOST_DOWN)
    per = 8 // weight.dtype.bits
    columns = max(1, min(4, SUMS // tile // per, -(-blocks.line // LANES)))
    spec = Spec(
        weight.dtype.bits, weight.zero is not None, x.dtype, tile, columns, bias is not None
    )
    out = engine.empty((rows, extent), d.float32)
    tiles = -(-rows // tile)
    parts = [out, x, weight.values, *_scales(engine, weight), bias]
    offsets = [0 if t is None else t.offset for t in parts[1:]]
    args = [
        *[t.buf for t in parts if t is not None], rows, depth, blocks.line, tiles, *x.strides,
        *offsets, blocks.step, blocks.piece,
    ]  # fmt: skip
    program = engine.loaded(columns_kernel, (spec,))
    work = columns * (MADE + MULTIPLIED * per * tile) * depth
    program.cost = max(1.0, work)  # type: ignore[attr-defined]  # of this runtime
    cubes = -(-blocks.line // (LANES * columns)) * tiles
    engine.start(program, (cubes, 1, 1), args)
    return out


def _along(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None
) -> CubeTensor:
    rows, elements = x.shape
    extent, depth = weight.shape
    scheme = weight.dtype
    per = 8 // scheme.bits
    left = copied(engine, x, d.float32) if x.dtype is not d.float32 else engine.row_major(x)
    tile = _tile(rows, MOST_ALONG)
    columns = min(max(2, min(8, SUMS // tile)), extent)
    blocks = blocks_of(weight)
    spec = Spec(
        scheme.bits, weight.zero is not None, x.dtype, tile, columns, bias is not None,
        elements < depth,
    )  # fmt: skip
    out = engine.empty((rows, extent), d.float32)
    tiles = -(-rows // tile)
    parts = [out, left, weight.values, *_scales(engine, weight), bias]
    offsets = [0 if t is None else t.offset for t in parts[1:]]
    args = [
        *[t.buf for t in parts if t is not None], rows, elements, depth // per, extent, tiles,
        *offsets,
        blocks.each, blocks.step, blocks.piece,
    ]  # fmt: skip
    program = engine.loaded(rows_kernel, (spec,))
    work = columns * (MADE + MULTIPLIED * per * tile) * (depth // per) / LANES
    program.cost = max(1.0, work)  # type: ignore[attr-defined]  # of this runtime
    engine.start(program, (-(-extent // columns) * tiles, 1, 1), args)
    return out
