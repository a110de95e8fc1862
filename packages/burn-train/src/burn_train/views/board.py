"""What the dashboard shows, without a terminal: series of values, progress, the time left.

One thread fills it with what the training tells; the app reads it on its own.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Mapping
from math import isfinite
from typing import Any

from burn_train.observer import Progress, RunInfo

# More points are merged in pairs: a terminal shows no more.
_HISTORY = 250
_RECENT = 1000
# Longer lines of the log are cut: nobody reads more of one in a pane.
LONGEST = 1000
# What a terminal takes as an order: colours, titles, movements; and single control characters.
_ORDERS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b."
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
)
PLOTS = ("full history", "recent history", "summary")

Points = list[tuple[float, float]]


class Series:
    """Values of one metric in one split over the steps: all of them merged, and the last ones.

    Example:
        >>> series = Series()
        >>> for k in range(2000):
        ...     series.add(k, 1.0)
        >>> len(series.full()) <= 500, len(series.recent)
        (True, 1000)
    """

    def __init__(self) -> None:
        self._merged: Points = []
        self._width = 1  # how many values a merged point stands for
        self._open: Points = []
        self.recent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self.total = 0.0
        self.count = 0

    def add(self, x: float, y: float) -> None:
        """Add a value; one that is not finite leaves a gap."""
        if not isfinite(y):
            return
        self.recent.append((x, y))
        self.total += y
        self.count += 1
        self._open.append((x, y))
        if len(self._open) == self._width:
            self._merged.append(_mean(self._open))
            self._open = []
        if len(self._merged) >= 2 * _HISTORY:
            pairs = zip(self._merged[::2], self._merged[1::2], strict=True)
            self._merged = [_mean(list(pair)) for pair in pairs]
            self._width *= 2

    def full(self) -> Points:
        """Return the whole history, merged."""
        return [*self._merged, *([_mean(self._open)] if self._open else [])]


def _mean(points: Points) -> tuple[float, float]:
    n = len(points)
    return sum(p[0] for p in points) / n, sum(p[1] for p in points) / n


class Board:
    """Everything that is shown.

    Attributes:
        info: of the run, or None before it begins.
        progress: where it is, or None.
        latest: values by split and metric.
        messages: last lines of the log.
        over: how it ended, or None while it goes on.
        memory: in GB, by what the status calls it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.info: RunInfo | None = None
        self.progress: Progress | None = None
        self.latest: dict[str, dict[str, float]] = {}
        self.messages: deque[str] = deque(maxlen=200)
        self._first: Progress | None = None
        self.over: str | None = None
        self.epochs_done = 0
        self._series: dict[tuple[str, str], Series] = {}
        self.memory: Mapping[str, float] = {}

    # ---- filled by the training ---------------------------------------------------------------

    def begin(self, info: RunInfo) -> None:
        """Take what is known, and the epochs of before."""
        with self._lock:
            self.info = info
        for row in info.history:
            self.epoch(row)

    def step(self, progress: Progress, memory: Mapping[str, float] | None = None) -> None:
        """Take where it is, and the memory in use."""
        if self._first is None:
            self._first = progress
        self.progress = progress
        self.memory = memory or {}

    def message(self, text: str) -> None:
        """Take lines of the log; what a terminal would obey is taken out of them."""
        for line in text.split("\n"):
            # A line that is drawn anew again and again is what it was last.
            seen = _ORDERS.sub("", line.rstrip("\r").rpartition("\r")[2][: 2 * LONGEST])
            if seen.strip():
                self.messages.append(seen.expandtabs(4)[:LONGEST])

    def values(self, split: str, step: int, values: Mapping[str, float]) -> None:
        """Take values so far."""
        with self._lock:
            self.latest[split] = dict(values)
            for metric, value in values.items():
                self._series.setdefault((metric, split), Series()).add(step, float(value))

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Take a finished epoch; a split without values inside it gets a point from its end."""
        with self._lock:
            self.epochs_done = int(row["epoch"])
            steps = self.info.steps if self.info is not None else 0
            place = self.epochs_done * max(steps, 1)
            for column, value in row.items():
                split, _, metric = column.partition(" ")
                if split not in ("train", "valid") or not metric:
                    continue
                self.latest.setdefault(split, {})[metric] = float(value)
                series = self._series.setdefault((metric, split), Series())
                if not series.recent or series.recent[-1][0] < place:
                    series.add(place, float(value))

    # ---- read by the dashboard ----------------------------------------------------------------

    def metrics(self) -> list[str]:
        """Return the metrics that have a plot, in the table's order."""
        with self._lock:
            order = [c.name for c in self.info.columns] if self.info is not None else []
            seen = {metric for metric, _ in self._series}
        return [n for n in order if n in seen] + sorted(seen - set(order))

    def lines(self, metric: str, plot: str) -> dict[str, Points]:
        """Return the points to draw by split.

        Args:
            metric: its name.
            plot: one of `PLOTS`; for the summary one point per split, its mean.
        """
        with self._lock:
            mine = {split: s for (m, split), s in self._series.items() if m == metric and s.count}
            if plot == "summary":
                return {split: [(0.0, s.total / s.count)] for split, s in mine.items()}
            if plot == "recent history":
                return {split: list(s.recent) for split, s in mine.items()}
            return {split: s.full() for split, s in mine.items()}

    def share(self) -> tuple[float, float]:
        """Return how much of the split and of the whole run is done, from 0 to 1."""
        info, p = self.info, self.progress
        if self.over is not None and info is not None and self.epochs_done >= info.epochs:
            return 1.0, 1.0
        if info is None or p is None:
            return 0.0, 0.0
        split = p.step / p.steps if p.steps else 0.0
        total = info.epochs * info.steps
        return min(split, 1.0), min(p.done / total, 1.0) if total else 0.0

    def time_left(self) -> str:
        """Return the time left in words; dashes until enough is known."""
        info, p = self.info, self.progress
        if info is None or p is None or not info.steps:
            return "--"
        made, seconds = self._since(p)
        # Early steps say little; a slow run need not wait for ten of them.
        known = (seconds >= 10 and made >= 10) or seconds >= 30
        if self.over is not None or not known or not made:
            return "--"
        return duration((info.epochs * info.steps - p.done) * seconds / made)

    def _since(self, p: Progress) -> tuple[int, float]:
        """Return steps and seconds since the first progress: before it stood what was resumed."""
        first = self._first or p
        return p.done - first.done, p.seconds - first.seconds

    def status(self) -> list[tuple[str, str]]:
        """Return the lines of the status pane."""
        info, p = self.info, self.progress
        mode = {"train": "training", "valid": "validating"}
        if self.over is not None:
            state = self.over
        else:
            state = mode.get(p.split, p.split) if p is not None else "starting"
        out = [("mode", state)]
        if info is not None:
            out.append(("epoch", f"{p.epoch if p else self.epochs_done} / {info.epochs}"))
            if p is not None:
                out.append(("step", f"{p.step} / {p.steps or '?'}"))
                made, seconds = self._since(p)
                if seconds > 0:
                    items = p.items - (self._first or p).items
                    out.append(("speed", f"{made / seconds:.1f} steps/s"))
                    out.append(("samples", f"{items / seconds:,.0f} /s"))
            out.append(("device", info.device))
        out += [(n, f"{gb:.2f} GB") for n, gb in self.memory.items() if isfinite(gb)]
        return out


def duration(seconds: float) -> str:
    """Return a time in words.

    Args:
        seconds: how long.

    Example:
        >>> [duration(s) for s in (4.2, 75, 3700, 200_000)]
        ['4 s', '1 min 15 s', '1 h 1 min', '2 d 7 h']
    """
    s = round(seconds)
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60} s"
    if s < 86_400:
        return f"{s // 3600} h {s % 3600 // 60} min"
    return f"{s // 86_400} d {s % 86_400 // 3600} h"
