"""Padding in four modes and its adjoint.

Every mode but `constant` reads each dim at a list of source positions; the adjoint adds back to
them. Negative padding crops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_flex.kernels.cast import element
from burn_flex.kernels.precision import F32, Array, is_half
from burn_flex.table import kernel

Pads = tuple[tuple[int, int], ...]


def _inner(pads: Pads, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return where the kept part lies in the padded and in the original array."""
    padded, original = [], []
    for n, (a, b) in zip(shape, pads, strict=True):
        padded.append(slice(max(a, 0), max(n + a + min(b, 0), max(a, 0))))
        original.append(slice(max(-a, 0), max(n + min(b, 0), max(-a, 0))))
    return tuple(padded), tuple(original)


def _constant(x: Array, pads: Pads, value: float) -> Array:
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True))
    out = (
        np.zeros(shape, x.dtype) if value == 0 else np.full(shape, element(value, x.dtype), x.dtype)
    )
    padded, original = _inner(pads, x.shape)
    out[padded] = x[original]
    return out


def _positions(mode: str, n: int, before: int, after: int) -> Array:
    """Return the source position of every element of a padded dim."""
    if mode == "circular":  # what is cropped is gone before anything wraps around
        crop = max(-before, 0)
        n += min(before, 0) + min(after, 0)
        at = np.arange(-max(before, 0), n + max(after, 0))
        return at % n + crop if n else at
    at = np.arange(-before, n + after)
    if mode == "replicate":
        return np.minimum(np.maximum(at, 0), n - 1)
    at = np.abs(at)
    return np.where(at < n, at, 2 * (n - 1) - at)


@kernel("pad")
def pad(x: Array, mode: str, pads: Pads, value: float) -> Array:
    """One (before, after) per dim; constant, reflect, replicate or circular."""
    if mode == "constant":
        return _constant(x, pads, value)
    for d, (a, b) in enumerate(pads):
        if a or b:
            x = x.take(_positions(mode, x.shape[d], a, b), d)
    return x


@kernel("pad_backward")
def pad_backward(g: Array, mode: str, pads: Pads) -> Any:
    """The adjoint of pad: what was copied adds up, what was cropped is 0."""
    if mode == "constant":
        return _constant(g, tuple((-a, -b) for a, b in pads), 0)
    out = g.astype(F32) if is_half(g.dtype) else g
    for d, (a, b) in enumerate(pads):
        if a or b:
            out = _gathered(out, d, _positions(mode, out.shape[d] - a - b, a, b), a, b)
    return out.astype(g.dtype, copy=False)


def _gathered(g: Array, d: int, positions: Array, before: int, after: int) -> Array:
    n = g.shape[d] - before - after
    shape = (*g.shape[:d], n, *g.shape[d + 1 :])
    pads = tuple((-before, -after) if i == d else (0, 0) for i in range(g.ndim))
    out = np.zeros(shape, g.dtype) if min(n, 1) == 0 else _constant(g, pads, 0)
    head = (slice(None),) * d
    edges = [*range(max(before, 0)), *range(g.shape[d] - max(after, 0), g.shape[d])]
    for i in edges:
        out[(*head, positions[i])] += g[(*head, i)]
    return out
