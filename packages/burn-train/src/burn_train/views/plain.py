"""Plain lines: safe for files, pipes and logs of CI."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from burn_train.observer import Observer, RunInfo
from burn_train.summary import Summary


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the values of an epoch as text.

    Args:
        row: by column.
    """
    return [f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()]


class PlainView(Observer):
    """One line per epoch under a heading, and the summary at the end.

    Args:
        out: where to write; standard output if None.
    """

    api_version = 1

    def __init__(self, out: Any = None) -> None:
        self._out = out
        self._heading: list[str] = []

    def _write(self, text: str) -> None:
        # Found at each line: standard output may have been replaced since.
        out = self._out or sys.stdout
        try:
            out.write(f"{text}\n")
        except UnicodeEncodeError:
            coding = getattr(out, "encoding", None) or "ascii"
            out.write(f"{text.encode(coding, 'replace').decode(coding)}\n")
        out.flush()

    def begin(self, info: RunInfo) -> None:
        """Start anew."""
        self._heading = []

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Write the values, under a heading whenever the columns change."""
        widths = [max(len(k), 10) for k in row]
        if self._heading != list(row):
            self._heading = list(row)
            self._write("  ".join(k.rjust(w) for k, w in zip(row, widths, strict=True)))
        self._write("  ".join(c.rjust(w) for c, w in zip(cells(row), widths, strict=True)))

    def message(self, text: str) -> None:
        """Write the line."""
        self._write(text)

    def end(self, summary: Summary | None) -> None:
        """Write the summary."""
        if summary is not None and summary.rows:
            self._write(f"\n{summary.table()}")
