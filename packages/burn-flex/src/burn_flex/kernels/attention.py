"""Scaled dot-product attention and its gradient."""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array, wide


def _heads(q: Array, x: Array, gqa: bool) -> Array:
    """Return keys or values with as many heads as q: grouped ones serve several query heads."""
    if not gqa or q.shape[-3] == x.shape[-3]:
        return x
    return np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def _weights(q: Array, k: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    """softmax(q k^T scale + mask); rows masked everywhere are 0 instead of NaN.

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
    if not scores.size:
        return scores
    top = scores.max(axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    scores /= total
    return scores


@wide("attention")
def attention(
    q: Array, k: Array, v: Array, mask: Array | None, causal: bool, gqa: bool, scale: float
) -> Array:
    """q [..., L, E], k [..., S, E], v [..., S, V] to [..., L, V]."""
    k, v = _heads(q, k, gqa), _heads(q, v, gqa)
    out: Array = np.matmul(_weights(q, k, mask, causal, scale), v)
    return out


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
    g: Array, q: Array, k: Array, v: Array, mask: Array | None, causal: bool, gqa: bool,
    scale: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """(dq, dk, dv, ds): ds = p * (dp - sum(dp * p)) is the gradient of a float mask too."""
    keys, values = _heads(q, k, gqa), _heads(q, v, gqa)
    p = _weights(q, keys, mask, causal, scale)
    dv = np.matmul(np.swapaxes(p, -1, -2), g)
    ds = np.matmul(g, np.swapaxes(values, -1, -2))
    ds -= (ds * p).sum(axis=-1, keepdims=True)
    ds *= p
    dq = np.matmul(ds, keys)
    dk = np.matmul(np.swapaxes(ds, -1, -2), q)
    dq *= scale
    dk *= scale
    return (
        _sum_to(dq, q.shape, False), _sum_to(dk, k.shape, gqa),
        _sum_to(dv, v.shape, gqa), ds,
    )  # fmt: skip
