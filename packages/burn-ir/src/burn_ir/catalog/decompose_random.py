"""Random operations written in `uniform`, so that every backend draws the same mask."""

from __future__ import annotations

from burn_ir.catalog.decompose import Ops, Tensor, in_f32
from burn_std.dtypes import float32, float64

Key = tuple[int, int]


def _draws(ops: Ops, like: Tensor, key: Key) -> Tensor:
    """Return uniforms of f64 for f64, else of f32: 16-bit grids are too coarse for a mask."""
    dtype = float64 if like.dtype is float64 else float32
    return ops.uniform(dtype, tuple(like.shape), 0.0, 1.0, key)


def bernoulli(ops: Ops, p: Tensor, key: Key) -> Tensor:
    """Return 1 where a uniform is below p."""
    wide = p if p.dtype.bits > 16 else ops.cast(p, float32)
    return ops.cast(ops.lt(_draws(ops, p, key), wide), p.dtype)


@in_f32()
def dropout(ops: Ops, x: Tensor, p: float, key: Key) -> Tensor:
    """Return x / (1 - p) where a uniform is at least p, else 0."""
    scaled = ops.mul(x, 0.0 if p >= 1 else 1 / (1 - p))
    return ops.where(ops.lt(_draws(ops, x, key), p), 0.0, scaled)
