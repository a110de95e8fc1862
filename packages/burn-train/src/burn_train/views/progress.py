"""A progress bar in a terminal or a notebook, with a line per epoch above it (rich)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burn_train.observer import Observer, Progress, RunInfo
from burn_train.summary import Summary
from burn_train.views.plain import PlainView


class ProgressView(Observer):
    """A bar over all training steps with values so far; lines of epochs stay above it.

    Args:
        console: a rich console; that of standard output if None.
    """

    api_version = 1
    live = True

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console

        self._console = console or Console()
        self._bar: Any = None
        self._task: Any = None
        self._lines = PlainView(self)

    def write(self, text: str) -> None:
        """Print text above the bar."""
        self._console.print(text.rstrip("\n"), highlight=False, markup=False, soft_wrap=True)

    def flush(self) -> None:
        """Nothing waits."""

    def begin(self, info: RunInfo) -> None:
        """Show the bar."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress as Bar,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Bar(
            TextColumn("epoch {task.fields[epoch]} {task.fields[split]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[values]}"),
            console=self._console,
            transient=True,
        )
        total = info.epochs * info.steps or None
        done = len(info.history) * info.steps
        self._task = self._bar.add_task(
            "train", total=total, completed=done, epoch=len(info.history) + 1, split="", values=""
        )
        self._bar.start()
        self._lines.begin(info)

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        self._bar.update(
            self._task, completed=progress.done, epoch=progress.epoch, split=progress.split
        )

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Show values so far."""
        text = "  ".join(f"{k} {v:.4g}" for k, v in values.items())
        self._bar.update(self._task, values=text)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Print the values."""
        self._lines.epoch(row)

    def message(self, text: str) -> None:
        """Print the line."""
        self._lines.message(text)

    def end(self, summary: Summary | None) -> None:
        """Take the bar away and print the summary."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._lines.end(summary)
