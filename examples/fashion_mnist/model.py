"""A small convolutional network for 28 x 28 images."""

from __future__ import annotations

from burn import Device, Tensor, nn


class FashionNet(nn.Module):
    """Two blocks of convolution and pooling, two linear layers: [N, 1, 28, 28] to scores [N, 10].

    Args:
        width: channels of the first block.
        dropout: probability before the last layer.
        device: where the parameters live.
    """

    def __init__(self, width: int = 16, dropout: float = 0.25, device: Device | None = None):
        self.blocks = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False, device=device),
            nn.BatchNorm2d(width, device=device),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False, device=device),
            nn.BatchNorm2d(2 * width, device=device),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(
            nn.Linear(2 * width * 7 * 7, 128, device=device),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(128, 10, device=device),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of the ten classes."""
        return self.head(self.blocks(images).flatten(1))
