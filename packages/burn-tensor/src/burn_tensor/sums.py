"""Integrals of sampled functions; and `polygamma`, whose function has the order first."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError
from burn_tensor.arguments import Number, as_float, need_dim, need_tensor, one_dim
from burn_tensor.tensor import Tensor


def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the derivative of digamma, n times, as `Tensor.polygamma`.

    Args:
        n: how often, up to 100; 0 is digamma itself.
        input: where.

    Gradient: g polygamma(n + 1, input).

    Example:
        >>> burn.polygamma(1, burn.tensor([1.0]))
        tensor([1.6449])
    """
    need_tensor("polygamma", "input", input)
    return input.polygamma(n)


def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Return the integral along a dim by the trapezoidal rule.

    Args:
        y: values of the function.
        x: where they were taken; broadcasts to y.
        dx: their distance, if it is one; 1 if neither is given.
        dim: the dim.

    Raises:
        ArgumentError: both x and dx are given.
        ShapeError: rank 0.

    Gradient: defined for y and x.

    Example:
        >>> burn.trapezoid(burn.tensor([1.0, 2.0, 3.0]))
        tensor(4.)
    """
    d, areas = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(d)


def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Return the integrals up to each sample along a dim by the trapezoidal rule.

    Args:
        y: values of the function.
        x: where they were taken; broadcasts to y.
        dx: their distance, if it is one; 1 if neither is given.
        dim: the dim, which loses one.

    Raises:
        ArgumentError: both x and dx are given.
        ShapeError: rank 0.

    Gradient: defined for y and x.

    Example:
        >>> burn.cumulative_trapezoid(burn.tensor([1.0, 2.0, 3.0]))
        tensor([1.5000, 4.0000])
    """
    d, areas = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d)


def _areas(op: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[int, Tensor]:
    need_tensor(op, "y", y)
    if x is not None and dx is not None:
        raise ArgumentError(op, "takes x or dx", got="both")
    need_dim(op, y)
    d = one_dim(op, dim, len(y.shape))
    n = y.size(d)
    y = as_float(y)
    heights = (y.narrow(d, 1, max(n - 1, 0)) + y.narrow(d, 0, max(n - 1, 0))) / 2 if n else y
    if x is None:
        return d, heights if dx in (None, 1) else heights * dx
    if len(x.shape) == 1 and len(y.shape) > 1:
        x = x.reshape((-1,) + (1,) * (len(y.shape) - d - 1))
    return d, heights * x.diff(dim=d - len(y.shape))
