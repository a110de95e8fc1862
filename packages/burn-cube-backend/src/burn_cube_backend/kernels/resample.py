"""Interpolation along every spatial dim in turn, and its adjoint.

A mode is a sparse matrix per dim: for each output element the input elements it reads and their
weights. One kernel multiplies by such a matrix along a dim, and the adjoint is the same kernel with
the transposed matrix, so that every sum has one order. Coordinates follow PyTorch.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels.maps import HALVES, converted
from burn_cube_backend.kernels.tables import tables
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

Array = np.ndarray[Any, Any]
Scales = tuple[float | None, ...]
_LINEAR = ("linear", "bilinear", "trilinear")
# Keys' kernel with PyTorch's a.
CUBIC = -0.75
# Weights of u8 images have 16 bits; sums of 256 times a weight stay below 2^32.
_WEIGHT_BITS = 15
_MOST_PRECISION = 22


class Line(NamedTuple):
    """How a dim is resampled: all that its matrix depends on.

    Attributes:
        mode: PyTorch's name.
        n: extent of the input.
        out: extent of the result.
        align_corners: ends map to ends.
        scale: outputs per input if given.
        double: coordinates are computed in float64.
        copied: a dim that keeps its extent (nearest: or doubles it) is copied whatever the scale.
    """

    mode: str
    n: int
    out: int
    align_corners: bool
    scale: float | None
    double: bool
    copied: bool


def taps_of(line: Line) -> tuple[list[Array], list[Array]]:
    """Return (indices, weights) per tap, each [out]; nearest modes have one tap of weight 1."""
    mode, n, out = line.mode, line.n, line.out
    dtype: Any = np.float64 if line.double else np.float32
    one = [np.ones(out, dtype)]
    if mode == "nearest" and line.copied and out in (n, 2 * n):
        return [np.arange(out) // (out // n)], one
    if line.align_corners:
        ratio = dtype(n - 1) / dtype(out - 1) if out > 1 else dtype(0)
    elif line.scale is not None and line.scale > 0:
        ratio = dtype(1.0 / line.scale)
    else:
        ratio = dtype(n) / dtype(out)
    at = np.arange(out, dtype=dtype)
    if mode.startswith("nearest"):
        middle = dtype(0.5 if mode == "nearest-exact" else 0)
        return [np.minimum(np.floor((at + middle) * ratio).astype(np.int64), n - 1)], one
    if mode in _LINEAR and out == n and line.copied:
        return [np.arange(n)], one
    source = at * ratio if line.align_corners else ratio * (at + dtype(0.5)) - dtype(0.5)
    if mode in _LINEAR:
        source = np.maximum(source, 0)
    first = np.minimum(np.floor(source).astype(np.int64), n - 1)
    t = np.clip(source - first, 0, 1).astype(dtype)
    if mode in _LINEAR:
        return [first, np.minimum(first + 1, n - 1)], [1 - t, t]
    near = [((CUBIC + 2) * s - (CUBIC + 3)) * s * s + 1 for s in (t, 1 - t)]
    far = [((CUBIC * s - 5 * CUBIC) * s + 8 * CUBIC) * s - 4 * CUBIC for s in (t + 1, 2 - t)]
    weights = [far[0], near[0], near[1], far[1]]
    return [np.clip(first + i, 0, n - 1) for i in (-1, 0, 1, 2)], [w.astype(dtype) for w in weights]


def is_copy(line: Line) -> bool:
    """Return whether resampling would copy: each output reads its own input alone."""
    if line.n != line.out:
        return False
    own = np.arange(line.n)
    pairs = zip(*taps_of(line), strict=True)
    return all(np.array_equal(i, own) or not w.any() for i, w in pairs)


def matrix(line: Line, transposed: bool, kind: DType) -> list[tuple[Array, DType]]:
    """Return a line's sparse matrix: starts of rows, columns, weights."""
    indices, weights = taps_of(line)
    count, taps = line.out, len(indices)
    columns, values = np.stack(indices, 1).ravel(), np.stack(weights, 1).ravel()
    rows = np.repeat(np.arange(count), taps)
    if transposed:
        order = np.argsort(columns, kind="stable")
        rows, columns, values = columns[order], rows[order], values[order]
        count = line.n
    starts = np.searchsorted(rows, np.arange(count + 1))
    return [(starts, d.int32), (columns, d.int32), (values, kind)]


def fixed_matrix(line: Line) -> tuple[list[tuple[Array, DType]], int]:
    """Return a line's matrix in integers for u8, and the bits of their fraction."""
    indices, weights = taps_of(line)
    # Taps clamped to the same element at a border are one weight before rounding.
    full = np.zeros((line.out, line.n))
    for index, weight in zip(indices, weights, strict=True):
        full[np.arange(line.out), index] += weight
    precision = 0
    top = float(full.max())
    while (
        precision < _MOST_PRECISION and int(0.5 + top * (1 << (precision + 1))) < 1 << _WEIGHT_BITS
    ):
        precision += 1
    scaled = full * (1 << precision)
    fixed = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
    rows, columns = np.nonzero(fixed)
    starts = np.searchsorted(rows, np.arange(line.out + 1))
    # A row of zeros alone has no entry, and empty tables are no memory.
    columns, values = np.append(columns, 0), np.append(fixed[rows, columns], 0)
    return [(starts, d.int32), (columns, d.int32), (values, d.int32)], precision


