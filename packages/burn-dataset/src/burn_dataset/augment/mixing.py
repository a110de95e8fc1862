"""Mixtures of the items of a batch: what a loader takes as `collate=`, with its generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burn_dataset.augment.image import Array, Rng
from burn_dataset.collating import collate
from burn_std import ArgumentError, ShapeError


class Mixup:
    """Every image mixed with another of the batch, and their labels likewise.

    Labels become shares of classes, [B, num_classes] in float32, which `CrossEntropyLoss` takes.

    Args:
        num_classes: of the labels.
        alpha: the share of the first image is drawn from Beta(alpha, alpha); 1 is uniform.
        join: items to a batch (images, labels) of arrays; stacking if None.

    Raises:
        ArgumentError: alpha or num_classes is not positive, or, when called, a label is none.
        ShapeError: when called, the batch is not images [B, ...] and labels [B].

    Example:
        >>> import numpy as np
        >>> items = [(np.zeros((1, 1, 1)), 0), (np.ones((1, 1, 1)), 1)]
        >>> images, labels = Mixup(2)(items, np.random.default_rng(0))
        >>> images.shape, labels.sum(1).tolist()
        ((2, 1, 1, 1), [1.0, 1.0])

    Source: Zhang et al. 2018.
    """

    random = True

    def __init__(
        self, num_classes: int, alpha: float = 1.0,
        join: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:  # fmt: skip
        if not (alpha > 0 and num_classes > 0):
            raise ArgumentError(
                type(self).__name__, "alpha and num_classes are positive",
                got=f"{alpha=}, {num_classes=}",
            )  # fmt: skip
        self.num_classes = num_classes
        self.alpha = alpha
        self.join = join or collate

    def __call__(self, items: Sequence[Any], rng: Rng) -> tuple[Array, Array]:
        """Return (images, shares of classes)."""
        name = type(self).__name__
        images, labels = self._batch(name, self.join(items))
        shares = np.zeros((len(labels), self.num_classes), np.float32)
        shares[np.arange(len(labels)), labels] = 1
        other = rng.permutation(len(labels))
        mixed, share = self._mixed(images, other, float(rng.beta(self.alpha, self.alpha)), rng)
        part = np.float32(share)
        return mixed, shares * part + shares[other] * (1 - part)

    def _batch(self, name: str, batch: Any) -> tuple[Array, Array]:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise ShapeError(name, "a batch is (images, labels)", got=type(batch).__name__)
        images, labels = np.asarray(batch[0]), np.asarray(batch[1])
        if labels.ndim != 1 or len(images) != len(labels):
            raise ShapeError(
                name, "images [B, ...] and labels [B]", got=f"{images.shape}, {labels.shape}"
            )
        whole = labels.dtype.kind in "iu"
        if not whole or labels.min(initial=0) < 0 or labels.max(initial=0) >= self.num_classes:
            raise ArgumentError(name, f"labels are classes below {self.num_classes}", got=labels)
        return images, labels

    def _mixed(self, x: Array, other: Array, share: float, rng: Rng) -> tuple[Array, float]:
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
        part = kind.type(share)
        x = x.astype(kind)
        return x * part + x[other] * (1 - part), share


class CutMix(Mixup):
    """A rectangle of every image replaced by that of another, labels mixed by their areas.

    Args:
        num_classes: of the labels.
        alpha: the share of the first image is drawn from Beta(alpha, alpha); 1 is uniform.
        join: items to a batch (images, labels) of arrays; stacking if None.

    Raises:
        ArgumentError: alpha or num_classes is not positive, or, when called, a label is none.
        ShapeError: when called, the batch is not images [B, C, H, W] and labels [B].

    Example:
        >>> import numpy as np
        >>> items = [(np.zeros((1, 4, 4)), 0), (np.ones((1, 4, 4)), 1)]
        >>> images, labels = CutMix(2)(items, np.random.default_rng(0))
        >>> bool(images[0].mean() == labels[0, 1])
        True

    Source: Yun et al. 2019.
    """

    def _mixed(self, x: Array, other: Array, share: float, rng: Rng) -> tuple[Array, float]:
        if x.ndim != 4:
            raise ShapeError("CutMix", "images are [B, C, H, W]", got=x.shape)
        rows, columns = x.shape[2:]
        half = 0.5 * (1 - share) ** 0.5
        middle_y, middle_x = int(rng.integers(rows)), int(rng.integers(columns))
        reach_y, reach_x = int(half * rows), int(half * columns)
        top, bottom = max(middle_y - reach_y, 0), min(middle_y + reach_y, rows)
        left, right = max(middle_x - reach_x, 0), min(middle_x + reach_x, columns)
        out = x.copy()
        out[:, :, top:bottom, left:right] = x[other][:, :, top:bottom, left:right]
        return out, 1 - (bottom - top) * (right - left) / (rows * columns)
