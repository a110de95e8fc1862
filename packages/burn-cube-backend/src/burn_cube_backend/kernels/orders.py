"""The two orders in which images lie: row by row, or with their channels last."""

from __future__ import annotations

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, channels_last, is_dense, is_last, lies_last
from burn_cube_backend.kernels.maps import write
from burn_cube_backend.payload import CubeTensor
from burn_std import DType


def asks_last(engine: Engine, *tensors: CubeTensor) -> bool:
    """Return whether the result of an operation on images lies with channels last."""
    return engine.keeps_last and any(is_last(x.shape, x.strides) for x in tensors)


def lies(x: CubeTensor, last: bool) -> bool:
    """Return whether a tensor lies in an order without gaps."""
    return lies_last(x.shape, x.strides) if last else is_dense(x.shape, x.strides)


def ordered(engine: Engine, shape: Ints, dtype: DType, last: bool) -> CubeTensor:
    """Return a tensor in an order, with undefined elements."""
    made = engine.empty(shape, dtype)
    return made.view(shape, channels_last(shape)) if last else made


def laid(engine: Engine, x: CubeTensor, last: bool) -> CubeTensor:
    """Return a tensor in an order, a copy if it lies otherwise."""
    return x if lies(x, last) else moved(engine, x, last)


def moved(engine: Engine, x: CubeTensor, last: bool) -> CubeTensor:
    """Return a copy of a tensor in an order."""
    return write(engine, ordered(engine, x.shape, x.dtype, last), x)
