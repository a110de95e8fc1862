"""Multi-head attention over the fused attention operation, and its masks."""

from __future__ import annotations

import math
from typing import Any

from burn_core import Module, Parameter, init, is_training
from burn_dispatch import Device
from burn_nn.cache import KVCache
from burn_nn.linear import Linear
from burn_std import ArgumentError, DType, ShapeError
from burn_std.dtypes import bool_
from burn_tensor import Tensor, cat, full, functional as F, tensor, where, zeros


class MultiheadAttention(Module):
    """softmax(q k^T / sqrt(E / H) + mask) v for H heads beside each other, between projections.

    With need_weights=False the fused attention operation computes it. Masks are PyTorch's: bool,
    True = not allowed; or float, added to the scores. A row masked everywhere gives 0.

    Args:
        embed_dim: E, size of queries and of the output.
        num_heads: H; E divides by it.
        dropout: probability with which a weight is dropped in training.
        bias: add biases to all projections.
        add_bias_kv: add one learned key and value.
        add_zero_attn: add one key and value of zeros.
        kdim: size of keys; E if None.
        vdim: size of values; E if None.
        batch_first: tensors are [N, L, *] instead of [L, N, *].
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        num_kv_heads: heads of keys and values, a divisor of H (grouped heads); H if None.

    Shapes:
        query: [L, N, E]; key: [S, N, kdim]; value: [S, N, vdim]; or all without N
        returns: output [L, N, E]; weights [N, L, S], or [N, H, L, S] if not averaged, or None

    Raises:
        ArgumentError: sizes do not divide.
        ShapeError: inputs or masks do not fit.

    Example:
        >>> attention = burn.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = burn.zeros(1, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        ((1, 5, 8), (1, 5, 5))

    Source: Vaswani et al. 2017; Ainslie et al. 2023 for grouped heads
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Device | None = None,
        dtype: DType | None = None, num_kv_heads: int | None = None,
    ) -> None:  # fmt: skip
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(
                "MultiheadAttention", "embed_dim divides by num_heads",
                got=f"{embed_dim}, {num_heads}",
            )  # fmt: skip
        heads = num_heads if num_kv_heads is None else num_kv_heads
        if heads < 1 or num_heads % heads:
            raise ArgumentError(
                "MultiheadAttention", "num_heads divides by num_kv_heads",
                got=f"{num_heads}, {heads}",
            )  # fmt: skip
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        wide = heads * self.head_dim

        def made(*shape: int) -> Parameter:
            return Parameter(init.fresh(shape, dtype, device))

        joined = self.kdim == embed_dim and self.vdim == embed_dim
        self.in_proj_weight = made(embed_dim + 2 * wide, embed_dim) if joined else None
        self.q_proj_weight = None if joined else made(embed_dim, embed_dim)
        self.k_proj_weight = None if joined else made(wide, self.kdim)
        self.v_proj_weight = None if joined else made(wide, self.vdim)
        self.in_proj_bias = made(embed_dim + 2 * wide) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.bias_k = made(1, 1, wide) if add_bias_kv else None
        self.bias_v = made(1, 1, wide) if add_bias_kv else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill projections by Glorot's rule, the output's bias with 0."""
        for w in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if w is not None:
                init.xavier_uniform_(w)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for b in (self.bias_k, self.bias_v):
            if b is not None:
                init.xavier_normal_(b)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False, cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Return (output, weights or None).

        Args:
            query: what asks.
            key: what is compared with.
            value: what is averaged.
            key_padding_mask: [N, S], keys that do not count.
            need_weights: return the weights; the fused operation does without.
            attn_mask: [L, S], or [N * H, L, S].
            average_attn_weights: return the mean over the heads.
            is_causal: position i attends to positions up to i only; joins attn_mask.
            cache: the past of a self-attention in generation; new positions are added to it, and
                attention is causal.
        """
        single = len(query.shape) == 2
        q = self._batch_first(query, single)
        k = q if key is query else self._batch_first(key, single)
        v = k if value is key else self._batch_first(value, single)
        q, k, v = self._project(q, k, v)
        if cache is not None:
            k, v, past = cache.update(k, v, key_padding_mask)
            mask = _both(past, _allowed(self._mask(attn_mask, q)))
            is_causal = False
        else:
            padding = None
            if key_padding_mask is not None:
                p = key_padding_mask.unsqueeze(0) if single else key_padding_mask
                padding = _allowed(p[:, None, None, :])
            mask = _both(_allowed(self._mask(attn_mask, q)), padding)
            if is_causal and (self.bias_k is not None or self.add_zero_attn):
                # The added key and value stand in nobody's future.
                mask, is_causal = _both(mask, _lower(q.shape[2], k.shape[2], q)), False
            k, v, mask = self._extended(k, v, mask)
        out, weights = self._attend(q, k, v, mask, is_causal, need_weights)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        if weights is not None:
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights.squeeze(0) if single else weights
        if single:
            return out.squeeze(0), weights
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def project_memory(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of a memory, [N, heads, S, head_dim], to attend to many times.

        Args:
            key: the memory.
            value: the memory.
        """
        k, v = self._batch_first(key, False), self._batch_first(value, False)
        weights, biases = self._parts()
        return (
            self._heads(F.linear(k, weights[1], biases[1]), self.num_kv_heads),
            self._heads(F.linear(v, weights[2], biases[2]), self.num_kv_heads),
        )

    def attend(
        self, query: Tensor, memory: tuple[Tensor, Tensor],
        key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the output for keys and values that `project_memory` made.

        Args:
            query: what asks.
            memory: keys and values.
            key_padding_mask: [N, S], keys that do not count.
            attn_mask: [L, S], or [N * H, L, S].
        """
        weights, biases = self._parts()
        q = F.linear(self._batch_first(query, False), weights[0], biases[0])
        q = self._heads(q, self.num_heads)
        padding = None
        if key_padding_mask is not None:
            padding = _allowed(key_padding_mask[:, None, None, :])
        mask = _both(_allowed(self._mask(attn_mask, q)), padding)
        out, _ = self._attend(q, *memory, mask, False, False)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        result: Tensor = out if self.batch_first else out.transpose(0, 1)
        return result

    # ---- steps --------------------------------------------------------------------------------

    def _batch_first(self, x: Tensor, single: bool) -> Tensor:
        if len(x.shape) != (2 if single else 3):
            raise ShapeError(
                "MultiheadAttention", "query, key and value have three dims, or all two",
                got=x.shape,
            )  # fmt: skip
        if single:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _parts(self) -> tuple[list[Any], list[Any]]:
        e, wide = self.embed_dim, self.num_kv_heads * self.head_dim
        ends = [(0, e), (e, e + wide), (e + wide, e + 2 * wide)]
        w, b = self.in_proj_weight, self.in_proj_bias
        biases: list[Any] = [None] * 3 if b is None else [b[i:j] for i, j in ends]
        if w is not None:
            return [w[i:j] for i, j in ends], biases
        return [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight], biases

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, self.head_dim)).transpose(1, 2)

    def _project(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        w, b = self.in_proj_weight, self.in_proj_bias
        kv = self.num_kv_heads
        if w is not None and k is q and v is k:
            # Self-attention: one product for all three.
            wide = kv * self.head_dim
            parts = F.linear(q, w, b).split([self.embed_dim, wide, wide], -1)
        else:
            weights, biases = self._parts()
            inputs = zip((q, k, v), weights, biases, strict=True)
            parts = tuple(F.linear(x, w_, b_) for x, w_, b_ in inputs)
        return (
            self._heads(parts[0], self.num_heads), self._heads(parts[1], kv),
            self._heads(parts[2], kv),
        )  # fmt: skip

    def _mask(self, mask: Tensor | None, q: Tensor) -> Tensor | None:
        if mask is None or len(mask.shape) == 2:
            return mask
        batch = q.shape[0] * self.num_heads
        if len(mask.shape) != 3 or mask.shape[0] not in (1, batch):
            raise ShapeError(
                "MultiheadAttention", f"attn_mask is [L, S] or [{batch}, L, S]", got=mask.shape
            )
        if mask.shape[0] == 1:
            return mask
        return mask.unflatten(0, (q.shape[0], self.num_heads))

    def _extended(
        self, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add the learned and the zero key and value, to which everyone may attend."""
        n, more = k.shape[0], 0
        if self.bias_k is not None and self.bias_v is not None:
            extra_k = self._heads(self.bias_k, self.num_kv_heads)
            extra_v = self._heads(self.bias_v, self.num_kv_heads)
            k = cat([k, extra_k.expand(n, -1, -1, -1)], 2)
            v = cat([v, extra_v.expand(n, -1, -1, -1)], 2)
            more += 1
        if self.add_zero_attn:
            zero = k.new_zeros((n, self.num_kv_heads, 1, self.head_dim))
            k, v = cat([k, zero], 2), cat([v, zero], 2)
            more += 1
        if mask is not None and more:
            mask = F.pad(mask, [0, more], value=True if mask.dtype.is_bool else 0.0)
        return k, v, mask

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        p = self.dropout if is_training() else 0.0
        grouped = self.num_kv_heads != self.num_heads
        if not weights:
            out = F.scaled_dot_product_attention(
                q, k, v, mask, p, causal, 1.0 / math.sqrt(self.head_dim), grouped
            )
            return out, None
        if grouped:
            groups = self.num_heads // self.num_kv_heads
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = (q @ k.transpose(-1, -2)) * (1.0 / math.sqrt(self.head_dim))
        if causal:
            mask = _both(mask, _lower(scores.shape[-2], scores.shape[-1], q))
        found = _softmax(scores, mask)
        if p:
            found = F.dropout(found, p, True)
        return found @ v, found


def _lower(rows: int, columns: int, like: Tensor) -> Tensor:
    """Return the mask under which row i may attend to columns up to i."""
    return full((rows, columns), True, dtype=bool_, device=_plain(like)).tril()


def _plain(x: Tensor) -> Device:
    return x.device.without_autodiff()


def _allowed(mask: Tensor | None) -> Tensor | None:
    """Return a bool mask in the words of the attention operation (True = allowed)."""
    return ~mask if mask is not None and mask.dtype.is_bool else mask


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return the mask that both hold; bool (True = allowed) or float (added)."""
    if a is None or b is None:
        return b if a is None else a
    if a.dtype.is_bool and b.dtype.is_bool:
        return a & b
    return _added(a, b) + _added(b, a)


def _added(mask: Tensor, other: Tensor) -> Tensor:
    if not mask.dtype.is_bool:
        return mask
    zero = zeros((), dtype=other.dtype, device=_plain(mask))
    result: Tensor = where(mask, zero, float("-inf"))
    return result


def _softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights; a row masked everywhere is 0 with gradient 0."""
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype.is_bool:
        scores = where(mask, scores, float("-inf"))
    else:
        scores = scores + mask
    dead = scores.amax(-1, keepdim=True) == float("-inf")
    result: Tensor = where(dead, 0.0, where(dead, 0.0, scores).softmax(-1))
    return result


def generate_autoregressive_mask(length: int, device: Device | None = None) -> Tensor:
    """Return the mask [length, length] that hides the future: True above the diagonal.

    Args:
        length: positions.
        device: where it is made; the default device if None.

    Example:
        >>> burn.nn.generate_autoregressive_mask(2).tolist()
        [[False, True], [False, False]]
    """
    return full((length, length), True, dtype=bool_, device=device).triu(1)


def generate_padding_mask(
    pad_token: int, sequences: list[list[int]], max_length: int | None = None,
    device: Device | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return sequences of tokens as one padded tensor, and the mask of the padding.

    Args:
        pad_token: what fills up shorter ones.
        sequences: tokens.
        max_length: longer ones are cut; the longest decides if None.
        device: where tensors are made; the default device if None.

    Returns:
        tokens [N, L]; mask [N, L], True where there is padding.

    Example:
        >>> tokens, mask = burn.nn.generate_padding_mask(0, [[5, 6], [7]])
        >>> tokens.tolist(), mask.tolist()
        ([[5, 6], [7, 0]], [[False, False], [False, True]])
    """
    longest = max((len(s) for s in sequences), default=0)
    length = longest if max_length is None else min(longest, max_length)
    cut = [list(s[:length]) for s in sequences]
    rows = [s + [pad_token] * (length - len(s)) for s in cut]
    marks = [[False] * len(s) + [True] * (length - len(s)) for s in cut]
    return tensor(rows, device=device), tensor(marks, device=device)
