"""Pooling layers of 1 to 3 dims; PyTorch's names, arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_core import Module
from burn_nn.extent import Extent
from burn_tensor import Tensor, functional as F


class _MaxPool(Module):
    """What the maximum pools of 1 to 3 dims share."""

    _pool: Callable[..., Any]

    def __init__(
        self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0,
        dilation: Extent = 1, return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with indices if asked."""
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class _AvgPool(Module):
    """What the mean pools share; that of 1 dim has no divisor."""

    _pool: Callable[..., Tensor]

    def __init__(
        self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return self._pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class _LPPool(Module):
    """What the norm pools of 1 to 3 dims share."""

    _pool: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Extent, stride: Extent | None = None,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return self._pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class MaxPool1d(_MaxPool):
    """The maximum of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: elements added on both sides; they never win.
        dilation: steps inside a window.
        return_indices: also return the flat index of each maximum in its plane.
        ceil_mode: round the output extents up; no window begins in the padding at the end.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.MaxPool1d(2)(burn.ones(1, 1, 4)).shape
        (1, 1, 2)
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: elements added on both sides; they never win.
        dilation: steps inside a window.
        return_indices: also return the flat index of each maximum in its plane.
        ceil_mode: round the output extents up; no window begins in the padding at the end.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.MaxPool2d(2)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 2, 2)
    """

    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The maximum of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: elements added on both sides; they never win.
        dilation: steps inside a window.
        return_indices: also return the flat index of each maximum in its plane.
        ceil_mode: round the output extents up; no window begins in the padding at the end.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.MaxPool3d(2)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 2, 2, 2)
    """

    _pool = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """The mean of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: zeros added on both sides.
        ceil_mode: round the output extents up; no window begins in the padding at the end.
        count_include_pad: padding counts in the mean.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.AvgPool1d(2)(burn.ones(1, 1, 4)).shape
        (1, 1, 2)
    """

    def __init__(
        self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class AvgPool2d(_AvgPool):
    """The mean of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: zeros added on both sides.
        ceil_mode: round the output extents up; no window begins in the padding at the end.
        count_include_pad: padding counts in the mean.
        divisor_override: divide by this instead of the count.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.AvgPool2d(2)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 2, 2)
    """

    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window.

    Args:
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        padding: zeros added on both sides.
        ceil_mode: round the output extents up; no window begins in the padding at the end.
        count_include_pad: padding counts in the mean.
        divisor_override: divide by this instead of the count.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.AvgPool3d(2)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 2, 2, 2)
    """

    _pool = staticmethod(F.avg_pool3d)


class LPPool1d(_LPPool):
    """The norm of each window: (sum of x^p)^(1/p).

    Args:
        norm_type: p.
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        ceil_mode: round the output extents up.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.LPPool1d(1, 2)(burn.ones(1, 1, 4)).ravel()[0].item()
        2.0
    """

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window: (sum of x^p)^(1/p).

    Args:
        norm_type: p.
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        ceil_mode: round the output extents up.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.LPPool2d(1, 2)(burn.ones(1, 1, 4, 4)).ravel()[0].item()
        4.0
    """

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window: (sum of x^p)^(1/p).

    Args:
        norm_type: p.
        kernel_size: extents of the window.
        stride: steps between windows; the window's extents if None.
        ceil_mode: round the output extents up.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.LPPool3d(1, 2)(burn.ones(1, 1, 4, 4, 4)).ravel()[0].item()
        8.0
    """

    _pool = staticmethod(F.lp_pool3d)
