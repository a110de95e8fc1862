"""The partial inverse of max pooling, and p-norm pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_tensor.functional.extents import Extent, spread
from burn_tensor.functional.pooling import avg_pool1d, avg_pool2d, avg_pool3d
from burn_tensor.tensor import Tensor


def _max_unpool(
    op: str, n: int, input: Tensor, indices: Tensor, kernel: Extent, stride: Extent | None,
    padding: Extent, output_size: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    shape = input.shape
    if len(shape) not in (n + 1, n + 2) or indices.shape != shape:
        raise ShapeError(
            op, f"input needs {n + 1} or {n + 2} dims and indices its shape",
            got=f"input {list(shape)}, indices {list(indices.shape)}",
        )  # fmt: skip
    if not indices.dtype.is_int:
        raise DTypeError(op, "indices must be integers", got=indices.dtype)
    size = spread(op, "kernel_size", kernel, n)
    strides = size if stride is None else spread(op, "stride", stride, n)
    pads = spread(op, "padding", padding, n)
    if output_size is None:
        last = tuple(
            (e - 1) * s - 2 * p + k
            for e, s, p, k in zip(shape[-n:], strides, pads, size, strict=True)
        )
    else:
        last = tuple(output_size)[-n:]
    b = input.b
    rows = (prod(shape[:-n]), prod(shape[-n:]))
    flat = b.reshape(input, rows)
    # Overlapping windows name one place twice with the same value: assigned, not added.
    zeros = b.full(input.dtype, (rows[0], prod(last)), 0)
    out = b.scatter(zeros, b.reshape(indices, rows), flat, 1, "assign")
    return b.reshape(out, (*shape[:-n], *last))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the maxima of `max_pool1d` back at the places they came from.

    Args:
        input: pooled maxima.
        indices: their flat indices, from `return_indices=True`.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides.
        output_size: wanted shape or its last extent; several inputs pool to one size.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, L'] with L' = (L - 1) stride - 2 padding + K

    DTypes: any; indices are integers.

    Raises:
        ShapeError: ranks or shapes do not fit.

    Gradient: from the places that were filled.

    Example:
        >>> y, i = burn.functional.max_pool1d(burn.ones(1, 1, 4), 2, return_indices=True)
        >>> burn.functional.max_unpool1d(y, i, 2).shape
        (1, 1, 4)
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the maxima of `max_pool2d` back at the places they came from.

    Args:
        input: pooled maxima.
        indices: their flat indices, from `return_indices=True`.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides.
        output_size: wanted shape or its last 2 extents; several inputs pool to one size.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, H', W'] with L' = (L - 1) stride - 2 padding + K

    DTypes: any; indices are integers.

    Raises:
        ShapeError: ranks or shapes do not fit.

    Gradient: from the places that were filled.

    Example:
        >>> y, i = burn.functional.max_pool2d(burn.ones(1, 1, 4, 4), 2, return_indices=True)
        >>> burn.functional.max_unpool2d(y, i, 2).shape
        (1, 1, 4, 4)
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the maxima of `max_pool3d` back at the places they came from.

    Args:
        input: pooled maxima.
        indices: their flat indices, from `return_indices=True`.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        padding: positions on both sides.
        output_size: wanted shape or its last 3 extents; several inputs pool to one size.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, D', H', W'] with L' = (L - 1) stride - 2 padding + K

    DTypes: any; indices are integers.

    Raises:
        ShapeError: ranks or shapes do not fit.

    Gradient: from the places that were filled.

    Example:
        >>> y, i = burn.functional.max_pool3d(burn.ones(1, 1, 4, 4, 4), 2, return_indices=True)
        >>> burn.functional.max_unpool3d(y, i, 2).shape
        (1, 1, 4, 4, 4)
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _lp_pool(
    op: str, pool: Any, n: int, input: Tensor, norm_type: float, kernel: Extent,
    stride: Extent | None, ceil_mode: bool,
) -> Tensor:  # fmt: skip
    if not norm_type:
        raise ArgumentError(op, "norm_type is not 0", got=norm_type)
    b = input.b
    means = pool(b.pow(input, norm_type), kernel, stride, 0, ceil_mode)
    sums = b.mul(
        b.mul(b.sign(means), b.relu(b.abs(means))), prod(spread(op, "kernel_size", kernel, n))
    )
    return b.pow(sums, 1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (sum of x^p)^(1/p) over windows of the last dim.

    Args:
        input: signals, batched or not.
        norm_type: p, not 0.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        ceil_mode: keep a last window that hangs over.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, L'] with L' = (L - K) // stride + 1

    DTypes: floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the input.

    Gradient: defined where the sum is not 0.

    Example:
        >>> burn.functional.lp_pool1d(burn.ones(1, 1, 5), 2.0, 2).shape
        (1, 1, 2)
    """
    return _lp_pool("lp_pool1d", avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (sum of x^p)^(1/p) over windows of the last 2 dims.

    Args:
        input: signals, batched or not.
        norm_type: p, not 0.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        ceil_mode: keep a last window that hangs over.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, H', W'] with L' = (L - K) // stride + 1

    DTypes: floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the input.

    Gradient: defined where the sum is not 0.

    Example:
        >>> burn.functional.lp_pool2d(burn.ones(1, 1, 5, 5), 2.0, 2).shape
        (1, 1, 2, 2)
    """
    return _lp_pool("lp_pool2d", avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (sum of x^p)^(1/p) over windows of the last 3 dims.

    Args:
        input: signals, batched or not.
        norm_type: p, not 0.
        kernel_size: extents of a window.
        stride: step between windows; None is kernel_size.
        ceil_mode: keep a last window that hangs over.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, D', H', W'] with L' = (L - K) // stride + 1

    DTypes: floats.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the input.

    Gradient: defined where the sum is not 0.

    Example:
        >>> burn.functional.lp_pool3d(burn.ones(1, 1, 5, 5, 5), 2.0, 2).shape
        (1, 1, 2, 2, 2)
    """
    return _lp_pool("lp_pool3d", avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)
