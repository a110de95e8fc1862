"""Scaled dot-product attention and its gradient."""

from __future__ import annotations

from math import e, log2

import numpy as np

from burn_flex.kernels.halves import Array, wide


def _heads(q: Array, x: Array, gqa: bool) -> Array:
    """Return keys or values with as many heads as q: grouped ones serve several query heads."""
    if not gqa or q.shape[-3] == x.shape[-3]:
        return x
    return np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


# A sum of powers is kept as its log2, as the kernels of GPUs want it.
_LOG2E = log2(e)


def _scores(q: Array, k: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    """Q k^T scale + mask, -inf where a query does not see a key.

    A bool mask is True where a key takes part; causal keeps key j for query i when j <= i.
    """
    scores: Array = np.matmul(q, np.swapaxes(k, -1, -2))
    scores *= scale
    if mask is not None:
        if mask.dtype == np.bool_:
            scores = np.where(mask, scores, scores.dtype.type(-np.inf))
        else:
            scores = scores + mask.astype(scores.dtype, copy=False)
    if causal:
        rows, cols = scores.shape[-2:]
        np.copyto(scores, -np.inf, where=np.triu(np.ones((rows, cols), np.bool_), 1))
    return scores


def _weights(scores: Array) -> tuple[Array, Array]:
    """softmax(scores) over them, 0 in rows of -inf instead of NaN, and the sums of the rows."""
    if not scores.size:
        return scores, np.full(scores.shape[:-1], np.inf, scores.dtype)
    top = scores.max(axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    none = total == 0
    sums = top * scores.dtype.type(_LOG2E) + np.log2(total)
    sums[none] = np.inf
    total[none] = 1
    scores /= total
    return scores, sums[..., 0]


@wide("attention", keep=(1,))
def attention(
    q: Array, k: Array, v: Array, mask: Array | None, causal: bool, gqa: bool, scale: float
) -> tuple[Array, Array]:
    """q [..., L, E], k [..., S, E], v [..., S, V] to [..., L, V], and log2 of the rows' sums."""
    k, v = _heads(q, k, gqa), _heads(q, v, gqa)
    p, sums = _weights(_scores(q, k, mask, causal, scale))
    out = np.matmul(p, v)
    if sums.shape != out.shape[:-1]:  # the batch of v is larger
        sums = np.broadcast_to(sums, out.shape[:-1]).copy()
    return out, sums


def _sum_to(x: Array, shape: tuple[int, ...], gqa: bool) -> Array:
    """Sum a gradient to the shape of its input: over broadcast dims and shared heads."""
    if gqa and x.shape[-3] != shape[-3]:
        x = x.reshape(*x.shape[:-3], shape[-3], -1, *x.shape[-2:]).sum(axis=-3)
    extra = x.ndim - len(shape)
    if extra:
        x = x.sum(axis=tuple(range(extra)))
    dims = tuple(i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b)
    return np.add.reduce(x, axis=dims, keepdims=True) if dims else x


@wide("attention_backward")
def attention_backward(
    g: Array, q: Array, k: Array, v: Array, mask: Array | None, out: Array, sums: Array,
    causal: bool, gqa: bool, scale: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """(dq, dk, dv, ds): ds = p * (dp - sum(g * out)) is the gradient of a float mask too."""
    keys, values = _heads(q, k, gqa), _heads(q, v, gqa)
    p = _scores(q, keys, mask, causal, scale) - (sums / sums.dtype.type(_LOG2E))[..., None]
    np.exp(p, out=p)
    dv = np.matmul(np.swapaxes(p, -1, -2), g)
    ds = np.matmul(g, np.swapaxes(values, -1, -2))
    ds -= (g * out).sum(axis=-1, keepdims=True)
    ds *= p
    dq = np.matmul(ds, keys)
    dk = np.matmul(np.swapaxes(ds, -1, -2), q)
    dq *= scale
    dk *= scale
    return (
        _sum_to(dq, q.shape, False), _sum_to(dk, k.shape, gqa),
        _sum_to(dv, v.shape, gqa), ds,
    )  # fmt: skip
