"""Views and loggers: what they write, which is chosen, and that they cannot harm."""

from __future__ import annotations

import io
import json
import os

import pytest

from burn_std import ArgumentError, BackendLoadError, StoreError
from burn_train import (
    Accuracy,
    Checkpoints,
    CpuMemory,
    CpuUse,
    CsvLogger,
    DeviceMemory,
    Evaluator,
    FileLogger,
    IterationSpeed,
    LearningRate,
    LossMetric,
    Mark,
    MemoryLogger,
    Observer,
    PlainView,
    ProgressView,
    Summary,
    SupervisedTraining,
)
from burn_train.report import ticks_of
from burn_train.views.choose import _is_terminal, choose_view, fitting_view

ROWS = [
    {"epoch": 1, "train loss": 2.0, "valid loss": 3.0, "seconds": 0.5},
    {"epoch": 2, "train loss": 1.0, "valid loss": float("nan"), "seconds": 0.5},
    {"epoch": 3, "train loss": 1.5, "valid loss": 2.5, "seconds": 0.5},
]


@pytest.mark.parametrize(("environment", "terminal", "notebook", "want"), [
    ({"TERM": "xterm-256color"}, True, False, "dashboard"),
    ({"TERM": "xterm"}, False, False, "plain"),
    ({"TERM": "dumb"}, True, False, "plain"),
    ({}, True, False, "plain"),
    ({"TERM": "xterm", "CI": "true"}, True, False, "plain"),
    ({}, False, True, "progress"),
    ({"TERM": "xterm", "BURN_VIEW": "progress"}, True, False, "progress"),
])  # fmt: skip
def test_the_view_that_fits(environment, terminal, notebook, want):
    # B105
    assert fitting_view(environment, terminal, notebook) == want


def test_without_a_terminal_lines_are_plain(learner, loaders, capsys):
    training = SupervisedTraining(*loaders(), epochs=2)
    training.run(learner())
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[0].split() == ["epoch", "train", "loss", "valid", "loss", "seconds"]
    # B106: the summary stands at the end.
    assert out.splitlines()[-3].startswith("column")


def test_an_unknown_view_is_named():
    with pytest.raises(BackendLoadError, match="plian"):
        choose_view("plian")


def test_a_stream_without_unicode_gets_question_marks():
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PlainView(raw).message("läuft")
    raw.flush()
    assert raw.buffer.getvalue() == b"l?uft\n"


def test_the_bar_works_in_a_file_and_in_a_terminal(learner, loaders):
    from rich.console import Console

    for terminal in (False, True):
        out = io.StringIO()
        view = ProgressView(Console(file=out, force_terminal=terminal, width=100))
        SupervisedTraining(*loaders(), epochs=2, view=view).run(learner())
        assert "train loss" in out.getvalue()
        assert "lowest" in out.getvalue()
        assert ("\x1b" in out.getvalue()) == terminal


def test_an_observer_that_fails_is_left_out(learner, loaders, parameters, caplog):
    class Broken(Observer):
        live = True
        calls = 0

        def progress(self, progress):
            Broken.calls += 1
            raise OSError("no terminal")

        def epoch(self, row):
            raise AssertionError("left out")

    log, one = MemoryLogger(), learner()
    SupervisedTraining(*loaders(), view=Broken(), loggers=[log]).run(one)
    two = learner()
    SupervisedTraining(*loaders(), view="plain").run(two)
    assert Broken.calls == 1
    assert any("Broken failed and is left out: OSError: no terminal" in m for m in log.messages)
    for a, b in zip(parameters(one), parameters(two), strict=True):
        assert (a == b).all()


