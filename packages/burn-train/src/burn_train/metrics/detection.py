"""Mean average precision of found boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_std import ArgumentError
from burn_train.metrics.metric import Array, HostMetric

_COCO = tuple(0.5 + 0.05 * k for k in range(10))


class MeanAveragePrecision(HostMetric):
    """Mean over classes and overlaps of the area under precision and recall, in percent.

    Args:
        iou_thresholds: least overlaps at which a box counts as found; COCO's ten by default.

    Shapes:
        output: one dict per image: boxes [K, 4] as x1, y1, x2, y2; scores [K]; labels [K]
        target: one dict per image: boxes [M, 4]; labels [M]

    Raises:
        ArgumentError: there is no threshold, or one outside (0, 1).

    Example:
        >>> import numpy as np
        >>> box = np.array([[0.0, 0.0, 2.0, 2.0]])
        >>> m = MeanAveragePrecision([0.5])
        >>> found = {"boxes": box, "scores": np.array([0.9]), "labels": np.array([1])}
        >>> m.update([found], [{"boxes": box + 0.1, "labels": np.array([1])}], 0.0)
        >>> m.value()
        100.0

    Source: Lin et al. 2014 (COCO), precision taken at 101 recalls.
    """

    name = "map"
    unit = "%"
    higher_is_better = True

    def __init__(self, iou_thresholds: Sequence[float] = _COCO) -> None:
        self.iou_thresholds = tuple(iou_thresholds)
        if not self.iou_thresholds or not all(0 < t < 1 for t in self.iou_thresholds):
            raise ArgumentError(
                "MeanAveragePrecision", "thresholds are in (0, 1)", got=self.iou_thresholds
            )
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        for found, true in zip(output, target, strict=True):
            scores = np.asarray(found["scores"], np.float64).reshape(-1)
            labels = np.asarray(found["labels"]).reshape(-1)
            wanted = np.asarray(true["labels"]).reshape(-1)
            overlap = _overlaps(found["boxes"], true["boxes"])
            hits = np.stack(
                [_matches(scores, labels, wanted, overlap, t) for t in self.iou_thresholds], 1
            )
            self.collect(1, scores=scores, labels=labels, hits=hits, wanted=wanted)

    def result(self, seen: dict[str, Array]) -> float:
        """Return the mean in percent; classes without a true box are left out."""
        areas = []
        for label in np.unique(seen["wanted"]):
            mine = seen["labels"] == label
            order = np.argsort(-seen["scores"][mine], kind="stable")
            total = int((seen["wanted"] == label).sum())
            areas += [_area(column[order], total) for column in seen["hits"][mine].T]
        return 100 * float(np.mean(areas)) if areas else float("nan")


def _overlaps(a: Any, b: Any) -> Array:
    """Return intersection over union of every pair of boxes."""
    x = np.asarray(a, np.float64).reshape(-1, 1, 4)
    y = np.asarray(b, np.float64).reshape(1, -1, 4)
    sides = np.minimum(x[..., 2:], y[..., 2:]) - np.maximum(x[..., :2], y[..., :2])
    both = sides.clip(0).prod(-1)
    whole = (x[..., 2:] - x[..., :2]).prod(-1) + (y[..., 2:] - y[..., :2]).prod(-1) - both
    out: Array = np.divide(both, whole, out=np.zeros_like(both), where=whole > 0)
    return out


def _matches(scores: Array, labels: Array, wanted: Array, overlap: Array, least: float) -> Array:
    """Return which boxes find a true one that no better box found."""
    hits = np.zeros(len(scores), bool)
    free = np.ones(len(wanted), bool)
    for k in np.argsort(-scores, kind="stable"):
        open_ones = free & (wanted == labels[k]) & (overlap[k] >= least)
        if open_ones.any():
            best = int(np.where(open_ones, overlap[k], -1.0).argmax())
            hits[k], free[best] = True, False
    return hits


def _area(hits: Array, total: int) -> float:
    """Return the mean over 101 recalls of the best precision at that recall or beyond."""
    if not len(hits):
        return 0.0
    found = np.cumsum(hits)
    precision = found / np.arange(1, len(hits) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    place = np.searchsorted(found / total, np.linspace(0, 1, 101) - 1e-12)
    return float(np.append(precision, 0.0)[np.minimum(place, len(hits))].mean())
