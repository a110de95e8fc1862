"""One map or reduction over many tensors at once: clipping, scaling, averages of weights."""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array
from burn_flex.kernels.multi import working
from burn_flex.table import kernel


@kernel("norm_all")
def norm_all(xs: list[Array], p: float) -> Array:
    """The p-norm of all elements of all tensors: rank 0."""
    work = working(xs[0].dtype)
    parts = []
    for x in xs:
        size = np.abs(x.astype(work, copy=False))
        if p == np.inf:
            parts.append(size.max() if size.size else work.type(0))
        else:
            parts.append((size * size if p == 2 else size**p).sum())
    whole = np.array(parts, work)
    if p == np.inf:
        return np.asarray(whole.max())
    return np.asarray(whole.sum() ** (1 / p), work) if p != 2 else np.asarray(np.sqrt(whole.sum()))


@kernel("scale_all")
def scale_all(xs: list[Array], factor: Array) -> tuple[Array, ...]:
    """Every tensor times one factor of rank 0, rounded once."""
    return tuple(_scaled(x, factor) for x in xs)


@kernel("add_scaled_all")
def add_scaled_all(xs: list[Array], ys: list[Array], factor: Array) -> tuple[Array, ...]:
    """x + factor * y, pairwise."""
    out = []
    for x, y in zip(xs, ys, strict=True):
        work = working(x.dtype)
        out.append((x.astype(work) + _factor(factor, work) * y.astype(work)).astype(x.dtype))
    return tuple(out)


@kernel("lerp_all")
def lerp_all(xs: list[Array], ys: list[Array], weight: Array) -> tuple[Array, ...]:
    """x + weight * (y - x), pairwise."""
    out = []
    for x, y in zip(xs, ys, strict=True):
        work = working(x.dtype)
        wide = x.astype(work)
        out.append((wide + _factor(weight, work) * (y.astype(work) - wide)).astype(x.dtype))
    return tuple(out)


def _scaled(x: Array, factor: Array) -> Array:
    work = working(x.dtype)
    return (x.astype(work, copy=False) * _factor(factor, work)).astype(x.dtype, copy=False)


def _factor(factor: Array, work: np.dtype) -> Array:
    return np.asarray(factor).astype(work)
