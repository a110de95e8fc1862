"""What changes of images share: what an image is, sizes, chances."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_std import ArgumentError, ShapeError

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


def image(name: str, x: Any) -> Array:
    """Return an image [C, H, W] as an array."""
    a = np.asarray(x)
    if a.ndim != 3:
        raise ShapeError(name, "an image is [C, H, W]", got=a.shape)
    return a


def pair(size: int | tuple[int, int]) -> tuple[int, int]:
    """Return a size as (height, width)."""
    return (size, size) if isinstance(size, int) else size


def room(name: str, a: Array, size: tuple[int, int]) -> tuple[int, int]:
    """Return how far a part of that size can be moved down and to the right."""
    h, w = a.shape[1] - size[0], a.shape[2] - size[1]
    if h < 0 or w < 0:
        raise ShapeError(name, f"the image is at least {size[0]} x {size[1]}", got=a.shape)
    return h, w


def cut(a: Array, top: int, left: int, size: tuple[int, int]) -> Array:
    """Return a part of an image, as memory of its own."""
    return np.ascontiguousarray(a[:, top : top + size[0], left : left + size[1]])


def chance(name: str, p: float) -> float:
    """Return a probability, checked."""
    if not 0 <= p <= 1:
        raise ArgumentError(name, "a chance is in [0, 1]", got=p)
    return p
