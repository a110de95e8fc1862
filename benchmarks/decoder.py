"""The decoder of the benchmarks: words in, scores of the next words out."""

from __future__ import annotations

from typing import Any, NamedTuple

import burn
from burn import functional as F, nn


class Size(NamedTuple):
    """How large a decoder is."""

    tokens: int
    layers: int
    heads: int
    width: int
    words: int


class Block(nn.Module):
    """One layer of the decoder."""

    def __init__(self, size: Size, device: Any) -> None:
        width = size.width
        self.size = size
        self.n1, self.n2 = (nn.LayerNorm(width, device=device) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, device=device)
        self.out = nn.Linear(width, width, device=device)
        self.up = nn.Linear(width, 4 * width, device=device)
        self.down = nn.Linear(4 * width, width, device=device)

    def forward(self, x: Any) -> Any:
        """Return the next hidden states."""
        b, t, width = x.shape
        heads = self.size.heads
        parts = self.qkv(self.n1(x)).chunk(3, dim=-1)
        q, k, v = (p.reshape(b, t, heads, width // heads).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class Decoder(nn.Module):
    """A decoder whose input and output share the table of words."""

    def __init__(self, size: Size, device: Any) -> None:
        self.size = size
        self.words = nn.Embedding(size.words, size.width, device=device)
        self.places = nn.Embedding(size.tokens, size.width, device=device)
        self.blocks = [Block(size, device) for _ in range(size.layers)]
        self.norm = nn.LayerNorm(size.width, device=device)

    def forward(self, tokens: Any) -> Any:
        """Return the scores of the next words."""
        x = self.words(tokens) + self.places(burn.arange(self.size.tokens, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight).reshape(-1, self.size.words)
