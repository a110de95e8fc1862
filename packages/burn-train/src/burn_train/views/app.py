"""The dashboard's screen (textual). Imported only in the process of a screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby
from typing import Any, ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static, Tab, Tabs

from burn_train.views.board import PLOTS, Board
from burn_train.views.drawing import bars, curves

# Each look at the board costs some milliseconds of a core that training may want. So the next one
# comes when this share of the time is spent, but within these seconds; between two of them only the
# bars of the progress move.
_SHARE = 0.005
_SOONEST, _LATEST = 0.5, 3.0
_BARS = 1.0
_COLORS = {"train": "dark_orange", "valid": "dodger_blue1"}
_OTHERS = ("green3", "medium_purple", "red3", "dark_cyan")


def color(split: str) -> str:
    """Return the colour of a split.

    Args:
        split: its name.
    """
    return _COLORS.get(split) or _OTHERS[sum(map(ord, split)) % len(_OTHERS)]


class Ask(ModalScreen[str]):
    """The dialog of `q`: stop, kill or go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "answer('stop')", "stop"),
        Binding("k", "answer('kill')", "kill"),
        Binding("c,escape,q", "answer('go on')", "go on"),
    ]
    CSS = """
    Ask { align: center middle; }
    #dialog { width: 60%; max-width: 64; height: auto; padding: 1 2; border: round $accent;
              background: $surface; }
    """

    def compose(self) -> ComposeResult:
        """Show the choices."""
        text = Text.from_markup(
            "[b]End the training?[/b]\n\n"
            "[b]s[/b]  stop after this step and keep a checkpoint\n"
            "[b]k[/b]  kill at once, keep nothing of this epoch\n"
            "[b]c[/b]  go on"
        )
        yield Static(text, id="dialog")

    def action_answer(self, answer: str) -> None:
        """Close with an answer."""
        self.dismiss(answer)


