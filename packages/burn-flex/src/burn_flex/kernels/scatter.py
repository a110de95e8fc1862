"""Writing at indices: scatter, index_add, index_put and the adjoint of a table.

Duplicates: every addition counts, and of several assignments the last source position wins. Both
hold because positions are made flat and row-major first: numpy reads one flat index in order,
while it may walk an index of several dims in any order it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from burn_flex.kernels.index import check_wrapped, checked, flat_index, index_key
from burn_flex.kernels.precision import F32, I64, Array, is_half
from burn_flex.table import kernel
from burn_std import ArgumentError

_COMBINE = {
    "add": np.add, "multiply": np.multiply, "amin": np.minimum, "amax": np.maximum,
}  # fmt: skip


@kernel("scatter")
def scatter(x: Array, index: Array, src: Array, dim: int, mode: str) -> Array:
    """x with src combined at index along dim."""
    shape = x.shape
    if not x.ndim:
        x, index, src = x.reshape(1), index.reshape(-1), src.reshape(-1)
    elif index.ndim == 0:
        index, src = index.reshape(1), src.reshape(-1)
    if mode != "assign" and mode not in _COMBINE:
        raise ArgumentError("scatter", "mode is assign, add, multiply, amin or amax", got=mode)
    if not index.size:
        return x.reshape(shape)
    flat = flat_index(x.shape, checked("scatter", index, dim, x.shape[dim]), dim).reshape(-1)
    src = src[tuple(map(slice, index.shape))].reshape(-1)
    if mode == "assign":
        out = x.copy()
        out.reshape(-1)[flat] = src
        return out.reshape(shape)
    return combined(x, flat, src, _COMBINE[mode]).reshape(shape)


def combined(x: Array, flat: Array, src: Array, ufunc: np.ufunc) -> Array:
    """Return x with src combined at flat positions; halves combine in f32 and round once."""
    if not is_half(x.dtype):
        out = x.copy()
        ufunc.at(out.reshape(-1), flat, src)
        return out
    out = x.astype(F32, order="C")
    ufunc.at(out.reshape(-1), flat, src.astype(F32))
    return out.astype(x.dtype)


# Below this many elements the flat path is quicker than sorting rows.
_FEW = 4096
# A row that occurs this often is summed on its own.
_OFTEN = 32


def add_rows(out: Array, rows: Array, src: Array) -> None:
    """Add src [n, m] to out [k, m] at rows [n]; all duplicates count.

    `ufunc.at` touches single elements. Here the first occurrences of all rows are added in one
    step, then the second ones, and so on; what occurs often is summed row by row instead.
    """
    n, m = src.shape
    if not n or not m:
        return
    if m == 1 or n * m <= _FEW:
        flat = (rows.reshape(-1, 1) * m + np.arange(m)).reshape(-1)
        np.add.at(out.reshape(-1), flat, src.reshape(-1))
        return
    order = rows.argsort(kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(starts, append=n)
    often = counts > _OFTEN
    for start, count in zip(starts[often].tolist(), counts[often].tolist(), strict=True):
        out[ordered[start]] += np.add.reduce(src[order[start : start + count]], 0, out.dtype)
    starts, counts = starts[~often], counts[~often]
    for turn in range(int(counts.max(initial=0))):
        at = starts[counts > turn] + turn
        out[ordered[at]] += src[order[at]]


@kernel("index_add")
def index_add(x: Array, index: Array, src: Array, dim: int, alpha: float) -> Array:
    """x with alpha * slices of src added along a dim."""
    shape, dtype = x.shape, x.dtype
    x, dim = (x, dim) if x.ndim else (x.reshape(1), 0)
    rows = checked("index_add", index, dim, x.shape[dim]).reshape(-1)
    src = src.reshape(*x.shape[:dim], rows.size, *x.shape[dim + 1 :])
    calm = F32 if is_half(dtype) else dtype
    if alpha != 1:
        # Through an array, an integer wraps to the dtype: alpha -1 subtracts from u8.
        scale = np.asarray(alpha).astype(calm)
        src = np.multiply(src.astype(calm, copy=False), scale)
    # Which of the other dims stands first is no matter, as long as x and src agree.
    out = x.swapaxes(0, dim).astype(calm, order="C")
    width = prod(n for d, n in enumerate(x.shape) if d != dim)
    moved = src.swapaxes(0, dim).reshape(rows.size, width).astype(calm, copy=False)
    add_rows(out.reshape(x.shape[dim], width), rows, moved)
    return out.astype(dtype, copy=False).swapaxes(0, dim).reshape(shape)


@kernel("embedding_backward")
def embedding_backward(g: Array, index: Array, padding_idx: int | None, rows: int) -> Array:
    """Sums of the rows of g per index, [rows, features]; the padding row stays 0."""
    at = checked("embedding_backward", index, 0, rows).reshape(-1)
    features = g.shape[-1]
    calm = F32 if is_half(g.dtype) else g.dtype
    src = g.reshape(at.size, features).astype(calm, copy=False)
    if padding_idx is not None:
        kept = at != padding_idx
        at, src = at[kept], src[kept]
    out = np.zeros((rows, features), calm)
    add_rows(out, at, src)
    return out.astype(g.dtype, copy=False)


@kernel("index_put")
def index_put(
    x: Array, value: Array, indices: Sequence[Array], dims: tuple[int, ...], accumulate: bool
) -> Array:
    """x with value assigned or added at integer arrays on dims."""
    if not accumulate and all(i.ndim == 1 for i in indices):
        out = x.copy()
        try:  # an index of one dim is read in order, unless it runs backwards in memory
            out[index_key([np.ascontiguousarray(i) for i in indices], dims)] = value
        except IndexError:
            check_wrapped("index_put", x, indices, dims)
            raise
        return out
    check_wrapped("index_put", x, indices, dims)
    window = np.broadcast_shapes(*(i.shape for i in indices))
    places = np.zeros(window, I64)
    for d, i in zip(dims, indices, strict=True):
        i = i.astype(I64)
        places *= x.shape[d]
        places += np.where(i < 0, i + x.shape[d], i)
    rest = [d for d in range(x.ndim) if d not in dims]
    adjacent = all(b == a + 1 for a, b in pairwise(dims))
    at = dims[0] if adjacent and dims else 0
    kept = [x.shape[d] for d in rest]
    value = np.broadcast_to(value, (*kept[:at], *window, *kept[at:]))
    # Window first, then what is kept: [positions, rest].
    front = tuple(range(at, at + len(window)))
    value = value.transpose(front + tuple(d for d in range(value.ndim) if d not in front))
    calm = F32 if accumulate and is_half(x.dtype) else x.dtype
    axes = (*dims, *rest)
    out = x.transpose(axes).astype(calm, order="C")
    table = out.reshape(prod(x.shape[d] for d in dims), prod(kept))
    rows = places.reshape(-1)
    source = value.reshape(rows.size, prod(kept)).astype(calm, copy=False)
    if accumulate:
        add_rows(table, rows, source)
    else:
        table[rows] = source
    back = sorted(range(x.ndim), key=axes.__getitem__)
    return out.astype(x.dtype, copy=False).transpose(back)