def test_observers_that_fail_hear_the_end_once_and_take_nobody_along(learner, loaders, caplog):
    class Broken(Observer):
        def __init__(self):
            self.heard = []

        def epoch(self, row):
            raise OSError("no disk")

        def message(self, text):
            self.heard.append(text)
            raise OSError("no disk either")

        def end(self, summary):
            self.heard.append(summary)
            raise OSError("nor now")

    log, broken = MemoryLogger(), [Broken(), Broken(), Broken()]
    result = SupervisedTraining(
        *loaders(), epochs=2, view="plain", loggers=[*broken, log]
    ).run(learner())  # fmt: skip
    assert len(result.history) == 2
    assert log.rows == result.history
    # The warning about the first is the message at which the others fail.
    assert [one.heard.count(None) for one in broken] == [1, 1, 1]
    assert sum("is left out" in m for m in caplog.messages) == 3


def test_behind_the_prompt_of_a_shell_there_is_no_screen(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def fileno(self):
            return 0

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("os.tcgetpgrp", lambda place: os.getpgrp())
    assert _is_terminal()
    monkeypatch.setattr("os.tcgetpgrp", lambda place: os.getpgrp() + 1)
    assert not _is_terminal()

    def none(place):
        raise OSError("not the controlling terminal")

    monkeypatch.setattr("os.tcgetpgrp", none)
    assert _is_terminal()


def test_a_line_that_was_not_finished_is_none(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "train loss": 0.5}\n{"epoch": 2, "tr')
    assert Summary.load(tmp_path).rows == [{"epoch": 1, "train loss": 0.5}]
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1\n{"epoch": 2}\n')
    with pytest.raises(StoreError):
        Summary.load(tmp_path)


def test_a_row_of_a_long_run_costs_no_more_than_a_first_one(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        "burn_train.loggers.files._replace", lambda path, text: written.append(len(text))
    )
    lines, table = FileLogger(tmp_path), CsvLogger(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text("epoch,train loss\n")
    for k in range(1, 3000):
        for log in (lines, table):
            log.epoch({"epoch": k, "train loss": 1.0 / k})
    assert len(written) == 1  # the heading of the table
    found = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(found[-1]) == {"epoch": 2999, "train loss": 1.0 / 2999}
    assert len(found) == 2999
    assert (tmp_path / "log.csv").read_text().count("\n") == 2999


def test_files_hold_every_epoch_once(learner, loaders, tmp_path):
    def run(epochs, resume=False):
        training = SupervisedTraining(
            *loaders(), epochs=epochs, directory=tmp_path, view="plain",
            loggers=[CsvLogger(tmp_path / "log.csv")],
        )  # fmt: skip
        return training.run(learner(), resume=resume)

    run(2)
    result = run(4, resume=True)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.history
    table = (tmp_path / "log.csv").read_text().splitlines()
    assert table[0] == "epoch,train loss,valid loss,seconds"
    assert [row.split(",")[0] for row in table[1:]] == ["1", "2", "3", "4"]
    log = (tmp_path / "experiment.log").read_text()
    assert "resumed from epoch-2" in log
    assert Summary.load(tmp_path).rows == result.history


def test_a_run_sets_aside_what_it_would_replace(learner, loaders, tmp_path):
    def run(epochs):
        log = MemoryLogger()
        training = SupervisedTraining(
            *loaders(), epochs=epochs, directory=tmp_path, view="plain", loggers=[log]
        )
        training.run(learner())
        return [m for m in log.messages if "previous" in m]

    assert run(2) == []
    said = "the run that was here, up to epoch-{}, is in previous; resume=True would have gone on"
    assert run(1) == [f"{said.format(2)} from it"]
    assert Summary.load(tmp_path).rows[-1]["epoch"] == 1
    before = tmp_path / "previous"
    assert Summary.load(before).rows[-1]["epoch"] == 2
    assert Checkpoints(before / "checkpoints").load_newest().mark == Mark(2)
    assert "2 epochs" in (before / "experiment.log").read_text()
    assert run(3) == [f"{said.format(1)} from it"]
    assert Summary.load(before).rows[-1]["epoch"] == 1


def test_values_inside_an_epoch(learner, loaders):
    log = MemoryLogger(every=2)
    gauges = [LearningRate, IterationSpeed, CpuMemory, CpuUse, DeviceMemory]
    result = SupervisedTraining(
        *loaders(), epochs=2, metrics=gauges, loggers=[log], view="plain"
    ).run(learner())
    assert [(split, epoch, step) for split, epoch, step, _ in log.points] == [
        ("train", 1, 2), ("train", 1, 4), ("train", 1, 6),
        ("train", 2, 8), ("train", 2, 10), ("train", 2, 12),
    ]  # fmt: skip
    assert set(log.points[0][3]) == {"loss", "lr", "speed", "memory", "cpu", "device memory"}
    # The last values inside an epoch are those of the table.
    assert log.points[2][3]["loss"] == result.history[0]["train loss"]
    assert result.column("train lr") == [0.02, 0.02]
    # A reading at a step that was read already is no speed of zero.
    assert result.column("train speed") == [log.points[2][3]["speed"], log.points[5][3]["speed"]]
    assert min(result.column("train speed")) > 0
    assert result.last["train memory"] > 0.01
    assert log.summary is result.summary


def test_metrics_have_names_of_their_own():
    with pytest.raises(ArgumentError, match=r"\['accuracy'\]"):
        SupervisedTraining([1], metrics=[Accuracy, Accuracy(pad=0)])
    with pytest.raises(ArgumentError, match="loss"):
        SupervisedTraining([1], metrics=[LossMetric])
    with pytest.raises(ArgumentError, match="Metric or Gauge"):
        SupervisedTraining([1], metrics=["accuracy"])


def test_a_summary_says_what_stands_out(tmp_path):
    summary = Summary(ROWS, "Run", {"device": "flex & <more>"})
    assert summary.columns() == ["train loss", "valid loss"]
    assert summary.best("valid loss") == (2.5, 3)
    assert summary.best("valid loss", "max") == (3.0, 1)
    assert summary.best("accuracy") is None
    assert summary.to_dict()["columns"][0]["lowest_epoch"] == 2
    assert len(summary.table().splitlines()) == 3
    page = summary.html(tmp_path / "report.html").read_text()
    assert page.count("<polyline") == 2
    assert "flex &amp; &lt;more&gt;" in page
    assert "http" not in page
    assert "<script" not in page
    empty = Summary([])
    assert (empty.extremes(), empty.html(tmp_path / "none.html").exists()) == ([], True)


def test_a_broken_log_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"metrics\.jsonl"):
        Summary.load(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epo\n')
    with pytest.raises(StoreError):
        Summary.load(tmp_path)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 1e4), (1e-7, 2e-7), (5.0, 5.1)])
