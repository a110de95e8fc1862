"""Layers that rearrange, resample or deform images."""

from __future__ import annotations

from collections.abc import Sequence

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_nn.conv import check_channels, reset_convolution
from burn_nn.extent import Extent, spatial
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F


class Unfold(Module):
    """Windows of images as columns.

    Args:
        kernel_size: extents of the window.
        dilation: steps inside a window.
        padding: zeros added on both sides.
        stride: steps between windows.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns [N, C * window, windows] or without N

    Example:
        >>> burn.nn.Unfold(2)(burn.ones(1, 3, 4, 4)).shape
        (1, 12, 9)
    """

    def __init__(
        self, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0, stride: Extent = 1
    ) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Add columns back into images: the transpose of `Unfold`.

    Args:
        output_size: extents of the image.
        kernel_size: extents of the window.
        dilation: steps inside a window.
        padding: zeros that `Unfold` added.
        stride: steps between windows.

    Shapes:
        input: [N, C * window, windows] or without N; returns [N, C, *output_size] or without N

    Example:
        >>> burn.nn.Fold((4, 4), 2)(burn.ones(1, 12, 9)).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self, output_size: Extent, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0,
        stride: Extent = 1,
    ) -> None:  # fmt: skip
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the images."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class PixelShuffle(Module):
    """Move channels into space: [*, C r^2, H, W] to [*, C, H r, W r].

    Args:
        upscale_factor: r.

    Example:
        >>> burn.nn.PixelShuffle(2)(burn.ones(1, 4, 2, 2)).shape
        (1, 1, 4, 4)

    Source: Shi et al. 2016
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the larger image."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Move space into channels: [*, C, H r, W r] to [*, C r^2, H, W].

    Args:
        downscale_factor: r.

    Example:
        >>> burn.nn.PixelUnshuffle(2)(burn.ones(1, 1, 4, 4)).shape
        (1, 4, 2, 2)
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the smaller image."""
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleave groups of channels.

    Args:
        groups: how many.

    Example:
        >>> burn.nn.ChannelShuffle(2)(burn.arange(4).reshape(1, 4, 1, 1)).ravel().tolist()
        [0, 2, 1, 3]

    Source: Zhang et al., ShuffleNet, 2017
    """

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels in their new order."""
        return F.channel_shuffle(input, self.groups)


class Upsample(Module):
    """Resample to another size.

    Args:
        size: extents of the result.
        scale_factor: factor of the extents, instead of size.
        mode: nearest, linear, bilinear, bicubic, trilinear or lanczos.
        align_corners: corners of input and output meet; not with nearest.
        recompute_scale_factor: use the factor that the rounded extents have.

    Shapes:
        input: [N, C, *]; returns the same rank

    Raises:
        ArgumentError: neither or both of size and scale_factor.

    Example:
        >>> burn.nn.Upsample(scale_factor=2)(burn.ones(1, 1, 2, 2)).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self, size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        if (size is None) == (scale_factor is None):
            raise ArgumentError(
                "Upsample", "needs one of size and scale_factor", got=f"{size}, {scale_factor}"
            )
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the resampled input."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip


class UpsamplingNearest2d(Upsample):
    """Resample images by the nearest pixel.

    Args:
        size: extents of the result.
        scale_factor: factor of the extents, instead of size.

    Example:
        >>> burn.nn.UpsamplingNearest2d(4)(burn.ones(1, 1, 2, 2)).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self, size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resample images bilinearly, with corners that meet.

    Args:
        size: extents of the result.
        scale_factor: factor of the extents, instead of size.

    Example:
        >>> burn.nn.UpsamplingBilinear2d(3)(burn.tensor([[[[0.0, 2.0]]]]))[0, 0, 0].tolist()
        [0.0, 1.0, 2.0]
    """

    def __init__(
        self, size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size, scale_factor, "bilinear", True)


class DeformConv2d(Module):
    """A convolution whose window's points are moved by offsets, per output position.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: zeros added on both sides.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, H, W]; offset: [N, 2 * offset_groups * window, H', W'];
        mask: [N, offset_groups * window, H', W']; returns [N, out_channels, H', W']

    Raises:
        ArgumentError: channels do not divide by groups.
        ShapeError: offset or mask do not fit.

    Example:
        >>> layer = burn.nn.DeformConv2d(2, 3, 3, padding=1)
        >>> layer(burn.ones(1, 2, 4, 4), burn.zeros(1, 18, 4, 4)).shape
        (1, 3, 4, 4)

    Source: Dai et al. 2017; Zhu et al. 2018 for the mask
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extent, stride: Extent = 1,
        padding: Extent = 0, dilation: Extent = 1, groups: int = 1, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        check_channels("DeformConv2d", in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spatial("DeformConv2d.kernel_size", kernel_size, 2)
        self.stride = spatial("DeformConv2d.stride", stride, 2)
        self.padding = spatial("DeformConv2d.padding", padding, 2)
        self.dilation = spatial("DeformConv2d.dilation", dilation, 2)
        self.groups = groups
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(init.fresh(shape, dtype, device))
        self.bias = Parameter(init.fresh((out_channels,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(fan), 1/sqrt(fan))."""
        reset_convolution(self.weight, self.bias)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the convolution of the moved points.

        Args:
            input: images.
            offset: (dy, dx) of every point of the window, in pixels.
            mask: factor of every point.
        """
        return F.deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )
