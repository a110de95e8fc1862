"""A causal transformer over characters, for training on windows and for generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import burn
from burn import Device, Tensor, nn


class CharTransformer(nn.Module):
    """Characters [N, L] to scores of the character that follows each, [N, L, alphabet].

    Args:
        alphabet: number of characters.
        context: most positions it can look back at.
        width: size of a position.
        heads: attention heads.
        layers: transformer layers.
        dropout: probability of every dropout.
        device: where the parameters live.
    """

    def __init__(
        self,
        alphabet: int,
        context: int = 128,
        width: int = 96,
        heads: int = 4,
        layers: int = 2,
        dropout: float = 0.0,
        device: Device | None = None,
    ) -> None:
        self.context = context
        self.characters = nn.Embedding(alphabet, width, device=device)
        self.positions = nn.Embedding(context, width, device=device)
        # The default of 1 would drown in its noise what the first layers have to say.
        for table in (self.characters, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True,
            device=device,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width, device=device))
        self.head = nn.Linear(width, alphabet, device=device)

    def forward(
        self, numbers: Tensor, start: int = 0, cache: Sequence[nn.KVCache] | None = None
    ) -> Tensor:
        """Return the scores.

        Args:
            numbers: the characters; with a cache only the new ones.
            start: position of the first of them.
            cache: keys and values of the positions before.
        """
        steps = burn.arange(start, start + numbers.shape[1], device=numbers.device)
        x = self.characters(numbers) + self.positions(steps)
        return self.head(self.encoder(x, is_causal=cache is None, cache=cache))

    def generate(self, prompt: Tensor, count: int, temperature: float = 0.8) -> Iterator[int]:
        """Yield characters that follow a prompt, one at a time.

        The cache has room for `context` positions from the start, so every step computes tensors
        of the same shapes. When it is full, the last half of the text begins a new one.

        Args:
            prompt: [1, L], at least one character.
            count: how many to draw.
            temperature: below 1 prefers likely characters, 0 takes the likeliest.
        """
        text = prompt[0].tolist()
        fresh = text[-self.context // 2 :]
        cache, start = self.encoder.new_cache(1, self.context), 0
        for _ in range(count):
            if start + len(fresh) > self.context:
                fresh = text[-(self.context // 2) :]
                cache, start = self.encoder.new_cache(1, self.context), 0
            new = burn.tensor([fresh], device=prompt.device)
            scores = self(new, start, cache)[0, -1]
            start += len(fresh)
            if temperature == 0:
                number = int(scores.argmax())
            else:
                number = int(burn.multinomial((scores / temperature).softmax(0), 1))
            text.append(number)
            fresh = [number]
            yield number
