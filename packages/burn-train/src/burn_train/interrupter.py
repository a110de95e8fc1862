"""Stopping a training from outside: by a key, a signal, another thread."""

from __future__ import annotations

import os
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
        # Signals arrive in the midst of anything, this class included.
        self._lock = threading.RLock()
        self._hears = False  # whether the main thread trains, and so can be broken off
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

    def kill(self, reason: str = "killed") -> None:
        """Ask training to end and to keep nothing of this epoch.

        In the main thread it ends at once, by a KeyboardInterrupt; elsewhere after its step.

        Args:
            reason: what the result will say.
        """
        with self._lock:
            self.stop(reason, save=False)
            if self._hears:
                # Pressed already, so this one raises.
                os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let the first Ctrl-C (or SIGTERM) press the button, and a second one raise at once.

        A terminal that is closed (SIGHUP) presses it too, unless the program takes that otherwise.
        Only the main thread can do that; elsewhere the block changes nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        words = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "terminated"}
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is not None and signal.getsignal(hang_up) is signal.SIG_DFL:
            words[hang_up] = "terminal closed"

        def pressed(number: int, frame: Any) -> None:
            # Kernel and shell both tell of a closed terminal, so its second time means no more.
            if self.should_stop and number != hang_up:
                raise KeyboardInterrupt
            self.stop(words[signal.Signals(number)])

        before = {number: signal.signal(number, pressed) for number in words}
        self._hears = True
        try:
            yield
        finally:
            with self._lock:
                self._hears = False
            for number, handler in before.items():
                # None is a handler that Python did not set and cannot bring back.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
