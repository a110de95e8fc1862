"""Max and mean pooling, adaptive pooling, and what their gradients need.

Windows are walked tap by tap: one strided slice of the whole tensor per element of the kernel, so
every step is one long numpy loop. Sums are separable and go dim by dim.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from burn_flex.kernels.halves import Array, wide
from burn_flex.table import kernel

Ints = tuple[int, ...]


def _pooled(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """Return the pooled extent; in ceil mode no window starts in the padding on the right."""
    free = n + 2 * p - d * (k - 1) - 1
    out = (free + (s - 1 if ceil else 0)) // s + 1
    return out - 1 if ceil and (out - 1) * s >= n + p else out


def _padded(x: Array, before: Ints, reach: Ints, fill: Any) -> Array:
    """Return x [N, C, *L] in a frame of `fill`: `before` in front, extents at least `reach`."""
    lengths = x.shape[2:]
    extents = tuple(max(b + n, r) for b, n, r in zip(before, lengths, reach, strict=True))
    if extents == lengths:
        return x
    out = np.full((*x.shape[:2], *extents), fill, x.dtype)
    out[_frame(lengths, before)] = x
    return out


def _frame(lengths: Ints, before: Ints) -> tuple[slice, ...]:
    inner = (slice(b, b + n) for b, n in zip(before, lengths, strict=True))
    return (slice(None), slice(None), *inner)


def _along(rank: int, dim: int, where: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * dim, where, *(slice(None),) * (rank - dim - 1))


def _tap(tap: int, dilation: int, stride: int, out: int) -> slice:
    """Return the elements that windows 0..out-1 see at one tap of one dim."""
    return slice(tap * dilation, tap * dilation + stride * (out - 1) + 1, stride)


# ---- maxima ------------------------------------------------------------------------------------


@wide("max_pool")
def max_pool(
    x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> tuple[Array, Array]:
    """x [N, C, *L] to maxima and their flat index in each plane.

    The first maximum wins, the first NaN before everything, padding never: a window of -inf
    points at its first element inside the input.
    """
    sizes = list(zip(x.shape[2:], kernel, stride, padding, dilation, strict=True))
    out = tuple(_pooled(*a, ceil) for a in sizes)
    reach = tuple(
        (o - 1) * s + d * (k - 1) + 1 for o, (_, k, s, _, d) in zip(out, sizes, strict=True)
    )
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    has_nan = x.dtype.kind == "f" and bool(x.size) and bool(np.isnan(x.max()))
    padded = _padded(x, padding, reach, lowest)
    taps = list(product(*map(range, kernel)))
    number: np.dtype[Any] = np.dtype(np.uint8 if len(taps) <= 256 else np.int32)
    first, offsets = _tap_tables(sizes, out, taps)
    views = [
        padded[(slice(None), slice(None), *map(_tap, tap, dilation, stride, out))] for tap in taps
    ]
    best = views[0].copy("K")
    winner = np.empty_like(best, number)
    winner[...] = first
    for t, seen in enumerate(views[1:], 1):
        better = seen > best
        if has_nan:
            better |= (seen != seen) & (best == best)
        np.maximum(best, seen, out=best)
        # Taps only grow, so the last one that was better is the maximum: no masked writes.
        np.maximum(winner, np.multiply(better, number.type(t), dtype=number), out=winner)
    starts = np.zeros((), np.int64)
    for n, s, p, o in zip(x.shape[2:], stride, padding, out, strict=True):
        starts = starts[..., None] * n + (np.arange(o) * s - p)
    index = np.take(offsets, winner) + starts
    if any(padding) and max(dilation) > 1:
        # A dilated window may see nothing but padding: its index must still lie in the plane.
        np.minimum(index, prod(x.shape[2:]) - 1, out=index)
    return best, index


def _tap_tables(
    sizes: list[tuple[int, int, int, int, int]], out: Ints, taps: list[Ints]
) -> tuple[Array, Array]:
    """Return per window the first tap inside the input, and per tap its offset in the plane."""
    first = np.zeros((), np.int64)
    offsets = np.zeros(len(taps), np.int64)
    steps = np.array(taps, np.int64).reshape(len(taps), len(sizes))
    for i, ((n, k, s, p, d), o) in enumerate(zip(sizes, out, strict=True)):
        missing = np.maximum(p - np.arange(o) * s, 0)
        first = first[..., None] * k + -(-missing // d)
        offsets = offsets * n + steps[:, i] * d
    return first, offsets


@wide("max_pool_backward")
def max_pool_backward(
    g: Array, indices: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, shape: Ints
) -> Array:
    """g [N, C, *out] added at the flat indices of each plane of `shape`; duplicates add up."""
    planes, size = prod(shape[:2]), prod(shape[2:])
    total = np.zeros(planes * size, g.dtype)
    if g.size:
        flat = indices.reshape(planes, -1) + (np.arange(planes) * size)[:, None]
        np.add.at(total, flat.ravel(), g.reshape(-1))
    return total.reshape(shape)


@kernel("pool_gather", quiet=True)
def pool_gather(x: Array, indices: Array) -> Array:
    """x [N, C, *L] at flat indices of each plane: the adjoint of max_pool_backward."""
    planes = x.reshape(*x.shape[:2], prod(x.shape[2:]))
    flat = indices.reshape(*indices.shape[:2], prod(indices.shape[2:]))
    return np.take_along_axis(planes, flat, axis=2).reshape(indices.shape)


@wide("adaptive_max_pool")
def adaptive_max_pool(x: Array, size: Ints) -> tuple[Array, Array]:
    """Maxima of the windows that tile x [N, C, *L] to `size`, first index on ties, NaN first.

    The last dim is reduced first: among equal maxima the lowest flat index is then that of the
    first row, whose own first column was kept.
    """
    lengths = x.shape[2:]
    index = np.broadcast_to(np.arange(prod(lengths)).reshape(lengths), x.shape)
    for dim in range(x.ndim - 1, 1, -1):
        values, places = [], []
        for start, stop in _tiles(x.shape[dim], size[dim - 2]):
            window = _along(x.ndim, dim, slice(start, stop))
            at = np.argmax(x[window], axis=dim, keepdims=True)
            values.append(np.take_along_axis(x[window], at, axis=dim))
            places.append(np.take_along_axis(index[window], at, axis=dim))
        if not values:
            shape = (*x.shape[:2], *size)
            return np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
        x, index = np.concatenate(values, dim), np.concatenate(places, dim)
    return x, index


# ---- means -------------------------------------------------------------------------------------


def _window_sums(x: Array, kernel: Ints, stride: Ints, out: Ints) -> Array:
    """Sum windows dim by dim: k additions per dim instead of their product."""
    for dim, (k, s, o) in enumerate(zip(kernel, stride, out, strict=True), 2):
        total = x[_along(x.ndim, dim, _tap(0, 1, s, o))]
        for tap in range(1, k):
            more = x[_along(x.ndim, dim, _tap(tap, 1, s, o))]
            total = np.add(total, more, out=total if tap > 1 else None)
        x = total
    return x


def _spread(g: Array, kernel: Ints, stride: Ints, extents: Ints) -> Array:
    """Adjoint of `_window_sums`."""
    for dim, (k, s, n) in enumerate(zip(kernel, stride, extents, strict=True), 2):
        wide_shape = (*g.shape[:dim], n, *g.shape[dim + 1 :])
        total = np.zeros(wide_shape, g.dtype)
        for tap in range(k):
            total[_along(g.ndim, dim, _tap(tap, 1, s, g.shape[dim]))] += g
        g = total
    return g


def _divisors(
    lengths: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, include_pad: bool,
    divisor: int | None,
) -> Any:  # fmt: skip
    """Return what each window divides by: PyTorch clips windows to the padded input."""
    if divisor is not None:
        return divisor
    counts: Array = np.ones((), np.int64)
    for n, k, s, p, o in zip(lengths, kernel, stride, padding, out, strict=True):
        start = np.arange(o) * s - p
        stop = np.minimum(start + k, n + p)
        if not include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        counts = counts[..., None] * np.maximum(stop - start, 1)
    return int(counts.flat[0]) if counts.size and (counts == counts.flat[0]).all() else counts


def _divide(total: Array, by: Any) -> Array:
    """Divide sums; integers truncate towards zero."""
    if total.dtype.kind == "f":
        mean: Array = np.divide(total, np.asarray(by, total.dtype))
        return mean
    by = np.asarray(by, np.int64)
    whole: Array = (total - np.fmod(total, by)) // by
    return whole


def _reach(kernel: Ints, stride: Ints, out: Ints) -> Ints:
    return tuple((o - 1) * s + k for k, s, o in zip(kernel, stride, out, strict=True))


@wide("avg_pool")
def avg_pool(
    x: Array, kernel: Ints, stride: Ints, padding: Ints, ceil: bool, count_include_pad: bool,
    divisor: int | None,
) -> Array:  # fmt: skip
    """x [N, C, *L] to means of windows."""
    lengths = x.shape[2:]
    out = tuple(
        _pooled(n, k, s, p, 1, ceil)
        for n, k, s, p in zip(lengths, kernel, stride, padding, strict=True)
    )
    # Sums of small integers need room: PyTorch accumulates them in int64.
    work = x.astype(np.int64) if x.dtype.kind in "iu" else x
    padded = _padded(work, padding, _reach(kernel, stride, out), 0)
    by = _divisors(lengths, kernel, stride, padding, out, count_include_pad, divisor)
    return _divide(_window_sums(padded, kernel, stride, out), by).astype(x.dtype, copy=False)


@wide("avg_pool_backward")
def avg_pool_backward(
    g: Array, kernel: Ints, stride: Ints, padding: Ints, ceil: bool, count_include_pad: bool,
    divisor: int | None, shape: Ints,
) -> Array:  # fmt: skip
    """Each g over its divisor, added to every element of its window."""
    lengths, out = shape[2:], g.shape[2:]
    g = _divide(g, _divisors(lengths, kernel, stride, padding, out, count_include_pad, divisor))
    extents = tuple(
        max(n + 2 * p, r)
        for n, p, r in zip(lengths, padding, _reach(kernel, stride, out), strict=True)
    )
    return _spread(g, kernel, stride, extents)[_frame(lengths, padding)]


def _tiles(n: int, out: int) -> list[tuple[int, int]]:
    """Return the windows of adaptive pooling: floor(i n / out) to ceil((i + 1) n / out)."""
    if out > 1 << 28:  # refused before a list of them fills the machine
        raise MemoryError(f"{out} windows")
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


@wide("adaptive_avg_pool")
def adaptive_avg_pool(x: Array, size: Ints) -> Array:
    """Means of the windows that tile x [N, C, *L] to `size`."""
    dtype = x.dtype
    if dtype.kind in "iu":
        x = x.astype(np.int64)
    counts: Array = np.ones((), np.int64)
    for dim, (n, o) in enumerate(zip(x.shape[2:], size, strict=True), 2):
        if not o:
            return np.zeros((*x.shape[:2], *size), dtype)
        if n % o == 0:
            x = x.reshape(*x.shape[:dim], o, n // o, *x.shape[dim + 1 :]).sum(dim + 1)
        else:
            windows = _tiles(n, o)
            x = np.stack([x[_along(x.ndim, dim, slice(*w))].sum(dim) for w in windows], dim)
        counts = counts[..., None] * [stop - start for start, stop in _tiles(n, o)]
    return _divide(x, counts).astype(dtype, copy=False)


@wide("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(g: Array, shape: Ints) -> Array:
    """Each g over the size of its window, added to every element of the window."""
    for dim, n in enumerate(shape[2:], 2):
        o = g.shape[dim]
        if o and n % o == 0:
            g = np.repeat(g / g.dtype.type(n // o), n // o, axis=dim)
            continue
        total = np.zeros((*g.shape[:dim], n, *g.shape[dim + 1 :]), g.dtype)
        for i, (start, stop) in enumerate(_tiles(n, o)):
            part = g[_along(g.ndim, dim, slice(i, i + 1))] / g.dtype.type(stop - start)
            total[_along(g.ndim, dim, slice(start, stop))] += part
        g = total
    return g
