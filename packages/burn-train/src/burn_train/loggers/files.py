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

from burn_std import TrainError
from burn_train.observer import Observer, Row, RunInfo
from burn_train.summary import LOG_FILE, METRICS_FILE


def _refused(path: Path, cause: OSError) -> TrainError:
    return TrainError(
        "logger", "the file could not be written", got=f"{path}: {cause.strerror or cause}",
        remedy="What it held before is there.",
    )  # fmt: skip


def _replace(path: Path, text: str) -> None:
    """Give a file other contents at once: a kill or a full disk leaves the old ones.

    Raises:
        TrainError: the disk refuses.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    except OSError as cause:
        raise _refused(path, cause) from cause
    finally:
        fresh.unlink(missing_ok=True)


def _append(path: Path, text: str) -> None:
    """Add text to a file, all of it or nothing.

    Raises:
        TrainError: the disk refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as out:
            size = out.tell()
            rest = memoryview(text.encode())
            try:
                while rest:
                    rest = rest[out.write(rest) :]
            except OSError:
                out.truncate(size)
                raise
    except OSError as cause:
        raise _refused(path, cause) from cause


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

    def begin(self, info: RunInfo) -> None:
        """Write what was trained before."""
        text = "".join(f"{json.dumps(r)}\n" for r in info.history)
        _replace(self.directory / METRICS_FILE, text)
        self.message(f"{info.epochs} epochs on {info.device}, {info.parameters:,} parameters")

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the row."""
        _append(self.directory / METRICS_FILE, f"{json.dumps(dict(row))}\n")

    def message(self, text: str) -> None:
        """Append the line with the time."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        _append(self.directory / LOG_FILE, f"{stamp} {text}\n")


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
        self._columns: dict[str, None] = {}  # of the file

    def begin(self, info: RunInfo) -> None:
        """Write what was trained before."""
        self._rows = [dict(r) for r in info.history]
        self._columns = {}
        if self._rows:
            self._write()

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the row."""
        self._rows.append(dict(row))
        if row.keys() <= self._columns.keys() and self.path.exists():
            _append(self.path, _table(self._columns, [row], heading=False))
        else:
            self._write()

    def _write(self) -> None:
        for row in self._rows:
            self._columns |= dict.fromkeys(row)
        _replace(self.path, _table(self._columns, self._rows))


def _table(
    columns: Mapping[str, None], rows: Sequence[Mapping[str, Any]], heading: bool = True
) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    if heading:
        writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
