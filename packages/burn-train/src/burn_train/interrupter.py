"""Stopping a training from outside: by a key, a signal, another thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupter:
    """A button that several may press; training looks at it after every step.

    Example:
        >>> button = Interrupter()
        >>> button.stop("enough")
        >>> button.should_stop, button.reason, button.save
        (True, 'enough', True)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget that it was pressed."""
        self.reason: str | None = None
        self.save = True

    @property
    def should_stop(self) -> bool:
        """Whether it was pressed."""
        return self.reason is not None

    def stop(self, reason: str = "stopped", *, save: bool = True) -> None:
        """Ask training to end after the step it is in; the first to ask is the reason.

        Args:
            reason: what the result will say.
            save: keep a checkpoint of where it was.
        """
        with self._lock:
            if self.reason is None:
                self.save = save
                self.reason = reason

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let the first Ctrl-C (or SIGTERM) press the button, and a second one raise at once.

        Only the main thread can do that; elsewhere the block changes nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        words = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "terminated"}

        def pressed(number: int, frame: Any) -> None:
            if self.should_stop:
                raise KeyboardInterrupt
            self.stop(words[signal.Signals(number)])

        before = {number: signal.signal(number, pressed) for number in words}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
