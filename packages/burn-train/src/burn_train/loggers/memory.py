"""A logger that keeps what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burn_train.observer import Observer, Row, RunInfo
from burn_train.summary import Summary


class MemoryLogger(Observer):
    """Keeps everything in lists.

    Args:
        every: keep values inside an epoch each so many steps; 0 for never.

    Attributes:
        rows: of epochs.
        points: (split, epoch, step, values).
        messages: lines of the log.
        summary: of the finished training, or None.

    Example:
        >>> log = MemoryLogger()
        >>> log.epoch({"epoch": 1, "train loss": 0.5})
        >>> log.rows
        [{'epoch': 1, 'train loss': 0.5}]
    """

    def __init__(self, every: int = 0) -> None:
        self.every = every
        self.rows: list[Row] = []
        self.points: list[tuple[str, int, int, dict[str, float]]] = []
        self.messages: list[str] = []
        self.summary: Summary | None = None

    def begin(self, info: RunInfo) -> None:
        """Start with what was trained before."""
        self.rows = [dict(r) for r in info.history]

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Keep the values."""
        self.points.append((split, epoch, step, dict(values)))

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Keep the row."""
        self.rows.append(dict(row))

    def message(self, text: str) -> None:
        """Keep the line."""
        self.messages.append(text)

    def end(self, summary: Summary | None) -> None:
        """Keep the summary."""
        self.summary = summary
