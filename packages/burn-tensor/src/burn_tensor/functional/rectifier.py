"""Piecewise linear activations: one map of the catalogue each.

`inplace` is an argument for PyTorch's sake and can only be False: tensors are values.
"""

from __future__ import annotations

from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import as_number, refuse_inplace
from burn_tensor.tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return max(x, 0).

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: ints and floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: bools.

    Gradient: 1 where x > 0, else 0.

    Example:
        >>> burn.functional.relu(burn.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    if inplace:
        refuse_inplace("relu")
    return input.b.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6).

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: ints and floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: bools.

    Gradient: 1 where 0 < x < 6, else 0.

    Example:
        >>> burn.functional.relu6(burn.tensor([-1.0, 2.0, 7.0])).tolist()
        [0.0, 2.0, 6.0]
    """
    if inplace:
        refuse_inplace("relu6")
    return input.b.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else negative_slope x.

    Args:
        input: any tensor.
        negative_slope: slope below 0.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: 1 where x > 0, else negative_slope.

    Example:
        >>> burn.functional.leaky_relu(burn.tensor([-2.0, 2.0]), 0.5).tolist()
        [-1.0, 2.0]
    """
    if inplace:
        refuse_inplace("leaky_relu")
    return input.b.leaky_relu(input, float(negative_slope))


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return leaky_relu with a random slope per element, its mean outside training.

    Args:
        input: any tensor.
        lower: least slope.
        upper: greatest slope.
        training: draw slopes; else (lower + upper) / 2.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: lower > upper, or inplace is set.
        DTypeError: ints and bools.

    Gradient: 1 where x > 0, else the slope drawn.

    Example:
        >>> burn.functional.rrelu(burn.tensor([-2.0, 2.0]), 0.25, 0.75).tolist()
        [-1.0, 2.0]

    Source: Xu et al., Empirical Evaluation of Rectified Activations in Convolutional Network, 2015
    """
    if inplace:
        refuse_inplace("rrelu")
    if lower > upper:
        raise ArgumentError("rrelu", "lower must not exceed upper", got=(lower, upper))
    b = input.b
    if not training:
        return b.leaky_relu(input, (lower + upper) / 2)
    slope = b.uniform(input.dtype, input.shape, lower, upper, b.next_key())
    return b.prelu(input, slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where x > 0, else weight x.

    Args:
        input: any tensor.
        weight: one slope, or one per channel (dim 1).

    Shapes:
        input: [B, C, *] or [*]
        weight: [], [1] or [C]
        returns: the input's

    DTypes: floats.

    Raises:
        ShapeError: weight has neither 1 nor C elements.
        DTypeError: ints and bools.

    Gradient: defined for both.

    Example:
        >>> burn.functional.prelu(burn.tensor([-2.0, 2.0]), burn.tensor([0.5])).tolist()
        [-1.0, 2.0]

    Source: He et al., Delving Deep into Rectifiers, 2015
    """
    shape, own = input.shape, weight.shape
    if own == (1,) or not own:
        if own and not shape:
            weight = weight.b.reshape(weight, ())
        return input.b.prelu(input, weight)
    channels = shape[1] if len(shape) > 1 else 1
    if own != (channels,):
        raise ShapeError(
            "prelu", "weight has one element or one per channel (dim 1)",
            got=f"input {list(shape)}, weight {list(own)}",
        )  # fmt: skip
    weight = weight.b.reshape(weight, (channels,) + (1,) * (len(shape) - 2))
    return input.b.prelu(input, weight)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where x > threshold, else value.

    Args:
        input: any tensor.
        threshold: the bound.
        value: what stands at or below it.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: ints and floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: bools.

    Gradient: 1 where x > threshold, else 0.

    Example:
        >>> burn.functional.threshold(burn.tensor([1.0, 3.0]), 2.0, 9.0).tolist()
        [9.0, 3.0]
    """
    if inplace:
        refuse_inplace("threshold")
    return input.b.threshold(
        input,
        as_number("threshold", "threshold", threshold),
        as_number("threshold", "value", value),
    )


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return x clamped to [min_val, max_val].

    Args:
        input: any tensor.
        min_val: lower bound.
        max_val: upper bound.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: ints and floats.

    Raises:
        ArgumentError: min_val > max_val, or inplace is set.
        DTypeError: bools.

    Gradient: 1 strictly between the bounds, else 0.

    Example:
        >>> burn.functional.hardtanh(burn.tensor([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """
    if inplace:
        refuse_inplace("hardtanh")
    if min_val > max_val:
        raise ArgumentError("hardtanh", "min_val must not exceed max_val", got=(min_val, max_val))
    return input.b.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return clamp(x + 3, 0, 6) / 6.

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: 1/6 where -3 < x < 3, else 0.

    Example:
        >>> burn.functional.hardsigmoid(burn.tensor([-4.0, 0.0])).tolist()
        [0.0, 0.5]
    """
    if inplace:
        refuse_inplace("hardsigmoid")
    return input.b.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x hardsigmoid(x).

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: 0 below -3, 1 above 3, (2 x + 3) / 6 between.

    Example:
        >>> burn.functional.hardswish(burn.tensor([0.0, 4.0])).tolist()
        [0.0, 4.0]

    Source: Howard et al., Searching for MobileNetV3, 2019
    """
    if inplace:
        refuse_inplace("hardswish")
    return input.b.hardswish(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, else 0.

    Args:
        input: any tensor.
        lambd: half width of the dead zone.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        DTypeError: ints and bools.

    Gradient: 1 where |x| > lambd, else 0.

    Example:
        >>> burn.functional.hardshrink(burn.tensor([0.25, 2.0])).tolist()
        [0.0, 2.0]
    """
    return input.b.hardshrink(input, float(lambd))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, 0 inside.

    Args:
        input: any tensor.
        lambd: how far, not negative.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: lambd is negative.
        DTypeError: ints and bools.

    Gradient: 1 where |x| > lambd, else 0.

    Example:
        >>> burn.functional.softshrink(burn.tensor([0.25, 2.0])).tolist()
        [0.0, 1.5]
    """
    if lambd < 0:
        raise ArgumentError("softshrink", "lambd must not be negative", got=lambd)
    return input.b.softshrink(input, float(lambd))
