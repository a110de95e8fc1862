"""Pooling layers."""

from __future__ import annotations

from typing import Any

from burn_core import Module
from burn_tensor import Tensor, functional as F

Size = int | tuple[int, ...]


class MaxPool2d(Module):
    """Take the maximum of each window of [N, C, H, W].

    Args:
        kernel_size: extents of the window.
        stride: step; the window's extents if None.
        padding: elements added on both sides; they never win.
        dilation: distance of window elements.
        return_indices: also return the flat index of each maximum in its plane.
        ceil_mode: round the output extents up.

    Example:
        >>> import burn_tensor as bt
        >>> MaxPool2d(2)(bt.ones(1, 1, 4, 4)).shape
        (1, 1, 2, 2)
    """

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Any:
        """Return the maxima, with indices if asked."""
        return F.max_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        """Return the window."""
        return f"kernel {self.kernel_size}, stride {self.stride or self.kernel_size}"


class AvgPool2d(Module):
    """Take the mean of each window of [N, C, H, W].

    Args:
        kernel_size: extents of the window.
        stride: step; the window's extents if None.
        padding: zeros added on both sides.
        ceil_mode: round the output extents up.
        count_include_pad: padding counts in the mean.
        divisor_override: divide by this instead of the count.

    Example:
        >>> import burn_tensor as bt
        >>> AvgPool2d(2)(bt.ones(1, 1, 4, 4)).shape
        (1, 1, 2, 2)
    """

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return F.avg_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AdaptiveAvgPool2d(Module):
    """Take means of windows that tile [N, C, H, W] to a given size.

    Args:
        output_size: extents of the result; None keeps the input's.

    Example:
        >>> import burn_tensor as bt
        >>> AdaptiveAvgPool2d(1)(bt.ones(1, 3, 4, 4)).shape
        (1, 3, 1, 1)
    """

    def __init__(self, output_size: int | None | tuple[int | None, ...]) -> None:
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return F.adaptive_avg_pool2d(x, self.output_size)
