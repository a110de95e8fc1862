"""Convolutions and their adjoints in 1 to 3 dims; each is one operation of the catalogue."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError
from burn_tensor.arguments import as_int
from burn_tensor.functional.extents import Extent, Ints, spread
from burn_tensor.tensor import Tensor

# (dims, stride, padding, dilation) as written to tuples of ints; padding None is "same".
_PLANS: dict[Any, tuple[Ints, Ints | None, Ints]] = {}


def _plan(
    op: str, n: int, stride: Extent, padding: Extent | str, dilation: Extent
) -> tuple[Ints, Ints | None, Ints]:
    strides = spread(op, "stride", stride, n)
    dilations = spread(op, "dilation", dilation, n)
    pads: Ints | None
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(op, "padding is ints, 'same' or 'valid'", got=repr(padding))
        if padding == "same" and set(strides) != {1}:
            raise ArgumentError(op, "padding 'same' needs stride 1", got=f"stride {stride}")
        pads = None if padding == "same" else (0,) * n
    else:
        pads = spread(op, "padding", padding, n)
    plan = strides, pads, dilations
    try:
        if len(_PLANS) > 1024:
            _PLANS.clear()
        _PLANS[n, stride, padding, dilation] = plan
    except TypeError:  # lists are not remembered
        pass
    return plan


def _same(input: Tensor, weight: Tensor, dilations: Ints) -> tuple[Tensor, Ints]:
    """Return the input and the padding that keep the extents; an odd rest is padded at the end."""
    totals = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=False)]
    if any(t % 2 for t in totals):
        still = ((0, 0),) * (len(input.shape) - len(totals))
        rest = tuple((0, t % 2) for t in totals)
        input = input.b.pad(input, "constant", still + rest, 0)
    return input, tuple(t // 2 for t in totals)


def _conv(
    op: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Extent, padding: Extent | str, dilation: Extent, groups: int,
) -> Tensor:  # fmt: skip
    try:
        strides, pads, dilations = _PLANS[n, stride, padding, dilation]
    except (KeyError, TypeError):
        strides, pads, dilations = _plan(op, n, stride, padding, dilation)
    if pads is None:
        input, pads = _same(input, weight, dilations)
    if groups.__class__ is not int:
        groups = _blocks(op, groups)
    b = input.b
    if len(input.shape) != n + 1:
        return b.conv(input, weight, bias, strides, pads, dilations, groups)
    one = b.unsqueeze(input, (0,))
    out = b.conv(one, weight, bias, strides, pads, dilations, groups)
    return out.b.squeeze(out, (0,))


def _blocks(op: str, groups: Any) -> int:
    if isinstance(groups, bool):
        raise DTypeError(op, "groups must be an integer", got=f"bool {groups}")
    return as_int(op, "groups", groups)


def _conv_transpose(
    op: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Extent, padding: Extent, output_padding: Extent, groups: int, dilation: Extent,
) -> Tensor:  # fmt: skip
    strides = spread(op, "stride", stride, n)
    pads = spread(op, "padding", padding, n)
    more = spread(op, "output_padding", output_padding, n)
    dilations = spread(op, "dilation", dilation, n)
    if groups.__class__ is not int:
        groups = _blocks(op, groups)
    b = input.b
    if len(input.shape) != n + 1:
        return b.conv_transpose(input, weight, bias, strides, pads, more, dilations, groups)
    one = b.unsqueeze(input, (0,))
    out = b.conv_transpose(one, weight, bias, strides, pads, more, dilations, groups)
    return out.b.squeeze(out, (0,))


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 1-D cross-correlation of the input with the weight, plus the bias.

    y[b, o, t] = bias[o] + sum over c, k of weight[o, c, k] x[b, c, t stride + k dilation - padding]

    Args:
        input: signals, batched or not.
        weight: filters.
        bias: one number per output channel.
        stride: step between windows.
        padding: zeros on both sides, `valid` for none, `same` to keep the extents (stride 1).
        dilation: step inside a window.
        groups: blocks of channels that do not see each other.

    Shapes:
        input: [B, C, L] or [C, L]
        weight: [O, C / groups, K]
        bias: [O]
        returns: [B, O, L'] with L' = (L + 2 padding - dilation (K - 1) - 1) // stride + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit, or the window exceeds the padded input.
        ArgumentError: an argument is out of range, or `same` with a stride.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.conv1d(burn.ones(1, 1, 4), burn.ones(1, 1, 2)).shape
        (1, 1, 3)
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 2-D cross-correlation of the input with the weight, plus the bias.

    y[b, o, t] = bias[o] + sum over c, k of weight[o, c, k] x[b, c, t stride + k dilation - padding]

    Args:
        input: signals, batched or not.
        weight: filters.
        bias: one number per output channel.
        stride: step between windows.
        padding: zeros on both sides, `valid` for none, `same` to keep the extents (stride 1).
        dilation: step inside a window.
        groups: blocks of channels that do not see each other.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        weight: [O, C / groups, K0, K1]
        bias: [O]
        returns: [B, O, H', W'] with L' = (L + 2 padding - dilation (K - 1) - 1) // stride + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit, or the window exceeds the padded input.
        ArgumentError: an argument is out of range, or `same` with a stride.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.conv2d(burn.ones(1, 1, 4, 4), burn.ones(1, 1, 2, 2)).shape
        (1, 1, 3, 3)
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 3-D cross-correlation of the input with the weight, plus the bias.

    y[b, o, t] = bias[o] + sum over c, k of weight[o, c, k] x[b, c, t stride + k dilation - padding]

    Args:
        input: signals, batched or not.
        weight: filters.
        bias: one number per output channel.
        stride: step between windows.
        padding: zeros on both sides, `valid` for none, `same` to keep the extents (stride 1).
        dilation: step inside a window.
        groups: blocks of channels that do not see each other.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        weight: [O, C / groups, K0, K1, K2]
        bias: [O]
        returns: [B, O, D', H', W'] with L' = (L + 2 padding - dilation (K - 1) - 1) // stride + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit, or the window exceeds the padded input.
        ArgumentError: an argument is out of range, or `same` with a stride.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.conv3d(burn.ones(1, 1, 4, 4, 4), burn.ones(1, 1, 2, 2, 2)).shape
        (1, 1, 3, 3, 3)
    """
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: int = 1,
    dilation: Extent = 1,
) -> Tensor:
    """Return the adjoint of `conv1d` applied to the input, plus the bias.

    <conv1d(x, w), y> = <x, conv_transpose1d(y, w)> for equal stride, padding, dilation and groups.

    Args:
        input: signals, batched or not.
        weight: filters, input channels first.
        bias: one number per output channel.
        stride: step between windows of the output.
        padding: what is cut from both sides of the output.
        output_padding: extra extent at the end, less than stride or dilation.
        groups: blocks of channels that do not see each other.
        dilation: step inside a window.

    Shapes:
        input: [B, C, L] or [C, L]
        weight: [C, O / groups, K]
        bias: [O]
        returns: [B, O, L'] with
            L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit.
        ArgumentError: an argument is out of range.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.conv_transpose1d(burn.ones(1, 1, 2), burn.ones(1, 1, 3), stride=2).shape
        (1, 1, 5)
    """
    return _conv_transpose(
        "conv_transpose1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: int = 1,
    dilation: Extent = 1,
) -> Tensor:
    """Return the adjoint of `conv2d` applied to the input, plus the bias.

    <conv2d(x, w), y> = <x, conv_transpose2d(y, w)> for equal stride, padding, dilation and groups.

    Args:
        input: signals, batched or not.
        weight: filters, input channels first.
        bias: one number per output channel.
        stride: step between windows of the output.
        padding: what is cut from both sides of the output.
        output_padding: extra extent at the end, less than stride or dilation.
        groups: blocks of channels that do not see each other.
        dilation: step inside a window.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        weight: [C, O / groups, K0, K1]
        bias: [O]
        returns: [B, O, H', W'] with
            L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit.
        ArgumentError: an argument is out of range.

    Gradient: defined for input, weight and bias.

    Example:
        >>> x, w = burn.ones(1, 1, 2, 2), burn.ones(1, 1, 3, 3)
        >>> burn.functional.conv_transpose2d(x, w, stride=2).shape
        (1, 1, 5, 5)
    """
    return _conv_transpose(
        "conv_transpose2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: int = 1,
    dilation: Extent = 1,
) -> Tensor:
    """Return the adjoint of `conv3d` applied to the input, plus the bias.

    <conv3d(x, w), y> = <x, conv_transpose3d(y, w)> for equal stride, padding, dilation and groups.

    Args:
        input: signals, batched or not.
        weight: filters, input channels first.
        bias: one number per output channel.
        stride: step between windows of the output.
        padding: what is cut from both sides of the output.
        output_padding: extra extent at the end, less than stride or dilation.
        groups: blocks of channels that do not see each other.
        dilation: step inside a window.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        weight: [C, O / groups, K0, K1, K2]
        bias: [O]
        returns: [B, O, D', H', W'] with
            L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32.

    Raises:
        ShapeError: ranks, channels or groups do not fit.
        ArgumentError: an argument is out of range.

    Gradient: defined for input, weight and bias.

    Example:
        >>> x, w = burn.ones(1, 1, 2, 2, 2), burn.ones(1, 1, 3, 3, 3)
        >>> burn.functional.conv_transpose3d(x, w, stride=2).shape
        (1, 1, 5, 5, 5)
    """
    return _conv_transpose(
        "conv_transpose3d",
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )
