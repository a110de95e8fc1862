"""Affine maps and what changes shapes only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from burn_core import Module, Parameter, init
from burn_dispatch import Device
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, functional as F


class Linear(Module):
    """y = x W^T + b.

    Args:
        in_features: size of the last dim of the input.
        out_features: size of the last dim of the output.
        bias: add a bias.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [..., in_features]; returns [..., out_features]
        weight: [out_features, in_features]; bias: [out_features]

    Example:
        >>> burn.nn.Linear(3, 2)(burn.ones(4, 3)).shape
        (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(init.fresh((out_features, in_features), dtype, device))
        self.bias = Parameter(init.fresh((out_features,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(in), 1/sqrt(in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return x W^T + b."""
        weight = self.weight
        context = input.b
        other = getattr(weight, "b", context)
        # Of data that is not tracked, as a first layer has it, the weight's function need not ask.
        if other is not context and other.is_autodiff and other.resource is context.resource:
            context = other
        return context.linear(input, weight, self.bias)


class Bilinear(Module):
    """y[k] = x1^T W[k] x2 + b[k].

    Args:
        in1_features: size of the last dim of the first input.
        in2_features: size of the last dim of the second input.
        out_features: size of the last dim of the output.
        bias: add a bias.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input1: [..., in1_features]; input2: [..., in2_features]; returns [..., out_features]
        weight: [out_features, in1_features, in2_features]; bias: [out_features]

    Example:
        >>> burn.nn.Bilinear(3, 4, 2)(burn.ones(5, 3), burn.ones(5, 4)).shape
        (5, 2)
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if in1_features < 1:
            raise ArgumentError("Bilinear", "in1_features is positive", got=in1_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.fresh(shape, dtype, device))
        self.bias = Parameter(init.fresh((out_features,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill weight and bias from U(-1/sqrt(in1), 1/sqrt(in1))."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return x1^T W x2 + b."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class Identity(Module):
    """Return the input; takes and ignores any constructor arguments, as PyTorch's does.

    Args:
        args: ignored.
        kwargs: ignored.

    Example:
        >>> burn.nn.Identity()(burn.ones(1)).tolist()
        [1.0]
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Keep nothing."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Flatten(Module):
    """Merge the dims from start_dim to end_dim.

    Args:
        start_dim: first of the dims that become one.
        end_dim: last of them.

    Example:
        >>> burn.nn.Flatten()(burn.ones(2, 3, 4)).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with dims merged."""
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Split a dim into several.

    Args:
        dim: the dim.
        unflattened_size: extents of the new dims.

    Example:
        >>> burn.nn.Unflatten(1, (3, 4))(burn.ones(2, 12)).shape
        (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with the dim split."""
        return input.unflatten(self.dim, self.unflattened_size)
