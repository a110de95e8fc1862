"""Whether a confidence of 80 % is right 80 % of the time."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_std import ArgumentError
from burn_std.dtypes import float64, int64
from burn_tensor import arange
from burn_train.metrics.metric import Array, SumMetric


class CalibrationError(SumMetric):
    """Mean over samples of |confidence - accuracy| of the sample's bin of confidence, in percent.

    Args:
        bins: of equal width.
        logits: outputs are logits; else they are probabilities.

    Shapes:
        output: [N, C]; target: [N] of class indices

    Raises:
        ArgumentError: there is no bin.

    Example:
        >>> m = CalibrationError(logits=False)
        >>> m.update(burn.tensor([[0.75, 0.25]] * 4), burn.tensor([0, 0, 0, 1]), burn.tensor(0.0))
        >>> m.value()
        0.0

    Source: Naeini et al. 2015; Guo et al. 2017, section 2.
    """

    name = "calibration error"
    unit = "%"

    def __init__(self, bins: int = 15, logits: bool = True) -> None:
        if bins < 1:
            raise ArgumentError("CalibrationError", "at least one bin", got=bins)
        self.bins = bins
        self.logits = logits
        super().__init__()

    def update(self, output: Any, target: Any, loss: Any) -> None:
        """Take in one batch."""
        p = output.detach().softmax(1) if self.logits else output.detach()
        best = p.max(dim=1)
        sure = best.values.to(float64)
        place = (sure * self.bins).ceil().to(int64).clamp(1, self.bins) - 1
        inside = (place.unsqueeze(1) == arange(self.bins, device=place.device)).to(float64)
        right = (best.indices == target).to(float64)
        self.add(
            target.shape[0], sure=(inside * sure.unsqueeze(1)).sum(dim=0),
            right=(inside * right.unsqueeze(1)).sum(dim=0),
        )  # fmt: skip

    def result(self, sums: dict[str, Array], count: int) -> float:
        """Return the error in percent."""
        return 100 * float(np.abs(sums["sure"] - sums["right"]).sum()) / count
