"""Tensors in layouts other than row-major, built as real views through operations of the backend.

A layout is made the way a user meets it: a larger base, a strided slice, a permutation, an
expansion; so a backend without numpy's views gets it as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_backend import TensorBase

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def strided(context: Any, values: Array, strides: Ints, cast: Any = None) -> TensorBase:
    """Return a view with these element strides that holds `values`.

    Strides of 0 become an expansion; gaps become slices with steps out of a larger base, whose
    other elements hold something else.

    Args:
        context: where the tensor is made.
        values: what the view holds.
        strides: element strides, not negative.
        cast: dtype of the base, for dtypes that numpy does not know.
    """
    shape = values.shape
    held = values[tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)]
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    base, steps = _base(held.shape, strides, order)
    filled = np.full(base, _other(values), values.dtype)
    window = tuple(
        slice(0, (held.shape[d] - 1) * step + 1 if held.shape[d] else 0, step)
        for d, step in zip(order, steps, strict=True)
    )
    filled[window] = held.transpose(order)
    x: TensorBase = context.tensor_from_numpy(filled)
    if cast is not None:
        x = context.cast(x, cast)
    x = context.slice(x, tuple(steps), (0,) * len(base), tuple(w.stop for w in window))
    back = tuple(order.index(d) for d in range(len(shape)))
    x = context.permute(x, back)
    if held.shape != shape:
        x = context.expand(x, shape)
    return x


def _base(shape: Ints, strides: Ints, order: list[int]) -> tuple[Ints, list[int]]:
    """Return the extents of a row-major base and the step of each of its dims."""
    extents: list[int] = []
    steps: list[int] = []
    row = 1
    for place in range(len(order) - 1, -1, -1):
        d = order[place]
        n = shape[d]
        step = max(1, strides[d] // row) if n > 1 else 1
        extent = (n - 1) * step + 1 if n else 0
        if place:  # widen to reach the next dim's stride, if that comes out even
            wanted = strides[order[place - 1]]
            if wanted % row == 0 and wanted // row > extent > 0:
                extent = wanted // row
        extents.append(extent)
        steps.append(step)
        row *= max(extent, 1)
    return tuple(reversed(extents)), list(reversed(steps))


def _other(values: Array) -> Any:
    """Return what stands in the gaps: NaN for floats, so that reading one shows."""
    return np.nan if values.dtype.kind == "f" else values.dtype.type(1)


LAYOUTS = ("transposed", "stepped", "reversed", "expanded")


def in_layout(context: Any, values: Array, layout: str, cast: Any = None) -> TensorBase | None:
    """Return a tensor with `values` in a named layout; None where the shape does not allow it."""
    rank = values.ndim
    if layout == "transposed":
        if rank < 2:
            return None
        order = tuple(reversed(range(rank)))
        x = _plain(context, np.ascontiguousarray(values.transpose(order)), cast)
        return context.permute(x, order)  # type: ignore[no-any-return]
    if layout == "stepped":
        if not rank:
            return None
        wide = np.full((*values.shape[:-1], 2 * values.shape[-1] + 1), _other(values), values.dtype)
        wide[..., 1::2] = values
        x = _plain(context, wide, cast)
        ones, zeros = (1,) * (rank - 1), (0,) * (rank - 1)
        return context.slice(  # type: ignore[no-any-return]
            x, (*ones, 2), (*zeros, 1 if values.shape[-1] else 0),
            (*values.shape[:-1], 2 * values.shape[-1] if values.shape[-1] else 0),
        )  # fmt: skip
    if layout == "reversed":
        if not rank:
            return None
        x = _plain(context, np.ascontiguousarray(values[::-1]), cast)
        return context.flip(x, (0,))  # type: ignore[no-any-return]
    if not rank or values.shape[0] < 2 or not (values == values[:1]).all():
        return None
    x = _plain(context, np.ascontiguousarray(values[:1]), cast)
    return context.expand(x, values.shape)  # type: ignore[no-any-return]


def _plain(context: Any, values: Array, cast: Any) -> TensorBase:
    x = context.tensor_from_numpy(values)
    return x if cast is None else context.cast(x, cast)  # type: ignore[no-any-return]
