"""Errors of predicted numbers: MAE, MSE, RMSE, R2."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from burn_std.dtypes import float64
from burn_train.metrics.metric import Array, SumMetric, is_empty


class _Errors(SumMetric):
    """Sums over elements of output - target, in float64."""

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        off = output.detach().to(float64) - target.to(float64)
        n = int(off.shape[0]) if off.shape else 1
        self.add(n, total=self._of(off).sum(), elements=off.new_ones(()) * off.numel())

    def _of(self, difference: Any) -> Any:
        raise NotImplementedError

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the mean over elements."""
        return float(np.divide(sums["total"], sums["elements"]))


class MAE(_Errors):
    """Mean absolute error over all elements.

    Shapes:
        output, target: the same

    Example:
        >>> m = MAE()
        >>> m.update(burn.tensor([1.0, 2.0]), burn.tensor([1.0, 5.0]), burn.tensor(0.0))
        >>> m.value()
        1.5
    """

    name = "mae"

    def _of(self, difference: Any) -> Any:
        return difference.abs()


class MSE(_Errors):
    """Mean squared error over all elements.

    Shapes:
        output, target: the same

    Example:
        >>> m = MSE()
        >>> m.update(burn.tensor([1.0, 2.0]), burn.tensor([1.0, 5.0]), burn.tensor(0.0))
        >>> m.value()
        4.5
    """

    name = "mse"

    def _of(self, difference: Any) -> Any:
        return difference * difference


class RMSE(MSE):
    """Root of the mean squared error over all elements, of the epoch, not of its batches.

    Shapes:
        output, target: the same

    Example:
        >>> m = RMSE()
        >>> m.update(burn.tensor([1.0, 2.0]), burn.tensor([1.0, 8.0]), burn.tensor(0.0))
        >>> round(m.value(), 4)
        4.2426
    """

    name = "rmse"

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the root of the mean."""
        return sqrt(super().result(sums, count))


class R2Score(SumMetric):
    """1 - sum (y - y^)^2 / sum (y - mean y)^2, over all elements; NaN if the targets are all equal.

    Shapes:
        output, target: the same

    Example:
        >>> m = R2Score()
        >>> m.update(burn.tensor([1.0, 2.0, 4.0]), burn.tensor([1.0, 2.0, 3.0]), burn.tensor(0.0))
        >>> m.value()
        0.5
    """

    name = "r2"
    higher_is_better = True

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        if is_empty(target):
            return
        y = target.to(float64)
        left = y - output.detach().to(float64)
        # Sums about a value near the mean lose no digits, as sums of squares would.
        n = y.numel()
        mean = y.mean()
        self.add(
            int(y.shape[0]) if y.shape else 1,
            left=(left * left).sum(), within=((y - mean) ** 2).sum(), total=y.sum(),
            # n mean^2 summed with n, sum and within gives the variance about the mean of all.
            squares=mean * mean * n, elements=y.new_ones(()) * n,
        )  # fmt: skip

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the coefficient of determination."""
        n, total = float(sums["elements"]), float(sums["total"])
        between = float(sums["squares"]) - total * total / n
        whole = float(sums["within"]) + max(between, 0.0)
        return 1 - float(sums["left"]) / whole if whole else float("nan")
