"""Half precision: f16 and bf16 compute in f32 and round once, at the end.

numpy has no arithmetic of 16 bits of its own, so the detour costs two passes and gains the
accuracy that the numerics contract asks for. Also here: the dtypes that kernels name, and the
detour of rank 0, for which numpy returns scalars that take no `out=`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Fn = Callable[..., Any]

BOOL = np.dtype(np.bool_)
U8 = np.dtype(np.uint8)
U32 = np.dtype(np.uint32)
U64 = np.dtype(np.uint64)
I64 = np.dtype(np.int64)
F16 = np.dtype(np.float16)
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


def is_half(dtype: np.dtype[Any]) -> bool:
    """True for f16 and bf16."""
    return dtype in (F16, BF16)


def is_float(dtype: np.dtype[Any]) -> bool:
    """True for all floats; numpy says kind V of bf16."""
    return dtype.kind == "f" or dtype == BF16


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which a kernel computes: f32 for f16 and bf16."""
    return F32 if is_half(dtype) else dtype


def widened(fn: Fn, dtype: np.dtype[Any], arity: int = 1) -> Fn:
    """Return `fn`, written for f32 and f64, as a kernel of `dtype`.

    Args:
        fn: takes `arity` arrays, then attributes.
        dtype: dtype of the arrays and of the result.
        arity: 1, 2 or 3.
    """
    if not is_half(dtype):
        return fn
    if arity == 1:
        return lambda x, *attrs: fn(x.astype(F32), *attrs).astype(dtype)
    if arity == 2:
        return lambda x, y, *attrs: fn(x.astype(F32), y.astype(F32), *attrs).astype(dtype)
    return lambda x, y, z, *attrs: fn(x.astype(F32), y.astype(F32), z.astype(F32), *attrs).astype(
        dtype
    )


def dimensioned(fn: Fn) -> Fn:
    """Return a unary map of `fn` in which rank 0 passes as rank 1, so that `fn` may use `out=`."""

    def mapped(x: Array, *attrs: Any) -> Any:
        if x.ndim:
            return fn(x, *attrs)
        return fn(x.reshape(1), *attrs).reshape(())

    return mapped
