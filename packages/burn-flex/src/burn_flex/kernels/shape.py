"""Views, joins and creation. Views are numpy views: nothing is copied that need not be."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any

import numpy as np

from burn_backend import Memo
from burn_flex.kernels.cast import converted, element
from burn_flex.kernels.precision import F32, F64, I64, Array, Fn, is_float, is_half
from burn_flex.table import NATIVE, kernel, maker
from burn_ir.rules.shape import slice_extents
from burn_std import DType

Shape = tuple[int, ...]
# What numpy's broadcast_to asks of its iterator; asked directly, the same view takes half the time.
_iterate: Fn = np.nditer
_FLAGS = ("multi_index", "refs_ok", "zerosize_ok")
_READ = (("readonly",),)


@kernel("reshape", checked=True, quiet=True)
def reshape(x: Array, shape: Shape) -> Array:
    """Same elements in row-major order: a view where strides allow it."""
    return x.reshape(shape)


@kernel("permute", checked=True, quiet=True)
def permute(x: Array, dims: Shape) -> Array:
    """Dims in another order."""
    return x.transpose(dims)


@kernel("expand", quiet=True)
def expand(x: Array, shape: Shape) -> Any:
    """Dims of size 1 repeated with stride 0."""
    return _iterate((x,), _FLAGS, _READ, itershape=shape, order="C").itviews[0]


@kernel("squeeze", checked=True, quiet=True)
def squeeze(x: Array, dims: Shape) -> Array:
    """Named dims of size 1 removed."""
    return x.squeeze(dims)


@kernel("unsqueeze", quiet=True)
def unsqueeze(x: Array, dims: Shape) -> Array:
    """Dims of size 1 inserted."""
    shape = list(x.shape)
    for d in dims:
        shape.insert(d, 1)
    return x.reshape(shape)


def window(steps: Shape, starts: Shape, stops: Shape) -> tuple[Any, ...]:
    """Return numpy's key of a window; -1 with a negative step means through element 0."""
    if -1 not in stops:
        return tuple(map(slice, starts, stops, steps))
    return tuple(
        slice(a, None if b < 0 else b, s) for a, b, s in zip(starts, stops, steps, strict=True)
    )


def _checked_window(key: tuple[Shape, Shape, Shape, Shape]) -> Any:
    shape, steps, starts, stops = key
    slice_extents("slice", shape, steps, starts, stops)
    # At rank 0 the ellipsis makes the answer a view, not a scalar; a lone slice is quickest.
    parts: tuple[Any, ...] = window(steps, starts, stops)
    return (parts[0] if len(parts) == 1 else parts) if parts else ...


_WINDOWS = Memo(_checked_window)


@kernel("slice", checked=True, quiet=True)
def slice_(x: Array, steps: Shape, starts: Shape, stops: Shape) -> Array:
    """A strided window; the look-up of numpy's key checks the bounds."""
    if x.ndim == 1 and steps == (1,):  # a plain slice of a vector needs no look-up
        (start,), (stop,) = starts, stops
        if 0 <= start <= stop <= len(x):
            return x[start:stop]
    out: Array = x[_WINDOWS[x.shape, steps, starts, stops]]
    return out


@kernel("select", checked=True, quiet=True)
def select(x: Array, dim: int, index: int) -> Array:
    """One slice along a dim; the ellipsis keeps a scalar a view."""
    if dim == 0:
        return x[index, ...]
    head: tuple[Any, ...] = (slice(None),) * dim
    return x[(*head, index, ...)]


@kernel("flip", quiet=True)
def flip(x: Array, dims: Shape) -> Array:
    """Reversed along dims."""
    key: list[Any] = [slice(None)] * x.ndim
    if x.ndim:
        for d in dims:
            key[d] = slice(None, None, -1)
    return x[(*key, ...)]


@kernel("diagonal", quiet=True)
def diagonal(x: Array, dim1: int, dim2: int, offset: int) -> Array:
    """A diagonal as the last dim."""
    return x.diagonal(offset, dim1, dim2)


@kernel("unfold_dim", quiet=True)
def unfold_dim(x: Array, dim: int, size: int, step: int) -> Array:
    """Windows along a dim; the window is the new last dim."""
    if not x.ndim:
        return x.reshape(1)[:size]
    count = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    stride = x.strides[dim]
    strides = (*x.strides[:dim], stride * step, *x.strides[dim + 1 :], stride)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


# ---- writes into windows -----------------------------------------------------------------------


