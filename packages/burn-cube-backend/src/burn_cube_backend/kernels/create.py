"""Creation: one value everywhere, and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.dtypes import host_dtype
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.late import Late, real
from burn_cube_backend.payload import CubeTensor, number
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


def fill_kernel(dtype: DType, index: DType) -> Kernel:
    """Write `out[i] = value`."""
    code = Code("fill", index)
    out = code.buffer("out", dtype)
    value, count = code.scalar("value", dtype), code.place("count")
    with code.each(count) as i:
        out[i] = value
    return code.finish()


def wrapped(value: Any, dtype: DType) -> Any:
    """Return a number as an element of a dtype: integers wrap, 16-bit floats round.

    Example:
        >>> wrapped(300, d.uint8), wrapped(2.5, d.int32), wrapped(8.396, d.bfloat16)
        (44, 2, 8.375)
    """
    if isinstance(value, Late):
        return value.through(lambda v: wrapped(v, dtype))
    if dtype.is_bool:
        return bool(value)
    if dtype.is_float:
        if dtype.bits > 16:
            return float(value)
        with np.errstate(over="ignore"):
            return float(host_dtype(dtype).type(float(value)))
    if isinstance(value, float):
        if value != value:
            return 0
        low, high = _bounds(dtype)
        return low if value <= low else high if value >= high else int(value)
    bits = int(value) & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.is_signed and bits >> (dtype.bits - 1) else bits


def _bounds(dtype: DType) -> tuple[int, int]:
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def filled(engine: Engine, dtype: DType, shape: Ints, value: Any) -> CubeTensor:
    """Return a tensor with one value everywhere."""
    out = engine.empty(shape, dtype)
    if out.size:
        index = engine.index_dtype(out, count=out.size)
        args = [out.buf, wrapped(value, dtype), out.size]
        engine.run(fill_kernel, (dtype, index), out.size, args)
    return out


@kernel("full")
def full(engine: Engine, dtype: DType, shape: Ints, value: Any) -> CubeTensor:
    """One value everywhere; a single one needs no memory yet."""
    if shape == ():
        return number(wrapped(value, dtype), dtype)
    return filled(engine, dtype, shape, value)


def arange_kernel(dtype: DType, floating: bool, index: DType) -> Kernel:
    """Write `out[i] = start + i * step` in 64 bits."""
    code = Code("arange", index)
    middle = d.float64 if floating else d.int64
    out = code.buffer("out", dtype)
    start, step = code.scalar("start", middle), code.scalar("step", middle)
    count = code.place("count")
    with code.each(count) as i:
        out[i] = (start + i.cast(middle) * step).cast(dtype)
    return code.finish()


@kernel("arange")
def arange(engine: Engine, dtype: DType, count: int, start: Any, step: Any) -> CubeTensor:
    """start + i * step, computed in 64 bits."""
    out = engine.empty((count,), dtype)
    floating = dtype.is_float or not (isinstance(start, int) and isinstance(step, int))
    if floating:
        numbers = [real(start), real(step)]
    else:
        numbers = [wrapped(start, d.int64), wrapped(step, d.int64)]
    index = engine.index_dtype(out, count=count)
    engine.run(arange_kernel, (dtype, floating, index), count, [out.buf, *numbers, count])
    return out
