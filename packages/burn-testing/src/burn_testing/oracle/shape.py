"""References of views, joins and creation."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle

Ints = tuple[int, ...]


@oracle("reshape")
def reshape(x: Array, shape: Ints) -> Array:
    """Row-major order."""
    return np.ascontiguousarray(x).reshape(shape)


@oracle("permute")
def permute(x: Array, dims: Ints) -> Array:
    """Dims in another order."""
    return x.transpose(dims)


@oracle("expand")
def expand(x: Array, shape: Ints) -> Array:
    """Dims of size 1 repeated."""
    return np.broadcast_to(x, shape)


def window(steps: Ints, starts: Ints, stops: Ints) -> tuple[slice, ...]:
    """Return slices of the strict bounds; stop -1 means through element 0."""
    return tuple(
        slice(a, None if s < 0 and b < 0 else b, s)
        for a, b, s in zip(starts, stops, steps, strict=True)
    )


@oracle("slice")
def slice_(x: Array, steps: Ints, starts: Ints, stops: Ints) -> Array:
    """Python's slicing."""
    return x[window(steps, starts, stops)]


@oracle("slice_assign")
def slice_assign(x: Array, value: Array, steps: Ints, starts: Ints, stops: Ints) -> Array:
    """A copy with the window replaced."""
    out = x.copy()
    out[window(steps, starts, stops)] = value
    return out


@oracle("cat")
def cat(xs: list[Array], dim: int) -> Array:
    """Joined along a dim."""
    return np.concatenate(xs, dim)


@oracle("full")
def full(dtype: Any, shape: Ints, value: Any) -> Array:
    """One value."""
    return np.full(shape, value)


@oracle("arange")
def arange(dtype: Any, count: int, start: Any, step: Any) -> Array:
    """Start + i step, in Python numbers."""
    return np.array([start + i * step for i in range(count)])


@oracle("contiguous")
def contiguous(x: Array) -> Array:
    """The same elements."""
    return x
