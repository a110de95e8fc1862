"""The dashboard: its board, its drawings, and its screen under textual's pilot."""

from __future__ import annotations

import asyncio
from math import nan

import pytest

from burn_train import Column, Interrupter, Progress, RunInfo
from burn_train.views.app import Ask, DashboardApp
from burn_train.views.board import PLOTS, Board, Series
from burn_train.views.drawing import bars, curves


def _text(rows):
    return ["".join(letter for letter, _ in row) for row in rows]


@pytest.fixture
def board():
    made = Board()
    made.begin(RunInfo(
        4, 20, 5, [{"epoch": 1, "train loss": 2.0, "valid loss": 2.5}],
        [Column("loss", "", False), Column("accuracy", "%", True)], "autodiff<flex>", 1234, None,
        Interrupter(),
    ))  # fmt: skip
    for k in range(21, 50):
        made.values("train", k, {"loss": 40 / k, "accuracy": float(k)})
    made.step(Progress("train", 2, 1, 20, 0, 20, 1.0))
    made.step(Progress("train", 3, 9, 20, 360, 49, 30.0), {"memory": 0.25, "on device": nan})
    made.message("resumed from epoch-1")
    return made


def test_a_series_keeps_its_ends_and_its_mean():
    series = Series()
    for k in range(5000):
        series.add(k, float(k))
    series.add(5000, nan)
    full = series.full()
    assert 250 <= len(full) <= 500
    assert full[0][0] < 20
    assert full[-1][0] > 4970
    assert [p[0] for p in series.recent] == list(range(4000, 5000))
    assert series.total / series.count == pytest.approx(2499.5)


def test_the_board_knows_where_it_is(board):
    assert board.metrics() == ["loss", "accuracy"]
    assert board.share() == (9 / 20, 49 / 80)
    assert board.time_left() == "31 s"
    assert board.latest["valid"] == {"loss": 2.5}
    # An epoch of before gives a point at its end.
    assert board.lines("loss", "full history")["valid"] == [(20.0, 2.5)]
    assert set(board.lines("loss", "summary")) == {"train", "valid"}
    status = dict(board.status())
    assert (status["mode"], status["epoch"], status["step"]) == ("training", "3 / 4", "9 / 20")
    assert status["speed"] == "1.0 steps/s"
    assert status["samples"] == "12 /s"
    assert status["memory"] == "0.25 GB"
    assert "on device" not in status
    early = Board()
    early.begin(board.info)
    early.step(Progress("train", 2, 3, 20, 12, 23, 2.0))
    assert early.time_left() == "--"


def test_batches_of_before_a_resumption_are_no_speed(board):
    resumed = Board()
    resumed.begin(board.info)
    for k in range(60):  # begins with the 15th batch of the second epoch
        resumed.step(Progress("train", 2, 15 + k, 20, 4 * k, 35 + k, 2.0 + k))
    status = dict(resumed.status())
    assert (status["speed"], status["samples"]) == ("1.0 steps/s", "4 /s")
    resumed.step(Progress("train", 3, 20, 20, 100, 60, 27.0))
    assert resumed.time_left() == "20 s"


def test_messages_hold_nothing_that_a_terminal_obeys():
    board = Board()
    board.message("\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07and\ttab\x00\x9b")
    board.message("10 %\r20 %\r30 %\r")
    board.message("one\n\ntwo")
    board.message("x" * 10_000_000)
    assert list(board.messages)[:4] == ["red and tab", "30 %", "one", "two"]
    assert len(board.messages[4]) == 1000


def test_a_long_run_is_merged_and_values_that_are_no_numbers_leave_gaps():
    board = Board()
    history = [
        {"epoch": e, "train loss": nan if e % 2 else 1.0, "valid loss": float("inf")}
        for e in range(1, 10_001)
    ]
    board.begin(RunInfo(20_000, 0, 0, history, [], "flex", 1, None, Interrupter()))
    board.step(Progress("train", 1, 5, 0, 20, 5, 40.0))
    assert len(board.lines("loss", "full history")["train"]) <= 500
    assert board.share() == (0.0, 0.0)
    assert board.time_left() == "--"
    assert dict(board.status())["step"] == "5 / ?"
    for plot in PLOTS:
        lines = board.lines("loss", plot)
        if plot == "summary":
            assert bars({k: v[0][1] for k, v in lines.items()}, 40, 6)
        else:
            assert curves(lines, 60, 12)


def test_curves_go_where_the_values_go():
    rows = _text(curves({"train": [(0.0, 0.0), (10.0, 10.0)]}, 40, 12))
    body = [row[10:] for row in rows[:-1]]
    first = [next(i for i, c in enumerate(row) if c != " ") for row in body]
    assert first == sorted(first, reverse=True)
    assert rows[-1].split() == ["0", "10"]
    assert rows[0].strip().startswith("10")
    assert _text(curves({}, 20, 3))[1].strip() == "nothing yet"
    level = _text(curves({"a": [(1.0, 5.0)]}, 30, 8))
    assert any("⠁" <= c <= "⣿" for c in "".join(level))
    for size in ((0, 0), (5, 2), (200, 60)):
        rows = curves({"a": [(0.0, 1.0), (1.0, -1.0)]}, *size)
        assert (len(rows), {len(r) for r in rows} or {size[0]}) == (size[1], {size[0]})


