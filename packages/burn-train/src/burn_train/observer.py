"""What hears of a training: views for a person, loggers for a file; one base for both.

Every method does nothing here, so that an observer writes only those it needs. They are called
one at a time; an observer that raises hears `end` and then nothing more, and training goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from burn_train.interrupter import Interrupter
    from burn_train.summary import Summary

LOG = logging.getLogger("burn.train")
Row = dict[str, Any]


class Column(NamedTuple):
    """A metric as the table shows it.

    Attributes:
        name: of the metric, without the split.
        unit: of its values, or empty.
        higher_is_better: which of two values is the better one; None for a gauge.
    """

    name: str
    unit: str
    higher_is_better: bool | None


class RunInfo(NamedTuple):
    """What is known before training.

    Attributes:
        epochs: in all, a resumed part included.
        steps: batches per epoch, 0 if nobody knows.
        valid_steps: batches of the held-out split, 0 if there is none.
        history: rows of epochs that were trained before.
        columns: the metrics.
        device: in words.
        parameters: of the model.
        directory: of the run, or None.
        interrupter: ends the run.
        devices: of the model.
    """

    epochs: int
    steps: int
    valid_steps: int
    history: Sequence[Row]
    columns: Sequence[Column]
    device: str
    parameters: int
    directory: Path | None
    interrupter: Interrupter
    devices: Sequence[Any] = ()


class Progress(NamedTuple):
    """Where a training is.

    Attributes:
        split: `train`, `valid` or the name of a test set.
        epoch: from 1.
        step: batches done of the split.
        steps: batches of the split, 0 if nobody knows.
        items: samples of training done since the run began.
        done: batches of training done in all.
        seconds: since the run began.
    """

    split: str
    epoch: int
    step: int
    steps: int
    items: int
    done: int
    seconds: float


class Observer:
    """Base of views and loggers.

    Attributes:
        live: wants `progress` and `values` inside an epoch, a few times per second.
        every: wants `values` each so many training steps; 0 for never.
    """

    live: bool = False
    every: int = 0

    def begin(self, info: RunInfo) -> None:
        """Hear what is known before training."""

    def progress(self, progress: Progress) -> None:
        """Hear where it is."""

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Hear the values so far of a running epoch, or of a finished evaluation.

        Args:
            split: `train`, `valid` or the name of a test set.
            epoch: from 1; 0 for an evaluation.
            step: batches of training done in all.
            values: by name of metric.
        """

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Hear the values of a finished epoch."""

    def message(self, text: str) -> None:
        """Hear a line of the log."""

    def end(self, summary: Summary | None) -> None:
        """Hear that training is over, also after an error (without a summary then).

        It is the place to close what is open: it is called after an error of the observer, too.
        """


class Observers:
    """Several observers, called one at a time from any thread.

    Args:
        observers: in the order they are called.
    """

    def __init__(self, observers: Sequence[Any]) -> None:
        self._all = list(observers)
        self._lock = threading.RLock()

    @property
    def live(self) -> bool:
        """Whether one wants to hear of progress."""
        return any(getattr(o, "live", False) for o in self._all)

    @property
    def every(self) -> list[int]:
        """After how many steps some want values."""
        return [o.every for o in self._all if getattr(o, "every", 0)]

    def tell(self, method: str, *args: Any, only: Callable[[Any], bool] | None = None) -> None:
        """Call a method of every observer.

        Args:
            method: its name.
            *args: what it takes.
            only: which observers; all if None.
        """
        with self._lock:
            for observer in list(self._all):
                # One that failed in the meantime, at the warning about another, is left out.
                if not any(o is observer for o in self._all):
                    continue
                if only is not None and not only(observer):
                    continue
                try:
                    getattr(observer, method)(*args)
                except Exception as error:  # noqa: BLE001 - what shows a training must not end it
                    self._all = [o for o in self._all if o is not observer]
                    LOG.warning(
                        "%s failed and is left out: %s: %s",
                        type(observer).__name__, type(error).__name__, error,
                    )  # fmt: skip
                    if method != "end":
                        with suppress(Exception):
                            observer.end(None)
