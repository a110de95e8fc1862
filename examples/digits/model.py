"""A small convolutional network; the same code trains and serves."""

from __future__ import annotations

from burn import Device, Tensor, nn


class Digits(nn.Module):
    """Two convolutions, pooling, two linear layers: [N, 1, 8, 8] to scores [N, 10]."""

    def __init__(
        self, width: int = 32, hidden: int = 128, dropout: float = 0.3, device: Device | None = None
    ) -> None:
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, device=device)
        self.norm1 = nn.BatchNorm2d(width, device=device)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1, device=device)
        self.norm2 = nn.BatchNorm2d(2 * width, device=device)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(dropout)
        self.fc1 = nn.Linear(2 * width * 4, hidden, device=device)
        self.fc2 = nn.Linear(hidden, 10, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the ten digits."""
        x = self.pool(self.norm1(self.conv1(x)).relu())
        x = self.pool(self.norm2(self.conv2(x)).relu())
        x = self.fc1(x.flatten(1)).relu()
        return self.fc2(self.dropout(x))
