"""Areas under curves, over all predictions of the epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_std import ArgumentError
from burn_train.metrics.confusion import Average, Kind
from burn_train.metrics.metric import Array, HostMetric, is_empty


class _Curve(HostMetric):
    unit = "%"
    higher_is_better = True
    _word = ""

    def __init__(self, kind: Kind = "binary", *, average: Average = "macro") -> None:
        if kind not in ("binary", "multiclass", "multilabel") or average not in ("micro", "macro"):
            raise ArgumentError(
                type(self).__name__, "kind is binary, multiclass or multilabel; average micro or "
                "macro", got=f"{kind!r}, {average!r}",
            )  # fmt: skip
        self.kind: Kind = kind
        self.average: Average = average
        self.name = self._word
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        n = len(target)
        scores = np.asarray(output, np.float64).reshape(n, -1)
        if self.kind == "multiclass":
            true = np.asarray(target).reshape(n, 1) == np.arange(scores.shape[1])
        else:
            true = np.asarray(target).reshape(n, -1) != 0
        self.collect(n, scores=scores, true=true)

    def result(self, seen: dict[str, Array]) -> float:
        """Return the area in percent; macro leaves out classes without both kinds of samples."""
        scores, true = seen["scores"], seen["true"].astype(bool)
        if self.average == "micro":
            scores, true = scores.reshape(-1, 1), true.reshape(-1, 1)
        areas = [self._area(s, t) for s, t in zip(scores.T, true.T, strict=True)]
        known = [a for a in areas if not np.isnan(a)]
        return 100 * float(np.mean(known)) if known else float("nan")

    def _area(self, scores: Array, true: Array) -> float:
        raise NotImplementedError


class AUROC(_Curve):
    """Chance that a positive sample scores above a negative one, in percent; a tie counts half.

    Args:
        kind: `binary`, `multiclass` (one class against the rest) or `multilabel`.
        average: `macro`, the mean over classes, or `micro`, all together.

    Shapes:
        output: [N, C], or [N] for binary; target: [N] of indices, else 0 and 1 like output

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> import numpy as np
        >>> m = AUROC()
        >>> m.update(np.array([0.1, 0.4]), np.array([0, 1]), 0.0)
        >>> m.update(np.array([0.6, 0.9]), np.array([0, 1]), 0.0)
        >>> m.value()
        75.0

    Source: Hanley and McNeil 1982.
    """

    _word = "auroc"

    def _area(self, scores: Array, true: Array) -> float:
        positive = int(true.sum())
        negative = len(true) - positive
        if not positive or not negative:
            return float("nan")
        _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks = (ends - (counts - 1) / 2)[place.reshape(-1)]
        above = ranks[true].sum() - positive * (positive + 1) / 2
        return float(above / (positive * negative))


class AUCPR(_Curve):
    """Average precision in percent: the sum over thresholds of precision times gained recall.

    Args:
        kind: `binary`, `multiclass` (one class against the rest) or `multilabel`.
        average: `macro`, the mean over classes, or `micro`, all together.

    Shapes:
        output: [N, C], or [N] for binary; target: [N] of indices, else 0 and 1 like output

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> import numpy as np
        >>> m = AUCPR()
        >>> m.update(np.array([0.1, 0.9]), np.array([0, 1]), 0.0)
        >>> m.value()
        100.0
    """

    _word = "auc-pr"

    def _area(self, scores: Array, true: Array) -> float:
        positive = int(true.sum())
        if not positive:
            return float("nan")
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(true[order])
        # One threshold per distinct score: ties are taken in together.
        last = np.append(np.diff(scores[order]) != 0, True)
        hits, seen = hits[last], (np.arange(len(scores)) + 1)[last]
        gained = np.diff(hits, prepend=0) / positive
        return float((hits / seen * gained).sum())