@kernel("slice_assign", quiet=True)
def slice_assign(x: Array, value: Array, steps: Shape, starts: Shape, stops: Shape) -> Array:
    """x with a strided window replaced by value."""
    out = x.copy()
    out[window(steps, starts, stops)] = value
    return out


@kernel("slice_backward", quiet=True)
def slice_backward(g: Array, steps: Shape, starts: Shape, stops: Shape, shape: Shape) -> Array:
    """Zeros of `shape` with g in the window."""
    out = np.zeros(shape, g.dtype)
    out[window(steps, starts, stops)] = g
    return out


@kernel("diagonal_backward", quiet=True)
def diagonal_backward(g: Array, dim1: int, dim2: int, shape: Shape, offset: int) -> Array:
    """Zeros of `shape` with g on the diagonal."""
    out = np.zeros(shape, g.dtype)
    line = out.diagonal(offset, dim1, dim2)
    line.flags.writeable = True  # numpy hands out diagonals read-only; this one is ours
    line[...] = g
    return out


@kernel("unfold_dim_backward")
def unfold_dim_backward(g: Array, dim: int, size: int, step: int, shape: Shape) -> Any:
    """Windows added up where they came from."""
    if not shape:
        return g.sum(dtype=F32 if is_half(g.dtype) else g.dtype).astype(g.dtype)
    out = np.zeros(shape, F32 if is_half(g.dtype) else g.dtype)
    head: tuple[Any, ...] = (slice(None),) * dim
    count = g.shape[dim]
    if size <= count:  # one step per element of the window, or one per window
        for k in range(size):
            out[(*head, slice(k, k + (count - 1) * step + 1, step))] += g[..., k]
    else:
        windows = np.moveaxis(g, -1, dim + 1)
        for i in range(count):
            out[(*head, slice(i * step, i * step + size))] += windows[(*head, i)]
    return out.astype(g.dtype, copy=False)


# ---- joins and repeats -------------------------------------------------------------------------


@kernel("cat", checked=True, quiet=True)
def cat(xs: Sequence[Array], dim: int) -> Array:
    """Tensors joined along a dim."""
    return np.concatenate(xs, dim)


@kernel("roll", quiet=True)
def roll(x: Array, dims: Shape, shifts: Shape) -> Array:
    """Rotated along dims."""
    return np.roll(x, shifts, dims) if x.ndim else x


@kernel("repeat", quiet=True)
def repeat(x: Array, repeats: Shape) -> Array:
    """Tiled per dim."""
    return np.tile(x, repeats)


def _triangle(keep: np.ufunc) -> Fn:
    def make(dtype: np.dtype[Any]) -> Fn:
        zero = np.zeros((), dtype)

        def masked(x: Array, diagonal: int) -> Any:
            rows = np.arange(diagonal, diagonal + x.shape[-2]).reshape(-1, 1)
            return np.where(keep(rows, np.arange(x.shape[-1])), x, zero)

        return masked

    return make


maker("tril", quiet=True)(_triangle(np.greater_equal))
maker("triu", quiet=True)(_triangle(np.less_equal))


# ---- creation and layout -----------------------------------------------------------------------


@kernel("full")
def full(dtype: DType, shape: Shape, value: float) -> Array:
    """One value everywhere."""
    if value == 0 and copysign(1, value) > 0:
        return np.zeros(shape, NATIVE[dtype])  # pages of zeros cost nothing until touched
    out = np.empty(shape, NATIVE[dtype])
    out.fill(element(value, out.dtype))
    return out


@kernel("arange")
def arange(dtype: DType, count: int, start: float, step: float) -> Any:
    """start + i * step, computed in 64 bits, so that long ranges stay exact."""
    target = NATIVE[dtype]
    if isinstance(start, int) and isinstance(step, int) and not is_float(target):
        out = np.arange(count, dtype=np.uint64)
        mask = (1 << 64) - 1
        out *= np.uint64(step & mask)
        out += np.uint64(start & mask)
        return out.view(I64).astype(target, copy=False)
    steps = np.arange(count, dtype=F64)
    steps *= step
    steps += start
    return converted(steps, dtype)


@maker("contiguous", checked=True, quiet=True)
def contiguous(dtype: Any) -> Fn:
    """Row-major layout; what has it already, and quantised tensors, stay as they are."""
    if not isinstance(dtype, np.dtype):
        return lambda x: x
    return lambda x: x if x.flags.c_contiguous else x.copy()
