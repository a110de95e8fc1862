"""Convolution in 1 to 3 dims, its two gradients and its transpose, and unfold and fold.

Everything is GEMM on windows. Results are laid out channels-last in memory and returned as
[N, C, *L] views: bias, activation and pooling keep that layout, so the next convolution gathers
windows in runs of K * C elements. Batches are cut so that the gathered windows stay in the cache.
Inputs of few channels are gathered planes first instead: runs along the last spatial dim.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from burn_flex.kernels.halves import Array, wide

Ints = tuple[int, ...]

# Elements of gathered windows per GEMM: a MiB of f32, the best of 2^16 to 2^20 on 2 MiB of L2.
_CHUNK = 1 << 18
# Channels from which runs of channels beat runs along the last dim (measured: 3 no, 16 yes).
_MANY_CHANNELS = 8


def _channels_first(x: Array) -> Array:
    """Return contiguous [N, *L, C] seen as [N, C, *L]."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def _channels_last(x: Array, padding: Ints) -> Array:
    """Return x [N, C, *L] as contiguous [N, *padded L, C]."""
    moved = x.transpose(0, *range(2, x.ndim), 1)
    lengths = x.shape[2:]
    if not any(padding):
        return np.ascontiguousarray(moved)
    full = tuple(n + 2 * p for n, p in zip(lengths, padding, strict=True))
    out = np.zeros((x.shape[0], *full, x.shape[1]), x.dtype)
    out[_inner(lengths, padding)] = moved
    return out


def _planes(x: Array, padding: Ints) -> Array:
    """Return x [N, C, *L] padded with zeros."""
    if not any(padding):
        return x
    lengths = x.shape[2:]
    out = np.zeros(
        (*x.shape[:2], *(n + 2 * p for n, p in zip(lengths, padding, strict=True))), x.dtype
    )
    out[(slice(None), *_inner(lengths, padding))] = x
    return out


def _inner(lengths: Ints, padding: Ints) -> tuple[slice, ...]:
    return (slice(None), *(slice(p, p + n) for n, p in zip(lengths, padding, strict=True)))


def _seen(offsets: Ints, dilation: Ints, stride: Ints, out: Ints) -> tuple[slice, ...]:
    """Return the padded elements that all windows see at one tap."""
    return tuple(
        slice(k * d, k * d + s * (o - 1) + 1, s)
        for k, d, s, o in zip(offsets, dilation, stride, out, strict=True)
    )


def _out_lengths(x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    )


