"""Affine maps."""

from __future__ import annotations

import math

from burn_core import Module, Parameter, init
from burn_core.init import fresh
from burn_dispatch import Device
from burn_std import DType
from burn_tensor import Tensor, functional as F


class Linear(Module):
    """y = x W^T + b.

    Args:
        in_features: size of the last dim of the input.
        out_features: size of the last dim of the output.
        bias: add a bias.
        device: where the parameters live; default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        x: [..., in_features]; returns [..., out_features]
        weight: [out_features, in_features]; bias: [out_features]

    Example:
        >>> import burn_tensor as bt
        >>> Linear(3, 2)(bt.ones(4, 3)).shape
        (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(fresh((out_features, in_features), dtype, device))
        self.bias = Parameter(fresh((out_features,), dtype, device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight by Kaiming's rule and the bias from U(-1/sqrt(in), 1/sqrt(in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.in_features} -> {self.out_features}"


class Identity(Module):
    """Return the input; takes and ignores any constructor arguments, as PyTorch's does.

    Example:
        >>> import burn_tensor as bt
        >>> Identity()(bt.ones(1)).tolist()
        [1.0]
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Keep nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x."""
        return x


class Flatten(Module):
    """Merge the dims from start_dim to end_dim.

    Example:
        >>> import burn_tensor as bt
        >>> Flatten()(bt.ones(2, 3, 4)).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Return the flattened tensor."""
        return x.flatten(self.start_dim, self.end_dim)
