"""Pooling to a wanted size: windows that tile the input, means and maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_std import ArgumentError, ShapeError
from burn_tensor.functional.extents import Ints
from burn_tensor.tensor import Tensor

# An extent per spatial dim; None keeps the input's.
Sizes = int | None | Sequence[int | None]


def _sizes(op: str, value: Sizes, shape: Ints, n: int) -> Ints:
    """Return an adaptive output size; None keeps the input's extent."""
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(op, f"needs {n + 1} or {n + 2} dims", got=list(shape))
    if isinstance(value, int):
        return (value,) * n
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    if len(sizes) == 1:
        sizes *= n
    if len(sizes) != n:
        raise ArgumentError(op, f"output_size is an int or {n} of them", got=f"{value!r}")
    last = shape[len(shape) - n :]
    return tuple(e if s is None else s for s, e in zip(sizes, last, strict=True))


def _adaptive_max(op: str, n: int, input: Tensor, size: Sizes, return_indices: bool) -> Any:
    b = input.b
    sizes = _sizes(op, size, input.shape, n)
    if len(input.shape) == n + 1:
        out = b.adaptive_max_pool(b.unsqueeze(input, (0,)), sizes)
        values, indices = b.squeeze(out[0], (0,)), b.squeeze(out[1], (0,))
    else:
        values, indices = b.adaptive_max_pool(input, sizes)
    return (values, indices) if return_indices else values


def _adaptive_avg(op: str, n: int, input: Tensor, size: Sizes) -> Tensor:
    b = input.b
    sizes = _sizes(op, size, input.shape, n)
    if len(input.shape) == n + 1:
        return b.squeeze(b.adaptive_avg_pool(b.unsqueeze(input, (0,)), sizes), (0,))
    return b.adaptive_avg_pool(input, sizes)


def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return the means of windows that tile the last dim to a wanted size.

    Window i of an extent L and a size S runs from i L // S to ceil((i + 1) L / S).

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, S]

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.adaptive_avg_pool1d(burn.ones(1, 1, 5), 2).shape
        (1, 1, 2)
    """
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Return the maxima of windows that tile the last dim to a wanted size.

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: [B, C, S], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.adaptive_max_pool1d(burn.ones(1, 1, 5), 2).shape
        (1, 1, 2)
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return the means of windows that tile the last 2 dims to a wanted size.

    Window i of an extent L and a size S runs from i L // S to ceil((i + 1) L / S).

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, S0, S1]

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.adaptive_avg_pool2d(burn.ones(1, 1, 5, 5), 2).shape
        (1, 1, 2, 2)
    """
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Return the maxima of windows that tile the last 2 dims to a wanted size.

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C, S0, S1], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.adaptive_max_pool2d(burn.ones(1, 1, 5, 5), 2).shape
        (1, 1, 2, 2)
    """
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return the means of windows that tile the last 3 dims to a wanted size.

    Window i of an extent L and a size S runs from i L // S to ceil((i + 1) L / S).

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, S0, S1, S2]

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: spread evenly over each window.

    Example:
        >>> burn.functional.adaptive_avg_pool3d(burn.ones(1, 1, 5, 5, 5), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Return the maxima of windows that tile the last 3 dims to a wanted size.

    Args:
        input: signals, batched or not.
        output_size: extent per dim, an int for all, None to keep one.
        return_indices: also return the flat index of each maximum in its plane.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: [B, C, S0, S1, S2], with return_indices a pair of them, the second int64

    DTypes: ints and floats.

    Raises:
        ShapeError: ranks do not fit.
        ArgumentError: output_size has another length.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.adaptive_max_pool3d(burn.ones(1, 1, 5, 5, 5), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)
