"""Convolutions of 1 to 3 dims."""

from __future__ import annotations

import math
from typing import Any, cast

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_nn.extent import Extent, Pads, pads_of, spatial
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F

_MODES = ("zeros", "reflect", "replicate", "circular")


def check_channels(name: str, in_channels: int, out_channels: int, groups: int) -> None:
    """Raise ArgumentError unless channels divide by groups."""
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ArgumentError(
            name, "channels must divide by groups",
            got=f"in {in_channels}, out {out_channels}, groups {groups}",
        )  # fmt: skip


def reset_convolution(weight: Parameter, bias: Parameter | None) -> None:
    """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(fan), 1/sqrt(fan))."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    fan = init.fans(weight.shape)[0]
    if bias is not None and fan:
        init.uniform_(bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))


class _Conv(Module):
    """What the convolutions of 1 to 3 dims share."""

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Extent, stride: Extent = 1,
        padding: Extent | Pads | str = 0, dilation: Extent = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        n, name = self.dims, type(self).__name__
        check_channels(name, in_channels, out_channels, groups)
        if padding_mode not in _MODES:
            raise ArgumentError(name, f"padding_mode is one of {_MODES}", got=padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spatial(f"{name}.kernel_size", kernel_size, n)
        self.stride = spatial(f"{name}.stride", stride, n)
        self.dilation = spatial(f"{name}.dilation", dilation, n)
        self.groups = groups
        self.padding_mode = padding_mode
        self.padding = self._checked(padding)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(init.fresh(shape, dtype, device))
        self.bias = Parameter(init.fresh((out_channels,), dtype, device)) if bias else None
        self.reset_parameters()

    def _checked(self, padding: Extent | Pads | str) -> str | Extent | Pads:
        name = type(self).__name__
        if not isinstance(padding, str):
            return pads_of(f"{name}.padding", padding, self.dims)
        if padding not in ("same", "valid"):
            raise ArgumentError(name, "padding is ints, 'same' or 'valid'", got=padding)
        if padding == "same" and set(self.stride) != {1}:
            raise ArgumentError(name, "padding 'same' needs stride 1", got=f"stride {self.stride}")
        return padding

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(fan), 1/sqrt(fan))."""
        reset_convolution(self.weight, self.bias)

    def _pads(self) -> list[int]:
        """Return F.pad's list: (before, after) of the last dim first."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        if self.padding == "same":
            spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [e for t in reversed(spans) for e in (t // 2, t - t // 2)]
        pairs = [p if isinstance(p, tuple) else (p, p) for p in cast(tuple[Any, ...], self.padding)]
        return [e for pair in reversed(pairs) for e in pair]

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of the input."""
        conv: Any = (F.conv1d, F.conv2d, F.conv3d)[self.dims - 1]
        padding: Any = self.padding
        uneven = not isinstance(padding, str) and isinstance(padding[0], tuple)
        if self.padding_mode != "zeros" or uneven:
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            input = F.pad(input, self._pads(), mode=mode)
            padding = 0
        out: Tensor = conv(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return out


class Conv1d(_Conv):
    """Cross-correlation of signals with a window per pair of channels.

    y[n, o, t] = bias[o] + sum over c, k of weight[o, c, k] x[n, c, t stride + k dilation - padding]

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extent of the window.
        stride: step between windows.
        padding: elements added on both sides, a pair (before, after), `valid` or `same`.
        dilation: step inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: zeros, reflect, replicate or circular.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, L] or [C, L]; returns [N, out_channels, L'] or [out_channels, L']
        weight: [out_channels, in_channels / groups, kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> burn.nn.Conv1d(2, 4, 3, padding="same")(burn.ones(1, 2, 5)).shape
        (1, 4, 5)
    """

    dims = 1


class Conv2d(_Conv):
    """Cross-correlation of images with a window per pair of channels.

    y[n, o] = bias[o] + sum over c of weight[o, c] * x[n, c]

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements added on both sides (per dim), pairs (before, after), `valid` or `same`.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: zeros, reflect, replicate or circular.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns [N, out_channels, H', W'] or without N
        weight: [out_channels, in_channels / groups, *kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> burn.nn.Conv2d(2, 4, 3, padding=((0, 1), (1, 1)))(burn.ones(1, 2, 5, 5)).shape
        (1, 4, 4, 5)
    """

    dims = 2


class Conv3d(_Conv):
    """Cross-correlation of volumes with a window per pair of channels.

    y[n, o] = bias[o] + sum over c of weight[o, c] * x[n, c]

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements added on both sides (per dim), pairs (before, after), `valid` or `same`.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: zeros, reflect, replicate or circular.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same with other extents
        weight: [out_channels, in_channels / groups, *kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or an argument is out of range.

    Example:
        >>> burn.nn.Conv3d(2, 4, 2)(burn.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 4, 4, 4)
    """

    dims = 3