def test_bars_are_as_long_as_their_values():
    rows = _text(bars({"train": 4.0, "valid": 2.0}, 60, 6))
    assert rows[0].count("█") == 2 * rows[2].count("█") > 0
    assert rows[2].rstrip().endswith("2")


def _pilot(app, act, size=(110, 36)):
    async def run():
        async with app.run_test(size=size) as pilot:
            await pilot.pause(0.15)
            await act(pilot)

    asyncio.run(run())


def test_keys_choose_metric_and_plot(board):
    app = DashboardApp(board, lambda answer: None)

    async def act(pilot):
        assert (app.metric, PLOTS[app.kind]) == ("loss", "full history")
        await pilot.press("right")
        await pilot.pause(0.15)
        assert app.metric == "accuracy"
        await pilot.press("right", "down")
        await pilot.pause(0.15)
        assert (app.metric, PLOTS[app.kind]) == ("loss", "recent history")
        await pilot.press("left", "down")
        await pilot.pause(0.15)
        assert (app.metric, PLOTS[app.kind]) == ("accuracy", "summary")
        await pilot.press("up", "up", "up")
        await pilot.pause(0.15)
        assert PLOTS[app.kind] == "summary"
        await pilot.click("#tab-0")
        await pilot.pause(0.15)
        assert app.metric == "loss"

    _pilot(app, act)


@pytest.mark.parametrize(
    ("key", "want"), [("s", ["stop"]), ("k", ["kill"]), ("c", []), ("escape", [])]
)
def test_q_asks(board, key, want):
    answers = []
    app = DashboardApp(board, answers.append)

    async def act(pilot):
        await pilot.press("q")
        await pilot.pause(0.1)
        assert isinstance(app.screen, Ask)
        await pilot.press(key)
        await pilot.pause(0.1)
        assert not isinstance(app.screen, Ask)
        assert answers == want
        assert app.is_running

    _pilot(app, act)


def test_an_answer_after_the_end_is_none(board):
    answers = []
    app = DashboardApp(board, answers.append, stay=60)

    async def act(pilot):
        await pilot.press("q")
        await pilot.pause(0.1)
        board.over = "done"
        await pilot.press("k")
        await pilot.pause(0.1)
        assert app.is_running

    _pilot(app, act)
    assert answers == []


def test_a_metric_that_is_seen_late_has_a_tab_of_its_own(board):
    app = DashboardApp(board, lambda answer: None)
    board.info = board.info._replace(
        columns=[Column("loss", "", False), Column("[late]", "", True), *board.info.columns[1:]]
    )

    async def act(pilot):
        assert app._known == ["loss", "accuracy"]
        board.values("train", 60, {"[late]": 1.0})
        app.show()
        await pilot.pause(0.2)
        names = [str(tab.label) for tab in app.query("Tab")]
        assert names == app._known == ["loss", "accuracy", "[late]"]

    _pilot(app, act)


def test_a_small_terminal_shows_the_newest_line_of_the_log(board):
    app = DashboardApp(board, lambda answer: None)
    for k in range(4):
        board.message(f"line {k} " + "x" * 900)
    board.message("the newest")
    pictures = []

    async def act(pilot):
        app.show()
        await pilot.pause(0.2)
        pictures.append(app.export_screenshot())

    _pilot(app, act, size=(60, 20))
    words = pictures[0].replace("&#160;", " ")
    assert "the newest" in words
    assert "training" in words
    # The values of both splits and both metrics, each in a line of its own.
    assert "accura" in words
    assert "2.5" in words
    assert f"{40 / 49:.3g}" in words


def test_after_the_end_it_is_browsed_or_closes(board):
    app = DashboardApp(board, lambda answer: None, stay=0.3)

    async def stays(pilot):
        board.over = "done"
        await pilot.pause(0.15)
        await pilot.press("right")
        await pilot.pause(1.3)
        assert app.is_running
        assert app.metric == "accuracy"
        await pilot.press("q")
        await pilot.pause(0.1)
        assert not app.is_running

    _pilot(app, stays)
    alone = DashboardApp(board, lambda answer: None, stay=0.1)

    async def closes(pilot):
        await pilot.pause(1.3)
        assert not alone.is_running

    _pilot(alone, closes)


def test_it_survives_any_size(board):
    app = DashboardApp(board, lambda answer: None)

    async def act(pilot):
        for size in ((200, 60), (40, 12), (12, 5), (2, 2), (110, 36)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.15)
            assert app.is_running
            app.show()

    _pilot(app, act)


def test_the_picture(board):
    app = DashboardApp(board, lambda answer: None)
    pictures = []

    async def act(pilot):
        pictures.append(app.export_screenshot())
        await pilot.press("q")
        await pilot.pause(0.2)
        pictures.append(app.export_screenshot())

    _pilot(app, act)
    words = pictures[0].replace("&#160;", " ")
    assert words.startswith("<svg")
    for part in (
        "loss: full history", "status", "training", "3 / 4", "1.0 steps/s", "autodiff&lt;flex&gt;",
        "resumed from epoch-1", "(31 s)", "accuracy", "metrics", "train", "valid",
    ):  # fmt: skip
        assert part in words, part
    assert any("⠁" <= c <= "⣿" for c in words)
    assert "keep a checkpoint" in pictures[1].replace("&#160;", " ")
