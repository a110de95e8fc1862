"""Generator and discriminator for 8 x 8 images of digits."""

from __future__ import annotations

from burn import Device, Tensor, nn


class Generator(nn.Module):
    """Noise [N, latent] to images [N, 1, 8, 8] in [0, 1].

    Args:
        latent: size of the noise.
        width: channels of the 4 x 4 stage.
        device: where the parameters live.
    """

    def __init__(self, latent: int = 32, width: int = 64, device: Device | None = None) -> None:
        self.latent = latent
        self.width = width
        self.seed = nn.Linear(latent, width * 16, device=device)
        self.norm = nn.BatchNorm2d(width, device=device)
        self.grow = nn.ConvTranspose2d(width, width // 2, 4, stride=2, padding=1, device=device)
        self.norm2 = nn.BatchNorm2d(width // 2, device=device)
        self.paint = nn.Conv2d(width // 2, 1, 3, padding=1, device=device)

    def forward(self, noise: Tensor) -> Tensor:
        """Return images."""
        x = self.seed(noise).reshape(-1, self.width, 4, 4)
        x = self.grow(self.norm(x).relu())
        return self.paint(self.norm2(x).relu()).sigmoid()


class Discriminator(nn.Module):
    """Images [N, 1, 8, 8] to scores [N], positive for real ones.

    Args:
        width: channels of the first convolution.
        device: where the parameters live.
    """

    def __init__(self, width: int = 32, device: Device | None = None) -> None:
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, device=device),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, device=device),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(2 * width * 16, 1, device=device),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return scores."""
        return self.net(images).squeeze(1)
