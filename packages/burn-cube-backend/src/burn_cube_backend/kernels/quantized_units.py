"""Products of few rows by a quantised matrix where units read bytes side by side (GPUs, OpenCL).

Units make floats of bytes as `dequantize` does. Of [out, in], a transposed weight, a cube has one
row: its units read neighbouring bytes, and add up what they multiply in shared memory. Of [in, out]
a cube has neighbouring columns: each of its groups reads some of the rows.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import size_of
from burn_cube_backend.kernels.integers import Integers, blocks_of
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import DType, dtypes as d

# Units of a cube; rows of the left matrix up to which one cube multiplies them all.
UNITS, FEW = 128, 8
# Bytes that a unit reads at once, at most: of rows, and of columns, whose sums it keeps.
WORD, NARROW = 8, 2
# Units of a cube side by side where it has columns.
ACROSS = 32
# Elements of [out, in] below which most units of a cube have nothing to read.
LEAST = 1 << 14


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        bits: of an integer.
        affine: there are zero points.
        dtype: of the left rows, to which the floats of the matrix are rounded.
        scales: dtype of the scales.
        rows: of the left matrix.
        width: bytes that a unit reads at once; those of one block.
        biased: a vector of float32 is added to every row.
        odd: rows of [out, in] end in the middle of a byte.
        places: dtype of places.
    """

    bits: int
    affine: bool
    dtype: DType
    scales: DType
    rows: int
    width: int
    biased: bool
    odd: bool
    places: DType


