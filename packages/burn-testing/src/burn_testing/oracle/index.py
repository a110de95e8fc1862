"""References of gathering, scattering and what depends on data: one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle


def _lined(x: Array) -> Array:
    return x if x.ndim else x.reshape(1)


def _moved(at: tuple[int, ...], dim: int, to: int) -> tuple[int, ...]:
    return (*at[:dim], to, *at[dim + 1 :])


@oracle("gather")
def gather(x: Array, index: Array, dim: int) -> Array:
    """out[.., i, ..] = x[.., index[.., i, ..], ..]."""
    source, where = _lined(x), _lined(index)
    out = np.empty(where.shape, x.dtype)
    for at in np.ndindex(where.shape):
        out[at] = source[_moved(at, dim, int(where[at]))]
    return out.reshape(index.shape)


@oracle("scatter")
def scatter(x: Array, index: Array, src: Array, dim: int, mode: str) -> Array:
    """Sources combined in row-major order of the index, so that the last assignment wins."""
    out, where, source = _lined(x).copy(), _lined(index), _lined(src)
    combine: Any = {
        "assign": lambda a, b: b, "add": lambda a, b: a + b, "multiply": lambda a, b: a * b,
        "amin": np.minimum, "amax": np.maximum,
    }[mode]  # fmt: skip
    with np.errstate(all="ignore"):
        for at in np.ndindex(where.shape):
            to = _moved(at, dim, int(where[at]))
            out[to] = combine(out[to], source[at])
    return out.reshape(x.shape)


def _placed(x: Array, indices: list[Array], dims: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * x.ndim
    for d, i in zip(dims, indices, strict=True):
        key[d] = i
    return tuple(key)


@oracle("index")
def index_(x: Array, indices: list[Array], dims: tuple[int, ...]) -> Array:
    """numpy's own indexing."""
    return np.asarray(x[_placed(x, indices, dims)])


@oracle("index_put")
def index_put(
    x: Array, value: Array, indices: list[Array], dims: tuple[int, ...], accumulate: bool
) -> Array:
    """Through the flat positions that numpy's indexing reads, one after the other."""
    places = np.arange(x.size).reshape(x.shape)[_placed(x, indices, dims)]
    values = np.broadcast_to(value, places.shape)
    out = x.copy().reshape(-1)
    with np.errstate(all="ignore"):
        for place, one in zip(places.reshape(-1).tolist(), values.reshape(-1), strict=True):
            out[place] = out[place] + one if accumulate else one
    return out.reshape(x.shape)


@oracle("nonzero")
def nonzero(x: Array) -> Array:
    """Coordinates in row-major order."""
    rows = [at for at in np.ndindex(x.shape) if x[at] != 0]
    return np.array(rows, np.int64).reshape(len(rows), x.ndim)


@oracle("unique")
def unique(x: Array, return_inverse: bool, return_counts: bool) -> list[Array]:
    """Sorted distinct values."""
    flat = x.reshape(-1).tolist()
    values = sorted(set(flat))
    out = [np.array(values, x.dtype)]
    if return_inverse:
        out.append(np.array([values.index(e) for e in flat], np.int64).reshape(x.shape))
    if return_counts:
        out.append(np.array([flat.count(e) for e in values], np.int64))
    return out
