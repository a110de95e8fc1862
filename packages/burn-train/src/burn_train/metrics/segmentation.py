"""Overlap of predicted and true regions, from sums over the epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_train.metrics.confusion import pairs
from burn_train.metrics.metric import Array, SumMetric


class _Regions(SumMetric):
    """Counts of pixels by true and predicted class."""

    unit = "%"
    higher_is_better = True

    def __init__(self, include_background: bool = True) -> None:
        self.include_background = include_background
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        self.add(target.shape[0], counts=pairs(output, target, output.shape[1]))

    def _overlaps(self, sums: dict[str, Array]) -> tuple[Array, Array]:
        """Return pixels in both, and the sum of pixels in each, for classes that occur."""
        counts = sums["counts"].astype(np.float64)
        both, each = np.diag(counts), counts.sum(0) + counts.sum(1)
        if not self.include_background:
            both, each = both[1:], each[1:]
        seen = each > 0
        return both[seen], each[seen]


class MeanIoU(_Regions):
    """Mean over classes of intersection over union, in percent; classes never seen are left out.

    Args:
        include_background: class 0 counts.

    Shapes:
        output: [N, C, ...] scores; target: [N, ...] of class indices; others are ignored

    Example:
        >>> m = MeanIoU()
        >>> scores = burn.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
        >>> m.update(scores, burn.tensor([[0, 1, 1]]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    name = "mean iou"

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the mean in percent."""
        both, each = self._overlaps(sums)
        return 100 * float((both / (each - both)).mean()) if len(both) else float("nan")


class Dice(_Regions):
    """Mean over classes of 2 |A and B| / (|A| + |B|), in percent.

    Args:
        include_background: class 0 counts.
        epsilon: added above and below.

    Shapes:
        output: [N, C, ...] scores; target: [N, ...] of class indices; others are ignored

    Example:
        >>> m = Dice()
        >>> scores = burn.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
        >>> m.update(scores, burn.tensor([[0, 1, 1]]), burn.tensor(0.0))
        >>> round(m.value(), 3)
        66.667
    """

    name = "dice"

    def __init__(self, include_background: bool = True, epsilon: float = 1e-7) -> None:
        self.epsilon = epsilon
        super().__init__(include_background)

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the mean in percent."""
        both, each = self._overlaps(sums)
        if not len(both):
            return float("nan")
        return 100 * float(((2 * both + self.epsilon) / (each + self.epsilon)).mean())
