"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from burn_core import Module, Parameter, init
from burn_core.init import fans, fresh
from burn_dispatch import Device
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F

Size = int | tuple[int, ...]


def spatial(value: Size, n: int, name: str) -> tuple[int, ...]:
    """Return one int per spatial dim."""
    out = (value,) * n if isinstance(value, int) else tuple(value)
    if len(out) != n:
        raise ArgumentError(name, f"needs one int or {n}", got=value)
    return out


class _Conv(Module):
    """What the convolutions of 1 to 3 dims share."""

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size = 1,
        padding: Size | str = 0, dilation: Size = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        n, name = self.dims, type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(name, "channels must divide by groups", got=f"{in_channels}, {out_channels}, groups {groups}")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ArgumentError(name, "padding_mode is zeros, reflect, replicate or circular", got=padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spatial(kernel_size, n, f"{name}.kernel_size")
        self.stride = spatial(stride, n, f"{name}.stride")
        self.dilation = spatial(dilation, n, f"{name}.dilation")
        self.padding = padding if isinstance(padding, str) else spatial(padding, n, f"{name}.padding")
        if isinstance(padding, str) and (padding not in ("same", "valid") or (padding == "same" and set(self.stride) != {1})):
            raise ArgumentError(name, "padding is ints, 'valid', or 'same' with stride 1", got=padding)
        self.groups = groups
        self.padding_mode = padding_mode
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(fresh(shape, dtype, device))
        self.bias = Parameter(fresh((out_channels,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(fan), 1/sqrt(fan))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan = fans(self.weight.shape)[0]
            bound = 1 / math.sqrt(fan) if fan else 0.0
            init.uniform_(self.bias, -bound, bound)

    def _pads(self) -> list[int]:
        """Return F.pad's list for padding modes other than zeros: last dim first."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [e for t in reversed(total) for e in (t // 2, t - t // 2)]
        assert not isinstance(self.padding, str)  # noqa: S101 - both words are handled above
        return [e for p in reversed(self.padding) for e in (p, p)]

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution of x."""
        conv: Any = (F.conv1d, F.conv2d, F.conv3d)[self.dims - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            x = F.pad(x, self._pads(), mode=self.padding_mode)
            padding = 0
        out: Tensor = conv(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return out

    def extra_repr(self) -> str:
        """Return channels and window."""
        return f"{self.in_channels} -> {self.out_channels}, kernel {list(self.kernel_size)}"


_DOC = """Cross-correlation of [N, C, {axes}] (or without N) with a window per channel pair.

    y[n, o] = bias[o] + sum over c of weight[o, c] * x[n, c]

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: step in elements.
        padding: elements added on both sides, 'same' or 'valid'.
        dilation: distance of window elements.
        groups: independent groups of channels.
        bias: add a bias.
        padding_mode: zeros, reflect, replicate or circular.
        device: where the parameters live; default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        weight: [out_channels, in_channels / groups, *kernel_size]; bias: [out_channels]

    Raises:
        ArgumentError: channels do not divide by groups, or a size has the wrong length.

    Example:
        >>> import burn_tensor as bt
        >>> Conv{n}d(2, 4, 3)(bt.ones(1, 2, {ones})).shape
        (1, 4, {out})
    """


class Conv1d(_Conv):
    __doc__ = _DOC.format(n=1, axes="L", ones="5", out="3")
    dims = 1


class Conv2d(_Conv):
    __doc__ = _DOC.format(n=2, axes="H, W", ones="5, 5", out="3, 3")
    dims = 2


class Conv3d(_Conv):
    __doc__ = _DOC.format(n=3, axes="D, H, W", ones="5, 5, 5", out="3, 3, 3")
    dims = 3
