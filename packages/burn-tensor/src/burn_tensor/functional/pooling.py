"""Pooling over windows in 1 to 3 dims: maxima, means and p-norms, fixed and adaptive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_tensor.functional.extents import Extent, Ints, spread
from burn_tensor.tensor import Tensor

Pair = tuple[Tensor, Tensor]
# (dims, kernel_size, stride, padding, dilation) as written to tuples of ints.
_PLANS: dict[Any, tuple[Ints, Ints, Ints, Ints]] = {}


def _plan(
    op: str, n: int, kernel: Extent, stride: Extent | None, padding: Extent, dilation: Extent
) -> tuple[Ints, Ints, Ints, Ints]:
    try:
        return _PLANS[n, kernel, stride, padding, dilation]
    except (KeyError, TypeError):
        pass
    size = spread(op, "kernel_size", kernel, n)
    # PyTorch reads an empty list as "not given".
    given = stride is not None and not (isinstance(stride, Sequence) and not stride)
    plan = (
        size,
        spread(op, "stride", stride, n) if given and stride is not None else size,
        spread(op, "padding", padding, n),
        spread(op, "dilation", dilation, n),
    )
    try:
        if len(_PLANS) > 1024:
            _PLANS.clear()
        _PLANS[n, kernel, stride, padding, dilation] = plan
    except TypeError:  # lists are not remembered
        pass
    return plan


def _max_pool(
    op: str, n: int, input: Tensor, kernel: Extent, stride: Extent | None, padding: Extent,
    dilation: Extent, ceil_mode: bool, return_indices: bool,
) -> Any:  # fmt: skip
    plan = _plan(op, n, kernel, stride, padding, dilation)
    b = input.b
    if len(input.shape) == n + 1:
        out = b.max_pool(b.unsqueeze(input, (0,)), *plan, ceil_mode)
        values, indices = b.squeeze(out[0], (0,)), b.squeeze(out[1], (0,))
    else:
        values, indices = b.max_pool(input, *plan, ceil_mode)
    return (values, indices) if return_indices else values


def _avg_pool(
    op: str, n: int, input: Tensor, kernel: Extent, stride: Extent | None, padding: Extent,
    ceil_mode: bool, count_include_pad: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    size, strides, pads, _ = _plan(op, n, kernel, stride, padding, 1)
    b = input.b
    if len(input.shape) != n + 1:
        return b.avg_pool(input, size, strides, pads, ceil_mode, count_include_pad, divisor)
    one = b.unsqueeze(input, (0,))
    out = b.avg_pool(one, size, strides, pads, ceil_mode, count_include_pad, divisor)
    return b.squeeze(out, (0,))


def max_pool1d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows over the last dim; NaN wins, padding never does.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides, at most half a window.
        dilation: step inside a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, L'], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.max_pool1d(burn.ones(1, 1, 5), 2).shape
        (1, 1, 2)
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows over the last 2 dims; NaN wins, padding never does.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides, at most half a window.
        dilation: step inside a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, H', W'], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.max_pool2d(burn.ones(1, 1, 5, 5), 2).shape
        (1, 1, 2, 2)
    """
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool3d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows over the last 3 dims; NaN wins, padding never does.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides, at most half a window.
        dilation: step inside a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, D', H', W'], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.max_pool3d(burn.ones(1, 1, 5, 5, 5), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _max_pool(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def avg_pool1d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the means of windows over the last dim.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: zeros on both sides, at most half a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        count_include_pad: zeros of the padding count in the mean.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, L'] with L' = (L + 2 padding - K) // stride + 1

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.avg_pool1d(burn.ones(1, 1, 5), 2).shape
        (1, 1, 2)
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the means of windows over the last 2 dims.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: zeros on both sides, at most half a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        count_include_pad: zeros of the padding count in the mean.
        divisor_override: what sums are divided by instead of the count.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, H', W'] with L' = (L + 2 padding - K) // stride + 1

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.avg_pool2d(burn.ones(1, 1, 5, 5), 2).shape
        (1, 1, 2, 2)
    """
    return _avg_pool(
        "avg_pool2d",
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the means of windows over the last 3 dims.

    Args:
        input: signals, batched or not.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: zeros on both sides, at most half a window.
        ceil_mode: keep a last window that hangs over, if it starts inside input or left padding.
        count_include_pad: zeros of the padding count in the mean.
        divisor_override: what sums are divided by instead of the count.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, D', H', W'] with L' = (L + 2 padding - K) // stride + 1

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.avg_pool3d(burn.ones(1, 1, 5, 5, 5), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _avg_pool(
        "avg_pool3d",
        3,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )
