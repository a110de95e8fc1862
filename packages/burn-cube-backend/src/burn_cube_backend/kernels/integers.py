"""The floats of quantised integers, inside kernels and as a kernel of its own."""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import DeviceArray, Kernel
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import size_of
from burn_cube_backend.lanes import LANES, load, splat, store, together
from burn_cube_backend.packs import LABEL
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import DType, dtypes as d

# Bytes of a row where rows are ours to choose, and about so many a cube makes floats of.
LINE = 4096
# Work of a vector of bytes, in the runtime's unit.
MADE = 6.0


class Blocks(NamedTuple):
    """How a matrix is cut: blocks of a row, from row to row, bytes of a block and of a row."""

    each: int
    step: int
    piece: int
    line: int


def blocks_of(q: QuantTensor) -> Blocks:
    """Return the blocks of a tensor whose rows begin at whole bytes; one scale has no step."""
    per = 8 // q.dtype.bits
    line = (q.shape or (1,))[-1] // per
    if not q.scale.shape:
        return Blocks(1, 0, line, line)
    count = q.scale.shape[-1]
    return Blocks(count, count, q.dtype.block // per if count > 1 else line, line)


def fits(q: QuantTensor) -> bool:
    """Return whether vectors of bytes lie in one block where rows begin at whole bytes."""
    if q.scale.dtype is not d.float32 or not size_of(q.shape) or not q.shape:
        return False
    whole = q.dtype.block % (8 // q.dtype.bits * LANES) == 0
    return not q.scale.shape or q.scale.shape[-1] == 1 or whole


def even_rows_kernel(index: DType) -> Kernel:
    """Write rows of integers of 4 bits that begin at whole bytes; a last one with itself."""
    code = Code("even_rows", index)
    out, w = code.buffer("out", d.uint8), code.buffer("w", d.uint8)
    count, columns, line = code.place("count"), code.place("columns"), code.place("line")
    w0 = code.place("w_offset")
    with code.each(count) as i:
        row = i // line
        first = (i - row * line) * 2
        found = []
        for k in (first, (first + 1).call("min", columns - 1)):
            at = row * columns + k
            byte = w[w0 + at // 2].cast(d.int32)
            found.append((at & 1).eq(1).pick(byte >> 4, byte & 15))
        out[i] = (found[0] | (found[1] << 4)).cast(d.uint8)
    return code.finish()


def _evened(engine: Engine, values: CubeTensor, rows: int, columns: int) -> tuple[DeviceArray, ...]:
    line = -(-columns // 2)
    made = engine.flat(rows * line, d.uint8, LABEL)
    args = [made, values.buf, rows * line, columns, line, values.offset]
    index = engine.index_dtype(values, count=rows * columns)
    engine.run(even_rows_kernel, (index,), rows * line, args)
    return (made,)


def even(engine: Engine, q: QuantTensor) -> QuantTensor:
    """Return a matrix whose rows begin at whole bytes: one with odd rows gets a column more.

    The form is kept with the integers, as packed weights are.
    """
    rows, columns = q.shape
    if q.dtype.bits == 8 or columns % 2 == 0:
        return q
    (made,) = engine.packed(q.values, q.values, _evened, rows, columns)
    values = CubeTensor(made, (made.length,), (1,), d.uint8)
    return QuantTensor(values, q.scale, q.zero, q.dtype, (rows, columns + 1))


class Integers:
    """Makes floats of integers inside a kernel, as `dequantize` does: rounded once.

    Args:
        bits: of an integer.
        dtype: of the floats, which are given in float32.
    """

    def __init__(self, bits: int, dtype: DType) -> None:
        self.bits, self.dtype = bits, dtype

    def floats(self, memory: Val, scale: Val, zero: Val | None) -> list[Val]:
        """Return the floats of a byte or a vector of bytes: of 4 bits those of its two halves.

        Args:
            memory: as it was read.
            scale: one number, or as many as bytes.
            zero: the same, of int32.
        """
        word = memory.cast(d.int32)
        parts = [word] if self.bits == 8 else [(half ^ 8) - 8 for half in (word & 15, word >> 4)]
        made = []
        for part in parts:
            value = (part if zero is None else part - zero).cast(d.float32) * scale
            made.append(
                value if self.dtype is d.float32 else value.cast(self.dtype).cast(d.float32)
            )
        return made


def lines_kernel(bits: int, affine: bool, dtype: DType) -> Kernel:
    """Write the floats of rows, a vector of bytes at a time; a cube of the cpu has some rows."""
    code = Code("dequantize_lines", d.int64, 1)
    out, w = code.buffer("out", dtype), code.buffer("w", d.uint8 if bits == 4 else d.int8)
    scale = code.buffer("scale", d.float32)
    zero = code.buffer("zero", d.int8) if affine else None
    total, each, line = code.place("total"), code.place("each"), code.place("line")
    w0, scale0, zero0 = (code.place(f"{p}_offset") for p in ("w", "scale", "zero"))
    blocks, step, piece = code.place("blocks"), code.place("step"), code.place("piece")
    per = 8 // bits
    integers = Integers(bits, d.float32)
    first = code.special("cube_pos") * each
    rows = (total + (line - 1)) // line
    with code.loop(first, (first + each).call("min", rows)) as row:
        start = row * line
        with code.loop(0, blocks) as b:
            at = row * step + b
            factor = scale[scale0 + at]
            shift = None if zero is None else zero[zero0 + at].cast(d.int32)
            begin = start + b * piece
            end = (begin + piece).call("min", (start + line).call("min", total))
            whole = begin + (end - begin) // LANES * LANES
            many = (splat(factor), None if shift is None else splat(shift))
            with code.loop(begin, whole, code.at(LANES)) as k:
                made = integers.floats(load(w, w0 + k), *many)
                lying = made if per == 1 else together(*made)
                for n, vector in enumerate(lying):
                    store(out, k * per + n * LANES, vector.cast(dtype))
            with code.loop(whole, end) as k:
                for n, value in enumerate(integers.floats(w[w0 + k], factor, shift)):
                    out[k * per + n] = value.cast(dtype)
    return code.finish()


def elements_kernel(
    bits: int, affine: bool, dtype: DType, work: DType, scales: DType, index: DType
) -> Kernel:
    """Write the float of each integer, computed in a dtype."""
    code = Code("dequantize", index)
    out, w = code.buffer("out", dtype), code.buffer("w", d.uint8 if bits == 4 else d.int8)
    scale = code.buffer("scale", scales)
    zero = code.buffer("zero", d.int8) if affine else None
    count, columns, block, step = (code.place(p) for p in ("count", "columns", "block", "step"))
    w0, scale0, zero0 = (code.place(f"{p}_offset") for p in ("w", "scale", "zero"))
    with code.each(count) as i:
        row = i // columns
        at = row * step + (i - row * columns) // block
        if bits == 8:
            integer = w[w0 + i].cast(d.int32)
        else:
            byte = w[w0 + i // 2].cast(d.int32)
            integer = ((i & 1).eq(1).pick(byte >> 4, byte & 15) ^ 8) - 8
        if zero is not None:
            integer = integer - zero[zero0 + at].cast(d.int32)
        out[i] = (integer.cast(work) * scale[scale0 + at].cast(work)).cast(dtype)
    return code.finish()


def floats(engine: Engine, q: QuantTensor, dtype: DType, work: DType) -> CubeTensor:
    """Return the floats of a quantised tensor, computed in a dtype and rounded once."""
    out = engine.empty(q.shape, dtype)
    count = out.size
    if not count:
        return out
    scale, zero = engine.row_major(q.scale), None if q.zero is None else engine.row_major(q.zero)
    buffers = [t.buf for t in (out, q.values, scale, zero) if t is not None]
    offsets = [q.values.offset, scale.offset, 0 if zero is None else zero.offset]
    per, affine = 8 // q.dtype.bits, zero is not None
    if engine.client.name == "cpu" and work is d.float32 and fits(q) and q.shape[-1] % per == 0:
        blocks = blocks_of(q)
        if not blocks.step:
            blocks = Blocks(1, 0, LINE, LINE)
        total = count // per
        each = max(1, LINE // blocks.line)
        program = engine.loaded(lines_kernel, (q.dtype.bits, affine, dtype))
        program.cost = MADE * each * blocks.line / LANES  # type: ignore[attr-defined]  # of this
        cubes = -(-total // (blocks.line * each))
        args = [*buffers, total, each, blocks.line, *offsets, blocks.each, blocks.step,
                blocks.piece]  # fmt: skip
        engine.start(program, (cubes, 1, 1), args)
        return out
    columns = (q.shape or (1,))[-1]
    step, block = (scale.shape[-1], q.dtype.block) if scale.shape else (0, columns)
    index = engine.index_dtype(out, count=count)
    spec = (q.dtype.bits, affine, dtype, work, scale.dtype, index)
    engine.cubes(
        elements_kernel, spec, -(-count // UNITS), [*buffers, count, columns, block, step, *offsets]
    )
    return out
