"""Piecewise linear activations as modules; PyTorch's names and defaults."""

from __future__ import annotations

from burn_core import Module, Parameter, init, is_training
from burn_dispatch import Device, plain_scalar
from burn_std import DType, DTypeError
from burn_tensor import Tensor, functional as F


class ReLU(Module):
    """max(x, 0), elementwise.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.ReLU()(burn.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return input.b.relu(input)


class ReLU6(Module):
    """min(max(x, 0), 6), elementwise.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.ReLU6()(burn.tensor([-1.0, 7.0])).tolist()
        [0.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.relu6(input)


class LeakyReLU(Module):
    """x where x > 0, else negative_slope x.

    Args:
        negative_slope: slope below 0.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.LeakyReLU(0.5)(burn.tensor([-1.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.leaky_relu(input, self.negative_slope)


class Hardtanh(Module):
    """x cut to [min_val, max_val].

    Args:
        min_val: lower bound.
        max_val: upper bound.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.Hardtanh()(burn.tensor([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardtanh(input, self.min_val, self.max_val)


class Hardsigmoid(Module):
    """min(max(x + 3, 0), 6) / 6, elementwise.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.Hardsigmoid()(burn.tensor([0.0])).tolist()
        [0.5]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardsigmoid(input)


class Hardswish(Module):
    """x min(max(x + 3, 0), 6) / 6, elementwise.

    Args:
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.Hardswish()(burn.tensor([-4.0, 3.0])).tolist()
        [-0.0, 3.0]

    Source: Howard et al. 2019
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardswish(input)


class Hardshrink(Module):
    """x where |x| > lambd, else 0.

    Args:
        lambd: half the width of what becomes 0.

    Example:
        >>> burn.nn.Hardshrink()(burn.tensor([0.2, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardshrink(input, self.lambd)


class Softshrink(Module):
    """x moved towards 0 by lambd; 0 where |x| <= lambd.

    Args:
        lambd: how far; not negative.

    Example:
        >>> burn.nn.Softshrink()(burn.tensor([0.2, 2.0])).tolist()
        [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """x where x > threshold, else value.

    Args:
        threshold: the bound.
        value: what replaces elements at or below it.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.Threshold(0.5, 9.0)(burn.tensor([0.0, 1.0])).tolist()
        [9.0, 1.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.threshold(input, self.threshold, self.value)


class Shrink(Module):
    """x - bias where x > lambd, x + bias where x < -lambd, else 0.

    Args:
        lambd: half the width of what becomes 0.
        bias: how far the rest moves towards 0.

    Example:
        >>> burn.nn.Shrink(0.5, 0.25)(burn.tensor([0.2, 2.0, -2.0])).tolist()
        [0.0, 1.75, -1.75]
    """

    def __init__(self, lambd: float = 0.5, bias: float = 0.5) -> None:
        for key, value in (("lambd", lambd), ("bias", bias)):
            if plain_scalar(value) is None:
                raise DTypeError("Shrink", f"{key} must be a number", got=type(value).__name__)
        self.lambd = lambd
        self.bias = bias

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        moved = input - input.sign() * self.bias
        return moved.where(input.abs() > self.lambd, 0.0)


class ThresholdedReLU(Module):
    """x where x > alpha, else 0.

    Args:
        alpha: the bound.

    Example:
        >>> burn.nn.ThresholdedReLU()(burn.tensor([0.5, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.threshold(input, self.alpha, 0.0)


class PReLU(Module):
    """x where x > 0, else weight x, with a learned weight for all or per channel (dim 1).

    Args:
        num_parameters: 1, or the number of channels.
        init: first value of the weight.
        device: where the parameter lives; the default device if None.
        dtype: of the parameter; the device's default float if None.

    Example:
        >>> burn.nn.PReLU()(burn.tensor([-4.0, 4.0])).tolist()
        [-1.0, 4.0]

    Source: He et al. 2015
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.num_parameters = num_parameters
        self.weight = Parameter(fresh((num_parameters,), dtype, device))
        constant_(self.weight, init)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.prelu(input, self.weight)


class RReLU(Module):
    """x where x > 0, else slope x, the slope drawn from U(lower, upper) in training.

    Outside training the slope is (lower + upper) / 2.

    Args:
        lower: smallest slope.
        upper: largest slope.
        inplace: leave to overwrite the input, which is never made use of.

    Example:
        >>> burn.nn.RReLU(0.25, 0.75)(burn.tensor([-2.0, 2.0])).tolist()
        [-1.0, 2.0]

    Source: Xu et al. 2015
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.rrelu(input, self.lower, self.upper, is_training())


# `init` is an argument of PReLU, so the module of that name is read here.
fresh = init.fresh
constant_ = init.constant_
