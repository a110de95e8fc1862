"""References of convolution, resampling, CTC and quantisation."""

from __future__ import annotations

from itertools import groupby, product
from math import exp, floor, log
from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle

Ints = tuple[int, ...]


def _taps(
    x: Ints, w: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    """Yield (output place, input place, weight place) of every product of a convolution."""
    per_out, per_in = w[0] // groups, w[1]
    for n, o in product(range(out[0]), range(out[1])):
        for place in product(*map(range, out[2:])):
            for c, tap in product(range(per_in), product(*map(range, w[2:]))):
                at = [
                    p * s - pad + k * d
                    for p, s, pad, k, d in zip(place, stride, padding, tap, dilation, strict=True)
                ]
                if all(0 <= a < size for a, size in zip(at, x[2:], strict=True)):
                    yield (n, o, *place), (n, o // per_out * per_in + c, *at), (o, c, *tap)


def conv_shape(x: Ints, w: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Return the shape of a convolution's result."""
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    ]
    return (x[0], w[0], *sizes)


@oracle("conv")
def conv(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """One product after the other."""
    out = np.zeros(conv_shape(x.shape, weight.shape, stride, padding, dilation), x.dtype)
    with np.errstate(all="ignore"):
        for o, i, w in _taps(x.shape, weight.shape, out.shape, stride, padding, dilation, groups):
            out[o] += x[i] * weight[w]
    return out if bias is None else out + bias.reshape(-1, *[1] * (x.ndim - 2))


@oracle("conv_input_grad")
def conv_input_grad(
    g: Array, weight: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Ints
) -> Array:
    """Each product's share goes back to its input."""
    out = np.zeros(shape, g.dtype)
    for o, i, w in _taps(shape, weight.shape, g.shape, stride, padding, dilation, groups):
        out[i] += g[o] * weight[w]
    return out


@oracle("conv_weight_grad")
def conv_weight_grad(
    g: Array, x: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Ints
) -> Array:
    """Each product's share goes back to its weight."""
    out = np.zeros(shape, g.dtype)
    for o, i, w in _taps(x.shape, shape, g.shape, stride, padding, dilation, groups):
        out[w] += g[o] * x[i]
    return out


# ---- resampling ---------------------------------------------------------------------------------


def _cubic(t: float, a: float = -0.75) -> float:
    t = abs(t)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0


def weights(mode: str, corners: bool, n: int, size: int, scale: float | None) -> Array:
    """Return the matrix [size, n] that resamples one dim."""
    out = np.zeros((size, n))
    step = 1 / scale if scale else n / size
    for i in range(size):
        if mode == "nearest":
            out[i, min(floor(i * step), n - 1)] = 1
            continue
        if mode == "nearest-exact":
            out[i, min(floor((i + 0.5) * step), n - 1)] = 1
            continue
        at = (i * (n - 1) / (size - 1) if size > 1 else 0.0) if corners else (i + 0.5) * step - 0.5
        if mode == "bicubic":
            for k in range(floor(at) - 1, floor(at) + 3):
                out[i, min(max(k, 0), n - 1)] += _cubic(at - k)
            continue
        at = max(at, 0.0)
        low = min(floor(at), n - 1)
        out[i, low] += 1 - (at - low)
        out[i, min(low + 1, n - 1)] += at - low
    return out


@oracle("interpolate")
def interpolate(
    x: Array, mode: str, align_corners: bool, size: Ints, scales: tuple[Any, ...]
) -> Array:
    """One matrix per dim."""
    for d, (n, scale) in enumerate(zip(size, scales, strict=True), 2):
        w = weights(mode, align_corners, x.shape[d], n, scale)
        x = np.moveaxis(np.tensordot(w, x, (1, d)), 0, d)
    return x


@oracle("interpolate_backward")
def interpolate_backward(
    g: Array, mode: str, align_corners: bool, size: Ints, scales: tuple[Any, ...], shape: Ints
) -> Array:
    """The transposed matrices."""
    for d, (n, scale) in enumerate(zip(size, scales, strict=True), 2):
        w = weights(mode, align_corners, shape[d], n, scale)
        g = np.moveaxis(np.tensordot(w.T, g, (1, d)), 0, d)
    return g


def _reflected(at: float, low: float, high: float) -> float:
    span = high - low
    if span <= 0:
        return 0.0
    away = abs(at - low) % (2 * span)
    return low + (2 * span - away if away > span else away)


def _source(at: float, n: int, padding: str, corners: bool) -> float:
    if padding == "border":
        return min(max(at, 0.0), n - 1.0)
    if padding == "reflection":
        ends = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        return min(max(_reflected(at, *ends), 0.0), n - 1.0)
    return at


@oracle("grid_sample")
def grid_sample(x: Array, grid: Array, mode: str, padding: str, align_corners: bool) -> Array:
    """Each point: the grid's last dim holds coordinates of the last spatial dim first."""
    sizes = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(grid.shape[:-1]):
        taps: list[list[tuple[int, float]]] = []
        for n, g in zip(sizes, grid[place][::-1].tolist(), strict=True):
            at = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
            if mode == "bicubic":
                near = range(floor(at) - 1, floor(at) + 3)
                taps.append(
                    [(round(_source(k, n, padding, align_corners)), _cubic(at - k)) for k in near]
                )
                continue
            at = _source(at, n, padding, align_corners)
            if mode == "nearest":
                taps.append([(round(at), 1.0)])
            else:
                taps.append([(floor(at), floor(at) + 1 - at), (floor(at) + 1, at - floor(at))])
        for tap in product(*taps):
            if all(0 <= k < n for (k, _), n in zip(tap, sizes, strict=True)):
                factor = np.prod([w for _, w in tap])
                out[(place[0], slice(None), *place[1:])] += (
                    factor * x[(place[0], slice(None), *(k for k, _ in tap))]
                )
    return out


# ---- connectionist temporal classification ------------------------------------------------------


@oracle("ctc_loss")
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
) -> list[Any]:
    """Every path of classes that collapses to the target, summed."""
    losses = []
    for n in range(log_probs.shape[1]):
        goal = targets[n, : target_lengths[n]].tolist()
        steps = int(input_lengths[n])
        total = 0.0
        for path in product(range(log_probs.shape[2]), repeat=steps):
            if [c for c, _ in groupby(path) if c != blank] == goal:
                total += exp(sum(log_probs[t, n, c] for t, c in enumerate(path)))
        losses.append(-log(total) if total else float("inf"))
    return [np.array(losses), None]


# ---- quantisation: references are what comes back after dequantisation --------------------------


def requantized(x: Array, scheme: Any) -> Array:
    """Return x after a round trip through a scheme, by the numerics contract."""
    if not scheme.block:
        return _rounded(x, scheme)
    blocks = [
        _rounded(part, scheme, -1)
        for part in np.split(x, range(scheme.block, x.shape[-1], scheme.block), -1)
    ]
    return np.concatenate(blocks, -1)


def _rounded(x: Array, scheme: Any, axis: int | None = None) -> Array:
    x = x.astype(np.float32)
    if scheme.symmetric:
        scale = np.abs(x).max(axis, keepdims=True) / np.float32(scheme.qmax)
        scale = np.where(scale == 0, np.float32(1), scale)
        return np.asarray(np.clip(np.round(x / scale), scheme.qmin, scheme.qmax) * scale)
    low = np.minimum(x.min(axis, keepdims=True), 0)
    high = np.maximum(x.max(axis, keepdims=True), 0)
    scale = (high - low) / np.float32(scheme.qmax - scheme.qmin)
    scale = np.where(scale == 0, np.float32(1), scale)
    zero = np.clip(scheme.qmin - np.round(low / scale), scheme.qmin, scheme.qmax)
    stored = np.clip(np.round(x / scale) + zero, scheme.qmin, scheme.qmax)
    return np.asarray((stored - zero) * scale)


@oracle("quantize")
def quantize(x: Array, scale: Any, zero: Any, dtype: Any) -> Array:
    """The round trip: the stored integers are private to a backend."""
    return requantized(x, dtype)


@oracle("dequantize")
def dequantize(given: Any, dtype: Any) -> Array:
    """The input of its samples is (label, elements, scheme): what was quantised before."""
    return requantized(given[1], given[2])
