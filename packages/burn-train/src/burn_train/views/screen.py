"""The process of the dashboard's screen: reads what training tells, answers what keys ask.

Started by `DashboardView` as `python -m burn_train.views.screen EVENTS ANSWERS STAY`, with two ends
of pipes and the terminal as standard input and output. A line of `EVENTS` is a JSON list
`[event, what]`, one of `ANSWERS` is `[word, reason]`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

from burn_train.interrupter import Interrupter
from burn_train.observer import Column, Progress, RunInfo
from burn_train.views.app import DashboardApp
from burn_train.views.board import Board

# Below training, which is what the machine is there for.
_NICE = 5


class Screen:
    """The board of a training in another process, and the app that shows it.

    Args:
        events: descriptor that lines are read from.
        answers: descriptor that lines are written to.
        stay: seconds that it stays after the end if no key is pressed.
    """

    def __init__(self, events: int, answers: int, stay: float) -> None:
        self._events = os.fdopen(events, "rb")
        self._answers = answers
        self.board = Board()
        self.app = DashboardApp(self.board, self._answer, stay)

    def run(self) -> int:
        """Show the board until nobody looks any more; return the exit code."""
        threading.Thread(target=self._listen, name="burn-events", daemon=True).start()
        try:
            if not os.isatty(0) or not os.isatty(2):
                raise OSError("standard input and output are no terminal")
            threading.Thread(target=self._watch, name="burn-terminal", daemon=True).start()
            self.app.run()
        except Exception as error:  # noqa: BLE001 - told to the training, which goes on
            self._say("failed", f"{type(error).__name__}: {error}")
            return 1
        if self.board.over is None:
            self._say("failed", "it was closed")
            return 1
        return 0

    def _watch(self) -> None:
        """Wait until the terminal is gone, and go too: textual would stay, and training wait."""
        hung_up = select.poll()
        hung_up.register(0, 0)
        hung_up.poll()
        self._say("failed", "its terminal was closed")
        os._exit(1)

    def _listen(self) -> None:
        for line in self._events:
            try:
                event, what = json.loads(line)
                getattr(self, f"_on_{event}")(what)
            except Exception as error:  # noqa: BLE001 - one line less; the end must still be heard
                self.board.message(f"not shown: {type(error).__name__}: {error}")
        if self.board.over is None:
            # The training's process is gone without a word.
            self._on_end(["killed", True])

    def _on_begin(self, info: dict[str, Any]) -> None:
        columns = [Column(*c) for c in info.pop("columns")]
        self.board.begin(
            RunInfo(**info, columns=columns, directory=None, interrupter=Interrupter())
        )

    def _on_progress(self, what: Any) -> None:
        progress, memory = what
        self.board.step(Progress(*progress), memory)

    def _on_values(self, what: Any) -> None:
        self.board.values(*what)

    def _on_epoch(self, row: dict[str, Any]) -> None:
        self.board.epoch(row)

    def _on_message(self, text: str) -> None:
        self.board.message(text)

    _on_print = _on_message

    def _on_end(self, what: Any) -> None:
        over, failed = what
        if failed:
            self.app.stay = 0.0
        self.board.over = over

    def _answer(self, word: str) -> None:
        if word == "stop":
            self.board.message("stopping after this step")
        self._say(word, "")

    def _say(self, word: str, reason: str) -> None:
        with suppress(OSError):  # nobody listens any more
            os.write(self._answers, json.dumps([word, reason]).encode() + b"\n")


def main() -> int:
    """Run the screen that the arguments describe."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # The training hears of them too, and ends the screen in its order.
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    return Screen(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])).run()


if __name__ == "__main__":
    sys.exit(main())
