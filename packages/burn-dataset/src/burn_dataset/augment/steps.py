"""Plain and random changes that keep pixels where they are, or cut and flip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burn_dataset.augment.image import Array, Rng, chance, cut, image, pair, room
from burn_std import ArgumentError, ShapeError


class Compose:
    """Changes one after the other, of an image or of the first part of a tuple.

    Args:
        steps: functions `x -> x`, or `(x, rng) -> x` if they have a true attribute `random`.

    Example:
        >>> import numpy as np
        >>> change = Compose([ToFloat(), CenterCrop(2)])
        >>> change(np.full((1, 4, 4), 255, np.uint8)).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]
    """

    random = True

    def __init__(self, steps: Sequence[Callable[..., Any]]) -> None:
        self.steps = list(steps)

    def __call__(self, item: Any, rng: Rng | None = None) -> Any:
        """Return the changed image, or the tuple with its first part changed."""
        if isinstance(item, tuple):
            rest = (self(item[0], rng), *item[1:])
            return type(item)(*rest) if hasattr(item, "_fields") else rest
        for step in self.steps:
            if getattr(step, "random", False):
                if rng is None:
                    raise ArgumentError(
                        "Compose", "a random change needs a generator", got=type(step).__name__,
                        remedy="Use MapDataset(..., random=True).",
                    )  # fmt: skip
                item = step(item, rng)
            else:
                item = step(item)
        return item


class ToFloat:
    """Bring uint8 to float32 in [0, 1]; floats become float32.

    Example:
        >>> import numpy as np
        >>> ToFloat()(np.array([[[255]]], np.uint8)).item()
        1.0
    """

    def __call__(self, x: Any) -> Array:
        """Return the image as float32."""
        a = np.asarray(x)
        if a.dtype == np.uint8:
            return a.astype(np.float32) / np.float32(255)
        return a.astype(np.float32)


class Normalize:
    """(x - mean) / std per channel.

    Args:
        mean: per channel.
        std: per channel, positive.

    Raises:
        ArgumentError: a deviation is not positive.

    Example:
        >>> import numpy as np
        >>> Normalize([0.5], [0.25])(np.ones((1, 1, 1), np.float32)).item()
        2.0
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        if len(mean) != len(std) or not all(s > 0 for s in std):
            raise ArgumentError("Normalize", "one positive deviation per mean", got=(mean, std))
        self.mean = np.array(mean, np.float32).reshape(-1, 1, 1)
        self.std = np.array(std, np.float32).reshape(-1, 1, 1)

    def __call__(self, x: Any) -> Array:
        """Return the image normalised."""
        a = image("Normalize", x)
        if len(a) != len(self.mean):
            raise ShapeError("Normalize", f"{len(self.mean)} channels", got=a.shape)
        out: Array = (a - self.mean) / self.std
        return out


class CenterCrop:
    """The middle of an image.

    Args:
        size: height and width, or (height, width).

    Raises:
        ShapeError: when called, the image is smaller.

    Example:
        >>> import numpy as np
        >>> CenterCrop(1)(np.arange(9).reshape(1, 3, 3)).item()
        4
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = pair(size)

    def __call__(self, x: Any) -> Array:
        """Return the middle."""
        a = image("CenterCrop", x)
        h, w = room("CenterCrop", a, self.size)
        return cut(a, h // 2, w // 2, self.size)


class Grayscale:
    """Shades of grey: 0.299 red + 0.587 green + 0.114 blue, integers rounded.

    Args:
        num_output_channels: 1, or 3 equal ones.

    Raises:
        ArgumentError: another number.
        ShapeError: when called, the image has not three channels.

    Example:
        >>> import numpy as np
        >>> Grayscale()(np.ones((3, 1, 1), np.float32)).shape
        (1, 1, 1)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ArgumentError("Grayscale", "1 or 3 channels", got=num_output_channels)
        self.num_output_channels = num_output_channels

    def __call__(self, x: Any) -> Array:
        """Return the image in grey."""
        a = image("Grayscale", x)
        if len(a) != 3:
            raise ShapeError("Grayscale", "three channels, red, green and blue", got=a.shape)
        shares = np.array((0.299, 0.587, 0.114), np.float32)
        grey = np.tensordot(shares, a.astype(np.float32), 1)[None]
        out = np.rint(grey).astype(a.dtype) if a.dtype.kind in "iu" else grey.astype(a.dtype)
        return np.repeat(out, self.num_output_channels, 0)


