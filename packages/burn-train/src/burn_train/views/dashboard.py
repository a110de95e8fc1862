"""The dashboard: live plots in the terminal (textual), in a process of its own.

What the screen costs is paid on another core and under another interpreter lock; training only
writes a line of JSON twice a second. `burn_train.views.screen` is the other end.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from burn_train.interrupter import Interrupter
from burn_train.metrics.gauges import CpuMemory
from burn_train.observer import LOG, Observer, Progress, RunInfo
from burn_train.summary import Summary
from burn_train.views.board import LONGEST
from burn_train.views.plain import PlainView

# Leaves the other screen, shows the cursor, stops reports of the mouse: for a screen that was
# killed and could not do so itself.
_PLAIN_TERMINAL = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l"
# Bytes that may wait for a screen that does not read; what is printed beyond them is dropped.
_WAITING = 1 << 20
# The terminal and the standard streams serve one screen at a time.
_PLACE = threading.Lock()


class DashboardView(Observer):
    """Progress with the time left, metrics per split, plots, status and the log.

    Keys: left and right choose the metric, up and down the kind of plot, `q` asks whether to stop
    and keep a checkpoint, to kill, or to go on. After the end it can be browsed for as long as
    someone presses keys; else it closes by itself, and the summary is printed. What the program
    prints meanwhile stands in the log. Where the screen cannot be, or is lost, lines take its
    place.

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
        self._lost: str | None = None  # why there is no screen, until it is told
        self._placed = False
        self._closing = threading.Lock()
        self._memory = CpuMemory()
        self._devices: Sequence[Any] = ()

    # ---- the screen's process -------------------------------------------------------------------

    def begin(self, info: RunInfo) -> None:
        """Open the screen."""
        self._devices = info.devices[:1]
        self._screen = self._listener = self._events = self._plain = self._lost = None
        outline = _outline(info)
        if not _PLACE.acquire(blocking=False):
            self._gone("another one is on the screen")
            return
        self._placed = True
        terminal = (0, 1) if self._terminal is None else (self._terminal, self._terminal)
        self._settings = None
        with contextlib.suppress(Exception):  # no terminal: the screen will say so
            import termios

            self._settings = (terminal[0], termios.tcgetattr(terminal[0]))
        try:
            to_screen, from_screen = self._start(terminal)
        except (OSError, ValueError, TypeError) as error:
            self._leave()
            self._gone(f"{type(error).__name__}: {error}")
            return
        self._events = _Pipe(to_screen)
        self._send("begin", outline)
        self._streams = [_Printed(self._print, name) for name in ("stdout", "stderr")]
        self._listener = threading.Thread(
            target=self._listen, args=(from_screen, self._screen, info.interrupter),
            name="burn-dashboard", daemon=True,
        )  # fmt: skip
        self._listener.start()

    def _start(self, terminal: tuple[int, int]) -> tuple[int, int]:
        """Start the process; return the ends of its pipes that are ours."""
        ours: list[int] = []
        its: list[int] = []
        try:
            for mine, other in ((1, 0), (0, 1)):
                ends = os.pipe()
                ours.append(ends[mine])
                its.append(ends[other])
            self._screen = subprocess.Popen(
                [sys.executable, "-P", "-m", "burn_train.views.screen",
                 str(its[0]), str(its[1]), str(self._stay)],
                stdin=terminal[0], stdout=terminal[1], stderr=terminal[1], pass_fds=its,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )  # fmt: skip
        except BaseException:
            for place in ours:
                os.close(place)
            raise
        finally:
            for place in its:
                os.close(place)
        return ours[0], ours[1]

    def _listen(self, answers: int, screen: subprocess.Popen[bytes], button: Interrupter) -> None:
        """Wait for what is answered on the screen, and for its end."""
        reason = ""
        with os.fdopen(answers, "rb") as lines:
            for line in lines:
                word, reason = json.loads(line)
                if word == "stop":
                    button.stop("stopped in the dashboard")
                elif word == "kill":
                    button.kill("killed in the dashboard")
        code = screen.wait()
        self._leave(restore=code != 0)
        if code or reason:
            self._gone(reason or f"its process ended with {code}")

    def _gone(self, reason: str) -> None:
        """Go on with lines, which are better than nothing."""
        # Not told here: `end` waits for the thread that finds it out, and holds what telling takes.
        self._lost = reason
        self._plain = PlainView()

    def _heard(self) -> None:
        reason, self._lost = self._lost, None
        if reason is not None:
            LOG.warning("the dashboard failed: %s", reason)

    def _leave(self, restore: bool = False) -> None:
        """Give back what the screen had: terminal, streams, place; once is enough."""
        with self._closing:
            for stream in self._streams:
                stream.give_back()
            self._streams = []
            if restore:
                self._restore_terminal()
            if self._placed:
                self._placed = False
                _PLACE.release()

    def _restore_terminal(self) -> None:
        if self._settings is None:
            return
        import termios

        where, settings = self._settings
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(where, termios.TCSANOW, settings)
            os.write(1 if self._terminal is None else self._terminal, _PLAIN_TERMINAL)

    def _send(self, event: str, what: Any, waiting: int | None = None) -> None:
        if self._events is not None:
            self._events.send([event, what], waiting)

    def _print(self, line: str) -> None:
        self._send("print", line, waiting=_WAITING)

    # ---- what training tells --------------------------------------------------------------------

    def progress(self, progress: Progress) -> None:
        """Show where it is."""
        memory = {"memory": self._memory.read(None)}
        for device in self._devices:
            used = device.memory_report().get("in_use")
            if used is not None:
                memory["on device"] = used / 1e9
        self._send("progress", [progress, memory], waiting=0)
        self._heard()

    def values(self, split: str, epoch: int, step: int, values: Mapping[str, float]) -> None:
        """Show values so far."""
        self._send("values", [split, step, _numbers(values)], waiting=0)
        self._heard()

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show the values of an epoch."""
        self._send("epoch", _numbers(row))
        self._heard()
        if self._plain is not None:
            self._plain.epoch(row)

    def message(self, text: str) -> None:
        """Show a line of the log."""
        self._send("message", text, waiting=_WAITING)
        self._heard()
        if self._plain is not None:
            self._plain.message(text)

    def end(self, summary: Summary | None) -> None:
        """Wait until nobody looks any more, close, and print the summary."""
        failed = summary is None
        # Nobody browses a failure: its traceback waits below.
        self._send("end", [summary.facts.get("ended", "done") if summary else "failed", failed])
        killed = False
        try:
            if self._events is not None:
                self._events.finish()
            if self._listener is not None:
                self._listener.join()
        finally:
            if self._screen is not None and self._screen.poll() is None:
                self._screen.kill()  # interrupted while it was browsed
                self._screen.wait()
                killed = True
            self._leave(restore=killed)
        out = PlainView()
        if self._lost is not None:  # the log is not heard any more
            out.message(f"the dashboard failed: {self._lost}")
        out.end(summary)


class _Pipe:
    """Lines to the screen, none of which training waits for.

    A screen that is stopped (a terminal that holds its output) reads nothing; then what is only
    of the moment is dropped, and the rest waits here.
    """

    def __init__(self, place: int) -> None:
        os.set_blocking(place, False)
        self._place = place
        self._left = bytearray()
        # A signal's handler may print in the midst of a line, on the same thread.
        self._lock = threading.RLock()
        self._writing = False
        self._closed = False

    def send(self, line: Any, waiting: int | None = None) -> None:
        """Send a line; drop it if more bytes than `waiting` wait already."""
        text = json.dumps(line).encode() + b"\n"
        with self._lock:
            if self._closed or (waiting is not None and len(self._left) > waiting):
                return
            self._left += text
            if not self._writing:  # else whoever writes takes this line along
                self._write()

    def _write(self) -> None:
        self._writing = True
        try:
            while self._left:
                del self._left[: os.write(self._place, self._left)]
        except BlockingIOError:
            pass
        except OSError:
            self._close()
        finally:
            self._writing = False

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


class _Printed:
    """Standard output or error while the screen covers the terminal: its lines go to the log.

    Args:
        show: takes a line.
        name: of the stream in `sys`.
    """

    def __init__(self, show: Callable[[str], None], name: str) -> None:
        self._name = name
        self._lines = _Lines(show, getattr(sys, name))
        below: Any = self._lines  # the wrapper asks for no more than it has
        self._stream = io.TextIOWrapper(
            below,
            "utf-8", "backslashreplace", line_buffering=True, write_through=True,
        )  # fmt: skip
        setattr(sys, name, self._stream)

    def give_back(self) -> None:
        """Let what follows go where it went before, also for those who hold on to the stream."""
        with contextlib.suppress(ValueError):  # closed by somebody
            self._stream.flush()
        self._lines.pass_on()
        if getattr(sys, self._name) is self._stream:
            setattr(sys, self._name, self._lines.before)


class _Lines(io.RawIOBase):
    """Bytes as lines."""

    def __init__(self, show: Callable[[str], None], before: Any) -> None:
        self.before = before
        self._show = show
        self._passes = False
        self._open = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.RLock()

    def writable(self) -> bool:
        """Return that it takes bytes."""
        return True

    def fileno(self) -> int:
        """Return the one beneath, for programs that are started with it."""
        return int(self.before.fileno())

    def write(self, data: Any) -> int:
        """Take bytes; whole lines are shown."""
        with self._lock:
            text = self._decoder.decode(bytes(data))
            if self._passes:
                self.before.write(text)
                self.before.flush()
                return len(data)
            *lines, last = (self._open + text).split("\n")
            # Of a line that is drawn anew again and again only the last state counts.
            self._open = last[last.rstrip("\r").rfind("\r") + 1 :][: 2 * LONGEST]
        for line in lines:
            if line.strip():
                line = line.rstrip("\r")
                self._show(line[line.rfind("\r") + 1 :][: 2 * LONGEST])
        return len(data)

    def pass_on(self) -> None:
        """Show what is begun, and hand what follows to the stream of before."""
        if self._open:
            self.write(b"\n")
        self._passes = True


def _outline(info: RunInfo) -> dict[str, Any]:
    return {
        "epochs": int(info.epochs), "steps": info.steps, "valid_steps": info.valid_steps,
        "history": [_numbers(row) for row in info.history], "columns": list(info.columns),
        "device": info.device, "parameters": info.parameters,
    }  # fmt: skip


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers of numpy as those of Python, which JSON knows."""
    return {k: v if isinstance(v, (str, int)) else float(v) for k, v in values.items()}
