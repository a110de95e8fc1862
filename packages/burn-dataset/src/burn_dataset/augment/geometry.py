"""Changes of size and direction: pixels are computed from their neighbours."""

from __future__ import annotations

from functools import lru_cache
from math import cos, log, radians, sin, sqrt
from typing import Any, Literal

import numpy as np

from burn_dataset.augment.image import Array, Rng, cut, image, pair
from burn_std import ArgumentError

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def _triangle(x: Array) -> Array:
    out: Array = np.maximum(1 - np.abs(x), 0)
    return out


def _cubic(x: Array) -> Array:
    """Return Keys' kernel with a = -1/2."""
    x = np.abs(x)
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, inner, np.where(x < 2, outer, 0.0))


_KERNELS: dict[str, tuple[Any, int]] = {"bilinear": (_triangle, 1), "bicubic": (_cubic, 2)}


@lru_cache(maxsize=256)
def _weights(size: int, target: int, interpolation: str) -> Array:
    """Return the matrix [target, size] that resizes a line; smaller lines are averages."""
    scale = size / target
    if interpolation == "nearest":
        taken: Array = np.zeros((target, size), np.float32)
        taken[np.arange(target), (np.arange(target) * scale).astype(int)] = 1
        return taken
    kernel, reach = _KERNELS[interpolation]
    wide = max(scale, 1.0)
    centres = (np.arange(target) + 0.5) * scale
    weights = kernel((np.arange(size) + 0.5 - centres[:, None]) / wide)
    # What lies outside the reach of a whole pixel does not count, as in PIL.
    low = np.maximum((centres - reach * wide + 0.5).astype(int), 0)
    high = np.minimum((centres + reach * wide + 0.5).astype(int), size)
    places = np.arange(size)
    weights *= (places >= low[:, None]) & (places < high[:, None])
    out: Array = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return out


def resized(a: Array, size: tuple[int, int], interpolation: str) -> Array:
    """Return an image in another size; integers are rounded and kept in their range."""
    if a.shape[1:] == size:
        return a
    rows = _weights(a.shape[1], size[0], interpolation)
    columns = _weights(a.shape[2], size[1], interpolation)
    if interpolation == "nearest":
        return np.ascontiguousarray(a[:, rows.argmax(1)][:, :, columns.argmax(1)])
    out: Array = np.matmul(rows, np.matmul(a.astype(np.float32), columns.T))
    return _as_given(out, a)


def _as_given(out: Array, a: Array) -> Array:
    """Return floats as they are, or as integers in the range of those given."""
    if a.dtype.kind not in "iu":
        return out
    ends = np.iinfo(a.dtype)
    whole: Array = np.clip(np.rint(out), ends.min, ends.max).astype(a.dtype)
    return whole


def _known(name: str, interpolation: str) -> str:
    if interpolation != "nearest" and interpolation not in _KERNELS:
        raise ArgumentError(
            name, "interpolation is nearest, bilinear or bicubic", got=repr(interpolation)
        )
    return interpolation


class Resize:
    """Another size, by weighted means of all pixels under a new one (antialiased).

    Args:
        size: (height, width), or the extent of the shorter side, whose ratio to the other is kept.
        interpolation: nearest, bilinear or bicubic.

    Raises:
        ArgumentError: an extent is not positive, or an unknown interpolation.

    Example:
        >>> import numpy as np
        >>> Resize(2)(np.arange(16.0).reshape(1, 4, 4)).shape
        (1, 2, 2)

    Source: as torchvision's Resize with antialias, and PIL's resize.
    """

    def __init__(
        self, size: int | tuple[int, int], interpolation: Interpolation = "bilinear"
    ) -> None:
        self.size = size
        if min(pair(size)) < 1:
            raise ArgumentError("Resize", "extents are positive", got=size)
        self.interpolation = _known("Resize", interpolation)

    def __call__(self, x: Any) -> Array:
        """Return the image in the size."""
        a = image("Resize", x)
        size = self.size
        if isinstance(size, int):
            h, w = a.shape[1:]
            short = min(h, w)
            size = (int(size * h / short), int(size * w / short))
        return resized(a, size, self.interpolation)