class RandomCrop:
    """A part of an image, anywhere with equal chance.

    Args:
        size: height and width, or (height, width).
        padding: zeros around the image first.

    Raises:
        ShapeError: when called, the image is smaller.

    Example:
        >>> import numpy as np
        >>> RandomCrop(2)(np.zeros((3, 5, 5)), np.random.default_rng(0)).shape
        (3, 2, 2)
    """

    random = True

    def __init__(self, size: int | tuple[int, int], padding: int = 0) -> None:
        self.size = pair(size)
        self.padding = padding

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the part."""
        a, p = image("RandomCrop", x), self.padding
        if p:
            a = np.pad(a, ((0, 0), (p, p), (p, p)))
        h, w = room("RandomCrop", a, self.size)
        return cut(a, int(rng.integers(h + 1)), int(rng.integers(w + 1)), self.size)


class RandomHorizontalFlip:
    """Left and right exchanged, with a chance.

    Args:
        p: the chance.

    Example:
        >>> import numpy as np
        >>> RandomHorizontalFlip(1.0)(np.array([[[1, 2]]]), np.random.default_rng(0)).tolist()
        [[[2, 1]]]
    """

    random = True
    _dim = 2

    def __init__(self, p: float = 0.5) -> None:
        self.p = chance(type(self).__name__, p)

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the image, exchanged or not."""
        a = image(type(self).__name__, x)
        return np.ascontiguousarray(np.flip(a, self._dim)) if rng.random() < self.p else a


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, with a chance.

    Args:
        p: the chance.

    Example:
        >>> import numpy as np
        >>> RandomVerticalFlip(1.0)(np.array([[[1], [2]]]), np.random.default_rng(0)).tolist()
        [[[2], [1]]]
    """

    _dim = 1


class RandomErasing:
    """A rectangle of an image filled with a value, with a chance.

    Args:
        p: the chance.
        scale: least and largest share of the area.
        value: what fills it.

    Raises:
        ArgumentError: a share is outside (0, 1].

    Example:
        >>> import numpy as np
        >>> image = RandomErasing(1.0)(np.ones((1, 8, 8)), np.random.default_rng(0))
        >>> sorted(set(image.reshape(-1).tolist()))
        [0.0, 1.0]

    Source: Zhong et al. 2020.
    """

    random = True

    def __init__(
        self, p: float = 0.5, scale: tuple[float, float] = (0.02, 0.33), value: float = 0.0
    ) -> None:
        self.p = chance("RandomErasing", p)
        if not 0 < scale[0] <= scale[1] <= 1:
            raise ArgumentError("RandomErasing", "0 < least <= largest <= 1", got=scale)
        self.scale = scale
        self.value = value

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the image, with or without a hole."""
        a = image("RandomErasing", x)
        if rng.random() >= self.p:
            return a
        share, aspect = rng.uniform(*self.scale), np.exp(rng.uniform(-1.2, 1.2))
        area = share * a.shape[1] * a.shape[2]
        h = int(np.clip(round((area * aspect) ** 0.5), 1, a.shape[1]))
        w = int(np.clip(round((area / aspect) ** 0.5), 1, a.shape[2]))
        top = int(rng.integers(a.shape[1] - h + 1))
        left = int(rng.integers(a.shape[2] - w + 1))
        out = a.copy()
        out[:, top : top + h, left : left + w] = self.value
        return out


class ColorJitter:
    """Brightness, contrast and saturation changed at random; for floats in [0, 1].

    Args:
        brightness: largest change of the factor of all.
        contrast: largest change of the distance from the mean.
        saturation: largest change of the distance from grey.

    Example:
        >>> import numpy as np
        >>> image = np.full((3, 2, 2), 0.5, np.float32)
        >>> ColorJitter(brightness=0.2)(image, np.random.default_rng(0)).shape
        (3, 2, 2)
    """

    random = True

    def __init__(
        self, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0
    ) -> None:
        if min(brightness, contrast, saturation) < 0:
            raise ArgumentError(
                "ColorJitter", "changes are not negative", got=(brightness, contrast, saturation)
            )
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation

    def __call__(self, x: Any, rng: Rng) -> Array:
        """Return the image in other colours."""
        a = image("ColorJitter", x).astype(np.float32)
        # Drawn all, so that a setting of 0 does not change what the others draw.
        b, c, s = 1 + rng.uniform(-1, 1, 3) * (self.brightness, self.contrast, self.saturation)
        a = a * np.float32(b)
        a = a.mean(dtype=np.float32) * np.float32(1 - c) + a * np.float32(c)
        a = a.mean(0, keepdims=True) * np.float32(1 - s) + a * np.float32(s)
        out: Array = a.clip(0, 1)
        return out
