"""Maps and reductions over many tensors, one tensor at a time; 16-bit floats go through f32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from burn_ir.catalog.decompose import Ops, Tensor, to_dtype, wide_dtype

Tensors = Sequence[Tensor]


def norm_all(ops: Ops, xs: Tensors, p: float) -> Tensor:
    """Return the p-norm over the elements of all tensors."""
    total: Tensor | None = None
    for x in xs:
        size = ops.abs(to_dtype(ops, x, wide_dtype(x.dtype)))
        if p == float("inf"):
            # The largest of nothing is 0 here.
            flat = ops.reshape(size, (prod(size.shape),))
            part = ops.amax(ops.pad(flat, "constant", ((1, 0),), 0.0), None, False)
        else:
            part = ops.sum(ops.square(size) if p == 2 else ops.pow(size, p), None, False, None)
        if total is None:
            total = part
        else:
            total = ops.maximum(total, part) if p == float("inf") else ops.add(total, part)
    if p == float("inf"):
        return total
    return ops.sqrt(total) if p == 2 else ops.pow(total, 1 / p)


def scale_all(ops: Ops, xs: Tensors, factor: Tensor) -> tuple[Tensor, ...]:
    """Return every tensor times the factor, rounded once."""
    return tuple(_rounded(ops, x, ops.mul(*_wide(ops, x, x, factor)[1:])) for x in xs)


def add_scaled_all(ops: Ops, xs: Tensors, ys: Tensors, factor: Tensor) -> tuple[Tensor, ...]:
    """Return x + factor y, pairwise."""
    out = []
    for x, y in zip(xs, ys, strict=True):
        a, b, f = _wide(ops, x, y, factor)
        out.append(_rounded(ops, x, ops.add(a, ops.mul(b, f))))
    return tuple(out)


def lerp_all(ops: Ops, xs: Tensors, ys: Tensors, weight: Tensor) -> tuple[Tensor, ...]:
    """Return x + weight (y - x), pairwise."""
    out = []
    for x, y in zip(xs, ys, strict=True):
        a, b, w = _wide(ops, x, y, weight)
        out.append(_rounded(ops, x, ops.add(a, ops.mul(ops.sub(b, a), w))))
    return tuple(out)


def _wide(ops: Ops, x: Tensor, *more: Tensor) -> list[Tensor]:
    dtype = wide_dtype(x.dtype)
    return [to_dtype(ops, t, dtype) for t in (x, *more)]


def _rounded(ops: Ops, x: Tensor, new: Tensor) -> Tensor:
    return to_dtype(ops, new, x.dtype)
