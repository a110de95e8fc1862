"""The whole Transformer: encoder, decoder and what leads one to the other."""

from __future__ import annotations

from burn_core import Module, init
from burn_dispatch import Device
from burn_nn.containers import need_module
from burn_nn.norm import LayerNorm
from burn_nn.transformer import (
    Activation,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from burn_std import DType, ShapeError
from burn_tensor import Tensor, full


class Transformer(Module):
    """An encoder and a decoder with attention to its output.

    Args:
        d_model: size of a position.
        nhead: heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: size inside the feed-forward nets.
        dropout: probability of every dropout.
        activation: a function, or relu, gelu or silu.
        custom_encoder: takes the encoder's place.
        custom_decoder: takes the decoder's place.
        layer_norm_eps: of the layer norms.
        batch_first: tensors are [N, L, d_model] instead of [L, N, d_model].
        norm_first: normalise before attention and net instead of after the residual.
        bias: add biases.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        src: [S, N, d_model]; tgt: [L, N, d_model]; returns tgt's

    Raises:
        ShapeError: the last dims are not d_model.

    Example:
        >>> model = burn.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        >>> model(burn.zeros(1, 6, 8), burn.zeros(1, 5, 8)).shape
        (1, 5, 8)

    Source: Vaswani et al. 2017
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", custom_encoder: Module | None = None,
        custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                    batch_first, norm_first, bias, device, dtype)  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)

        # A module without elements is one too: `or` would put another in its place.
        self.encoder = need_module("Transformer", "custom_encoder", (
            TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm())
            if custom_encoder is None else custom_encoder
        ))  # fmt: skip
        self.decoder = need_module("Transformer", "custom_decoder", (
            TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm())
            if custom_decoder is None else custom_decoder
        ))  # fmt: skip
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill every matrix by Glorot's rule."""
        for p in self.parameters():
            if len(p.shape) > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool = False,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the decoded sequence.

        Args:
            src: what is encoded.
            tgt: what is decoded.
            src_mask: of the encoder's attention, as in `MultiheadAttention`.
            tgt_mask: of the decoder's own attention.
            memory_mask: of the attention to the encoder's output.
            src_key_padding_mask: [N, S], positions that do not count.
            tgt_key_padding_mask: [N, L], positions that do not count.
            memory_key_padding_mask: [N, S], positions that do not count.
            src_is_causal: positions of src see no later ones.
            tgt_is_causal: positions of tgt see no later ones.
            memory_is_causal: position i sees positions of the memory up to i.
        """
        if src.shape[-1:] != (self.d_model,) or tgt.shape[-1:] != (self.d_model,):
            raise ShapeError(
                "Transformer", f"the last dims are {self.d_model}", got=f"{src.shape}, {tgt.shape}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip
        return out

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | None = None, dtype: DType | None = None
    ) -> Tensor:
        """Return the float mask [sz, sz] that hides the future: -inf above the diagonal.

        Args:
            sz: positions.
            device: where it is made; the default device if None.
            dtype: of the mask; the device's default float if None.

        Example:
            >>> burn.nn.Transformer.generate_square_subsequent_mask(2).tolist()
            [[0.0, -inf], [0.0, 0.0]]
        """
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
