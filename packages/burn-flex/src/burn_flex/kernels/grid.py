"""grid_sample in 2 and 3 dims and its gradients.

A grid holds positions in [-1, 1] per sample, last component first dim from the right. Sampling
goes tap by tap over the flattened planes: [N, C, *L] seen as [N, C, P], taps as indices [N, S].
Positions of a half grid are rounded to it at every step, as PyTorch does: where a sample falls
depends on that. Values and weights are float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np

from burn_flex.kernels.halves import HALVES, Array, up
from burn_flex.kernels.resample import CUBIC, cubic_weights
from burn_flex.table import kernel

Ints = tuple[int, ...]
Rounding = Callable[[Array], Array]
# Far outside any plane: where PyTorch sends positions that are not finite or beyond int.
_OUTSIDE = -100.0


def _pixels(grid: Array, n: int, align_corners: bool, rounded: Rounding) -> tuple[Array, float]:
    """Map [-1, 1] to elements 0..n-1: corners are centres, or edges; and the slope."""
    slope = (n - 1) / 2 if align_corners else n / 2
    at = rounded(rounded(grid + 1) * slope)
    return at if align_corners else rounded(at - 0.5), slope


def _clip(at: Array, n: int) -> tuple[Array, Array]:
    """Clamp to the plane, with its slope: 0 at and beyond both ends. NaN goes to 0."""
    inside = (at > 0) & (at < n - 1)
    return np.where(at > 0, np.minimum(at, n - 1), 0).astype(at.dtype), inside.astype(at.dtype)


def _reflect(at: Array, twice_low: int, twice_high: int) -> tuple[Array, Array]:
    """Mirror at both ends as often as needed, with the slope (1 or -1)."""
    if twice_low == twice_high:
        return np.zeros_like(at), np.zeros_like(at)
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    slope = np.where(at < low, -1.0, 1.0).astype(at.dtype)
    away = np.abs(at - low)
    extra = np.fmod(away, span)
    even = np.floor(away / span) % 2 == 0
    return np.where(even, extra + low, span - extra + low), np.where(even, slope, -slope)


def _padded(at: Array, n: int, padding: str, align_corners: bool) -> tuple[Array, Array]:
    """Return positions after the padding rule, and the slope of that rule."""
    slope = np.ones_like(at)
    if padding == "border":
        at, slope = _clip(at, n)
    elif padding == "reflection":
        ends = (0, 2 * (n - 1)) if align_corners else (-1, 2 * n - 1)
        at, mirrored = _reflect(at, *ends)
        at, slope = _clip(at, n)
        slope = slope * mirrored
    far = ~(np.abs(at) < 2**31 - 1)
    return np.where(far, at.dtype.type(_OUTSIDE), at), slope


class _Taps:
    """Where and how strongly each sample reads: per tap flat indices, validity and weight."""

    def __init__(
        self, lengths: Ints, grid: Array, mode: str, padding: str, align_corners: bool
    ) -> None:
        half = grid.dtype
        rounded: Rounding = (lambda a: up(a.astype(half))) if half in HALVES else (lambda a: a)
        grid = up(grid)
        self.lengths = lengths
        self.count = prod(grid.shape[1:-1])
        flat = grid.reshape(grid.shape[0], self.count, len(lengths))
        self.indices: list[list[Array]] = []
        self.weights: list[list[Array]] = []
        self.slopes: list[list[Array]] = []
        for dim, n in enumerate(lengths):
            at, slope = _pixels(flat[..., len(lengths) - 1 - dim], n, align_corners, rounded)
            if mode == "bicubic":
                self._cubic(at, slope, n, padding, align_corners)
                continue
            at, bend = _padded(at, n, padding, align_corners)
            at = rounded(at)
            if mode == "nearest":
                self.indices.append([np.rint(at).astype(np.int64)])
                self.weights.append([np.ones_like(at)])
                self.slopes.append([np.zeros_like(at)])
                continue
            first = np.floor(at)
            t = at - first
            self.indices.append([first.astype(np.int64), first.astype(np.int64) + 1])
            self.weights.append([1 - t, t])
            self.slopes.append([-slope * bend, slope * bend])

    def _cubic(self, at: Array, slope: float, n: int, padding: str, align_corners: bool) -> None:
        # The padding rule applies to every tap, not to the position between them.
        at = np.where(np.isfinite(at), at, at.dtype.type(_OUTSIDE))
        first = np.floor(at)
        t = at - first
        taps = [_padded(first + i, n, padding, align_corners)[0] for i in (-1, 0, 1, 2)]
        self.indices.append([np.rint(i).astype(np.int64) for i in taps])
        self.weights.append(cubic_weights(t))
        self.slopes.append([slope * s for s in _cubic_slopes(t)])

    def __iter__(self) -> Iterator[tuple[Ints, Array, Array]]:
        """Yield (tap per dim, flat index [N, S], inside [N, S])."""
        for taps in product(*(range(len(i)) for i in self.indices)):
            flat = np.zeros((), np.int64)
            inside = np.ones((), np.bool_)
            for dim, (tap, n) in enumerate(zip(taps, self.lengths, strict=True)):
                index = self.indices[dim][tap]
                inside = inside & (index >= 0) & (index < n)
                flat = flat * n + np.clip(index, 0, n - 1)
            yield taps, flat, inside

    def weight(self, taps: Ints, slope_of: int = -1) -> Array:
        """Return the product of the weights, or its derivative along one dim."""
        parts = [
            (self.slopes if dim == slope_of else self.weights)[dim][tap]
            for dim, tap in enumerate(taps)
        ]
        out = parts[0]
        for part in parts[1:]:
            out = out * part
        return out


def _cubic_slopes(t: Array) -> list[Array]:
    a = t.dtype.type(CUBIC)

    def near(d: Array) -> Array:
        slope: Array = (3 * (a + 2) * d - 2 * (a + 3)) * d
        return slope

    def far(d: Array) -> Array:
        slope: Array = (3 * a * d - 10 * a) * d + 8 * a
        return slope

    return [far(t + 1), near(t), -near(1 - t), -far(2 - t)]


def _read(planes: Array, flat: Array, inside: Array) -> Array:
    """planes [N, C, P] at [N, S]: [N, C, S], 0 outside."""
    values = np.take_along_axis(planes, flat[:, None], axis=2)
    return np.where(inside[:, None], values, 0)


@kernel("grid_sample")
def grid_sample(x: Array, grid: Array, mode: str, padding: str, align_corners: bool) -> Array:
    """x [N, C, *L] at grid [N, *S, dims] to [N, C, *S]."""
    lengths = x.shape[2:]
    taps = _Taps(lengths, grid, mode, padding, align_corners)
    planes = up(x).reshape(*x.shape[:2], prod(lengths))
    out = np.zeros((*x.shape[:2], taps.count), planes.dtype)
    for tap, flat, inside in taps:
        out += _read(planes, flat, inside) * taps.weight(tap)[:, None]
    return out.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False)


@kernel("grid_sample_backward")
def grid_sample_backward(
    g: Array, x: Array, grid: Array, mode: str, padding: str, align_corners: bool
) -> tuple[Array, Array]:
    """(dx, dgrid); at a kink the slope of the padding rule is PyTorch's."""
    lengths = x.shape[2:]
    n, channels, size = x.shape[0], x.shape[1], prod(lengths)
    taps = _Taps(lengths, grid, mode, padding, align_corners)
    planes = up(x).reshape(n, channels, size)
    g = up(g).reshape(n, channels, taps.count)
    dx = np.zeros(n * channels * size, g.dtype)
    dgrid = np.zeros((n, taps.count, len(lengths)), g.dtype)
    offset = (np.arange(n * channels) * size).reshape(n, channels, 1)
    for tap, flat, inside in taps:
        share = np.where(inside, taps.weight(tap), 0)
        where = np.broadcast_to(flat[:, None] + offset, g.shape)
        np.add.at(dx, where.ravel(), (g * share[:, None]).ravel())
        if mode != "nearest":
            pull = (g * _read(planes, flat, inside)).sum(axis=1)
            for dim in range(len(lengths)):
                dgrid[..., len(lengths) - 1 - dim] += pull * taps.weight(tap, dim)
    return (
        dx.reshape(x.shape).astype(x.dtype, copy=False),
        dgrid.reshape(grid.shape).astype(grid.dtype, copy=False),
    )
