"""Layers that learn their input size from the first input, and then are the plain layer."""

from __future__ import annotations

from operator import index
from typing import Any, ClassVar

from burn_core import Module, Parameter, source_of
from burn_dispatch import Device
from burn_nn.conv import Conv1d, Conv2d, Conv3d
from burn_nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from burn_nn.extent import Extent, Pads
from burn_nn.linear import Linear
from burn_std import DType, ShapeError, unwritten
from burn_tensor import Tensor


class Lazy(Module):
    """What lazy layers share: the first call gives every parameter its shape and value.

    A `valid()` copy that is called first gives them to the module it was made from.
    """

    plain: ClassVar[type[Module]]
    # The attribute that the input decides, and the dim of the input that tells.
    size: ClassVar[str]
    dim: ClassVar[int] = 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters, now that the size is known."""
        raise unwritten(self, "shapes")

    def forward(self, input: Tensor, *args: Any) -> Any:
        """Take the size from the first input, become the plain layer and run it."""
        home: Any = source_of(self)
        size = self.size
        plain: Any = self.plain
        if isinstance(home, Lazy):
            home._materialize(input)
        self.__dict__[size] = home.__dict__[size]
        self.__class__ = plain
        return type(self).forward(self, input, *args)

    def _materialize(self, input: Tensor) -> None:
        rank = -self.dim if self.dim < 0 else self.dim + 1
        if len(input.shape) < rank:
            name = type(self).__name__
            raise ShapeError(name, f"needs {rank} dims at least", got=list(input.shape))
        self.__dict__[self.size] = input.shape[self.dim]
        lazy = [
            (p, shape) for name, shape in self.shapes().items()
            if isinstance(p := getattr(self, name), Parameter) and not p.is_initialized
        ]  # fmt: skip
        for p, shape in lazy:
            p.set(p.b.resource.plain_context().full(p.dtype, shape, 0))
        plain: Any = self.plain
        self.__class__ = plain
        # A loaded state has given the values already.
        if len(lazy) == sum(1 for _ in self.parameters()):
            plain.reset_parameters(self)


class LazyLinear(Lazy, Linear):
    """A `Linear` that takes in_features from its first input.

    Args:
        out_features: size of the last dim of the output.
        bias: add a bias.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> layer = burn.nn.LazyLinear(2)
        >>> layer(burn.ones(4, 3)).shape, type(layer).__name__, layer.weight.shape
        ((4, 2), 'Linear', (2, 3))
    """

    plain = Linear
    size = "in_features"
    dim = -1

    def __init__(
        self, out_features: int, bias: bool = True, device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.in_features = 0
        self.out_features = index(out_features)
        self.weight = Parameter.lazy(dtype, device)
        self.bias = Parameter.lazy(dtype, device) if bias else None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters."""
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConv(Lazy):
    """What the lazy convolutions share."""

    size = "in_channels"
    dims: int
    in_channels: int
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]

    def _start(self, plain: Any, bias: bool, device: Device | None, dtype: DType | None) -> None:
        """Take the settings of a layer of the smallest size; its parameters become lazy ones."""
        settings = {k: v for k, v in plain.__dict__.items() if not k.startswith("__")}
        settings |= {"in_channels": 0, "weight": Parameter.lazy(dtype, device)}
        settings["bias"] = Parameter.lazy(dtype, device) if bias else None
        self.__dict__.update(settings)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters."""
        weight = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        return {"weight": weight, "bias": (self.out_channels,)}


class _LazyForward(_LazyConv):
    """Lazy convolutions."""

    def __init__(
        self, out_channels: int, kernel_size: Extent, stride: Extent = 1,
        padding: Extent | Pads | str = 0, dilation: Extent = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        kind: Any = self.plain
        made = kind(groups, out_channels, kernel_size, stride, padding, dilation, groups, False,
                    padding_mode, device, dtype)  # fmt: skip
        self._start(made, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    """Lazy transposed convolutions."""

    def __init__(
        self, out_channels: int, kernel_size: Extent, stride: Extent = 1, padding: Extent = 0,
        output_padding: Extent = 0, groups: int = 1, bias: bool = True, dilation: Extent = 1,
        padding_mode: str = "zeros", device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        kind: Any = self.plain
        made = kind(groups, out_channels, kernel_size, stride, padding, output_padding, groups,
                    False, dilation, padding_mode, device, dtype)  # fmt: skip
        self._start(made, bias, device, dtype)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters."""
        weight = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return {"weight": weight, "bias": (self.out_channels,)}


class LazyConv1d(_LazyForward, Conv1d):
    """A `Conv1d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements added on both sides, pairs (before, after), `valid` or `same`.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: as in `Conv1d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConv1d(4, 3)(burn.ones(1, 2, 5)).shape
        (1, 4, 3)
    """

    plain = Conv1d
    dim = -2


class LazyConv2d(_LazyForward, Conv2d):
    """A `Conv2d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements added on both sides, pairs (before, after), `valid` or `same`.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: as in `Conv2d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConv2d(4, 3)(burn.ones(1, 2, 5, 5)).shape
        (1, 4, 3, 3)
    """

    plain = Conv2d
    dim = -3


class LazyConv3d(_LazyForward, Conv3d):
    """A `Conv3d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements added on both sides, pairs (before, after), `valid` or `same`.
        dilation: steps inside a window.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        padding_mode: as in `Conv3d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConv3d(4, 3)(burn.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 3, 3, 3)
    """

    plain = Conv3d
    dim = -4


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A `ConvTranspose1d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: steps inside a window.
        padding_mode: as in `ConvTranspose1d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConvTranspose1d(4, 3)(burn.ones(1, 2, 5)).shape
        (1, 4, 7)
    """

    plain = ConvTranspose1d
    dim = -2


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A `ConvTranspose2d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: steps inside a window.
        padding_mode: as in `ConvTranspose2d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConvTranspose2d(4, 3)(burn.ones(1, 2, 5, 5)).shape
        (1, 4, 7, 7)
    """

    plain = ConvTranspose2d
    dim = -3


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A `ConvTranspose3d` that takes in_channels from its first input.

    Args:
        out_channels: C of the output.
        kernel_size: extents of the window.
        stride: steps between windows.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of the output.
        groups: blocks of channels that do not see each other.
        bias: add a bias.
        dilation: steps inside a window.
        padding_mode: as in `ConvTranspose3d`.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Example:
        >>> burn.nn.LazyConvTranspose3d(4, 3)(burn.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 7, 7, 7)
    """

    plain = ConvTranspose3d
    dim = -4