class RandomResizedCrop:
    """A part of random area and ratio, in a given size.

    Args:
        size: height and width, or (height, width).
        scale: least and largest share of the area.
        ratio: least and largest ratio of width to height.
        interpolation: nearest, bilinear or bicubic.

    Raises:
        ArgumentError: a range is empty or not positive.

    Example:
        >>> import numpy as np
        >>> RandomResizedCrop(4)(np.zeros((3, 9, 7)), np.random.default_rng(0)).shape
        (3, 4, 4)
    """

    random = True

    def __init__(
        self, size: int | tuple[int, int], scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3), interpolation: Interpolation = "bilinear",
    ) -> None:  # fmt: skip
        if not (0 < scale[0] <= scale[1] and 0 < ratio[0] <= ratio[1]):
            raise ArgumentError(
                "RandomResizedCrop", "0 < least <= largest", got=f"{scale=}, {ratio=}"
            )
        self.size = pair(size)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = _known("RandomResizedCrop", interpolation)

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the part in the size."""
        a = image("RandomResizedCrop", x)
        part = self._part(a, rng)
        return resized(part, self.size, self.interpolation)

    def _part(self, a: Array, rng: Rng) -> Array:
        rows, columns = a.shape[1:]
        for _ in range(10):
            area = rng.uniform(*self.scale) * rows * columns
            ratio = np.exp(rng.uniform(log(self.ratio[0]), log(self.ratio[1])))
            h, w = round(sqrt(area / ratio)), round(sqrt(area * ratio))
            if 0 < h <= rows and 0 < w <= columns:
                top, left = int(rng.integers(rows - h + 1)), int(rng.integers(columns - w + 1))
                return cut(a, top, left, (h, w))
        # Nothing fits: the largest part in the middle of a ratio within bounds.
        ratio = min(max(columns / rows, self.ratio[0]), self.ratio[1])
        h, w = min(rows, round(columns / ratio)), min(columns, round(rows * ratio))
        return cut(a, (rows - h) // 2, (columns - w) // 2, (h, w))


class RandomRotation:
    """The image turned about its middle, counter-clockwise, by a random angle; its size stays.

    Args:
        degrees: least and largest angle, or the largest in both directions.
        interpolation: nearest or bilinear.
        fill: what shows where the image was not.

    Raises:
        ArgumentError: the range is empty, or an unknown interpolation.

    Example:
        >>> import numpy as np
        >>> image, rng = np.array([[[1, 2], [3, 4]]]), np.random.default_rng(0)
        >>> RandomRotation((90, 90))(image, rng).tolist()
        [[[2, 4], [1, 3]]]
    """

    random = True

    def __init__(
        self, degrees: float | tuple[float, float], interpolation: Interpolation = "nearest",
        fill: float = 0,
    ) -> None:  # fmt: skip
        low, high = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        if not low <= high:
            raise ArgumentError("RandomRotation", "least <= largest", got=degrees)
        if interpolation not in ("nearest", "bilinear"):
            raise ArgumentError(
                "RandomRotation", "interpolation is nearest or bilinear", got=repr(interpolation)
            )
        self.degrees = (low, high)
        self.interpolation = interpolation
        self.fill = fill

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the turned image."""
        a = image("RandomRotation", x)
        angle = radians(rng.uniform(*self.degrees))
        rows, columns = a.shape[1:]
        down = np.arange(rows)[:, None] - (rows - 1) / 2
        right = np.arange(columns) - (columns - 1) / 2
        # Where each new pixel comes from. Rounded, so that a right angle meets whole pixels.
        source = (right * sin(angle) + down * cos(angle), right * cos(angle) - down * sin(angle))
        y = np.round(source[0] + (rows - 1) / 2, 6)
        x_ = np.round(source[1] + (columns - 1) / 2, 6)
        if self.interpolation == "nearest":
            return self._taken(a, np.rint(y).astype(int), np.rint(x_).astype(int))
        top, left = np.floor(y).astype(int), np.floor(x_).astype(int)
        v, u = (y - top).astype(np.float32), (x_ - left).astype(np.float32)
        f = a.astype(np.float32)
        upper = self._taken(f, top, left) * (1 - u) + self._taken(f, top, left + 1) * u
        lower = self._taken(f, top + 1, left) * (1 - u) + self._taken(f, top + 1, left + 1) * u
        return _as_given(upper * (1 - v) + lower * v, a)

    def _taken(self, a: Array, y: Array, x: Array) -> Array:
        inside = (y >= 0) & (y < a.shape[1]) & (x >= 0) & (x < a.shape[2])
        found = a[:, np.clip(y, 0, a.shape[1] - 1), np.clip(x, 0, a.shape[2] - 1)]
        return np.where(inside, found, np.asarray(self.fill).astype(a.dtype))


class Pad:
    """A border of one value.

    Args:
        padding: pixels on all sides, or (left and right, top and bottom), or
            (left, top, right, bottom), as torchvision has it.
        fill: the value.

    Raises:
        ArgumentError: a side is negative, or their number is odd.

    Example:
        >>> import numpy as np
        >>> Pad((1, 0))(np.ones((1, 1, 1))).tolist()
        [[[0.0, 1.0, 0.0]]]
    """

    def __init__(self, padding: int | tuple[int, ...], fill: float = 0) -> None:
        sides = (padding,) if isinstance(padding, int) else tuple(padding)
        if len(sides) not in (1, 2, 4) or min(sides) < 0:
            raise ArgumentError("Pad", "one, two or four sides, not negative", got=padding)
        self.sides = sides * (4 // len(sides))
        self.fill = fill

    def __call__(self, x: Any) -> Array:
        """Return the image with its border."""
        left, top, right, bottom = self.sides
        spread = ((0, 0), (top, bottom), (left, right))
        return np.pad(image("Pad", x), spread, constant_values=self.fill)
