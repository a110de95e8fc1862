"""Scaled dot-product attention."""

from __future__ import annotations

from math import sqrt

from burn_std import ArgumentError
from burn_std.dtypes import bool_
from burn_tensor.functional.dropout import dropout
from burn_tensor.functional.values import meeting
from burn_tensor.tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(query key^T scale + mask) value.

    A row masked everywhere is 0, with gradient 0. `attn_mask` and `is_causal` may be combined.
    There is no training flag: pass `dropout_p=0.0` outside training.

    Args:
        query: what asks.
        key: what is compared with.
        value: what is averaged.
        attn_mask: bool, True where attention is allowed; or float, added to the scores.
        dropout_p: probability with which a weight is dropped.
        is_causal: position i attends to positions j <= i only.
        scale: factor of the scores; None is 1 / sqrt(E).
        enable_gqa: several heads of the query share one of key and value.

    Shapes:
        query: [*, H, L, E]
        key: [*, H_kv, S, E], H_kv = H, or a divisor of it with enable_gqa
        value: [*, H_kv, S, V]
        attn_mask: broadcasts to [*, H, L, S]
        returns: [*, H, L, V]

    DTypes: floats; the three promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: shapes do not fit.
        DTypeError: the mask is neither bool nor float.
        ArgumentError: dropout_p is outside [0, 1].

    Gradient: defined for query, key, value and a float mask.

    Example:
        >>> q = burn.ones(1, 2, 4)
        >>> burn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
        (1, 2, 4)

    Source: Vaswani et al., Attention Is All You Need, 2017, section 3.2.1
    """
    if scale is None:
        features = query.shape[-1] if query.shape else 0
        scale = 1.0 / sqrt(features) if features else 1.0
    if dropout_p == 0.0:
        b = query.b
        return b.attention(query, key, value, attn_mask, is_causal, enable_gqa, scale)[0]
    if not 0.0 <= dropout_p <= 1.0:
        raise ArgumentError(
            "scaled_dot_product_attention", "dropout_p is a probability", got=dropout_p
        )
    return _with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _with_dropout(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, causal: bool,
    scale: float, gqa: bool,
) -> Tensor:  # fmt: skip
    """Return attention with weights dropped, written out: softmax, dropout and products."""
    b = meeting("scaled_dot_product_attention", query, key, value, mask)
    if gqa:
        key, value = _shared_heads(key, query), _shared_heads(value, query)
    rank = len(key.shape)
    turned = b.permute(key, (*range(rank - 2), rank - 1, rank - 2))
    scores = b.mul(b.matmul(query, turned), scale)
    rows, columns = scores.shape[-2:]
    allowed = b.tril(b.full(bool_, (rows, columns), True), 0) if causal else None
    if mask is not None and mask.dtype.is_bool:
        allowed = mask if allowed is None else b.logical_and(mask, allowed)
    elif mask is not None:
        scores = b.add(scores, mask)
    if allowed is not None:
        scores = b.where(allowed, scores, float("-inf"))
    weights = b.softmax(scores, len(scores.shape) - 1, None)
    # softmax of a row of -inf is NaN; such a row attends to nothing.
    dead = b.eq(b.amax(scores, (len(scores.shape) - 1,), True), float("-inf"))
    weights = dropout(b.where(dead, 0.0, weights), p, True)
    return b.matmul(weights, value)


def _shared_heads(x: Tensor, query: Tensor) -> Tensor:
    """Return x [*, H_kv, S, E] with every head repeated for its group of query heads."""
    *batch, heads, length, features = x.shape
    groups = query.shape[-3] // heads
    b = x.b
    wide = b.reshape(x, (*batch, heads, 1, length, features))
    wide = b.expand(wide, (*batch, heads, groups, length, features))
    return b.reshape(wide, (*batch, heads * groups, length, features))
