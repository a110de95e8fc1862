"""Quantisation: scales from the range of a tensor or of blocks along its last dim."""

from __future__ import annotations

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.integers import floats
from burn_cube_backend.kernels.maps import computed, converted, wide
from burn_cube_backend.kernels.reduce import extreme
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_cube_backend.table import kernel
from burn_std import DType, QDType, dtypes as d


def ranges_kernel(dtype: DType, index: DType) -> Kernel:
    """Write the least and the largest value of each block of rows."""
    code = Code("block_ranges", index)
    low, high, x = (code.buffer(n, dtype) for n in ("low", "high", "x"))
    count, blocks, block = code.place("count"), code.place("blocks"), code.place("block")
    columns, offset = code.place("columns"), code.place("offset")
    with code.each(count) as i:
        row = i // blocks
        start = (i - row * blocks) * block
        base = offset + row * columns
        least, most = code.local(dtype, x[base + start]), code.local(dtype, x[base + start])
        with code.loop(start, (start + block).call("min", columns)) as k:
            value = x[base + k]
            least.set(least.get().call("min", value))
            most.set(most.get().call("max", value))
        low[i], high[i] = least.get(), most.get()
    return code.finish()


def spread_kernel(dtype: DType, index: DType) -> Kernel:
    """Write the number of its block to each element of rows."""
    code = Code("block_spread", index)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    count, blocks, block = code.place("count"), code.place("blocks"), code.place("block")
    columns, offset = code.place("columns"), code.place("offset")
    with code.each(count) as i:
        row = i // columns
        out[i] = x[offset + row * blocks + (i - row * columns) // block]
    return code.finish()


def pack_kernel(index: DType) -> Kernel:
    """Write integers of 4 bits two in a byte, the first in the low bits."""
    code = Code("pack", index)
    out, x = code.buffer("out", d.uint8), code.buffer("x", d.int8)
    count, size, offset = code.place("count"), code.place("size"), code.place("offset")
    with code.each(count) as i:
        at = i * 2 + 1
        low = x[offset + i * 2].cast(d.int32) & 15
        high = x[offset + at.call("min", size - 1)].cast(d.int32) & 15
        high = (at < size).pick(high, 0)
        out[i] = (low | (high << 4)).cast(d.uint8)
    return code.finish()


def stored(engine: Engine, values: CubeTensor, dtype: QDType) -> CubeTensor:
    """Return int8 values, row-major, as a quantised tensor holds them."""
    if dtype.bits != 4:
        return values
    out = engine.empty((-(-values.size // 2),), d.uint8)
    args = [out.buf, values.buf, out.size, values.size, values.offset]
    engine.run(pack_kernel, (engine.index_dtype(values, count=values.size),), out.size, args)
    return out


def block_count(shape: Ints, block: int) -> Ints:
    """Return the shape of the scales of a tensor in blocks.

    Example:
        >>> block_count((3, 7), 4), block_count((), 4)
        ((3, 2), (1,))
    """
    full = shape or (1,)
    return (*full[:-1], -(-full[-1] // block))


def ranges(engine: Engine, x: CubeTensor, block: int) -> tuple[CubeTensor, CubeTensor]:
    """Return (least, largest) of every block, or of the whole tensor for block 0."""
    shape = block_count(x.shape, block) if block and x.shape else ()
    if not x.size:
        return filled(engine, x.dtype, shape, 0), filled(engine, x.dtype, shape, 0)
    if not block:
        return extreme(engine, "min", x, None, False), extreme(engine, "max", x, None, False)
    x = engine.row_major(x)
    shape = block_count(x.shape, block)
    low, high = engine.empty(shape, x.dtype), engine.empty(shape, x.dtype)
    index = engine.index_dtype(x, count=x.size)
    args = [
        low.buf, high.buf, x.buf, low.size, shape[-1], block, (x.shape or (1,))[-1], x.offset,
    ]  # fmt: skip
    engine.run(ranges_kernel, (x.dtype, index), low.size, args)
    return low, high


def per_element(engine: Engine, values: CubeTensor, shape: Ints, block: int) -> CubeTensor:
    """Return scales or zero points so that they broadcast against the tensor."""
    if not block or not values.shape or not size_of(shape):
        return values
    values = engine.row_major(values)
    out = engine.empty(shape, values.dtype)
    index = engine.index_dtype(out, values, count=out.size)
    columns = (shape or (1,))[-1]
    args = [out.buf, values.buf, out.size, values.shape[-1], block, columns, values.offset]
    engine.run(spread_kernel, (values.dtype, index), out.size, args)
    return out


def _found(engine: Engine, x: CubeTensor, dtype: QDType) -> tuple[CubeTensor, CubeTensor | None]:
    """Return scales and zero points from the range of x."""
    low, high = ranges(engine, x, dtype.block)
    if dtype.symmetric:
        text = f"maximum(-low, high) / {dtype.qmax}"
        scale = computed(engine, text, x.dtype, low=low, high=high)
        return computed(engine, "where(s == 0, 1, s)", x.dtype, s=scale), None
    low = computed(engine, "minimum(x, 0)", x.dtype, x=low)
    high = computed(engine, "maximum(x, 0)", x.dtype, x=high)
    text = f"(high - low) / {dtype.qmax - dtype.qmin}"
    scale = computed(engine, text, x.dtype, low=low, high=high)
    scale = computed(engine, "where(s == 0, 1, s)", x.dtype, s=scale)
    text = f"minimum(maximum(round({dtype.qmin} - low / s), {dtype.qmin}), {dtype.qmax})"
    return scale, computed(engine, text, d.int8, low=low, s=scale)


@kernel("quantize")
def quantize(
    engine: Engine, x: CubeTensor, scale: CubeTensor | None, zero: CubeTensor | None, dtype: QDType
) -> QuantTensor:
    """q = clamp(round half even(x / scale) + zero, qmin..qmax)."""
    x = converted(engine, x, wide(x.dtype))
    if scale is None:
        scale, zero = _found(engine, x, dtype)
    else:
        scale = converted(engine, scale, wide(scale.dtype))
        if dtype.symmetric:
            zero = None
        elif zero is None:
            zero = filled(engine, d.int8, scale.shape, 0)
        else:
            zero = converted(engine, zero, d.int8)
    s = converted(engine, per_element(engine, scale, x.shape, dtype.block), x.dtype)
    q = computed(engine, "round(x / s)", x.dtype, x=x, s=s)
    if zero is not None:
        z = converted(engine, per_element(engine, zero, x.shape, dtype.block), x.dtype)
        q = computed(engine, "q + z", x.dtype, q=q, z=z)
    # NaN has no integer; the contract of casts makes it 0 before clamping.
    text = f"where(q == q, minimum(maximum(q, {dtype.qmin}), {dtype.qmax}), 0)"
    values = computed(engine, text, d.int8, q=q)
    values = engine.row_major(values).view(x.shape, dense(x.shape))
    return QuantTensor(stored(engine, values, dtype), scale, zero, dtype, x.shape)


@kernel("dequantize")
def dequantize(engine: Engine, q: QuantTensor, dtype: DType) -> CubeTensor:
    """(q - zero) * scale, computed in the scales' dtype or wider, rounded once."""
    work = d.float64 if d.float64 in (wide(dtype), q.scale.dtype) else d.float32
    return floats(engine, q, dtype, work)
