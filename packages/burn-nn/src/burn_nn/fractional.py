"""Max pooling over windows whose places are drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_core import Buffer, Module
from burn_nn.extent import Extent
from burn_std import ArgumentError
from burn_tensor import Tensor, functional as F

Ratio = float | tuple[float, ...]


class _FractionalMaxPool(Module):
    """What the fractional pools of 2 and 3 dims share."""

    _pool: Callable[..., Any]

    def __init__(
        self, kernel_size: Extent, output_size: Extent | None = None,
        output_ratio: Ratio | None = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(
                type(self).__name__, "either output_size or output_ratio is given",
                got=f"output_size {output_size}, output_ratio {output_ratio}",
            )  # fmt: skip
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self._random_samples = None if _random_samples is None else Buffer(_random_samples)

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with indices if asked."""
        return self._pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows at places drawn anew at every call, in training or not.

    Args:
        kernel_size: extents of the window.
        output_size: extents of the result.
        output_ratio: extents of the result as shares of the input's.
        return_indices: also return the flat index of each maximum in its plane.
        _random_samples: [N, C, 2] numbers in [0, 1) that fix the places; saved with the state.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Raises:
        ArgumentError: output_size and output_ratio are both given or both missing.

    Example:
        >>> burn.nn.FractionalMaxPool2d(2, output_ratio=0.5)(burn.ones(1, 1, 9, 9)).shape
        (1, 1, 4, 4)

    Source: Graham 2014
    """

    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows at places drawn anew at every call, in training or not.

    Args:
        kernel_size: extents of the window.
        output_size: extents of the result.
        output_ratio: extents of the result as shares of the input's.
        return_indices: also return the flat index of each maximum in its volume.
        _random_samples: [N, C, 3] numbers in [0, 1) that fix the places; saved with the state.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Raises:
        ArgumentError: output_size and output_ratio are both given or both missing.

    Example:
        >>> burn.nn.FractionalMaxPool3d(2, output_size=3)(burn.ones(1, 1, 5, 5, 5)).shape
        (1, 1, 3, 3, 3)

    Source: Graham 2014
    """

    _pool = staticmethod(F.fractional_max_pool3d)
