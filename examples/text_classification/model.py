"""A small transformer encoder that sorts texts."""

from __future__ import annotations

from burn import Device, Tensor, nn


class Classifier(nn.Module):
    """Word numbers [N, L], 0 for padding, to scores [N, classes].

    Args:
        vocabulary: number of words.
        classes: number of classes.
        width: size of a word.
        heads: attention heads.
        dropout: probability of every dropout.
        device: where the parameters live.
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        width: int = 64,
        heads: int = 4,
        dropout: float = 0.3,
        device: Device | None = None,
    ) -> None:
        self.words = nn.Embedding(vocabulary, width, padding_idx=0, device=device)
        self.positions = nn.PositionalEncoding(width, max_len=256, device=device)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout, "gelu", batch_first=True, norm_first=True,
            device=device,
        )  # fmt: skip
        self.head = nn.Linear(width, classes, device=device)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the scores."""
        padding = numbers == 0
        x = self.dropout(self.positions(self.words(numbers)))
        x = self.encoder(x, src_key_padding_mask=padding)
        # The mean over the words that are there.
        present = (~padding).to(x.dtype).unsqueeze(2)
        return self.head((x * present).sum(dim=1) / present.sum(dim=1))