def along_kernel(source: DType, acc: DType, out: DType, weighted: bool, index: DType) -> Kernel:
    """Write `out[a, o, b] = sum over the entries e of row o of x[a, column[e], b] weight[e]`.

    x and out are row-major [before, extent, after]. Integers are fixed point with `fraction` bits.
    """
    code = Code("resample", index)
    target, x = code.buffer("out", out), code.buffer("x", source)
    starts, columns = code.buffer("starts", d.int32), code.buffer("columns", d.int32)
    weights = code.buffer("weights", acc) if weighted else None
    count, length, extent = code.place("count"), code.place("length"), code.place("extent")
    after, offset, fraction = code.place("after"), code.place("offset"), code.place("fraction")
    with code.each(count) as i:
        rest = i // after
        row, inner = rest % length, i % after
        base = offset + (rest // length) * extent * after + inner
        if weights is None:
            target[i] = x[base + columns[starts[row]].cast(index) * after]
        else:
            total = code.local(acc)
            with code.loop(starts[row], starts[row + 1]) as e:
                value = x[base + columns[e].cast(index) * after].cast(acc)
                total.set(total.get() + value * weights[e])
            target[i] = _narrow(total.get(), fraction, out)
    return code.finish()


def _narrow(total: Any, fraction: Any, out: DType) -> Any:
    if not total.dtype.is_int:
        return (total.call("round") if out.is_int else total).cast(out)
    shift = fraction.cast(total.dtype)
    half = total.code.const(1, total.dtype) << (shift - 1)
    return ((total + half) >> shift).call("max", 0).call("min", 255).cast(out)


def along(
    engine: Engine, x: CubeTensor, dim: int, length: int, parts: Any, acc: DType, out: DType,
    weighted: bool = True, fraction: int = 0,
) -> CubeTensor:  # fmt: skip
    """Return x times a sparse matrix along a dim, which gets the extent `length`."""
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    made = engine.empty(shape, out)
    if not made.size:
        return made
    index = engine.index_dtype(x, made, count=made.size)
    buffers = parts if weighted else parts[:2]
    args = [
        made.buf, x.buf, *buffers, made.size, length, x.shape[dim], size_of(shape[dim + 1 :]),
        x.offset, fraction,
    ]  # fmt: skip
    engine.run(along_kernel, (x.dtype, acc, out, weighted, index), made.size, args)
    return made


@kernel("interpolate")
def interpolate(
    engine: Engine, x: CubeTensor, mode: str, align_corners: bool, size: Ints, scales: Scales
) -> CubeTensor:
    """x [N, C, *L] to [N, C, *size]; u8 uses PyTorch's fixed point, other integers round."""
    dtype, image = x.dtype, len(x.shape) == 4
    nearest = mode.startswith("nearest")
    if dtype is d.uint8 and not nearest:
        return _fixed_point(engine, engine.row_major(x), mode, align_corners, size, scales)
    lines = []
    for n, o, s in zip(x.shape[2:], size, scales, strict=True):
        double = dtype is d.float64 and not (nearest and image)
        if not nearest and not dtype.is_float:
            double = True
        lines.append(
            Line(mode, n, o, align_corners and not nearest, s, double, image or not nearest)
        )
    x = engine.row_major(x)
    active = [(k, line) for k, line in enumerate(lines, 2) if not is_copy(line)]
    if not active:
        return x
    acc = d.float64 if lines[0].double and not nearest else d.float32
    last = active[-1][0]
    for dim, line in active:
        parts = tables(engine, ("resample", line), partial(matrix, line, False, acc))
        out = dtype if nearest or dim == last else acc
        x = along(engine, x, dim, line.out, parts, acc, out, not nearest)
    return x


def _fixed_point(
    engine: Engine, x: CubeTensor, mode: str, align_corners: bool, size: Ints, scales: Scales
) -> CubeTensor:
    """u8 images: integer weights, last dim first, rounded to u8 after every dim."""
    for dim in range(len(x.shape) - 1, 1, -1):
        n, o = x.shape[dim], size[dim - 2]
        if n == o:
            continue
        line = Line(mode, n, o, align_corners, scales[dim - 2], True, False)
        made, fraction = fixed_matrix(line)
        parts = tables(engine, ("fixed", line), partial(list, made))
        x = along(engine, x, dim, o, parts, d.int32, d.uint8, True, fraction)
    return x


@kernel("interpolate_backward")
def interpolate_backward(
    engine: Engine, g: CubeTensor, mode: str, align_corners: bool, size: Ints, scales: Scales,
    shape: Ints,
) -> CubeTensor:  # fmt: skip
    """The adjoint: every g times its weight, added to the element that it was read from."""
    dtype, image = g.dtype, len(g.shape) == 4
    nearest = mode.startswith("nearest")
    double = dtype is d.float64 and not (nearest and image)
    acc = d.float64 if dtype is d.float64 else d.float32
    x = converted(engine, g, acc) if dtype in HALVES else g
    x = engine.row_major(x)
    dims = list(enumerate(zip(shape[2:], size, scales, strict=True), 2))
    for dim, (n, o, s) in reversed(dims):
        line = Line(mode, n, o, align_corners and not nearest, s, double, image or not nearest)
        if is_copy(line):
            continue
        key = ("adjoint", line, acc)
        parts = tables(engine, key, partial(matrix, line, True, acc))
        x = along(engine, x, dim, n, parts, acc, acc)
    made = converted(engine, x, dtype)
    return made.view(shape, dense(shape))
