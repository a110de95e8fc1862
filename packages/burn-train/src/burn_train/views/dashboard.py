"""The dashboard: live plots in the terminal, on a thread of its own (textual).

Training stays on the thread that called it, so that views change nothing in what it computes.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from burn_train.observer import LOG, Observer, Progress, RunInfo
from burn_train.summary import Summary
from burn_train.views.board import Board
from burn_train.views.plain import PlainView


class DashboardView(Observer):
    """Progress with the time left, metrics per split, plots, status and the log.

    Keys: left and right choose the metric, up and down the kind of plot, `q` asks whether to stop
    and keep a checkpoint, to kill, or to go on. After the end it can be browsed for as long as
    someone presses keys; else it closes by itself, and the summary is printed.

    Args:
        stay: seconds that it stays after the end if no key is pressed.
    """

    api_version = 1
    live = True

    def __init__(self, stay: float = 10.0) -> None:
        # Here, so that a missing package shows before training begins.
        from burn_train.views.app import DashboardApp

        self._class = DashboardApp
        self._stay = stay
        self.board = Board()
        self.app: Any = None
        self._thread: threading.Thread | None = None
        self._plain: PlainView | None = None
        self._ready = threading.Event()
        self._interrupter: Any = None

    def begin(self, info: RunInfo) -> None:
        """Open the screen."""
        self.board.begin(info)
        self._interrupter = info.interrupter
        self.app = self._class(self.board, self._stop, self._stay)
        self._thread = threading.Thread(target=self._run, name="burn-dashboard", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with _without_signals():
                self.app.run()
        except BaseException as error:  # noqa: BLE001 - a broken screen must not end training
            LOG.warning("the dashboard failed: %s: %s", type(error).__name__, error)
        finally:
            if self.board.over is None:
                # Gone before the end: lines are better than nothing.
                self._plain = PlainView()

    def _stop(self, answer: str) -> None:
        if answer == "stop":
            self._interrupter.stop("stopped in the dashboard")
            self.board.messages.append("stopping after this step")
        else:
            self._interrupter.stop("killed in the dashboard", save=False)
            # Pressed already, so this one raises at once in the main thread.
            os.kill(os.getpid(), signal.SIGINT)

    def progress(self, progress: Progress) -> None:
        """Show where it is."""
        self.board.step(progress)

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Show values so far."""
        self.board.values(split, step, values)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show the values of an epoch."""
        self.board.epoch(row)
        if self._plain is not None:
            self._plain.epoch(row)

    def message(self, text: str) -> None:
        """Show a line of the log."""
        self.board.messages.append(text)
        if self._plain is not None:
            self._plain.message(text)

    def end(self, summary: Summary | None) -> None:
        """Wait until nobody looks any more, close, and print the summary."""
        failed = summary is None
        self.board.over = "failed" if failed else summary.facts.get("ended", "done")  # type: ignore[union-attr]
        if self._thread is not None and self._thread.is_alive():
            if failed:
                self.app.stay = 0.0  # nobody browses a failure: its traceback waits below
            self._thread.join()
        PlainView().end(summary)


class _Signals:
    """The signal module for a driver off the main thread, where no handler can be set."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    @staticmethod
    def signal(*args: Any) -> None:
        """Set nothing."""


@contextmanager
def _without_signals() -> Iterator[None]:
    """Let textual's driver run on this thread; the app looks at the terminal's size itself."""
    from textual.drivers import linux_driver

    module: Any = linux_driver
    before = module.signal
    module.signal = _Signals()
    try:
        yield
    finally:
        module.signal = before
