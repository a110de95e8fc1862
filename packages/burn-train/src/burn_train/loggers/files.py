"""Loggers that write files: JSON lines, CSV, and the run's log."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from burn_train.observer import Observer, Row, RunInfo
from burn_train.summary import METRICS_FILE


class FileLogger(Observer):
    """`metrics.jsonl`, a line per epoch, and `experiment.log`, a line per event.

    A resumed run writes the epochs it begins with anew, so those that were lost do not stand twice.

    Args:
        directory: made if missing.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FileLogger(folder).epoch({"epoch": 1, "train loss": 0.5})
        ...     print(pathlib.Path(folder, "metrics.jsonl").read_text(), end="")
        {"epoch": 1, "train loss": 0.5}
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._rows: list[Row] = []

    def begin(self, info: RunInfo) -> None:
        """Write what was trained before."""
        self._rows = [dict(r) for r in info.history]
        self._write()
        self.message(f"{info.epochs} epochs on {info.device}, {info.parameters:,} parameters")

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the row."""
        self._rows.append(dict(row))
        self._write()

    def _write(self) -> None:
        """Put all rows into the file at once: a kill leaves the old file or the new one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / METRICS_FILE
        fresh = path.with_suffix(".tmp")
        fresh.write_text("".join(f"{json.dumps(r)}\n" for r in self._rows), encoding="utf-8")
        os.replace(fresh, path)

    def message(self, text: str) -> None:
        """Append the line with the time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with (self.directory / "experiment.log").open("a", encoding="utf-8") as out:
            out.write(f"{stamp} {text}\n")


class CsvLogger(Observer):
    """One row per epoch in a CSV file; a column that appears later is empty before.

    Args:
        path: of the file.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = CsvLogger(pathlib.Path(folder, "log.csv"))
        ...     log.epoch({"epoch": 1, "train loss": 0.5})
        ...     print(log.path.read_text(), end="")
        epoch,train loss
        1,0.5
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._rows: list[Row] = []

    def begin(self, info: RunInfo) -> None:
        """Write what was trained before."""
        self._rows = [dict(r) for r in info.history]
        if self._rows:
            self._write()

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the row."""
        self._rows.append(dict(row))
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".tmp")
        fresh.write_text(_table(self._rows), encoding="utf-8")
        os.replace(fresh, self.path)


def _table(rows: Sequence[Row]) -> str:
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
