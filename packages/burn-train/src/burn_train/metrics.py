"""Metrics: sums kept on the device, read on the host once per epoch."""

from __future__ import annotations

from typing import Any, Protocol

from burn_std.dtypes import float64
from burn_tensor import Tensor


class Metric(Protocol):
    """What a training asks of a metric.

    Attributes:
        name: column of the table.
        higher_is_better: which of two values is the better one.
    """

    name: str
    higher_is_better: bool

    def reset(self) -> None:
        """Forget what was seen."""
        ...

    def update(self, output: Tensor, target: Tensor, loss: Tensor) -> None:
        """Take in one batch; reads nothing on the host."""
        ...

    def value(self) -> float:
        """Return the value over everything seen."""
        ...


class _Mean:
    """A mean weighted by samples, kept as a sum on the device."""

    name = ""
    higher_is_better = False

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._sum: Any = None
        self._count = 0

    def _add(self, total: Tensor, count: int) -> None:
        if self._sum is None:
            self._sum = total.b.at_once("full", float64, (), 0)
        self._sum = self._sum + total
        self._count += count

    def value(self) -> float:
        """Return the mean; NaN if nothing was seen."""
        return float(self._sum.item()) / self._count if self._count else float("nan")


class LossMetric(_Mean):
    """The mean loss, weighted by samples, so a smaller last batch counts as what it is.

    Example:
        >>> import burn_tensor as bt
        >>> m = LossMetric()
        >>> m.update(bt.zeros(3, 2), bt.zeros(3), bt.tensor(1.0))
        >>> m.update(bt.zeros(1, 2), bt.zeros(1), bt.tensor(5.0))
        >>> m.value()
        2.0
    """

    name = "loss"

    def update(self, output: Tensor, target: Tensor, loss: Tensor) -> None:
        """Take in one batch."""
        n = output.shape[0] if output.shape else 1
        self._add(loss.detach() * n, n)


class Accuracy(_Mean):
    """Share of rows whose largest output is the target, in percent.

    Shapes:
        output: [N, C]; target: [N] of class indices

    Example:
        >>> import burn_tensor as bt
        >>> m = Accuracy()
        >>> m.update(bt.tensor([[0.0, 1.0], [1.0, 0.0]]), bt.tensor([1, 1]), bt.tensor(0.0))
        >>> m.value()
        50.0
    """

    name = "accuracy"
    higher_is_better = True

    def update(self, output: Tensor, target: Tensor, loss: Tensor) -> None:
        """Take in one batch."""
        hits = (output.detach().argmax(dim=1) == target).sum()
        self._add(hits * 100, target.shape[0])