class _Parts:
    """The parameters that both kernels have, and the floats of a word of bytes."""

    def __init__(self, code: Code, s: Spec) -> None:
        self.code, self.s, self.integers = code, s, Integers(s.bits, s.dtype)
        byte = d.uint8 if s.bits == 4 else d.int8
        self.out, self.x = code.buffer("out", d.float32), code.buffer("x", s.dtype)
        many = s.width > 1
        self.w = code.b.buffer("w", Vector(byte, s.width)) if many else code.b.buffer("w", byte)
        self.scale = code.buffer("scale", s.scales)
        self.zero = code.buffer("zero", d.int8) if s.affine else None
        self.bias = code.buffer("bias", d.float32) if s.biased else None
        self.extent, self.line, self.depth, self.x_row, self.x_step = (
            code.place(p) for p in ("extent", "line", "depth", "x_row", "x_step")
        )
        self.x0, self.w0, self.scale0, self.zero0, self.bias0 = (
            code.place(f"{p}_offset") for p in ("x", "w", "scale", "zero", "bias")
        )
        self.step, self.piece = code.place("step"), code.place("piece")

    def floats(self, row: Val, k: Val) -> list[Val]:
        """Return the floats of the k-th word of a row."""
        b, s = self.code.b, self.s
        at = row * self.step + k * s.width // self.piece
        factor = self.scale[self.scale0 + at].cast(d.float32)
        shift = None if self.zero is None else self.zero[self.zero0 + at].cast(d.int32)
        word = b.load(self.w, (self.w0 // s.width + row * self.line + k).op)
        lanes = [b.extract(word, n) for n in range(s.width)] if s.width > 1 else [word]
        made = [self.integers.floats(Val(self.code, lane), factor, shift) for lane in lanes]
        return [value for pair in made for value in pair]

    def left(self, row: int, k: Val) -> Val:
        """Return an element of a left row."""
        return self.x[self.x0 + self.x_row * row + k * self.x_step].cast(d.float32)

    def write(self, row: int, column: Val, value: Val) -> None:
        """Write a result."""
        if self.bias is not None:
            value = value + self.bias[self.bias0 + column]
        self.out[column + self.extent * row] = value


def units_kernel(s: Spec) -> Kernel:
    """Write a product of rows by the transpose of a quantised matrix, in float32."""
    code = Code("quantized_units", s.places, UNITS)
    p = _Parts(code, s)
    column, unit = code.special("cube_pos"), code.special("unit_pos")
    sums = [code.local(d.float32) for _ in range(s.rows)]
    with code.loop(unit, p.line, code.at(UNITS)) as k:
        floats = p.floats(column, k)
        for n, value in enumerate(floats):
            at = k * len(floats) + n
            # Behind the last element of an odd row there is none.
            with code.when(at < p.depth) if s.odd and n else nullcontext():
                for r, total in enumerate(sums):
                    total.set(p.left(r, at).call("fma", value, total.get()))
    shared = [code.shared(d.float32, UNITS) for _ in sums]
    for memory, total in zip(shared, sums, strict=True):
        memory[unit] = total.get()
    half = UNITS // 2
    while half:
        code.barrier()
        with code.when(unit < half):
            for memory in shared:
                memory[unit] = memory[unit] + memory[unit + half]
        half //= 2
    code.barrier()
    for r, memory in enumerate(shared):
        with code.when(unit.eq(r)):
            p.write(r, column, memory[code.at(0)])
    return code.finish()


def columns_kernel(s: Spec) -> Kernel:
    """Write a product of rows by a quantised matrix, in float32."""
    code = Code("quantized_unit_columns", s.places, UNITS)
    p, each, groups = _Parts(code, s), s.width * (8 // s.bits), UNITS // ACROSS
    unit = code.special("unit_pos")
    group = unit // ACROSS
    word = code.special("cube_pos") * ACROSS + unit % ACROSS
    # Behind the last column a unit computes it again.
    own = word.call("min", p.line - 1)
    sums = [[code.local(d.float32) for _ in range(each)] for _ in range(s.rows)]
    with code.loop(group, p.depth, code.at(groups)) as k:
        floats = p.floats(k, own)
        for r, line in enumerate(sums):
            given = p.left(r, k)
            for total, value in zip(line, floats, strict=True):
                total.set(given.call("fma", value, total.get()))
    shared = [code.shared(d.float32, UNITS) for _ in range(each)]
    for r, line in enumerate(sums):
        for memory, total in zip(shared, line, strict=True):
            memory[unit] = total.get()
        code.barrier()
        with code.when((group.eq(0)) & (word < p.line)):
            for n, memory in enumerate(shared):
                value = memory[unit]
                for other in range(1, groups):
                    value = value + memory[unit + other * ACROSS]
                p.write(r, word * each + n, value)
        code.barrier()
    return code.finish()


def takes(weight: QuantTensor, rows: int, transpose: bool) -> bool:
    """Return whether the bytes of a matrix are read inside a product by so many rows.

    Not where a byte has integers of two blocks, rows are many, or those of [out, in] are few.

    Args:
        weight: [out, in] if it is the transpose that is multiplied, else [in, out].
        rows: of the left matrix.
        transpose: which of them.
    """
    if transpose and size_of(weight.shape) < LEAST:
        return False
    scale, per = weight.scale, 8 // weight.dtype.bits
    split = scale.shape and scale.shape[-1] > 1 and weight.dtype.block % per
    return rows <= FEW and not split and scale.dtype is not d.float64


def product(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor:
    """Return x [rows, in] times weight, plus bias [out], in float32.

    Args:
        engine: the device.
        x: floats of at most 32 bits; those of the matrix are rounded to its dtype.
        weight: one that `takes` took, see `even`.
        bias: float32.
        transpose: the transpose of weight [out, in] is multiplied, not weight [in, out].
    """
    rows, depth = x.shape
    extent = weight.shape[0 if transpose else 1]
    scale = engine.row_major(weight.scale)
    zero = None if weight.zero is None else engine.row_major(weight.zero)
    blocks, width = blocks_of(weight), WORD if transpose else NARROW
    while any(n % width for n in (blocks.line, blocks.piece, weight.values.offset)):
        width //= 2
    out = engine.empty((rows, extent), d.float32)
    places = engine.index_dtype(x, weight.values, scale, out, count=size_of(weight.shape))
    odd = transpose and depth < weight.shape[1]
    spec = Spec(
        weight.dtype.bits, zero is not None, x.dtype, scale.dtype, rows, width, bias is not None,
        odd, places,
    )  # fmt: skip
    parts = [out, x, weight.values, scale, zero, bias]
    offsets = [0 if t is None else t.offset for t in parts[1:]]
    line = blocks.line // width
    args = [
        *[t.buf for t in parts if t is not None], extent, line, depth, *x.strides, *offsets,
        blocks.step, blocks.piece,
    ]  # fmt: skip
    if transpose:
        engine.cubes(units_kernel, (spec,), extent, args)
    else:
        engine.cubes(columns_kernel, (spec,), -(-line // ACROSS), args)
    return out
