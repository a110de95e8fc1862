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
    made.step(Progress("train", 3, 9, 20, 360, 49, 29.0), {"memory": 0.25, "on device": nan})
    made.messages.append("resumed from epoch-1")
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
    assert status["memory"] == "0.25 GB"
    assert "on device" not in status
    early = Board()
    early.begin(board.info)
    early.step(Progress("train", 2, 3, 20, 12, 23, 2.0))
    assert early.time_left() == "--"


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
