"""Products by a quantised matrix: its bytes are read inside the product, or few rows of it at once.

Serving reads each weight once for a few rows, so the bytes that come from memory are the time. With
more rows floats are made of a panel of the matrix after another, and of the whole nowhere.
"""

from __future__ import annotations

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import dense, reshaped, size_of
from burn_cube_backend.kernels import quantized_rows, quantized_units
from burn_cube_backend.kernels.integers import even
from burn_cube_backend.kernels.maps import computed, converted, write
from burn_cube_backend.kernels.matmul import linear, matmul
from burn_cube_backend.kernels.quantize import dequantize
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_cube_backend.table import kernel
from burn_std import dtypes as d

# Elements of a panel: on a processor its floats stay in the cache, on others launches are few.
PANEL, PANEL_AFAR = 1 << 20, 1 << 26


@kernel("quantized_matmul")
def quantized_matmul(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor:
    """X times the floats of a quantised matrix, each rounded to the dtype of x, plus bias."""
    if size_of(weight.shape) and size_of(x.shape):
        made = _few(engine, x, weight, bias, transpose)
        if made is not None:
            return made
        parts = _panels(engine, weight) if transpose else []
        if len(parts) > 1:
            return _by_panels(engine, x, parts, weight.shape[0], bias)
    return _whole(engine, x, weight, bias, transpose)


def _few(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor | None:
    """Return the product where few rows make the bytes of the matrix the time, else None."""
    way = quantized_rows if engine.client.name == "cpu" else quantized_units
    rows, depth = size_of(x.shape[:-1]), x.shape[-1]
    if x.dtype is d.float64 or not way.takes(weight, rows, transpose):
        return None
    extent = weight.shape[0 if transpose else 1]
    weight = even(engine, weight)
    # Of odd rows a column more is computed, which has no bias.
    whole = transpose or weight.shape[1] == extent
    fused = bias is not None and bias.shape == (extent,) and x.dtype is d.float32 and whole
    steps = reshaped(x.shape, x.strides, (rows, depth))
    flat = engine.row_major(x) if steps is None else x
    flat = flat.view((rows, depth), (depth, 1) if steps is None else steps)
    plus = engine.row_major(bias) if fused and bias is not None else None
    made = way.product(engine, flat, weight, plus, transpose)
    lead = x.shape[:-1]
    steps = tuple(step * made.shape[1] for step in dense(lead))
    made = made.view((*lead, extent), (*steps, 1))
    return _finished(engine, made, x, None if fused else bias)


def _finished(
    engine: Engine, made: CubeTensor, x: CubeTensor, bias: CubeTensor | None
) -> CubeTensor:
    """Return a product of float32 in the dtype of x, plus bias; as `linear` does on each device."""
    if bias is None:
        return converted(engine, made, x.dtype)
    if engine.client.name != "cpu":
        made = converted(engine, made, x.dtype)
    plus = converted(engine, bias, made.dtype)
    return converted(engine, computed(engine, "x + y", made.dtype, x=made, y=plus), x.dtype)


def _whole(
    engine: Engine, x: CubeTensor, weight: QuantTensor, bias: CubeTensor | None, transpose: bool
) -> CubeTensor:
    """Return the product by the floats of the whole matrix."""
    plain = dequantize(engine, weight, x.dtype)
    if transpose and engine.client.name == "cpu":
        return linear(engine, x, plain, bias)
    if transpose:
        plain = plain.view(plain.shape[::-1], plain.strides[::-1])
    made = matmul(engine, x, plain)
    return made if bias is None else computed(engine, "x + y", x.dtype, x=made, y=bias)


def _panels(engine: Engine, weight: QuantTensor) -> list[QuantTensor]:
    """Return the rows of a matrix in panels that begin at whole bytes."""
    extent, depth = weight.shape
    most = PANEL if engine.client.name == "cpu" else PANEL_AFAR
    each = max(16, most // depth // 16 * 16)
    per = 8 // weight.dtype.bits
    parts = []
    for start in range(0, extent, each):
        count = min(each, extent - start)
        shape = (count, depth)
        first, size = start * depth // per, -(-count * depth // per)
        values = weight.values.view(
            shape if per == 1 else (size,), (depth, 1) if per == 1 else (1,),
            weight.values.offset + first,
        )  # fmt: skip
        scale, zero = (
            t if t is None or not t.shape
            else t.view((count, t.shape[1]), t.strides, t.offset + start * t.strides[0])
            for t in (weight.scale, weight.zero)
        )  # fmt: skip
        assert scale is not None  # noqa: S101 - every scheme has one
        parts.append(QuantTensor(values, scale, zero, weight.dtype, shape))
    return parts


def _by_panels(
    engine: Engine, x: CubeTensor, parts: list[QuantTensor], extent: int, bias: CubeTensor | None
) -> CubeTensor:
    """Return the product by the transpose of a matrix, a panel of whose rows are floats at once."""
    out = engine.empty((*x.shape[:-1], extent), x.dtype)
    start = 0
    for part in parts:
        count = part.shape[0]
        window = out.view((*out.shape[:-1], count), out.strides, out.offset + start)
        some = bias
        if bias is not None and bias.shape and bias.shape[-1] == extent:
            shape = (*bias.shape[:-1], count)
            some = bias.view(shape, bias.strides, bias.offset + start * bias.strides[-1])
        write(engine, window, _whole(engine, x, part, some, True))
        start += count
    return out
