"""The three networks of MTCNN, a face detector, under the names that its checkpoints use.

Each looks at squares of a picture more closely than the one before: P-Net at 12 pixels, wherever
they lie; R-Net at 24; O-Net at 48.

Source: Zhang et al. 2016, Joint Face Detection and Alignment Using Multi-task Cascaded
Convolutional Networks; the weights are those of the package facenet-pytorch
"""

from __future__ import annotations

from burn import Device, Tensor, nn


def flat(x: Tensor) -> Tensor:
    """Return [N, C, H, W] as [N, W * H * C]: the weights come from a framework with C last."""
    return x.permute(0, 3, 2, 1).flatten(1)


class PNet(nn.Module):
    """Pictures [N, 3, H, W] to chances and boxes for every place, each [N, *, H', W']."""

    def __init__(self, device: Device | None = None) -> None:
        self.conv1 = nn.Conv2d(3, 10, 3, device=device)
        self.prelu1 = nn.PReLU(10, device=device)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(10, 16, 3, device=device)
        self.prelu2 = nn.PReLU(16, device=device)
        self.conv3 = nn.Conv2d(16, 32, 3, device=device)
        self.prelu3 = nn.PReLU(32, device=device)
        self.conv4_1 = nn.Conv2d(32, 2, 1, device=device)
        self.conv4_2 = nn.Conv2d(32, 4, 1, device=device)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return chances of (no face, face) and corrections of the box."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return {"chances": self.conv4_1(x).softmax(1), "boxes": self.conv4_2(x)}


class RNet(nn.Module):
    """Squares [N, 3, 24, 24] to chances [N, 2] and boxes [N, 4]."""

    def __init__(self, device: Device | None = None) -> None:
        self.conv1 = nn.Conv2d(3, 28, 3, device=device)
        self.prelu1 = nn.PReLU(28, device=device)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(28, 48, 3, device=device)
        self.prelu2 = nn.PReLU(48, device=device)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3 = nn.Conv2d(48, 64, 2, device=device)
        self.prelu3 = nn.PReLU(64, device=device)
        self.dense4 = nn.Linear(576, 128, device=device)
        self.prelu4 = nn.PReLU(128, device=device)
        self.dense5_1 = nn.Linear(128, 2, device=device)
        self.dense5_2 = nn.Linear(128, 4, device=device)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return chances of (no face, face) and corrections of the box."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.prelu4(self.dense4(flat(self.prelu3(self.conv3(x)))))
        return {"chances": self.dense5_1(x).softmax(1), "boxes": self.dense5_2(x)}


class ONet(nn.Module):
    """Squares [N, 3, 48, 48] to chances [N, 2], boxes [N, 4] and five points [N, 10]."""

    def __init__(self, device: Device | None = None) -> None:
        self.conv1 = nn.Conv2d(3, 32, 3, device=device)
        self.prelu1 = nn.PReLU(32, device=device)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(32, 64, 3, device=device)
        self.prelu2 = nn.PReLU(64, device=device)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3 = nn.Conv2d(64, 64, 3, device=device)
        self.prelu3 = nn.PReLU(64, device=device)
        self.pool3 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv4 = nn.Conv2d(64, 128, 2, device=device)
        self.prelu4 = nn.PReLU(128, device=device)
        self.dense5 = nn.Linear(1152, 256, device=device)
        self.prelu5 = nn.PReLU(256, device=device)
        self.dense6_1 = nn.Linear(256, 2, device=device)
        self.dense6_2 = nn.Linear(256, 4, device=device)
        self.dense6_3 = nn.Linear(256, 10, device=device)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return chances of (no face, face), corrections of the box, and points."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.pool3(self.prelu3(self.conv3(x)))
        x = self.prelu5(self.dense5(flat(self.prelu4(self.conv4(x)))))
        return {
            "chances": self.dense6_1(x).softmax(1),
            "boxes": self.dense6_2(x),
            "points": self.dense6_3(x),
        }