class _Windows:
    """The windows of a padded input, gathered batch by batch as GEMM operands.

    Columns run over (*K, C) for many channels and over (C, *K) for few; `weight` and `unweight`
    translate to and from that order, so that callers need not know.
    """

    def __init__(
        self, x: Array, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints,
        groups: int,
    ) -> None:  # fmt: skip
        self.kernel, self.groups = kernel, groups
        self.channels = x.shape[1] // groups
        self.length = prod(out)
        self.runs = self.channels >= _MANY_CHANNELS
        self.size = prod(kernel) * self.channels
        n, d = x.shape[0], len(kernel)
        if self.runs:
            x = _channels_last(x, padding)
            x = x.reshape(*x.shape[:-1], groups, self.channels)
            batch, space, group, channel = x.strides[0], x.strides[1 : 1 + d], *x.strides[-2:]
        else:
            x = _planes(x, padding)
            x = x.reshape(n, groups, self.channels, *x.shape[2:])
            batch, group, channel = x.strides[:3]
            space = x.strides[3:]
        steps = [s * b for s, b in zip(stride, space, strict=True)]
        taps = [s * b for s, b in zip(dilation, space, strict=True)]
        if self.runs:
            shape = (groups, n, *out, *kernel, self.channels)
            strides = (group, batch, *steps, *taps, channel)
        else:
            shape = (groups, self.channels, *kernel, n, *out)
            strides = (group, channel, *taps, batch, *steps)
        self.view = as_strided(x, shape, strides)
        self.batch = n
        self.rows = max(1, _CHUNK // max(1, self.length * self.size * groups))

    def chunks(self) -> Iterator[tuple[slice, Array]]:
        """Yield (batch slice, columns [groups, rows, K * C]); columns may be a transposed view."""
        for start in range(0, self.batch, self.rows):
            here = slice(start, min(start + self.rows, self.batch))
            rows = (here.stop - start) * self.length
            if self.runs:
                yield here, self.view[:, here].reshape(self.groups, rows, self.size)
            else:
                view = self.view[(slice(None),) * (2 + len(self.kernel)) + (here,)]
                yield here, view.reshape(self.groups, self.size, rows).transpose(0, 2, 1)

    def weight(self, weight: Array) -> Array:
        """Return weight [O, C, *K] as [groups, K * C, O / groups]."""
        outs = weight.shape[0] // self.groups
        w = weight.reshape(self.groups, outs, self.channels, prod(self.kernel))
        w = w.transpose(0, 3, 2, 1) if self.runs else w.transpose(0, 2, 3, 1)
        return w.reshape(self.groups, self.size, outs)

    def unweight(self, w: Array) -> Array:
        """Return [groups, K * C, O / groups] as weight [O, C, *K]."""
        taps, outs = prod(self.kernel), w.shape[-1]
        if self.runs:
            w = w.reshape(self.groups, taps, self.channels, outs).transpose(0, 3, 2, 1)
        else:
            w = w.reshape(self.groups, self.channels, taps, outs).transpose(0, 3, 1, 2)
        return np.ascontiguousarray(w).reshape(self.groups * outs, self.channels, *self.kernel)


@wide("conv")
def conv(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> Array:  # fmt: skip
    """x [N, C, *L], weight [O, C / groups, *K] to [N, O, *out], channels-last in memory."""
    kernel = weight.shape[2:]
    out = _out_lengths(x, kernel, stride, padding, dilation)
    windows = _Windows(x, kernel, out, stride, padding, dilation, groups)
    w = windows.weight(weight)
    outs = weight.shape[0]
    y = np.empty((x.shape[0], windows.length, outs), x.dtype)
    # One long run per sample: adding [O] to rows of O elements would take a loop per pixel.
    repeated = None if bias is None or not y.size else np.tile(bias, windows.length)
    for here, columns in windows.chunks():
        rows = y[here].reshape(columns.shape[1], outs)
        if groups == 1:
            np.matmul(columns[0], w[0], out=rows)
        else:
            grouped = rows.reshape(columns.shape[1], groups, outs // groups)
            grouped[...] = np.matmul(columns, w).swapaxes(0, 1)
        if repeated is not None:
            samples = y[here].reshape(-1, repeated.size)
            samples += repeated
    return _channels_first(y.reshape(x.shape[0], *out, outs))


@wide("conv_input_grad")
def conv_input_grad(
    g: Array, weight: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Ints
) -> Array:  # fmt: skip
    """g [N, O, *out], weight [O, C / groups, *K] to [N, C, *L]: one GEMM and one add per tap.

    Elements that no window reached (what stride left over) stay 0.
    """
    kernel, out = weight.shape[2:], g.shape[2:]
    n, outs, channels = g.shape[0], g.shape[1], shape[1]
    full = tuple(
        max(size + 2 * p, (o - 1) * s + d * (k - 1) + 1)
        for size, p, o, s, d, k in zip(
            shape[2:], padding, out, stride, dilation, kernel, strict=True
        )
    )
    dx = np.zeros((n, *full, channels), g.dtype)
    if not g.size:
        return _channels_first(dx[_inner(shape[2:], padding)])
    length = prod(out)
    rows = _channels_last(g, (0,) * len(kernel)).reshape(n, length, outs)
    w = weight.reshape(groups, outs // groups, channels // groups, prod(kernel))
    w = np.ascontiguousarray(w.transpose(3, 0, 1, 2))  # [taps, groups, O / groups, C / groups]
    step = max(1, _CHUNK // max(1, length * max(channels, outs)))
    depthwise = groups == channels == outs  # one product per element: nothing for GEMM to do
    for start in range(0, n, step):
        part: Array = rows[start : start + step].reshape(-1, outs)
        if not depthwise and groups > 1:
            part = part.reshape(len(part), groups, outs // groups).swapaxes(0, 1)
        target = dx[start : start + step]
        for tap, offsets in enumerate(product(*map(range, kernel))):
            where = _seen(offsets, dilation, stride, out)
            if depthwise:
                add = part * w[tap].reshape(channels)
            elif groups == 1:
                add = np.matmul(part, w[tap, 0])
            else:
                add = np.matmul(part, w[tap]).swapaxes(0, 1)
            spot = target[(slice(None), *where)]
            spot += add.reshape(spot.shape)
    return _channels_first(dx[_inner(shape[2:], padding)])


@wide("conv_weight_grad")
def conv_weight_grad(
    g: Array, x: Array, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Ints
) -> Array:  # fmt: skip
    """g [N, O, *out] and x [N, C, *L] to [O, C / groups, *K]; g says how many windows there are."""
    out, outs = g.shape[2:], g.shape[1]
    windows = _Windows(x, shape[2:], out, stride, padding, dilation, groups)
    rows = _channels_last(g, (0,) * len(out)).reshape(g.shape[0], windows.length, outs)
    total = np.zeros((groups, windows.size, outs // groups), g.dtype)
    for here, columns in windows.chunks():
        part: Array = rows[here].reshape(columns.shape[1], outs)
        if groups == 1:
            total[0] += np.matmul(columns[0].T, part)
        else:
            part = part.reshape(len(part), groups, outs // groups).swapaxes(0, 1)
            total += np.matmul(columns.swapaxes(1, 2), part)
    return windows.unweight(total)


@wide("conv_transpose")
def conv_transpose(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, output_padding: Ints,
    dilation: Ints, groups: int,
) -> Array:  # fmt: skip
    """x [N, C, *L], weight [C, O / groups, *K]: the input gradient of the conv with that weight."""
    sizes = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(
            x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
        )
    )
    outs = weight.shape[1] * groups
    y = conv_input_grad(x, weight, stride, padding, dilation, groups, (x.shape[0], outs, *sizes))
    if bias is not None:
        y += bias.reshape(-1, *(1,) * len(sizes))
    return y


@wide("unfold")
def unfold(x: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    """x [N, C, H, W] to [N, C * prod(K), windows]."""
    out = _out_lengths(x, kernel, stride, padding, dilation)
    x = _planes(x, padding)
    batch, channel, *space = x.strides
    steps = [s * b for s, b in zip(stride, space, strict=True)]
    taps = [d * b for d, b in zip(dilation, space, strict=True)]
    view = as_strided(x, (*x.shape[:2], *kernel, *out), (batch, channel, *taps, *steps))
    # The copy is needed where reshape could return windows that overlap in memory.
    return np.ascontiguousarray(view.reshape(x.shape[0], x.shape[1] * prod(kernel), prod(out)))


@wide("fold")
def fold(x: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, size: Ints) -> Array:
    """Columns [N, C * prod(K), windows] to [N, C, *size]: the adjoint of unfold."""
    out = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    n, channels = x.shape[0], x.shape[1] // prod(kernel)
    columns = x.reshape(n, channels, prod(kernel), *out)
    y = np.zeros((n, channels, *(m + 2 * p for m, p in zip(size, padding, strict=True))), x.dtype)
    for tap, offsets in enumerate(product(*map(range, kernel))):
        where = _seen(offsets, dilation, stride, out)
        y[(slice(None), slice(None), *where)] += columns[:, :, tap]
    return np.ascontiguousarray(y[(slice(None), *_inner(size, padding))])
