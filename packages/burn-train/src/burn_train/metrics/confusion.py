"""Metrics of true and false positives: precision, recall, F-beta, the confusion matrix."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from burn_std import ArgumentError
from burn_std.dtypes import float64, int64
from burn_tensor import Tensor, arange
from burn_train.metrics.metric import Array, SumMetric, is_empty

Kind = Literal["binary", "multiclass", "multilabel"]
Average = Literal["micro", "macro"]


def yes(output: Tensor, target: Tensor, kind: Kind, threshold: float, k: int) -> tuple[Any, Any]:
    """Return what is predicted and what is true, as bools [N, C].

    Args:
        output: scores.
        target: class indices for multiclass, else 0 and 1.
        kind: how many classes a sample has.
        threshold: scores above it say yes.
        k: classes of the k largest scores are predicted (multiclass).
    """
    scores = output.detach()
    if kind == "multiclass":
        classes = scores.shape[1]
        best = scores.topk(min(k, classes), dim=1).indices
        labels = arange(classes, device=best.device)
        return (best.unsqueeze(2) == labels).any(dim=1), target.unsqueeze(1) == labels
    n = target.shape[0]
    return (scores > threshold).reshape(n, -1), (target != 0).reshape(n, -1)


class _Stats(SumMetric):
    """True positives, false positives, false negatives per class, summed over the epoch."""

    unit = "%"
    higher_is_better = True
    _word = ""

    def __init__(
        self,
        kind: Kind = "multiclass",
        *,
        threshold: float = 0.5,
        top_k: int = 1,
        average: Average = "macro",
    ) -> None:
        if kind not in ("binary", "multiclass", "multilabel") or average not in ("micro", "macro"):
            raise ArgumentError(
                type(self).__name__, "kind is binary, multiclass or multilabel; average micro or "
                "macro", got=f"{kind!r}, {average!r}",
            )  # fmt: skip
        if top_k < 1:
            raise ArgumentError(type(self).__name__, "top_k is positive", got=top_k)
        self.kind: Kind = kind
        self.threshold = threshold
        self.top_k = top_k
        self.average: Average = average
        self.name = self._word
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        found, true = yes(output, target, self.kind, self.threshold, self.top_k)
        self.add(
            target.shape[0],
            hits=(found & true).to(int64).sum(dim=0),
            found=found.to(int64).sum(dim=0),
            true=true.to(int64).sum(dim=0),
        )

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the value in percent; macro leaves out classes that never occur."""
        hits, found, true = (sums[k].astype(np.float64) for k in ("hits", "found", "true"))
        if self.average == "micro":
            hits, found, true = (np.atleast_1d(a.sum()) for a in (hits, found, true))
        seen = (found + true) > 0
        if not seen.any():
            return float("nan")
        return 100 * float(self._score(hits[seen], found[seen], true[seen]).mean())

    def _score(self, hits: Array, found: Array, true: Array) -> Array:
        raise NotImplementedError


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole, 0 where there is nothing."""
    out: Array = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return out


class Precision(_Stats):
    """Share of what is predicted that is true, in percent, from sums over the epoch.

    Args:
        kind: `binary`, `multiclass` or `multilabel`.
        threshold: scores above it say yes (binary, multilabel).
        top_k: classes of the k largest scores are predicted (multiclass).
        average: `macro`, the mean over classes that occur, or `micro`, all counts together.

    Shapes:
        output: [N, C], or [N] for binary; target: [N] of indices, else 0 and 1 like output

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> m = Precision("binary")
        >>> m.update(burn.tensor([0.9, 0.8, 0.1]), burn.tensor([1, 0, 1]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    _word = "precision"

    def _score(self, hits: Array, found: Array, true: Array) -> Array:
        return _share(hits, found)


class Recall(_Stats):
    """Share of what is true that is predicted, in percent, from sums over the epoch.

    Args:
        kind: `binary`, `multiclass` or `multilabel`.
        threshold: scores above it say yes (binary, multilabel).
        top_k: classes of the k largest scores are predicted (multiclass).
        average: `macro`, the mean over classes that occur, or `micro`, all counts together.

    Shapes:
        output: [N, C], or [N] for binary; target: [N] of indices, else 0 and 1 like output

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> m = Recall("binary")
        >>> m.update(burn.tensor([0.9, 0.8, 0.1]), burn.tensor([1, 0, 1]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    _word = "recall"

    def _score(self, hits: Array, found: Array, true: Array) -> Array:
        return _share(hits, true)


class FBetaScore(_Stats):
    """(1 + b^2) precision recall / (b^2 precision + recall), in percent, from sums of the epoch.

    Args:
        beta: weight of recall.
        kind: `binary`, `multiclass` or `multilabel`.
        threshold: scores above it say yes (binary, multilabel).
        top_k: classes of the k largest scores are predicted (multiclass).
        average: `macro`, the mean over classes that occur, or `micro`, all counts together.

    Shapes:
        output: [N, C], or [N] for binary; target: [N] of indices, else 0 and 1 like output

    Raises:
        ArgumentError: a setting is unknown.

    Example:
        >>> m = FBetaScore(1.0, "binary")
        >>> m.update(burn.tensor([0.9, 0.8, 0.1]), burn.tensor([1, 0, 1]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    def __init__(
        self,
        beta: float = 1.0,
        kind: Kind = "multiclass",
        *,
        threshold: float = 0.5,
        top_k: int = 1,
        average: Average = "macro",
    ) -> None:
        if not beta > 0:
            raise ArgumentError("FBetaScore", "beta is positive", got=beta)
        self.beta = beta
        super().__init__(kind, threshold=threshold, top_k=top_k, average=average)
        self.name = f"f{beta:g} score"

    def _score(self, hits: Array, found: Array, true: Array) -> Array:
        square = self.beta**2
        return _share((1 + square) * hits, square * true + found)


class ConfusionMatrix(SumMetric):
    """How often each class was taken for each; its value is the share on the diagonal, in percent.

    Args:
        classes: how many there are.
        labels: their names, for the table.

    Shapes:
        output: [N, C, ...]; target: [N, ...] of class indices

    Raises:
        ArgumentError: there are not as many labels as classes.

    Example:
        >>> m = ConfusionMatrix(2)
        >>> m.update(burn.eye(2), burn.tensor([0, 0]), burn.tensor(0.0))
        >>> m.matrix().tolist(), m.value()
        ([[1, 1], [0, 0]], 50.0)
    """

    name = "diagonal"
    unit = "%"
    higher_is_better = True

    def __init__(self, classes: int, labels: list[str] | None = None) -> None:
        if labels is not None and len(labels) != classes:
            raise ArgumentError("ConfusionMatrix", f"{classes} labels", got=len(labels))
        self.classes = classes
        self.labels = labels or [str(k) for k in range(classes)]
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        counts = pairs(output, target, self.classes)
        self.add(target.shape[0], counts=counts)

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the share of the diagonal."""
        whole = sums["counts"].sum()
        return 100 * float(np.trace(sums["counts"]) / whole) if whole else float("nan")

    def matrix(self) -> Array:
        """Return the counts [true, predicted]."""
        counts = self.sums().get("counts")
        if counts is None:
            return np.zeros((self.classes, self.classes), np.int64)
        return np.array(counts.numpy())

    def table(self) -> str:
        """Return the counts as text, a row per true class."""
        counts = self.matrix()
        width = max(len(str(counts.max(initial=0))), *(len(label) for label in self.labels))
        head = " ".join(label.rjust(width) for label in ["", *self.labels])
        rows = [
            " ".join([label.rjust(width), *(str(c).rjust(width) for c in row)])
            for label, row in zip(self.labels, counts, strict=True)
        ]
        return "\n".join([head, *rows])


def pairs(output: Tensor, target: Tensor, classes: int) -> Tensor:
    """Return how often each true class meets each predicted one: int64 [true, predicted].

    Args:
        output: scores [N, C, ...].
        target: class indices [N, ...]; one outside counts nowhere.
        classes: C.
    """
    labels = arange(classes, device=target.device)
    found = output.detach().argmax(dim=1).reshape(-1, 1) == labels
    true = target.reshape(-1, 1) == labels
    # A product of 0 and 1 counts; float64 is exact far beyond any epoch.
    counts: Tensor = (true.to(float64).mT @ found.to(float64)).to(int64)
    return counts
