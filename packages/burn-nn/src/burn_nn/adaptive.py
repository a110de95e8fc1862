"""Adaptive pooling, which asks for output extents, and the reverse of max pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_core import Module
from burn_nn.extent import Extent
from burn_tensor import Tensor, functional as F

Sizes = int | tuple[int | None, ...] | None


class _AdaptiveAvgPool(Module):
    """What the adaptive means of 1 to 3 dims share."""

    _pool: Callable[..., Tensor]

    def __init__(self, output_size: Sizes) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return self._pool(input, self.output_size)


class _AdaptiveMaxPool(Module):
    """What the adaptive maxima of 1 to 3 dims share."""

    _pool: Callable[..., Any]

    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with indices if asked."""
        return self._pool(input, self.output_size, self.return_indices)


class _MaxUnpool(Module):
    """What the reverses of max pooling of 1 to 3 dims share."""

    _pool: Callable[..., Tensor]

    def __init__(
        self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return the maxima in their places.

        Args:
            input: the maxima.
            indices: their flat indices.
            output_size: wanted extents; the smallest that fit if None.
        """
        return self._pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveAvgPool1d(2)(burn.ones(1, 3, 4)).shape
        (1, 3, 2)
    """

    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveAvgPool2d(2)(burn.ones(1, 3, 4, 4)).shape
        (1, 3, 2, 2)
    """

    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveAvgPool3d(2)(burn.ones(1, 3, 4, 4, 4)).shape
        (1, 3, 2, 2, 2)
    """

    _pool = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveMaxPool1d(2)(burn.ones(1, 3, 4)).shape
        (1, 3, 2)
    """

    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveMaxPool2d(2)(burn.ones(1, 3, 4, 4)).shape
        (1, 3, 2, 2)
    """

    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of windows that tile the input to given extents.

    Args:
        output_size: extents of the result; None keeps the input's.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.AdaptiveMaxPool3d(2)(burn.ones(1, 3, 4, 4, 4)).shape
        (1, 3, 2, 2, 2)
    """

    _pool = staticmethod(F.adaptive_max_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """Put maxima back where `MaxPool1d` found them; zeros elsewhere.

    Args:
        kernel_size: extents of the pooling's window.
        stride: its steps; the window's extents if None.
        padding: its padding.

    Shapes:
        input, indices: [N, C, L] or [C, L], as the pooling returned them

    Example:
        >>> pool = burn.nn.MaxPool1d(2, return_indices=True)
        >>> burn.nn.MaxUnpool1d(2)(*pool(burn.ones(1, 1, 4))).shape
        (1, 1, 4)
    """

    _pool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Put maxima back where `MaxPool2d` found them; zeros elsewhere.

    Args:
        kernel_size: extents of the pooling's window.
        stride: its steps; the window's extents if None.
        padding: its padding.

    Shapes:
        input, indices: [N, C, H, W] or [C, H, W], as the pooling returned them

    Example:
        >>> pool = burn.nn.MaxPool2d(2, return_indices=True)
        >>> burn.nn.MaxUnpool2d(2)(*pool(burn.ones(1, 1, 4, 4))).shape
        (1, 1, 4, 4)
    """

    _pool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Put maxima back where `MaxPool3d` found them; zeros elsewhere.

    Args:
        kernel_size: extents of the pooling's window.
        stride: its steps; the window's extents if None.
        padding: its padding.

    Shapes:
        input, indices: [N, C, D, H, W] or [C, D, H, W], as the pooling returned them

    Example:
        >>> pool = burn.nn.MaxPool3d(2, return_indices=True)
        >>> burn.nn.MaxUnpool3d(2)(*pool(burn.ones(1, 1, 4, 4, 4))).shape
        (1, 1, 4, 4, 4)
    """

    _pool = staticmethod(F.max_unpool3d)
