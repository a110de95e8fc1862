"""The dashboard: live plots in the terminal (textual), in a process of its own.

What the screen costs is paid on another core and under another interpreter lock; training only
writes a line of JSON twice a second. `burn_train.views.screen` is the other end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from burn_train.interrupter import Interrupter
from burn_train.metrics.gauges import CpuMemory
from burn_train.observer import LOG, Observer, Progress, RunInfo
from burn_train.summary import Summary
from burn_train.views.plain import PlainView

# Leaves the other screen, shows the cursor, stops reports of the mouse: for a screen that was
# killed and could not do so itself.
_PLAIN_TERMINAL = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l"


class DashboardView(Observer):
    """Progress with the time left, metrics per split, plots, status and the log.

    Keys: left and right choose the metric, up and down the kind of plot, `q` asks whether to stop
    and keep a checkpoint, to kill, or to go on. After the end it can be browsed for as long as
    someone presses keys; else it closes by itself, and the summary is printed. What the program
    prints meanwhile stands in the log.

    Args:
        stay: seconds that it stays after the end if no key is pressed.

    Raises:
        ModuleNotFoundError: textual is not installed.
    """

    api_version = 1
    live = True

    def __init__(self, stay: float = 10.0) -> None:
        # Here, so that a missing package shows before training begins.
        if find_spec("textual") is None:
            raise ModuleNotFoundError("No module named 'textual'", name="textual")
        self._stay = stay
        self._terminal: int | None = None  # where the screen is; else standard input and output
        self._screen: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._events: _Pipe | None = None
        self._streams: list[_Printed] = []
        self._settings: Any = None
        self._plain: PlainView | None = None
        self._memory = CpuMemory()
        self._devices: Sequence[Any] = ()

    # ---- the screen's process -------------------------------------------------------------------

    def begin(self, info: RunInfo) -> None:
        """Open the screen."""
        self._devices = info.devices[:1]
        terminal = (0, 1) if self._terminal is None else (self._terminal, self._terminal)
        with contextlib.suppress(Exception):  # no terminal: the screen will say so
            import termios

            self._settings = (terminal[0], termios.tcgetattr(terminal[0]))
        events, to_screen = os.pipe()
        from_screen, answers = os.pipe()
        try:
            self._screen = subprocess.Popen(
                [sys.executable, "-P", "-m", "burn_train.views.screen",
                 str(events), str(answers), str(self._stay)],
                stdin=terminal[0], stdout=terminal[1], stderr=terminal[1],
                pass_fds=(events, answers),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )  # fmt: skip
        except OSError as error:
            os.close(to_screen)
            os.close(from_screen)
            self._gone(f"{type(error).__name__}: {error}")
            return
        finally:
            os.close(events)
            os.close(answers)
        self._events = _Pipe(to_screen)
        self._send("begin", _outline(info))
        self._streams = [_Printed(self._send, name) for name in ("stdout", "stderr")]
        self._listener = threading.Thread(
            target=self._listen, args=(from_screen, self._screen, info.interrupter),
            name="burn-dashboard", daemon=True,
        )  # fmt: skip
        self._listener.start()

    def _listen(self, answers: int, screen: subprocess.Popen[bytes], button: Interrupter) -> None:
        """Wait for what is answered on the screen, and for its end."""
        reason = ""
        with os.fdopen(answers, "rb") as lines:
            for line in lines:
                word, reason = json.loads(line)
                if word == "stop":
                    button.stop("stopped in the dashboard")
                elif word == "kill":
                    button.stop("killed in the dashboard", save=False)
                    # Pressed already, so this one raises at once in the main thread.
                    os.kill(os.getpid(), signal.SIGINT)
        code = screen.wait()
        self._give_back_streams()
        if code:
            self._restore_terminal()
        if code or reason:
            self._gone(reason or f"its process ended with {code}")

    def _gone(self, reason: str) -> None:
        """Go on with lines, which are better than nothing."""
        self._plain = PlainView()
        LOG.warning("the dashboard failed: %s", reason)

    def _restore_terminal(self) -> None:
        if self._settings is None:
            return
        import termios

        where, settings = self._settings
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(where, termios.TCSANOW, settings)
            os.write(1 if self._terminal is None else self._terminal, _PLAIN_TERMINAL)

    def _give_back_streams(self) -> None:
        for stream in self._streams:
            stream.give_back()
        self._streams = []

    def _send(self, event: str, what: Any, droppable: bool = False) -> None:
        if self._events is not None:
            self._events.send([event, what], droppable)

    # ---- what training tells --------------------------------------------------------------------

    def progress(self, progress: Progress) -> None:
        """Show where it is."""
        memory = {"memory": self._memory.read(None)}
        for device in self._devices:
            used = device.memory_report().get("in_use")
            if used is not None:
                memory["on device"] = used / 1e9
        self._send("progress", [progress, memory], droppable=True)

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Show values so far."""
        self._send("values", [split, step, _numbers(values)], droppable=True)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show the values of an epoch."""
        self._send("epoch", _numbers(row))
        if self._plain is not None:
            self._plain.epoch(row)

    def message(self, text: str) -> None:
        """Show a line of the log."""
        self._send("message", text)
        if self._plain is not None:
            self._plain.message(text)

    def end(self, summary: Summary | None) -> None:
        """Wait until nobody looks any more, close, and print the summary."""
        failed = summary is None
        # Nobody browses a failure: its traceback waits below.
        self._send("end", [summary.facts.get("ended", "done") if summary else "failed", failed])
        try:
            if self._events is not None:
                self._events.finish()
            if self._listener is not None:
                self._listener.join()
        finally:
            if self._screen is not None and self._screen.poll() is None:
                self._screen.kill()  # interrupted while it was browsed
                self._screen.wait()
                self._restore_terminal()
            self._give_back_streams()
        PlainView().end(summary)


class _Pipe:
    """Lines to the screen, none of which training waits for.

    A screen that is stopped (a terminal that holds its output) reads nothing; then what is only
    of the moment is dropped, and the rest waits here.
    """

    def __init__(self, place: int) -> None:
        os.set_blocking(place, False)
        self._place = place
        self._left = bytearray()
        self._lock = threading.Lock()
        self._closed = False

    def send(self, line: Any, droppable: bool) -> None:
        with self._lock:
            if self._closed or (droppable and self._left):
                return
            self._left += json.dumps(line).encode() + b"\n"
            self._write()

    def _write(self) -> None:
        try:
            while self._left:
                del self._left[: os.write(self._place, self._left)]
        except BlockingIOError:
            pass
        except OSError:
            self._close()

    def finish(self) -> None:
        """Send all that waits, and say that nothing follows."""
        with self._lock:
            if not self._closed:
                os.set_blocking(self._place, True)
                self._write()
            if not self._closed:
                self._close()

    def _close(self) -> None:
        self._closed = True
        self._left.clear()
        os.close(self._place)


class _Printed(io.TextIOBase):
    """Standard output or error while the screen covers the terminal: its lines go to the log."""

    def __init__(self, send: Any, name: str) -> None:
        self._send_line, self._name = send, name
        self._before = getattr(sys, name)
        self._open = ""
        setattr(sys, name, self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What lines may hold."""
        return "utf-8"

    def writable(self) -> bool:
        """Return that it takes text."""
        return True

    def fileno(self) -> int:
        """Return the one beneath, for programs that are started with it."""
        return int(self._before.fileno())

    def write(self, text: str) -> int:
        """Take text; whole lines are shown."""
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            if line.strip():
                self._send_line("print", line)
        return len(text)

    def give_back(self) -> None:
        """Let what follows go where it went before."""
        if self._open:
            self.write("\n")
        if getattr(sys, self._name) is self:
            setattr(sys, self._name, self._before)


def _outline(info: RunInfo) -> dict[str, Any]:
    return {
        "epochs": info.epochs, "steps": info.steps, "valid_steps": info.valid_steps,
        "history": [_numbers(row) for row in info.history], "columns": list(info.columns),
        "device": info.device, "parameters": info.parameters,
    }  # fmt: skip


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers of numpy as those of Python, which JSON knows."""
    return {k: v if isinstance(v, (str, int)) else float(v) for k, v in values.items()}
