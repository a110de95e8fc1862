"""Products of few rows by a quantised matrix where units read bytes side by side (GPUs, OpenCL).

A cube has one row of the matrix [out, in], a transposed weight: its units read neighbouring bytes,
make floats of them as `dequantize` does, and add up what they multiply in shared memory.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.integers import Integers, blocks_of
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import DType, dtypes as d

# Units of a cube; rows of the left matrix up to which one cube multiplies them all.
UNITS, FEW = 128, 8
# Bytes that a unit reads at once, at most.
WORD = 8


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
        places: dtype of places.
    """

    bits: int
    affine: bool
    dtype: DType
    scales: DType
    rows: int
    width: int
    biased: bool
    places: DType


def units_kernel(s: Spec) -> Kernel:
    """Write a product of rows by the transpose of a quantised matrix, in float32."""
    code = Code("quantized_units", s.places, UNITS)
    b, per = code.b, 8 // s.bits
    byte = d.uint8 if s.bits == 4 else d.int8
    out, x = code.buffer("out", d.float32), code.buffer("x", s.dtype)
    w = b.buffer("w", Vector(byte, s.width)) if s.width > 1 else b.buffer("w", byte)
    scale = code.buffer("scale", s.scales)
    zero = code.buffer("zero", d.int8) if s.affine else None
    bias = code.buffer("bias", d.float32) if s.biased else None
    extent, line, x_row, x_step = (code.place(p) for p in ("extent", "line", "x_row", "x_step"))
    x0, w0, scale0, zero0, bias0 = (
        code.place(f"{p}_offset") for p in ("x", "w", "scale", "zero", "bias")
    )
    step, piece = code.place("step"), code.place("piece")
    column, unit = code.special("cube_pos"), code.special("unit_pos")
    sums = [code.local(d.float32) for _ in range(s.rows)]
    integers = Integers(s.bits, s.dtype)
    begin = w0 // s.width + column * line
    with code.loop(unit, line, code.at(UNITS)) as k:
        at = column * step + k * s.width // piece
        factor = scale[scale0 + at].cast(d.float32)
        shift = None if zero is None else zero[zero0 + at].cast(d.int32)
        word = b.load(w, (begin + k).op)
        lanes = [b.extract(word, n) for n in range(s.width)] if s.width > 1 else [word]
        for n, lane in enumerate(lanes):
            floats = integers.floats(Val(code, lane), factor, shift)
            for m, value in enumerate(floats):
                place = x0 + (k * (s.width * per) + n * per + m) * x_step
                for r, total in enumerate(sums):
                    left = x[place + x_row * r].cast(d.float32)
                    total.set(left.call("fma", value, total.get()))
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
            value = memory[code.at(0)]
            if bias is not None:
                value = value + bias[bias0 + column]
            out[column + extent * r] = value
    return code.finish()


def product(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor | None:
    """Return x [rows, in] times the transpose of weight [out, in], plus bias [out], in float32.

    None for weight [in, out], and where a byte has integers of two rows or of two blocks.
    """
    if not transpose:
        return None
    rows, (extent, depth) = x.shape[0], weight.shape
    per = 8 // weight.dtype.bits
    split = weight.scale.shape and weight.scale.shape[-1] > 1 and weight.dtype.block % per
    if depth % per or split or weight.scale.dtype is d.float64:
        return None
    scale = engine.row_major(weight.scale)
    zero = None if weight.zero is None else engine.row_major(weight.zero)
    blocks, width = blocks_of(weight), WORD
    while any(n % width for n in (blocks.line, blocks.piece, weight.values.offset)):
        width //= 2
    out = engine.empty((rows, extent), d.float32)
    places = engine.index_dtype(x, weight.values, scale, out, count=extent * depth)
    spec = Spec(
        weight.dtype.bits, zero is not None, x.dtype, scale.dtype, rows, width, bias is not None,
        places,
    )  # fmt: skip
    parts = [out, x, weight.values, scale, zero, bias]
    offsets = [0 if t is None else t.offset for t in parts[1:]]
    args = [
        *[t.buf for t in parts if t is not None], extent, blocks.line // width, *x.strides,
        *offsets, blocks.step, blocks.piece,
    ]  # fmt: skip
    engine.cubes(units_kernel, (spec,), extent, args)
    return out
