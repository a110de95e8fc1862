"""What a person sees while a model trains: a progress bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from burn_std import PluginGroup

API_VERSION = 1
VIEWS = PluginGroup("burn.train_views", API_VERSION)


class View(Protocol):
    """What a training tells its view."""

    def begin(self, epochs: int, steps: int) -> None:
        """Hear how many epochs and steps per epoch there will be."""
        ...

    def step(self, epoch: int, step: int) -> None:
        """Hear that a step is done."""
        ...

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Hear the values of a finished epoch."""
        ...

    def end(self) -> None:
        """Hear that training is over, also after an error."""
        ...


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the values of an epoch as text."""
    return [f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()]


class PlainView:
    """One line per epoch under a heading; safe for files and pipes."""

    api_version = API_VERSION

    def __init__(self, out: Any = None) -> None:
        self._out = out or sys.stdout
        self._headed = False

    def begin(self, epochs: int, steps: int) -> None:
        """Start anew."""
        self._headed = False

    def step(self, epoch: int, step: int) -> None:
        """Show nothing for a single step."""

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the values, under a heading the first time."""
        widths = [max(len(k), 10) for k in row]
        if not self._headed:
            self._headed = True
            self._out.write("  ".join(k.rjust(w) for k, w in zip(row, widths, strict=True)) + "\n")
        self._out.write(
            "  ".join(c.rjust(w) for c, w in zip(cells(row), widths, strict=True)) + "\n"
        )
        self._out.flush()

    def end(self) -> None:
        """Leave what was written."""


class ProgressView:
    """A progress bar over all steps with a line per epoch above it (rich)."""

    api_version = API_VERSION

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console()
        self._bar: Any = None
        self._task: Any = None
        self._lines = PlainView(self)

    def write(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text.rstrip("\n"), highlight=False)

    def flush(self) -> None:
        """Nothing waits."""

    def begin(self, epochs: int, steps: int) -> None:
        """Show the bar."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("train", total=epochs * steps, epoch=1)
        self._bar.start()
        self._lines.begin(epochs, steps)

    def step(self, epoch: int, step: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, advance=1, epoch=epoch)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Print the values."""
        self._lines.epoch(row)

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def choose_view(name: str | None) -> Any:
    """Return a view: the named one, else a bar in a terminal and plain lines elsewhere."""
    chosen = name or ("progress" if sys.stdout.isatty() else "plain")
    return VIEWS.load(chosen)()
