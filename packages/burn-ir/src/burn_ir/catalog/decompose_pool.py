"""Pooling, unfold and fold written in index arithmetic, gathers and adds.

Every kind of window is one table per spatial dim: the positions [outputs, taps] that its windows
read. A tap outside the input reads the nearest element of its own window instead, which changes
no maximum and no tie; sums mask it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from burn_ir.catalog.decompose import Ints, Ops, Tensor, count_up, in_f32, placed, zeros
from burn_ir.rules.nn import pooled_size


def _table(ops: Ops, outputs: int, taps: int, stride: int, step: int, start: int) -> Tensor:
    """Return positions start + stride * output + step * tap, [outputs, taps]."""
    first = placed(ops, count_up(ops, outputs, start, stride), 0, 2)
    return ops.add(first, placed(ops, count_up(ops, taps, 0, step), 1, 2))


def _spread(ops: Ops, tables: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tables reshaped to broadcast to [*outputs, *taps]."""
    n = len(tables)
    out = []
    for d, table in enumerate(tables):
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = table.shape
        out.append(ops.reshape(table, tuple(shape)))
    return tuple(out)


def _windows(ops: Ops, x: Tensor, tables: Sequence[Tensor]) -> Tensor:
    """Return x [N, C, *L] at the tables: [N, C, *outputs, *taps]."""
    return ops.index(x, _spread(ops, tables), tuple(range(2, 2 + len(tables))))


def _from_windows(ops: Ops, g: Tensor, tables: Sequence[Tensor], shape: Ints) -> Tensor:
    """Return zeros of `shape` with windows [N, C, *outputs, *taps] added at the tables."""
    base = zeros(ops, g.dtype, shape)
    dims = tuple(range(2, 2 + len(tables)))
    return ops.index_put(base, g, _spread(ops, tables), dims, True)