def test_ticks_are_round_and_span(low, high):
    ticks = ticks_of(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 3 <= len(ticks) <= 9


def test_several_test_sets(learner, loaders):
    made = learner()
    train, valid = loaders()
    training = SupervisedTraining(train, valid, view="plain")
    both = training.evaluate(made, {"a": train, "b": valid})
    log = MemoryLogger()
    found = Evaluator(made.model, made.loss, observers=[log]).run({"a": train, "b": valid})
    assert found.keys() == both.keys()
    assert found["b"]["loss"] == pytest.approx(both["b"]["loss"])
    assert [p[0] for p in log.points] == ["a", "b"]


def test_event_files(learner, loaders, tmp_path):
    pytest.importorskip("tensorboardX")
    from burn_train import TensorBoardLogger

    SupervisedTraining(
        *loaders(), epochs=2, view="plain", loggers=[TensorBoardLogger(tmp_path, every=3)]
    ).run(learner())
    for split in ("train", "valid"):
        (file,) = (tmp_path / split).iterdir()
        assert b"epoch/loss" in file.read_bytes()


def test_a_file_logger_makes_its_folder(tmp_path):
    FileLogger(tmp_path / "new").message("hello")
    assert (tmp_path / "new" / "experiment.log").read_text().endswith("hello\n")
