"""Shares of right answers, and perplexity."""

from __future__ import annotations

from math import exp
from typing import Any

from burn_std import ArgumentError
from burn_std.dtypes import float64
from burn_tensor import Tensor, where
from burn_train.metrics.metric import Array, SumMetric, wide


class _Tokens(SumMetric):
    """Sums over positions whose target is not the padding."""

    def __init__(self, pad: int | None = None) -> None:
        self.pad = pad
        super().__init__()

    def _add(self, hits: Tensor, target: Tensor) -> None:
        """Add what every position is worth."""
        if self.pad is None:
            # How many positions there are is known without the device.
            if hits.dtype.is_float:
                hits = hits.sum()
            elif len(hits.shape) != 1:  # those of rank 1 are counted together, later
                hits = hits.count_nonzero()
            self.add(target.numel(), hits=hits)
        else:
            counts = target != self.pad
            self.add(target.numel(), hits=where(counts, hits, 0).sum(), seen=counts.sum())

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the share in percent."""
        seen = int(sums.get("seen", count))
        return 100 * float(sums["hits"]) / seen if seen else float("nan")


class Accuracy(_Tokens):
    """Share of targets that are the largest output, in percent.

    Args:
        pad: target that does not count.

    Shapes:
        output: [N, C, ...]; target: [N, ...] of class indices

    Example:
        >>> m = Accuracy()
        >>> m.update(burn.tensor([[0.0, 1.0], [1.0, 0.0]]), burn.tensor([1, 1]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    name = "accuracy"
    unit = "%"
    higher_is_better = True

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        self._add(output.detach().argmax(dim=1) == target, target)


class TopKAccuracy(_Tokens):
    """Share of targets among the k largest outputs, in percent.

    Args:
        k: how many count.
        pad: target that does not count.

    Shapes:
        output: [N, C, ...]; target: [N, ...] of class indices

    Raises:
        ArgumentError: k is not positive.

    Example:
        >>> m = TopKAccuracy(2)
        >>> m.update(burn.tensor([[0.3, 0.2, 0.1]]), burn.tensor([1]), burn.tensor(0.0))
        >>> m.value()
        100.0
    """

    unit = "%"
    higher_is_better = True

    def __init__(self, k: int = 5, pad: int | None = None) -> None:
        if k < 1:
            raise ArgumentError("TopKAccuracy", "k is positive", got=k)
        self.k = k
        self.name = f"top-{k} accuracy"
        super().__init__(pad)

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        best = output.detach().topk(min(self.k, output.shape[1]), dim=1).indices
        self._add((best == target.unsqueeze(1)).any(dim=1), target)


class Perplexity(_Tokens):
    """exp of the mean negative log-likelihood of the targets.

    Args:
        pad: target that does not count.

    Shapes:
        output: [N, C, ...] logits; target: [N, ...] of class indices

    Example:
        >>> m = Perplexity()
        >>> m.update(burn.zeros(2, 4), burn.tensor([1, 3]), burn.tensor(0.0))
        >>> round(m.value(), 4)
        4.0
    """

    name = "perplexity"

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        safe = target if self.pad is None else where(target == self.pad, 0, target)
        chosen = wide(output.detach()).log_softmax(1).gather(1, safe.unsqueeze(1)).squeeze(1)
        self._add(-chosen, target)

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the perplexity; infinity where exp overflows."""
        mean = super().result(sums, count) / 100
        return float("inf") if mean > 700 else exp(mean)


class HammingScore(SumMetric):
    """Share of labels that are right, in percent, for several labels per sample.

    Args:
        threshold: outputs above it say yes.
        sigmoid: outputs are logits.

    Shapes:
        output: [N, C]; target: [N, C] of 0 and 1

    Example:
        >>> m = HammingScore()
        >>> m.update(burn.tensor([[0.9, 0.2]]), burn.tensor([[1, 1]]), burn.tensor(0.0))
        >>> m.value()
        50.0
    """

    name = "hamming score"
    unit = "%"
    higher_is_better = True

    def __init__(self, threshold: float = 0.5, sigmoid: bool = False) -> None:
        self.threshold = threshold
        self.sigmoid = sigmoid
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        scores = output.detach().sigmoid() if self.sigmoid else output.detach()
        right = ((scores > self.threshold) == (target != 0)).to(float64).mean(dim=1).sum()
        self.add(target.shape[0], right=right)

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the share in percent."""
        return 100 * float(sums["right"]) / count
