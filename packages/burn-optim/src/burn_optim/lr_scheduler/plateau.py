"""The schedule that watches a metric."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan
from typing import Any

from burn_optim.lr_scheduler.schedule import LRScheduler, count
from burn_std import ArgumentError


class ReduceLROnPlateau(LRScheduler):
    """lr falls by `factor` when a metric did not improve for more than `patience` steps.

    NaN is no improvement.

    Args:
        lr: base rate.
        mode: `min` or `max`: which way is better.
        factor: of a fall.
        patience: how many steps without improvement are borne.
        threshold: how much better counts.
        threshold_mode: `rel` (a share of the best) or `abs`.
        cooldown: steps after a fall in which nothing is counted.
        min_lr: lowest rate.
        eps: a smaller fall is not made.

    Raises:
        ArgumentError: an unknown mode, or a factor of 1 or more; at a step, no metric was given.

    Example:
        >>> schedule = ReduceLROnPlateau(1.0, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> schedule.lr
        0.5
    """

    def __init__(
        self, lr: float, /, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        super().__init__(lr)
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                "ReduceLROnPlateau", "mode is min or max, threshold_mode rel or abs",
                got=f"{mode!r}, {threshold_mode!r}",
            )  # fmt: skip
        if not 0 <= factor < 1:
            raise ArgumentError("ReduceLROnPlateau", "factor is in [0, 1)", got=factor)
        self.mode = mode
        self.factor = factor
        self.patience = count("ReduceLROnPlateau", "patience", patience, 0)
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = count("ReduceLROnPlateau", "cooldown", cooldown, 0)
        self.min_lr = min_lr
        self.eps = eps
        self.best = inf if mode == "min" else -inf
        self.bad = 0
        self.cooling = 0
        self._lr = lr

    def rate(self, position: int) -> float:
        """Return the rate as it is now: it follows what was seen, not the position."""
        return self._lr

    def step(self, metric: float | None = None) -> None:
        """Take in a metric.

        Args:
            metric: what is watched.

        Raises:
            ArgumentError: there is none.
        """
        if metric is None:
            raise ArgumentError(
                "ReduceLROnPlateau.step", "needs the metric it watches", remedy="Call step(loss)."
            )
        self.position += 1
        if self._better(float(metric)):
            self.best, self.bad = float(metric), 0
        else:
            self.bad += 1
        if self.cooling > 0:
            self.cooling -= 1
            self.bad = 0
        if self.bad > self.patience:
            lower = max(self._lr * self.factor, self.min_lr)
            if self._lr - lower > self.eps:
                self._lr = lower
            self.cooling, self.bad = self.cooldown, 0

    def _better(self, metric: float) -> bool:
        if isnan(metric):
            return False
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            return sign * metric > sign * self.best + self.threshold
        return sign * metric > sign * self.best * (1 + sign * self.threshold)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold; None is nothing seen yet."""
        best = self.best if abs(self.best) != inf else None
        return {
            "position": self.position, "lr": self._lr, "best": best, "bad": self.bad,
            "cooling": self.cooling,
        }  # fmt: skip

    def _take(self, state: Mapping[str, Any]) -> None:
        super()._take(state)
        self._lr = float(state["lr"])
        nothing = inf if self.mode == "min" else -inf
        self.best = nothing if state["best"] is None else float(state["best"])
        self.bad, self.cooling = int(state["bad"]), int(state["cooling"])
