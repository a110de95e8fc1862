"""Padding layers of 1 to 3 dims; PyTorch's names and defaults."""

from __future__ import annotations

from burn_core import Module
from burn_nn.extent import spatial
from burn_std import ArgumentError
from burn_tensor import Tensor, functional as F


class _Pad(Module):
    """What the padding layers share."""

    dims = 0
    mode = "constant"
    value = 0.0

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        self.padding = spatial(f"{type(self).__name__}.padding", padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        if len(input.shape) not in (self.dims + 1, self.dims + 2):
            raise ArgumentError(
                type(self).__name__, f"the input has rank {self.dims + 1} or {self.dims + 2}",
                got=input.shape,
            )  # fmt: skip
        if self.mode == "constant":
            return F.pad(input, self.padding, "constant", self.value)
        return F.pad(input, self.padding, self.mode)


class _ConstantPad(_Pad):
    """What the paddings with a value share."""

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad1d(_ConstantPad):
    """Continue the input with a value.

    Args:
        padding: one int for all sides, or (left, right); negative ones cut.
        value: the value.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.ConstantPad1d(1, 2.0)(burn.ones(1, 1, 4)).shape
        (1, 1, 6)
    """

    dims = 1


class ConstantPad2d(_ConstantPad):
    """Continue the input with a value.

    Args:
        padding: one int for all sides, or (left, right, top, bottom); negative ones cut.
        value: the value.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.ConstantPad2d(1, 2.0)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 6, 6)
    """

    dims = 2


class ConstantPad3d(_ConstantPad):
    """Continue the input with a value.

    Args:
        padding: one int, or (left, right, top, bottom, front, back); negative ones cut.
        value: the value.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.ConstantPad3d(1, 2.0)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 6, 6, 6)
    """

    dims = 3


class ZeroPad1d(_Pad):
    """Continue the input with zeros.

    Args:
        padding: one int for all sides, or (left, right); negative ones cut.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.ZeroPad1d(1)(burn.ones(1, 1, 4)).shape
        (1, 1, 6)
    """

    dims = 1


class ZeroPad2d(_Pad):
    """Continue the input with zeros.

    Args:
        padding: one int for all sides, or (left, right, top, bottom); negative ones cut.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.ZeroPad2d(1)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 6, 6)
    """

    dims = 2


class ZeroPad3d(_Pad):
    """Continue the input with zeros.

    Args:
        padding: one int, or (left, right, top, bottom, front, back); negative ones cut.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.ZeroPad3d(1)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 6, 6, 6)
    """

    dims = 3


class ReflectionPad1d(_Pad):
    """Continue the input with its mirror image, the border not repeated.

    Args:
        padding: one int for all sides, or (left, right).

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.ReflectionPad1d(1)(burn.ones(1, 1, 4)).shape
        (1, 1, 6)
    """

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Continue the input with its mirror image, the border not repeated.

    Args:
        padding: one int for all sides, or (left, right, top, bottom).

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.ReflectionPad2d(1)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 6, 6)
    """

    dims = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Continue the input with its mirror image, the border not repeated.

    Args:
        padding: one int for all sides, or (left, right, top, bottom, front, back).

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.ReflectionPad3d(1)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 6, 6, 6)
    """

    dims = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Continue the input with its border.

    Args:
        padding: one int for all sides, or (left, right).

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.ReplicationPad1d(1)(burn.ones(1, 1, 4)).shape
        (1, 1, 6)
    """

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Continue the input with its border.

    Args:
        padding: one int for all sides, or (left, right, top, bottom).

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.ReplicationPad2d(1)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 6, 6)
    """

    dims = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """Continue the input with its border.

    Args:
        padding: one int for all sides, or (left, right, top, bottom, front, back).

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.ReplicationPad3d(1)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 6, 6, 6)
    """

    dims = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """Continue the input with its other end.

    Args:
        padding: one int for all sides, or (left, right).

    Shapes:
        input: [N, C, L] or [C, L]; returns the same rank

    Example:
        >>> burn.nn.CircularPad1d(1)(burn.ones(1, 1, 4)).shape
        (1, 1, 6)
    """

    dims = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """Continue the input with its other end.

    Args:
        padding: one int for all sides, or (left, right, top, bottom).

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank

    Example:
        >>> burn.nn.CircularPad2d(1)(burn.ones(1, 1, 4, 4)).shape
        (1, 1, 6, 6)
    """

    dims = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """Continue the input with its other end.

    Args:
        padding: one int for all sides, or (left, right, top, bottom, front, back).

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank

    Example:
        >>> burn.nn.CircularPad3d(1)(burn.ones(1, 1, 4, 4, 4)).shape
        (1, 1, 6, 6, 6)
    """

    dims = 3
    mode = "circular"
