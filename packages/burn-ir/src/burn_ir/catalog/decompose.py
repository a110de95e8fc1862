"""What decompositions share: widening of 16-bit floats, sums back to a shape, index ranges.

A decomposition is `(ops, *inputs, *attrs)`; `ops` calls operations on tensors, positionally and
strictly. The modules `decompose_<family>` are imported when a decomposition is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from burn_std import DType
from burn_std.dtypes import float32, int64

# Tensors and contexts are whatever the caller brings; only `.shape` and `.dtype` are read.
Tensor = Any
Ops = Any
Ints = tuple[int, ...]


def is_half(x: Any) -> bool:
    """Return whether x is a tensor of a 16-bit float."""
    dtype = getattr(x, "dtype", None)
    # A number of numpy has a dtype as well, of another kind.
    return isinstance(dtype, DType) and dtype.is_float and dtype.bits == 16


def in_f32(
    *, keep: Ints = (), lead: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decomposition compute f16 and bf16 in f32 and round its outputs once.

    Args:
        keep: outputs that stay as they are: statistics in f32, indices.
        lead: the others get the dtype of the first argument, whatever the rest is of.
    """

    def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        def run(ops: Ops, *args: Any) -> Any:
            half = next((a.dtype for a in args if is_half(a)), None)
            if lead:
                half = args[0].dtype
            if half is None:
                return fn(ops, *args)
            wide = [ops.cast(a, float32) if is_half(a) else a for a in args]
            out = fn(ops, *wide)
            if not isinstance(out, tuple):
                return to_dtype(ops, out, half)
            return tuple(o if i in keep else to_dtype(ops, o, half) for i, o in enumerate(out))

        return run

    return wrap


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that sums and products of `dtype` are computed in."""
    return float32 if dtype.is_float and dtype.bits == 16 else dtype


def to_dtype(ops: Ops, x: Tensor, dtype: DType) -> Tensor:
    """Return x in `dtype`, without an operation when it has it."""
    return x if x.dtype is dtype else ops.cast(x, dtype)


def zero_of(x: Any) -> bool | int:
    """Return the Python zero that does not change x's dtype: an int would lift a bool."""
    dtype = getattr(x, "dtype", None)
    return False if dtype is not None and dtype.is_bool else 0


def along(x: Tensor, dim: int) -> Ints | None:
    """Return `dim` as the dims of a reduction; a rank-0 tensor reduces over everything."""
    return (dim,) if x.shape else None


def counted(x: Tensor, dims: Ints | None) -> int:
    """Return how many elements each output of a reduction reads."""
    return prod(x.shape) if dims is None else prod(x.shape[d] for d in dims if x.shape)


def last_dims(x: Tensor, count: int) -> Ints:
    """Return the last `count` dims of x."""
    return tuple(range(len(x.shape) - count, len(x.shape)))


def sum_to(ops: Ops, x: Tensor, shape: Ints) -> Tensor:
    """Return x summed to a shape that broadcasts to its own."""
    extra = len(x.shape) - len(shape)
    if extra:
        x = ops.sum(x, tuple(range(extra)), False, x.dtype)
    grown = tuple(i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return ops.sum(x, grown, True, x.dtype) if grown else x


def swap_last(ops: Ops, x: Tensor) -> Tensor:
    """Return x with its last two dims swapped."""
    n = len(x.shape)
    return ops.permute(x, (*range(n - 2), n - 1, n - 2))


def zeros(ops: Ops, dtype: DType, shape: Ints) -> Tensor:
    """Return zeros (False for bool)."""
    return ops.full(dtype, shape, False if dtype.is_bool else 0)


def count_up(ops: Ops, count: int, start: int = 0, step: int = 1) -> Tensor:
    """Return start, start + step, ... as int64."""
    return ops.arange(int64, count, start, step)


def placed(ops: Ops, x: Tensor, axis: int, rank: int) -> Tensor:
    """Return a rank-1 tensor reshaped so that it lies along `axis` of `rank` dims."""
    return ops.reshape(x, tuple(x.shape[0] if i == axis else 1 for i in range(rank)))


def window(ops: Ops, x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    """Return x[start:stop] along a dim."""
    shape: Sequence[int] = x.shape
    return ops.slice(
        x,
        (1,) * len(shape),
        tuple(start if i == dim else 0 for i in range(len(shape))),
        tuple(stop if i == dim else n for i, n in enumerate(shape)),
    )


def moved(rank: int, source: int, target: int) -> Ints:
    """Return the permutation that moves dim `source` to `target` and keeps the others' order."""
    order = [d for d in range(rank) if d != source]
    order.insert(target, source)
    return tuple(order)