def _maximum(ops: Ops, x: Tensor, tables: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the maximum of every window and its flat index in the plane."""
    n = len(tables)
    outer = (*x.shape[:2], *(t.shape[0] for t in tables))
    taps = prod(t.shape[1] for t in tables)
    found = ops.reshape(_windows(ops, x, tables), (*outer, taps))
    values, tap = ops.max_dim(found, 2 + n, True)
    flat, *rest = _spread(ops, tables)
    for extent, part in zip(x.shape[3:], rest, strict=True):
        flat = ops.add(ops.mul(flat, extent), part)
    where = ops.expand(ops.reshape(flat, (1, 1, *outer[2:], taps)), (*outer, taps))
    return ops.reshape(values, outer), ops.reshape(ops.gather(where, tap, 2 + n), outer)


def _sizes(
    x: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> tuple[int, ...]:
    groups = zip(x[2:], kernel, stride, padding, dilation, strict=True)
    return tuple(pooled_size("pool", *group, ceil) for group in groups)


def max_pool(
    ops: Ops, x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> tuple[Tensor, Tensor]:
    """Return maxima of windows; taps in the padding read the window's nearest real element."""
    tables = []
    sizes = _sizes(x.shape, kernel, stride, padding, dilation, ceil)
    for n, out, k, s, p, d in zip(
        x.shape[2:], sizes, kernel, stride, padding, dilation, strict=True
    ):
        at = _table(ops, out, k, s, d, -p)
        # Below 0 the first real tap is at -p + s * o modulo d; past the end step back by d.
        low = ops.where(ops.lt(at, 0), ops.remainder(at, d), at)
        over = ops.floor_divide(ops.add(ops.sub(low, n), d), d)
        tables.append(ops.sub(low, ops.mul(ops.maximum(over, 0), d)))
    return _maximum(ops, x, tables)


def _spans(ops: Ops, extent: int, size: int) -> tuple[Tensor, Tensor, int]:
    """Return first and past-the-end position of adaptive windows, and the longest length."""
    first = ops.floor_divide(ops.mul(count_up(ops, size), extent), size)
    last = ops.floor_divide(ops.add(ops.mul(count_up(ops, size, 1), extent), size - 1), size)
    longest = max(
        (-(-(o + 1) * extent // size) - o * extent // size for o in range(size)), default=0
    )
    return first, last, longest


def _adaptive(ops: Ops, extent: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return positions, the mask of real taps and the lengths of adaptive windows."""
    first, last, longest = _spans(ops, extent, max(size, 1))
    if size == 0:
        first, last = count_up(ops, 0), count_up(ops, 0)
    tap = placed(ops, count_up(ops, longest), 1, 2)
    at = ops.add(placed(ops, first, 0, 2), tap)
    end = placed(ops, last, 0, 2)
    return ops.minimum(at, ops.sub(end, 1)), ops.lt(at, end), ops.sub(last, first)


def adaptive_max_pool(ops: Ops, x: Tensor, size: Ints) -> tuple[Tensor, Tensor]:
    """Return maxima of windows that tile the input."""
    tables = [_adaptive(ops, n, s)[0] for n, s in zip(x.shape[2:], size, strict=True)]
    return _maximum(ops, x, tables)


def _divide(ops: Ops, total: Tensor, count: Any) -> Tensor:
    if not hasattr(count, "dtype"):
        count = ops.full(total.dtype, (), count)
    elif count.dtype is not total.dtype:
        count = ops.cast(count, total.dtype)
    return (ops.div if total.dtype.is_float else ops.div_trunc)(total, count)


def _product(ops: Ops, lengths: Sequence[Tensor]) -> Tensor:
    """Return the outer product of one vector per spatial dim, [*outputs]."""
    n = len(lengths)
    total = placed(ops, lengths[0], 0, n)
    for axis in range(1, n):
        total = ops.mul(total, placed(ops, lengths[axis], axis, n))
    return total


def _adaptive_parts(ops: Ops, extents: Ints, size: Ints) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return tables, the joint mask [*outputs, *taps] and counts [*outputs]."""
    parts = [_adaptive(ops, n, s) for n, s in zip(extents, size, strict=True)]
    masks = _spread(ops, [p[1] for p in parts])
    mask = masks[0]
    for other in masks[1:]:
        mask = ops.bitwise_and(mask, other)
    return [p[0] for p in parts], mask, _product(ops, [p[2] for p in parts])


@in_f32()
def adaptive_avg_pool(ops: Ops, x: Tensor, size: Ints) -> Tensor:
    """Return means of windows that tile the input."""
    n = len(size)
    tables, mask, count = _adaptive_parts(ops, x.shape[2:], size)
    found = ops.where(mask, _windows(ops, x, tables), 0)
    return _divide(ops, ops.sum(found, tuple(range(2 + n, 2 + 2 * n)), False, x.dtype), count)


@in_f32()
def adaptive_avg_pool_backward(ops: Ops, g: Tensor, shape: Ints) -> Tensor:
    """Return g / count added at every element of its window."""
    n = len(shape) - 2
    tables, mask, count = _adaptive_parts(ops, shape[2:], g.shape[2:])
    share = ops.reshape(_divide(ops, g, count), (*g.shape, *(1,) * n))
    return _from_windows(ops, ops.where(mask, share, 0), tables, shape)


def _average_count(
    ops: Ops, extents: Ints, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, pads: bool
) -> Tensor:
    """Return how many elements each window averages.

    The right end of a window is cut off at the padding, and with `pads` False at the input.
    """
    lengths = []
    for n, out, k, s, p in zip(extents, sizes, kernel, stride, padding, strict=True):
        first = count_up(ops, out, -p, s)
        last = ops.minimum(ops.add(first, k), n + p)
        if not pads:
            first, last = ops.maximum(first, 0), ops.minimum(last, n)
        lengths.append(ops.sub(last, first))
    return _product(ops, lengths)


def _padded_tables(
    ops: Ops, extents: Ints, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[list[Tensor], tuple[tuple[int, int], ...]]:
    """Return tables into the zero-padded input, and the padding they need."""
    tables, pads = [], [(0, 0), (0, 0)]
    for n, out, k, s, p, d in zip(extents, sizes, kernel, stride, padding, dilation, strict=True):
        tables.append(_table(ops, out, k, s, d, 0))
        pads.append((p, max(0, (out - 1) * s + d * (k - 1) + 1 - n - p)))
    return tables, tuple(pads)


def _uncrop(
    ops: Ops, g: Tensor, tables: Sequence[Tensor], pads: tuple[tuple[int, int], ...], shape: Ints
) -> Tensor:
    """Return windows added into a padded tensor of which the padding is cut off."""
    wide = tuple(n + a + b for n, (a, b) in zip(shape, pads, strict=True))
    total = _from_windows(ops, g, tables, wide)
    return ops.pad(total, "constant", tuple((-a, -b) for a, b in pads), 0)


@in_f32()
def avg_pool(
    ops: Ops,
    x: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """Return sums of windows of the zero-padded input over their counts."""
    n, ones = len(kernel), (1,) * len(kernel)
    sizes = _sizes(x.shape, kernel, stride, padding, ones, ceil)
    tables, pads = _padded_tables(ops, x.shape[2:], sizes, kernel, stride, padding, ones)
    found = _windows(ops, ops.pad(x, "constant", pads, 0), tables)
    total = ops.sum(found, tuple(range(2 + n, 2 + 2 * n)), False, x.dtype)
    count = divisor or _average_count(
        ops, x.shape[2:], sizes, kernel, stride, padding, count_include_pad
    )
    return _divide(ops, total, count)


@in_f32()
def avg_pool_backward(
    ops: Ops,
    g: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil: bool,
    count_include_pad: bool,
    divisor: int | None,
    shape: Ints,
) -> Tensor:
    """Return g / count added at every element of its window."""
    n, ones, sizes = len(kernel), (1,) * len(kernel), tuple(g.shape[2:])
    tables, pads = _padded_tables(ops, shape[2:], sizes, kernel, stride, padding, ones)
    count = divisor or _average_count(
        ops, shape[2:], sizes, kernel, stride, padding, count_include_pad
    )
    share = ops.reshape(_divide(ops, g, count), (*g.shape, *(1,) * n))
    return _uncrop(ops, ops.expand(share, (*g.shape, *kernel)), tables, pads, shape)


def _blocks(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    )


def unfold(
    ops: Ops, x: Tensor, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Tensor:
    """Return windows of the zero-padded input as columns [N, C * taps, windows]."""
    sizes = _blocks(x.shape[2:], kernel, dilation, padding, stride)
    tables, pads = _padded_tables(ops, x.shape[2:], sizes, kernel, stride, padding, dilation)
    found = _windows(ops, ops.pad(x, "constant", pads, 0), tables)
    columns = ops.permute(found, (0, 1, 4, 5, 2, 3))
    n, c = x.shape[:2]
    return ops.reshape(columns, (n, c * prod(kernel), prod(sizes)))


def fold(
    ops: Ops,
    x: Tensor,
    kernel: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
    size: Ints,
) -> Tensor:
    """Return columns added back at the places unfold took them from."""
    n, c = x.shape[0], x.shape[1] // prod(kernel)
    sizes = _blocks(size, kernel, dilation, padding, stride)
    tables, pads = _padded_tables(ops, size, sizes, kernel, stride, padding, dilation)
    windows = ops.permute(ops.reshape(x, (n, c, *kernel, *sizes)), (0, 1, 4, 5, 2, 3))
    return _uncrop(ops, windows, tables, pads, (n, c, *size))
