"""Which checkpoints stay: the newest, the best, every so many; joined with `|`."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, Literal

from burn_std import ArgumentError, unwritten
from burn_train.stopping import column

Row = dict[str, Any]


class KeepRule:
    """Base of rules; `a | b` keeps what one of them keeps."""

    def keep(self, rows: Sequence[Row]) -> set[int]:
        """Return the epochs whose checkpoints stay.

        Args:
            rows: values of the epochs that have, or are about to have, a checkpoint, in order.
        """
        raise unwritten(self, "keep")

    def metrics(self) -> list[str]:
        """Return the columns of the table that the rule looks at."""
        return []

    def __or__(self, other: KeepRule) -> KeepRule:
        return _Either(self, other)


class KeepLast(KeepRule):
    """Keep the newest.

    Args:
        count: how many.

    Raises:
        ArgumentError: none would stay.

    Example:
        >>> KeepLast(2).keep([{"epoch": 1}, {"epoch": 2}, {"epoch": 3}])
        {2, 3}
    """

    def __init__(self, count: int = 2) -> None:
        if count < 1:
            raise ArgumentError("KeepLast", "count is positive", got=count)
        self.count = count

    def keep(self, rows: Sequence[Row]) -> set[int]:
        """Return the epochs whose checkpoints stay."""
        return {int(r["epoch"]) for r in rows[-self.count :]}


class KeepBest(KeepRule):
    """Keep the best by a metric; among equals the earlier; NaN is never best.

    Args:
        metric: column of the table.
        mode: `min` or `max`: which way is better.
        count: how many.

    Raises:
        ArgumentError: a setting has no meaning.
        TrainError: when it is asked, the metric is not in the table.

    Example:
        >>> rows = [{"epoch": 1, "valid loss": 0.5}, {"epoch": 2, "valid loss": 0.7}]
        >>> (KeepBest("valid loss") | KeepLast(1)).keep(rows)
        {1, 2}
    """

    def __init__(
        self, metric: str = "valid loss", mode: Literal["min", "max"] = "min", count: int = 1
    ) -> None:
        if mode not in ("min", "max") or count < 1:
            raise ArgumentError(
                "KeepBest", "mode is min or max, count positive", got=f"{mode!r}, {count}"
            )
        self.metric = metric
        self.mode = mode
        self.count = count

    def keep(self, rows: Sequence[Row]) -> set[int]:
        """Return the epochs whose checkpoints stay."""
        values = [(column(r, self.metric, "KeepBest"), int(r["epoch"])) for r in rows]
        sign = 1 if self.mode == "min" else -1
        known = sorted((sign * v, e) for v, e in values if not isnan(v))
        return {e for _, e in known[: self.count]}

    def metrics(self) -> list[str]:
        """Return the columns of the table that the rule looks at."""
        return [self.metric]


class KeepEvery(KeepRule):
    """Keep every so many epochs for good.

    Args:
        epochs: distance.

    Raises:
        ArgumentError: the distance is not positive.

    Example:
        >>> KeepEvery(2).keep([{"epoch": 1}, {"epoch": 2}, {"epoch": 3}])
        {2}
    """

    def __init__(self, epochs: int) -> None:
        if epochs < 1:
            raise ArgumentError("KeepEvery", "epochs is positive", got=epochs)
        self.epochs = epochs

    def keep(self, rows: Sequence[Row]) -> set[int]:
        """Return the epochs whose checkpoints stay."""
        return {int(r["epoch"]) for r in rows if r["epoch"] % self.epochs == 0}


class _Either(KeepRule):
    def __init__(self, one: KeepRule, two: KeepRule) -> None:
        self.one = one
        self.two = two

    def keep(self, rows: Sequence[Row]) -> set[int]:
        return self.one.keep(rows) | self.two.keep(rows)

    def metrics(self) -> list[str]:
        return [*self.one.metrics(), *self.two.metrics()]
