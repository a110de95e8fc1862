"""Event files for TensorBoard (the extra `tensorboard` brings tensorboardX, which writes them)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from burn_std import TrainError
from burn_train.observer import Observer, RunInfo
from burn_train.summary import Summary


class TensorBoardLogger(Observer):
    """Curves per metric, one run per split.

    Args:
        directory: of the event files.
        every: also write values inside an epoch each so many steps; 0 for never.

    Raises:
        TrainError: tensorboardX is not installed.
    """

    def __init__(self, directory: str | os.PathLike[str], every: int = 0) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as cause:
            raise TrainError(
                "TensorBoardLogger", "needs the package tensorboardX",
                remedy="Install it: uv sync --inexact --package burn-train --extra tensorboard.",
            ) from cause  # fmt: skip
        self.directory = Path(directory)
        self.every = every
        self._make: Any = SummaryWriter
        self._writers: dict[str, Any] = {}

    def _writer(self, split: str) -> Any:
        if split not in self._writers:
            self._writers[split] = self._make(logdir=str(self.directory / (split or "run")))
        return self._writers[split]

    def begin(self, info: RunInfo) -> None:
        """Write what was trained before, in case this is another folder."""
        for row in info.history:
            self.epoch(row)

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Write values over steps."""
        for name, value in values.items():
            if isfinite(value):
                self._writer(split).add_scalar(f"step/{name}", value, step)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write values over epochs."""
        for column, value in row.items():
            split, _, name = column.partition(" ")
            if not name:
                split, name = "", column
            if column != "epoch" and isinstance(value, (int, float)) and isfinite(value):
                self._writer(split).add_scalar(f"epoch/{name}", value, int(row["epoch"]))
        for writer in self._writers.values():
            writer.flush()

    def end(self, summary: Summary | None) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
