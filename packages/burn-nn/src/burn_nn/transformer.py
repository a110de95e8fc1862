"""Transformer encoder and decoder layers and stacks, with caches for generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_core import Module
from burn_dispatch import Device
from burn_nn.attention import MultiheadAttention
from burn_nn.cache import DecoderCache, KVCache
from burn_nn.containers import ModuleList, need_module
from burn_nn.dropout import Dropout
from burn_nn.extent import layers_of
from burn_nn.linear import Linear
from burn_nn.norm import LayerNorm
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F

Activation = str | Callable[[Tensor], Tensor]
_NAMED: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


def _function(name: str, activation: Activation) -> Callable[[Tensor], Tensor]:
    found = _NAMED.get(activation) if isinstance(activation, str) else activation
    if found is None or not callable(found):
        raise ArgumentError(
            name, f"activation is a function or one of {list(_NAMED)}", got=activation
        )
    return found


class PositionWiseFeedForward(Module):
    """W2 activation(W1 x), with dropout between, at every position alike.

    Args:
        d_model: size of input and output.
        d_ff: size between.
        dropout: probability with which an element between is dropped in training.
        activation: a function, or relu, gelu or silu.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [..., d_model]; returns the same

    Example:
        >>> burn.nn.PositionWiseFeedForward(4, 8)(burn.zeros(2, 3, 4)).shape
        (2, 3, 4)
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.1, activation: Activation = "gelu",
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.linear_inner = Linear(d_model, d_ff, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear_outer = Linear(d_ff, d_model, device=device, dtype=dtype)
        self.activation = _function("PositionWiseFeedForward", activation)

    def forward(self, input: Tensor) -> Tensor:
        """Return the output."""
        result: Tensor = self.linear_outer(self.dropout(self.activation(self.linear_inner(input))))
        return result


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward net, each with dropout, residual and layer norm.

    Args:
        d_model: size of a position.
        nhead: heads.
        dim_feedforward: size inside the feed-forward net.
        dropout: probability of every dropout.
        activation: a function, or relu, gelu or silu.
        layer_norm_eps: of the layer norms.
        batch_first: tensors are [N, L, d_model] instead of [L, N, d_model].
        norm_first: normalise before attention and net instead of after the residual.
        bias: add biases.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        src: [L, N, d_model]; returns the same

    Example:
        >>> layer = burn.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> layer(burn.zeros(1, 5, 8)).shape
        (1, 5, 8)

    Source: Vaswani et al. 2017
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _function("TransformerEncoderLayer", activation)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, is_causal: bool = False,
        cache: KVCache | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the encoded sequence.

        Args:
            src: the sequence.
            src_mask: who may not attend to whom, as in `MultiheadAttention`.
            src_key_padding_mask: [N, L], positions that do not count.
            is_causal: positions see no later ones.
            cache: the past in generation; `src` holds the new positions only.
        """

        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, True, is_causal, cache
            )
            result: Tensor = self.dropout1(out)
            return result

        def feed(x: Tensor) -> Tensor:
            result: Tensor = self.dropout2(
                self.linear2(self.dropout(self.activation(self.linear1(x))))
            )
            return result

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + feed(self.norm2(x))
        x = self.norm1(src + attend(src))
        result: Tensor = self.norm2(x + feed(x))
        return result


class TransformerDecoderLayer(Module):
    """Causal self-attention, attention to a memory, and a feed-forward net.

    Args:
        d_model: size of a position.
        nhead: heads.
        dim_feedforward: size inside the feed-forward net.
        dropout: probability of every dropout.
        activation: a function, or relu, gelu or silu.
        layer_norm_eps: of the layer norms.
        batch_first: tensors are [N, L, d_model] instead of [L, N, d_model].
        norm_first: normalise before attention and net instead of after the residual.
        bias: add biases.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        tgt: [L, N, d_model]; memory: [S, N, d_model]; returns tgt's

    Example:
        >>> layer = burn.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        >>> layer(burn.zeros(1, 5, 8), burn.zeros(1, 7, 8)).shape
        (1, 5, 8)

    Source: Vaswani et al. 2017
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
            )

        self.self_attn = attention()
        self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _function("TransformerDecoderLayer", activation)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False, cache: DecoderCache | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the decoded sequence.

        Args:
            tgt: the sequence.
            memory: what an encoder returned.
            tgt_mask: who may not attend to whom, as in `MultiheadAttention`.
            memory_mask: the same for the memory.
            tgt_key_padding_mask: [N, L], positions that do not count.
            memory_key_padding_mask: [N, S], positions of the memory that do not count.
            tgt_is_causal: positions see no later ones.
            memory_is_causal: position i sees positions of the memory up to i.
            cache: the past in generation; `tgt` holds the new positions only, and the memory of
                its first call is kept.
        """

        def attend(x: Tensor) -> Tensor:
            past = None if cache is None else cache.past
            out, _ = self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal, past
            )
            result: Tensor = self.dropout1(out)
            return result

        def look(x: Tensor) -> Tensor:
            if cache is None:
                out, _ = self.multihead_attn(
                    x, memory, memory, memory_key_padding_mask, False, memory_mask, True,
                    memory_is_causal,
                )  # fmt: skip
            else:
                if cache.memory is None:
                    cache.memory = self.multihead_attn.project_memory(memory, memory)
                kept = cache.memory
                out = self.multihead_attn.attend(x, kept, memory_key_padding_mask, memory_mask)
            result: Tensor = self.dropout2(out)
            return result

        def feed(x: Tensor) -> Tensor:
            result: Tensor = self.dropout3(
                self.linear2(self.dropout(self.activation(self.linear1(x))))
            )
            return result

        if self.norm_first:
            x = tgt + attend(self.norm1(tgt))
            x = x + look(self.norm2(x))
            return x + feed(self.norm3(x))
        x = self.norm1(tgt + attend(tgt))
        x = self.norm2(x + look(x))
        result: Tensor = self.norm3(x + feed(x))
        return result


def _copies(layer: Module, count: int) -> ModuleList:
    """Return copies that start with the same values, as PyTorch's do, and have ids of their own."""
    return ModuleList([layer.fork().renew_ids() for _ in range(layers_of("Transformer", count, 0))])


