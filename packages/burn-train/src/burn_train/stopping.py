"""Early stopping: end when a metric does not improve any more."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan
from typing import Any, Literal

from burn_std import ArgumentError, StoreError, TrainError, nearest

Mode = Literal["min", "max"]


class EarlyStopping:
    """Stop after `patience` epochs without an improvement of more than `min_delta`.

    A gain of exactly `min_delta` is none, and NaN is none. The best epoch's weights come back at
    the end of training however it ends.

    Args:
        metric: column of the table, as `valid loss`.
        patience: epochs without improvement that end the training.
        mode: `min` or `max`: which way is better.
        min_delta: gain that counts.
        warmup: epochs at the beginning in which nothing is counted.
        restore_best: give the model its best weights at the end.

    Attributes:
        best: the best value, or None.
        best_epoch: when it was reached, or None.
        bad: epochs since then.

    Raises:
        ArgumentError: a setting has no meaning.

    Example:
        >>> stopping = EarlyStopping("valid loss", patience=2)
        >>> [stopping.update({"epoch": k, "valid loss": v}) for k, v in enumerate([1.0, 1.1, 1.2])]
        [False, False, True]
    """

    def __init__(
        self, metric: str = "valid loss", patience: int = 3, *, mode: Mode = "min",
        min_delta: float = 0.0, warmup: int = 0, restore_best: bool = True,
    ) -> None:  # fmt: skip
        if patience < 1 or mode not in ("min", "max") or min_delta < 0 or warmup < 0:
            raise ArgumentError(
                "EarlyStopping", "patience is positive, mode min or max, the others not negative",
                got=f"{patience=}, {mode=}, {min_delta=}, {warmup=}",
            )  # fmt: skip
        self.metric = metric
        self.patience = patience
        self.mode: Mode = mode
        self.min_delta = min_delta
        self.warmup = warmup
        self.restore_best = restore_best
        self.best: float | None = None
        self.best_epoch: int | None = None
        self.bad = 0

    def update(self, row: Mapping[str, Any]) -> bool:
        """Take in an epoch; return whether training should end.

        Args:
            row: the epoch's values.

        Raises:
            TrainError: the metric is not among them.
        """
        value = column(row, self.metric, "EarlyStopping")
        if self.improves(value):
            self.best, self.best_epoch, self.bad = value, int(row["epoch"]), 0
        elif int(row["epoch"]) > self.warmup:
            self.bad += 1
        return self.bad >= self.patience

    def improves(self, value: float) -> bool:
        """Return whether a value is better than the best by more than `min_delta`.

        Args:
            value: of the metric.
        """
        if isnan(value):
            return False
        best = self.best
        if best is None:
            best = inf if self.mode == "min" else -inf
        return (
            value < best - self.min_delta if self.mode == "min" else value > best + self.min_delta
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the counters, numbers that JSON can hold."""
        return {"best": self.best, "best_epoch": self.best_epoch, "bad": self.bad}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take what `state_dict` returned.

        Args:
            state: by name.

        Raises:
            StoreError: other names; nothing is changed then.
        """
        if set(state) != {"best", "best_epoch", "bad"}:
            raise StoreError("EarlyStopping", "the state is best, best_epoch and bad", got=state)
        self.best, self.best_epoch = state["best"], state["best_epoch"]
        self.bad = int(state["bad"])


def column(row: Mapping[str, Any], name: str, who: str) -> float:
    """Return a metric of an epoch.

    Args:
        row: the epoch's values.
        name: of the metric.
        who: asks, for the error.

    Raises:
        TrainError: there is no such metric.
    """
    if name not in row:
        known = [k for k in row if k not in ("epoch", "seconds")]
        raise TrainError(
            who, "no such metric", got=repr(name),
            remedy=nearest(name, known) or f"There are {', '.join(known)}.",
        )  # fmt: skip
    return float(row[name])
