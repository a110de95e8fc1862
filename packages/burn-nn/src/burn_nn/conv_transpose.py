"""Transposed convolutions of 1 to 3 dims: the adjoints of convolutions as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_nn.conv import check_channels, reset_convolution
from burn_nn.extent import Extent, spatial
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F


class _ConvTranspose(Module):
    """What the transposed convolutions of 1 to 3 dims share."""

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extent, stride: Extent = 1,
        padding: Extent = 0, output_padding: Extent = 0, groups: int = 1, bias: bool = True,
        dilation: Extent = 1, padding_mode: str = "zeros", device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        n, name = self.dims, type(self).__name__
        check_channels(name, in_channels, out_channels, groups)
        if padding_mode != "zeros":
            raise ArgumentError(name, "only zeros can be padded", got=padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spatial(f"{name}.kernel_size", kernel_size, n)
        self.stride = spatial(f"{name}.stride", stride, n)
        self.padding = spatial(f"{name}.padding", padding, n)
        self.output_padding = spatial(f"{name}.output_padding", output_padding, n)
        self.dilation = spatial(f"{name}.dilation", dilation, n)
        self.groups = groups
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight = Parameter(init.fresh(shape, dtype, device))
        self.bias = Parameter(init.fresh((out_channels,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(fan), 1/sqrt(fan))."""
        reset_convolution(self.weight, self.bias)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution of the input.

        Args:
            input: the signals.
            output_size: wanted spatial extents; several fit where stride > 1.

        Raises:
            ArgumentError: the extents cannot be had.
        """
        conv: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.dims - 1]
        more = self.output_padding
        if output_size is not None:
            more = self._rest(input.shape[-self.dims :], tuple(output_size)[-self.dims :])
        out: Tensor = conv(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip
        return out

    def _rest(self, extents: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
        parts = zip(
            extents, self.stride, self.padding, self.dilation, self.kernel_size, strict=True
        )
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in parts]
        if len(wanted) != self.dims or any(
            not 0 <= w - a < s for w, a, s in zip(wanted, least, self.stride, strict=True)
        ):
            most = [a + s - 1 for a, s in zip(least, self.stride, strict=True)]
            raise ArgumentError(
                type(self).__name__, f"output_size must be from {least} to {most}", got=wanted
            )
        return tuple(w - a for w, a in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """The transposed convolution of signals: the gradient of `Conv1d` as a layer.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extent of the window.
        stride: distance of the windows in the output.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: step inside a window.
        padding_mode: zeros.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, L] or [C, L]
        weight: [in_channels, out_channels / groups, K]; bias: [out_channels]
        returns: L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> layer = burn.nn.ConvTranspose1d(1, 1, 3, stride=2)
        >>> layer(burn.ones(1, 1, 2)).shape, layer(burn.ones(1, 1, 2), output_size=[6]).shape
        ((1, 1, 5), (1, 1, 6))
    """

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The transposed convolution of images: the gradient of `Conv2d` as a layer.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: distances of the windows in the output.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: steps inside a window.
        padding_mode: zeros.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same rank, extents as in `ConvTranspose1d`
        weight: [in_channels, out_channels / groups, *kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> burn.nn.ConvTranspose2d(2, 3, 2, stride=2)(burn.ones(1, 2, 4, 4)).shape
        (1, 3, 8, 8)
    """

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution of volumes: the gradient of `Conv3d` as a layer.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: distances of the windows in the output.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: steps inside a window.
        padding_mode: zeros.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same rank
        weight: [in_channels, out_channels / groups, *kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> burn.nn.ConvTranspose3d(2, 3, 2, stride=2)(burn.ones(1, 2, 2, 2, 2)).shape
        (1, 3, 4, 4, 4)
    """

    dims = 3
