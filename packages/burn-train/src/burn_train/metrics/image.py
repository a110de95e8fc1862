"""Likeness of images: PSNR, SSIM, MS-SSIM; per image, then the mean over images."""

from __future__ import annotations

from math import log10
from typing import Any

import numpy as np

from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import float32, float64
from burn_tensor import Tensor, functional as F
from burn_train.metrics.metric import Array, SumMetric, is_empty


class PSNR(SumMetric):
    """10 log10(max_value^2 / mean squared error) per image, in decibels.

    Args:
        max_value: largest value a pixel can have.
        epsilon: least squared error, so that equal images have a value.

    Shapes:
        output, target: [N, ...]

    Example:
        >>> m = PSNR()
        >>> m.update(burn.zeros(1, 3, 2, 2), burn.ones(1, 3, 2, 2) * 0.1, burn.tensor(0.0))
        >>> round(m.value(), 3)
        20.0
    """

    name = "psnr"
    unit = "dB"
    higher_is_better = True

    def __init__(self, max_value: float = 1.0, epsilon: float = 1e-10) -> None:
        self.max_value = max_value
        self.epsilon = epsilon
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        n = output.shape[0]
        left = output.detach().to(float64) - target.to(float64)
        error = (left * left).reshape(n, -1).mean(dim=1).clamp(min=self.epsilon)
        level = 20 * log10(self.max_value) - error.log10() * 10
        self.add(n, level=level.sum())

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the mean over images."""
        return float(sums["level"]) / count


def _similarity(
    x: Tensor, y: Tensor, size: int, sigma: float, spread: float, k: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Return mean structural similarity and mean contrast per image, in a Gaussian window."""
    channels = x.shape[1]
    if min(x.shape[2:]) < size:
        raise ShapeError("SSIM", f"images are at least {size} wide and high", got=x.shape)
    place = np.arange(size) - (size - 1) / 2
    line = np.exp(-(place**2) / (2 * sigma**2))
    window = np.outer(line / line.sum(), line / line.sum())
    kernel = x.new_tensor(np.broadcast_to(window, (channels, 1, size, size)).copy())

    def blurred(image: Tensor) -> Tensor:
        return F.conv2d(image, kernel, groups=channels)

    a, b = blurred(x), blurred(y)
    c1, c2 = (k[0] * spread) ** 2, (k[1] * spread) ** 2
    aa, bb, ab = blurred(x * x) - a * a, blurred(y * y) - b * b, blurred(x * y) - a * b
    contrast = (ab * 2 + c2) / (aa + bb + c2)
    whole = (a * b * 2 + c1) / (a * a + b * b + c1) * contrast
    n = x.shape[0]
    return whole.reshape(n, -1).mean(dim=1), contrast.reshape(n, -1).mean(dim=1)


class SSIM(SumMetric):
    """Structural similarity in a Gaussian window, from -1 to 1.

    Args:
        max_value: span of the pixels' values.
        kernel_size: width of the window.
        sigma: of the Gaussian.
        k1: steadies the means.
        k2: steadies the variances.

    Shapes:
        output, target: [N, C, H, W]

    Raises:
        ShapeError: at an update, the images are smaller than the window.

    Example:
        >>> m = SSIM()
        >>> image = burn.ones(1, 1, 11, 11) * 0.5
        >>> m.update(image, image, burn.tensor(0.0))
        >>> round(m.value(), 4)
        1.0

    Source: Wang et al. 2004.
    """

    name = "ssim"
    higher_is_better = True

    def __init__(
        self, max_value: float = 1.0, kernel_size: int = 11, sigma: float = 1.5,
        k1: float = 0.01, k2: float = 0.03,
    ) -> None:  # fmt: skip
        if kernel_size < 1 or not sigma > 0:
            raise ArgumentError(
                type(self).__name__, "kernel_size and sigma are positive",
                got=f"{kernel_size}, {sigma}",
            )  # fmt: skip
        self.max_value = max_value
        self.kernel_size = kernel_size
        self.sigma = sigma
        self.k = (k1, k2)
        super().__init__()

    def _of(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return _similarity(x, y, self.kernel_size, self.sigma, self.max_value, self.k)

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        whole, _ = self._of(output.detach().to(float32), target.to(float32))
        self.add(output.shape[0], whole=whole.to(float64).sum())

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the mean over images."""
        return float(sums["whole"]) / count


class MSSSIM(SSIM):
    """SSIM over several scales, each half as wide: contrast at all, the whole at the smallest.

    Args:
        max_value: span of the pixels' values.
        kernel_size: width of the window.
        sigma: of the Gaussian.
        k1: steadies the means.
        k2: steadies the variances.
        betas: weight of each scale.

    Shapes:
        output, target: [N, C, H, W]; the smallest scale is still as wide as the window

    Raises:
        ShapeError: at an update, the images are too small.

    Example:
        >>> m = MSSSIM(kernel_size=3, betas=(0.5, 0.5))
        >>> image = burn.ones(1, 1, 8, 8) * 0.5
        >>> m.update(image, image, burn.tensor(0.0))
        >>> round(m.value(), 4)
        1.0

    Source: Wang et al. 2003.
    """

    name = "ms-ssim"

    def __init__(
        self, max_value: float = 1.0, kernel_size: int = 11, sigma: float = 1.5,
        k1: float = 0.01, k2: float = 0.03,
        betas: tuple[float, ...] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    ) -> None:  # fmt: skip
        self.betas = betas
        super().__init__(max_value, kernel_size, sigma, k1, k2)

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        x, y = output.detach().to(float32), target.to(float32)
        product: Any = 1.0
        for scale, beta in enumerate(self.betas):
            whole, contrast = self._of(x, y)
            last = scale == len(self.betas) - 1
            # Negative likeness has no power.
            product = product * (whole if last else contrast).clamp(min=0.0) ** beta
            if not last:
                x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
        self.add(output.shape[0], whole=product.to(float64).sum())
