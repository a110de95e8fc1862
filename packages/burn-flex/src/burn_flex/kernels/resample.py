"""Interpolation along every spatial dim in turn, and its adjoint.

Every mode is a table per dim: for each output element the input elements it reads (taps) and
their weights. Coordinates follow PyTorch: with a given scale it maps outputs to inputs, else the
ratio of the extents does; align_corners maps ends to ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_flex.kernels.halves import Array, up, wide
from burn_flex.table import kernel

Ints = tuple[int, ...]
_LINEAR = ("linear", "bilinear", "trilinear")
# Keys' kernel with PyTorch's a.
CUBIC = -0.75


def _ratio(n: int, out: int, align_corners: bool, scale: float | None, dtype: Any) -> Any:
    """Return input elements per output element, in the precision that PyTorch uses."""
    if align_corners:
        return dtype(n - 1) / dtype(out - 1) if out > 1 else dtype(0)
    return dtype(1.0 / scale) if scale is not None and scale > 0 else dtype(n) / dtype(out)


def cubic_weights(t: Array) -> list[Array]:
    """Return the weights of the elements at -1, 0, 1, 2 around a position t past element 0."""
    a = t.dtype.type(CUBIC)

    def near(d: Array) -> Array:
        weight: Array = ((a + 2) * d - (a + 3)) * d * d + 1
        return weight

    def far(d: Array) -> Array:
        weight: Array = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return weight

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _table(
    mode: str, n: int, out: int, align_corners: bool, scale: float | None, dtype: Any,
    copied: bool,
) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """Return (indices, weights) per tap, each [out]; nearest modes have one tap without weight.

    `copied` says that a dim which keeps its extent (nearest: or doubles it) is copied whatever
    scale is given, as PyTorch does in linear modes and in nearest of images.
    """
    if mode == "nearest" and copied and out in (n, 2 * n):
        return [np.arange(out) // (out // n)], []
    ratio = _ratio(n, out, align_corners, scale, dtype)
    at = np.arange(out, dtype=dtype)
    if mode == "nearest":
        return [np.minimum(np.floor(at * ratio).astype(np.int64), n - 1)], []
    if mode == "nearest-exact":
        return [np.minimum(np.floor((at + dtype(0.5)) * ratio).astype(np.int64), n - 1)], []
    if mode in _LINEAR and out == n and copied:
        return [np.arange(n)], [np.ones(n, dtype)]
    source = at * ratio if align_corners else ratio * (at + dtype(0.5)) - dtype(0.5)
    if mode in _LINEAR:
        source = np.maximum(source, 0)
    first = np.minimum(np.floor(source).astype(np.int64), n - 1)
    t = np.clip(source - first, 0, 1).astype(dtype)
    if mode in _LINEAR:
        return [first, np.minimum(first + 1, n - 1)], [1 - t, t]
    return [np.clip(first + i, 0, n - 1) for i in (-1, 0, 1, 2)], cubic_weights(t)


def _shaped(weights: Array, rank: int, dim: int) -> Array:
    return weights.reshape(-1, *(1,) * (rank - dim - 1))


@kernel("interpolate")
def interpolate(
    x: Array, mode: str, align_corners: bool, size: Ints, scales: tuple[float | None, ...]
) -> Array:
    """x [N, C, *L] to [N, C, *size]; u8 uses PyTorch's fixed point, other integers round."""
    if mode.startswith("nearest"):
        coordinates = np.float64 if x.dtype == np.float64 and x.ndim != 4 else np.float32
        for dim, (n, o, s) in enumerate(zip(x.shape[2:], size, scales, strict=True), 2):
            x = np.take(x, _table(mode, n, o, False, s, coordinates, x.ndim == 4)[0][0], axis=dim)
        return x
    if x.dtype == np.uint8:
        return _fixed_point(x, mode, align_corners, size, scales)
    y = up(x) if x.dtype.kind not in "biu" else x.astype(np.float64)
    for dim, (n, o, s) in enumerate(zip(x.shape[2:], size, scales, strict=True), 2):
        indices, weights = _table(mode, n, o, align_corners, s, y.dtype.type, True)
        if all(
            np.array_equal(i, np.arange(n)) or not w.any()
            for i, w in zip(indices, weights, strict=True)
        ):
            continue
        total: Array | None = None
        for index, weight in zip(indices, weights, strict=True):
            part = np.take(y, index, axis=dim)
            part *= _shaped(weight, y.ndim, dim)
            total = part if total is None else np.add(total, part, out=total)
        y = total
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        y = np.clip(np.rint(y), info.min, info.max)
    return y.astype(x.dtype, copy=False)


def _fixed_point(
    x: Array, mode: str, align_corners: bool, size: Ints, scales: tuple[float | None, ...]
) -> Array:
    """u8 images: weights of 16 bits, last dim first, rounded to u8 after every dim."""
    for dim in range(x.ndim - 1, 1, -1):
        n, o = x.shape[dim], size[dim - 2]
        if n == o:
            continue
        indices, weights = _table(mode, n, o, align_corners, scales[dim - 2], np.float64, False)
        # Taps clamped to the same element at a border are one weight before rounding.
        matrix = np.zeros((o, n))
        for index, weight in zip(indices, weights, strict=True):
            matrix[np.arange(o), index] += weight
        precision = 0
        while precision < 22 and int(0.5 + matrix.max() * (1 << (precision + 1))) < 1 << 15:
            precision += 1
        scaled = matrix * (1 << precision)
        fixed = np.trunc(scaled + np.copysign(0.5, scaled))
        # f64 holds these integers exactly and has a GEMM.
        total = np.moveaxis(x, dim, -1).astype(np.float64) @ fixed.T + (1 << (precision - 1))
        rounded = np.clip(np.floor(total / (1 << precision)), 0, 255).astype(np.uint8)
        x = np.moveaxis(rounded, -1, dim)
    return x


@wide("interpolate_backward")
def interpolate_backward(
    g: Array, mode: str, align_corners: bool, size: Ints, scales: tuple[float | None, ...],
    shape: Ints,
) -> Array:  # fmt: skip
    """The adjoint: every g times its weight, added to the element that it was read from."""
    nearest = mode.startswith("nearest")
    coordinates: Any = np.float64 if g.dtype == np.float64 else np.float32
    if nearest and g.ndim == 4:
        coordinates = np.float32
    for dim, (n, o, s) in reversed(list(enumerate(zip(shape[2:], size, scales, strict=True), 2))):
        indices, weights = _table(
            mode, n, o, align_corners and not nearest, s, coordinates, not nearest or g.ndim == 4
        )
        total = np.zeros((*g.shape[:dim], n, *g.shape[dim + 1 :]), g.dtype)
        for tap, index in enumerate(indices):
            part = g if nearest else g * _shaped(weights[tap], g.ndim, dim)
            _add_along(total, index, part, dim)
        g = total
    return g


def _add_along(total: Array, index: Array, part: Array, dim: int) -> None:
    """total[..., index[i], ...] += part[..., i, ...] for a sorted index, duplicates summed."""
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    target = np.moveaxis(total, dim, 0)
    # Sorted indices make runs: one segmented sum per tap instead of a scatter.
    target[index[starts]] += np.moveaxis(np.add.reduceat(part, starts, axis=dim), dim, 0)