def _new_cache(attention: MultiheadAttention, batch_size: int, capacity: int) -> KVCache:
    weight = attention.out_proj.weight
    return KVCache(
        batch_size, attention.num_kv_heads, capacity, attention.head_dim,
        weight.device.without_autodiff(), weight.dtype,
    )  # fmt: skip


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: copied for every layer; the copies start with equal values.
        num_layers: how many.
        norm: a module for the output, or None.
        enable_nested_tensor: leave to use nested tensors, which is never made use of.
        mask_check: whether a use of nested tensors would look at the mask first.

    Shapes:
        src: as for a layer; returns the same

    Example:
        >>> layer = burn.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> encoder = burn.nn.TransformerEncoder(layer, 2).valid()
        >>> x = burn.randn(1, 3, 8)
        >>> whole = encoder(x, is_causal=True)
        >>> caches = encoder.new_cache(1, capacity=8)
        >>> steps = burn.cat([encoder(x[:, t : t + 1], cache=caches) for t in range(3)], 1)
        >>> bool(((whole - steps).abs() < 1e-5).all())
        True
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True,  # noqa: ARG002 - leave that is not needed
        mask_check: bool = True,  # noqa: ARG002 - the same
    ) -> None:  # fmt: skip
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = None if norm is None else need_module("TransformerEncoder", "norm", norm)

    def new_cache(self, batch_size: int, capacity: int) -> list[KVCache]:
        """Return an empty cache per layer for generation with `is_causal` attention.

        Args:
            batch_size: N.
            capacity: most positions.
        """
        return [_new_cache(layer.self_attn, batch_size, capacity) for layer in self.layers]

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False, cache: Sequence[KVCache] | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the encoded sequence.

        Args:
            src: the sequence.
            mask: who may not attend to whom.
            src_key_padding_mask: [N, L], positions that do not count.
            is_causal: positions see no later ones.
            cache: what `new_cache` returned; `src` holds the new positions only.
        """
        for k, layer in enumerate(self.layers):
            past = None if cache is None else cache[k]
            more: dict[str, Any] = {} if past is None else {"cache": past}
            src = layer(src, mask, src_key_padding_mask, is_causal, **more)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: copied for every layer; the copies start with equal values.
        num_layers: how many.
        norm: a module for the output, or None.

    Shapes:
        tgt, memory: as for a layer; returns tgt's

    Example:
        >>> layer = burn.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        >>> decoder = burn.nn.TransformerDecoder(layer, 2)
        >>> caches = decoder.new_cache(1, capacity=8)
        >>> memory = burn.zeros(1, 4, 8)
        >>> [decoder(burn.zeros(1, 1, 8), memory, cache=caches).shape for _ in range(2)]
        [(1, 1, 8), (1, 1, 8)]
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = None if norm is None else need_module("TransformerDecoder", "norm", norm)

    def new_cache(self, batch_size: int, capacity: int) -> list[DecoderCache]:
        """Return an empty cache per layer for generation.

        Args:
            batch_size: N.
            capacity: most positions.
        """
        return [
            DecoderCache(_new_cache(layer.self_attn, batch_size, capacity)) for layer in self.layers
        ]

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False, cache: Sequence[DecoderCache] | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the decoded sequence.

        Args:
            tgt: the sequence.
            memory: what an encoder returned.
            tgt_mask: who may not attend to whom.
            memory_mask: the same for the memory.
            tgt_key_padding_mask: [N, L], positions that do not count.
            memory_key_padding_mask: [N, S], positions of the memory that do not count.
            tgt_is_causal: positions see no later ones.
            memory_is_causal: position i sees positions of the memory up to i.
            cache: what `new_cache` returned; `tgt` holds the new positions only.
        """
        for k, layer in enumerate(self.layers):
            more: dict[str, Any] = {} if cache is None else {"cache": cache[k]}
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                tgt_is_causal, memory_is_causal, **more,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)