class DashboardApp(App[None]):
    """Progress, metrics, plots, status and the log of a training.

    Args:
        board: what is shown.
        on_stop: called with `stop` or `kill`.
        stay: seconds that it stays after the end if no key is pressed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit_or_ask", "quit", priority=True),
        Binding("left,h", "metric(-1)", "metric", priority=True),
        Binding("right,l", "metric(1)", "metric", priority=True),
        Binding("up", "plot(-1)", "plot", priority=True),
        Binding("down", "plot(1)", "plot", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False
    # In few lines the values matter more than the keys and the log.
    VERTICAL_BREAKPOINTS = [(0, "-short"), (26, "-tall")]
    CSS = """
    Screen { layout: vertical; }
    #upper { height: 1fr; }
    #left { width: 38%; min-width: 26; }
    #right { width: 1fr; }
    Static { padding: 0 1; }
    .pane { border: round $primary; border-title-color: $text; text-wrap: nowrap;
            text-overflow: ellipsis; }
    #metrics { height: 1fr; min-height: 4; }
    #status { height: auto; max-height: 12; }
    #keys { height: 3; }
    #plot { height: 1fr; }
    #log { height: 7; }
    .-short #keys { display: none; }
    .-short #status { max-height: 8; }
    .-short #log { height: 4; }
    #progress { height: 4; }
    Tabs { height: 2; }
    """

    def __init__(
        self, board: Board, on_stop: Callable[[str], None], stay: float = 10.0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.board = board
        self.on_stop = on_stop
        self.stay = stay
        self.kind = 0
        self.metric = ""
        self._known: list[str] = []
        self._shown: dict[str, tuple[str, bool]] = {}
        self._looks = 0
        self._asked: tuple[str, int, Size] | None = None
        self._spent = 0.0  # seconds of this thread until the last look
        self._next = 0.0  # when the next is due
        self._leaves_at: float | None = None

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        with Horizontal(id="upper"):
            with Vertical(id="left"):
                yield Static(id="keys", classes="pane")
                yield Static(id="metrics", classes="pane")
                yield Static(id="status", classes="pane")
            with Vertical(id="right"):
                yield Tabs(id="tabs")
                yield Static(id="plot", classes="pane")
                yield Static(id="log", classes="pane")
        yield Static(id="progress", classes="pane")

    def on_mount(self) -> None:
        """Name the panes and begin to look at the board."""
        for name in ("metrics", "status", "log", "progress", "keys"):
            self.query_one(f"#{name}").border_title = name
        self._spent = time.thread_time()
        self.look()

    def look(self) -> None:
        """Show the board, and look again later."""
        self.show()
        spent, self._spent = time.thread_time() - self._spent, time.thread_time()
        over = self.board.over is not None
        wait = _SOONEST if over else min(max(_SOONEST, spent / _SHARE), _LATEST)
        self._next = time.monotonic() + wait
        self.set_timer(min(wait, _BARS), self.move)

    def move(self) -> None:
        """Move the bars of the progress until it is time for a look at everything."""
        left = self._next - time.monotonic()
        if left < _BARS / 4 or self.board.over is not None:
            self.look()
            return
        self._progress()
        self.set_timer(min(left, _BARS), self.move)

    # ---- keys ---------------------------------------------------------------------------------

    def action_quit_or_ask(self) -> None:
        """Leave after the end; ask before it."""
        if self.board.over is not None:
            self.exit()
        elif not isinstance(self.screen, Ask):
            self.push_screen(Ask(), self._answered)

    def _answered(self, answer: str | None) -> None:
        # It may have ended while it was asked.
        if answer in ("stop", "kill") and self.board.over is None:
            self.on_stop(answer)

    def action_metric(self, by: int) -> None:
        """Show the next metric."""
        self._stays()
        if self._known:
            at = self._known.index(self.metric) if self.metric in self._known else 0
            self.query_one(Tabs).active = _tab((at + by) % len(self._known))

    def action_plot(self, by: int) -> None:
        """Show the next kind of plot."""
        self._stays()
        self.kind = (self.kind + by) % len(PLOTS)
        self.show()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Show the metric whose tab was chosen, by key or mouse."""
        at = int((event.tab.id or "tab-0").rpartition("-")[2])
        if at < len(self._known):
            self.metric = self._known[at]
            self.show()

    def on_click(self) -> None:
        """Someone is here, so stay after the end."""
        self._stays()

    def _stays(self) -> None:
        if self.board.over is not None:
            self._leaves_at = float("inf")

    # ---- showing ------------------------------------------------------------------------------

    def show(self) -> None:
        """Bring the board to the screen."""
        if not self.is_running or not self.query("#plot"):
            return
        self._tabs()
        self._left()
        # The plot is most of the work; every other look, or when something else is to be shown.
        self._looks += 1
        asked = (self.metric, self.kind, self.size)
        if self._looks % 2 or asked != self._asked:
            self._asked = asked
            self._plot()
        lines = max(self.query_one("#log", Static).content_size.height, 1)
        self._put("log", Text("\n".join(list(self.board.messages)[-lines:])))
        self._progress()
        self._end()

    def _put(self, pane: str, text: Text, layout: bool = False) -> None:
        """Bring a text to a pane, if it is another than the one there."""
        if self._shown.get(pane) != (text.markup, layout):
            lines = self._shown.get(pane, ("", False))[0].count("\n")
            self._shown[pane] = (text.markup, layout)
            # The panes have places of their own; only a height that follows the text moves others.
            changed = layout and lines != text.markup.count("\n")
            self.query_one(f"#{pane}", Static).update(text, layout=changed)

    def _tabs(self) -> None:
        # One that is seen later than those behind it in the table has its tab at the end.
        new = [name for name in self.board.metrics() if name not in self._known]
        tabs = self.query_one(Tabs)
        for k, name in enumerate(new, len(self._known)):
            tabs.add_tab(Tab(Content(name), id=_tab(k)))
        self._known += new
        self.metric = self.metric or (new[0] if new else "")

    def _left(self) -> None:
        over = self.board.over is not None
        keys = f"q {'leave' if over else 'end'}   ← → metric   ↑ ↓ plot"
        self._put("keys", Text(keys, no_wrap=True))
        splits = list(self.board.latest)
        width = self.query_one("#metrics", Static).content_size.width
        wide = min(max((width - 8) // max(len(splits), 1), 6), 11)
        digits = 4 if wide == 11 else 3
        room = max(width - wide * len(splits), 6)
        table = Text(" " * room, no_wrap=True)
        for split in splits:
            table.append(f"{split[: wide - 1]:>{wide}}", style=f"bold {color(split)}")
        for name in self.board.metrics():
            shown = set_cell_size(name, room - 1)
            table.append(f"\n{shown} ", style="bold" if name == self.metric else "")
            for split in splits:
                value = self.board.latest[split].get(name)
                table.append(f"{'' if value is None else f'{value:.{digits}g}':>{wide}}")
        self._put("metrics", table)
        status = Text(no_wrap=True)
        for k, (name, words) in enumerate(self.board.status()):
            status.append(f"{chr(10) if k else ''}{name:<10}", style="dim")
            status.append(words)
        self._put("status", status, layout=True)

    def _plot(self) -> None:
        pane = self.query_one("#plot", Static)
        kind = PLOTS[self.kind]
        pane.border_title = f"{self.metric}: {kind}"
        width, height = pane.content_size.width, pane.content_size.height
        lines = self.board.lines(self.metric, kind)
        if kind == "summary":
            rows = bars({name: points[0][1] for name, points in lines.items()}, width, height)
        else:
            rows = curves(lines, width, height)
        text = Text(no_wrap=True)
        for k, row in enumerate(rows):
            if k:
                text.append("\n")
            # One span per run of a colour: textual's work goes with the number of spans.
            for name, run in groupby(row, key=lambda cell: cell[1]):
                letters = "".join(letter for letter, _ in run)
                text.append(letters, style=color(name) if name else "dim")
        pane.border_subtitle = "  ".join(lines)
        self._put("plot", text)

    def _progress(self) -> None:
        pane = self.query_one("#progress", Static)
        split, whole = self.board.share()
        p = self.board.progress
        name = p.split if p is not None else "train"
        width = max(pane.content_size.width - 28, 4)
        text = Text(no_wrap=True)
        for label, share, style, tail in (
            (name, split, color(name), ""),
            ("run", whole, "gold3", f"({self.board.time_left()})"),
        ):
            filled = round(share * width)
            text.append(f"{label[:6]:<6} ")
            text.append("█" * filled, style=style)
            text.append("░" * (width - filled), style="dim")
            text.append(f" {100 * share:3.0f} % {tail}\n")
        self._put("progress", text)

    def _end(self) -> None:
        """After the end, stay for a while, or for as long as someone looks."""
        if self.board.over is None:
            return
        pane = self.query_one("#progress", Static)
        if self._leaves_at is None:
            self._leaves_at = time.monotonic() + self.stay
        left = self._leaves_at - time.monotonic()
        if left <= 0:
            self.exit()
        closes = "" if left == float("inf") else f", closes in {max(left, 0):.0f} s"
        pane.border_title = f"over: {self.board.over} (q leaves{closes}; an arrow key stays)"


def _tab(k: int) -> str:
    return f"tab-{k}"
