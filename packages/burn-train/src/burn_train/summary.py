"""What a training came to: best values, as data, as a table, as an HTML page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from burn_std import StoreError
from burn_train.observer import Row

METRICS_FILE = "metrics.jsonl"
LOG_FILE = "experiment.log"
_NOT_METRICS = ("epoch", "seconds")


class Extreme(NamedTuple):
    """Extremes of a column over the epochs.

    Attributes:
        name: of the column, `valid loss`.
        lowest: value.
        lowest_epoch: when.
        highest: value.
        highest_epoch: when.
        last: value of the last epoch.
    """

    name: str
    lowest: float
    lowest_epoch: int
    highest: float
    highest_epoch: int
    last: float


class Summary:
    """The rows of a training and what stands out in them.

    Args:
        rows: one per epoch.
        title: of the report.
        facts: what else the report says, by name.

    Attributes:
        rows: one per epoch.

    Example:
        >>> summary = Summary([{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}])
        >>> summary.best("loss")
        (1.0, 2)
        >>> print(summary)
        column       lowest    epoch      highest    epoch         last
        loss              1        2            2        1            1
    """

    def __init__(
        self, rows: Sequence[Row], title: str = "Training", facts: dict[str, str] | None = None
    ) -> None:
        self.rows = list(rows)
        self.title = title
        self.facts = facts or {}

    @staticmethod
    def load(directory: str | os.PathLike[str]) -> Summary:
        """Return the summary of a run from the files it left.

        Args:
            directory: of the run.

        Raises:
            StoreError: there is no such file, or a line of it is broken.
        """
        path = Path(directory) / METRICS_FILE
        try:
            # What follows the last end of a line is being written, or was when the run was killed.
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            rows = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as cause:
            raise StoreError(
                "Summary.load", "the run has a file of its metrics", got=f"{path.name}: {cause}"
            ) from cause
        return Summary(rows, Path(directory).name)

    def columns(self) -> list[str]:
        """Return the names of what was measured, in order of appearance."""
        seen: dict[str, None] = {}
        for row in self.rows:
            seen |= dict.fromkeys(k for k in row if k not in _NOT_METRICS)
        return list(seen)

    def extremes(self) -> list[Extreme]:
        """Return the extremes of every column that has a value."""
        out = []
        for name in self.columns():
            found = [
                (float(r[name]), int(r["epoch"]))
                for r in self.rows
                if isinstance(r.get(name), (int, float)) and not isnan(r[name])
            ]
            if found:
                low = min(found, key=lambda f: f[0])
                high = max(found, key=lambda f: f[0])
                out.append(Extreme(name, *low, *high, found[-1][0]))
        return out

    def best(self, column: str, mode: str = "min") -> tuple[float, int] | None:
        """Return the best value of a column and its epoch, or None.

        Args:
            column: its name.
            mode: `min` or `max`: which way is better.
        """
        for e in self.extremes():
            if e.name == column:
                if mode == "max":
                    return e.highest, e.highest_epoch
                return e.lowest, e.lowest_epoch
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {
            "title": self.title,
            "facts": self.facts,
            "epochs": len(self.rows),
            "rows": self.rows,
            "columns": [e._asdict() for e in self.extremes()],
        }

    def table(self) -> str:
        """Return the extremes as text."""
        found = self.extremes()
        width = max([6, *(len(e.name) for e in found)])
        head = f"{'column'.ljust(width)} {'lowest':>12} {'epoch':>8} {'highest':>12} {'epoch':>8}"
        lines = [f"{head} {'last':>12}"]
        lines += [
            f"{e.name.ljust(width)} {e.lowest:>12.5g} {e.lowest_epoch:>8} {e.highest:>12.5g} "
            f"{e.highest_epoch:>8} {e.last:>12.5g}"
            for e in found
        ]
        return "\n".join(lines)

    def html(self, path: str | os.PathLike[str]) -> Path:
        """Write a page with the table and a curve per metric; it needs nothing but itself.

        Args:
            path: of the file.

        Returns:
            The path.
        """
        from burn_train.report import page

        target = Path(path)
        target.write_text(page(self), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<summary of {len(self.rows)} epochs>"
