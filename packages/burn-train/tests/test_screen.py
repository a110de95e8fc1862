"""The dashboard's process: real trainings whose screen is on a terminal of the test's own."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import threading
import time

import pytest

from burn_train import EarlyStopping, Interrupter, Observer, RunInfo, SupervisedTraining
from burn_train.views import dashboard
from burn_train.views.dashboard import DashboardView
from burn_train.views.screen import Screen


class Terminal:
    """A terminal that is read all the time; what was written to it, and keys for it."""

    def __init__(self):
        self.far, self.near = pty.openpty()
        fcntl.ioctl(self.near, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = termios.tcgetattr(self.near)
        self.text = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.far, 65536)
            except OSError:
                return
            self.text += data.decode(errors="replace")

    def shows(self, words, within=30.0):
        end = time.monotonic() + within
        while words not in self.text:
            if time.monotonic() > end:
                raise AssertionError(f"{words!r} not within {within} s in {self.text[-2000:]!r}")
            time.sleep(0.02)

    def press(self, keys):
        for key in keys:
            os.write(self.far, key.encode())
            time.sleep(0.3)

    @property
    def raw(self):
        return termios.tcgetattr(self.near)[3] != self.before[3]


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    os.close(made.near)
    made.reader.join(5)  # else it might read from what gets the number next
    os.close(made.far)


@pytest.fixture
def view(terminal):
    made = DashboardView(stay=60)
    made._terminal = terminal.near
    return made


def _info():
    return RunInfo(1, 1, 0, [], [], "flex", 1, None, Interrupter())


def _in_background(act):
    """Run on another thread; return a function that waits and raises what it raised."""
    failed = []

    def run():
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(60)
        if failed:
            raise failed[0]

    return join


def test_a_training_shows_itself_and_stops_on_request(
    learner, loaders, tmp_path, capsys, terminal, view
):
    class Speaker(Observer):
        def epoch(self, row):
            if row["epoch"] == 1:
                print("from the user's code")
                print("and its errors", file=sys.stderr)

    def act():
        terminal.shows("training")
        terminal.shows("memory")
        terminal.shows("from the user's code")
        terminal.shows("and its errors")
        assert terminal.raw
        terminal.press("q")
        terminal.shows("keep a checkpoint")
        terminal.press("s")
        terminal.shows("stopped in the dashboard")
        terminal.press("q")

    join = _in_background(act)
    training = SupervisedTraining(
        *loaders(), epochs=100_000, directory=tmp_path, view=view, loggers=[Speaker()],
        early_stopping=EarlyStopping("train loss", patience=100_000),
    )  # fmt: skip
    result = training.run(learner())
    join()
    assert result.reason == "stopped in the dashboard"
    assert 0 < len(result.history) < 100_000
    assert training.checkpoints.latest() is not None
    assert not terminal.raw
    out = capsys.readouterr()
    assert "lowest" in out.out
    assert "from the user's code" not in out.out


def test_a_training_that_fails_closes_the_screen(learner, loaders, terminal, view):
    made = learner()
    # No progress is told before the first step, so the screen says that it starts.
    made.loss = lambda output, target: (terminal.shows("starting"), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SupervisedTraining(*loaders(), view=view).run(made)
    assert view._screen.poll() == 0
    assert not terminal.raw


def test_a_screen_without_a_terminal_gives_way_to_lines(learner, loaders, capsys):
    view = DashboardView()
    reader, writer = os.pipe()
    view._terminal = writer

    class Waiter(Observer):
        def epoch(self, row):
            end = time.monotonic() + 30
            while row["epoch"] == 10 and view._plain is None and time.monotonic() < end:
                time.sleep(0.02)

    result = SupervisedTraining(*loaders(), epochs=30, view=view, loggers=[Waiter()]).run(learner())
    os.close(reader)
    os.close(writer)
    assert len(result.history) == 30
    out = capsys.readouterr().out
    assert "dashboard failed: OSError: standard input and output are no terminal" in out
    assert out.count("\n") > 5
    assert "lowest" in out


def test_a_screen_that_fails_late_is_told_of_at_the_end(learner, loaders, capsys, view):
    view.begin(_info())
    view._screen.kill()
    view._listener.join()
    view.end(None)
    out = capsys.readouterr().out
    assert f"dashboard failed: its process ended with -{int(signal.SIGKILL)}" in out


def test_one_after_the_other_and_two_at_once(learner, loaders, capsys, terminal, view):
    held = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    view._stay = 0.0
    for _ in range(2):
        view.begin(_info())
        terminal.shows("starting")
        terminal.text = ""
        second = DashboardView()
        second._terminal = terminal.near
        second.begin(_info())
        second.epoch({"epoch": 1, "train loss": 2.0})
        second.end(None)
        view.end(None)
        assert view._screen.poll() == 0
        assert not terminal.raw
    out = capsys.readouterr().out
    assert out == "", out
    assert held is None or set(os.listdir("/proc/self/fd")) == held


def test_a_broken_line_does_not_hide_the_end(tmp_path):
    reader, writer = os.pipe()
    answers, answered = os.pipe()
    screen = Screen(reader, answered, 1.0)
    os.write(writer, b'["message", "whole"]\n["mess["epoch", {}]\n["nothing", 1]\n[1]\n\n')
    os.write(writer, b'["epoch", {"epoch": "x"}]\n["end", ["done", false]]\n')
    os.close(writer)
    screen._listen()
    assert screen.board.over == "done"
    assert screen.board.messages[0] == "whole"
    screen._events.close()
    os.close(answers)
    os.close(answered)


def test_killing_a_training_in_a_thread_ends_only_that(learner, loaders, terminal, view):
    class Presser(Observer):
        def epoch(self, row):
            if row["epoch"] == 3:
                training.interrupter.kill("killed in the dashboard")

    training = SupervisedTraining(*loaders(), epochs=100_000, view=view, loggers=[Presser()])
    view._stay = 0.0
    results = []
    join = _in_background(lambda: results.append(training.run(learner())))
    join()
    assert results[0].reason == "killed in the dashboard"
    assert not terminal.raw


def test_a_view_that_raises_gives_the_terminal_back(learner, loaders, terminal, view, monkeypatch):
    before = sys.stdout
    monkeypatch.setattr(view, "epoch", lambda row: 1 / 0)
    result = SupervisedTraining(*loaders(), epochs=3, view=view).run(learner())
    assert len(result.history) == 3
    assert sys.stdout is before
    assert view._screen.poll() is not None
    assert not terminal.raw


def test_a_program_that_cannot_be_started_gives_way_to_lines(
    learner, loaders, capsys, monkeypatch, view
):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    result = SupervisedTraining(*loaders(), epochs=3, view=view).run(learner())
    assert len(result.history) == 3
    out = capsys.readouterr().out
    assert "dashboard failed: FileNotFoundError" in out
    assert out.count("\n") > 3


def test_a_screen_that_is_killed_leaves_a_usable_terminal(learner, loaders, capsys, terminal, view):
    def act():
        terminal.shows("training")
        assert terminal.raw
        view._screen.kill()
        end = time.monotonic() + 10
        while view._plain is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.2)
        training.interrupter.stop("enough")

    join = _in_background(act)
    training = SupervisedTraining(*loaders(), epochs=100_000, view=view)
    training.run(learner())
    join()
    assert not terminal.raw
    terminal.shows("\x1b[?25h")
    out = capsys.readouterr().out
    assert f"dashboard failed: its process ended with -{int(signal.SIGKILL)}" in out
    assert out.count("\n") > 5


def test_a_screen_that_reads_nothing_holds_nobody_up():
    reader, writer = os.pipe()
    pipe = dashboard._Pipe(writer)
    for k in range(5000):
        pipe.send(["values", k], waiting=0)
    pipe.send(["epoch", "x" * 2_000_000])
    pipe.send(["values", "late"], waiting=0)
    pipe.send(["print", "much"], waiting=1_000_000)
    whole = []
    join = _in_background(lambda: whole.append(_all_of(reader)))
    pipe.finish()
    join()
    lines = whole[0].decode().splitlines()
    assert len(lines[-1]) > 2_000_000
    assert lines[:2] == ['["values", 0]', '["values", 1]']
    os.close(reader)
    pipe.send(["message", "nobody there"])


def test_a_handler_that_prints_in_the_midst_of_a_line(monkeypatch):
    reader, writer = os.pipe()
    pipe = dashboard._Pipe(writer)
    write, nested = os.write, iter([["print", "nested"]])

    def interrupted(place, data):
        done = write(place, data)
        for line in nested:
            pipe.send(line)
        return done

    monkeypatch.setattr(os, "write", interrupted)
    pipe.send(["message", 1])
    pipe.finish()
    assert _all_of(reader).decode().splitlines() == ['["message", 1]', '["print", "nested"]']
    os.close(reader)


def test_what_is_printed_becomes_lines_and_later_goes_where_it_went(capsys):
    lines = []
    printed = dashboard._Printed(lines.append, "stdout")
    held = sys.stdout
    for k in range(1000):
        print(f"\r{k} %", end="")
    print()
    print("a" * 10_000_000)
    print("be", end="")
    print("gun", end=" ")
    sys.stdout.buffer.write("ünd\n".encode())
    threads = [threading.Thread(target=print, args=("b" * 50,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("open", end="")
    printed.give_back()
    assert lines[0] == "999 %"
    assert set(lines[1]) == {"a"}
    assert len(lines[1]) <= 2000
    assert lines[2] == "begun ünd"
    assert "".join(lines[3:11]) == "b" * 400
    assert lines[-1] == "open"
    held.write("late\n")
    assert sys.stdout is not held
    assert capsys.readouterr().out == "late\n"


def _all_of(reader):
    parts = []
    while part := os.read(reader, 65536):
        parts.append(part)
    return b"".join(parts)


def test_a_training_whose_terminal_is_closed_keeps_a_checkpoint(tmp_path):
    code = textwrap.dedent("""
        import sys
        import numpy as np
        from burn_dataset import ArrayDataset, DataLoader
        from burn_dispatch import Device
        from burn_nn import Linear, MSELoss
        from burn_optim import Adam
        from burn_train import Learner, SupervisedTraining
        device = Device.default().autodiff()
        x = np.ones((8, 3), np.float32)
        learner = Learner(Linear(3, 1, device=device), Adam(), MSELoss())
        training = SupervisedTraining(
            DataLoader(ArrayDataset(x, x[:, :1]), 4, device=device), epochs=10**9,
            directory=sys.argv[1], view="dashboard",
        )
        reason = training.run(learner).reason
        open(sys.argv[1] + "/reason", "w").write(reason)
    """)
    far, near = pty.openpty()

    def controlled():
        # Under nohup hang-ups are ignored, and a training would ignore them too.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    training = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=near, stdout=near, stderr=near,
        env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True, preexec_fn=controlled,
    )  # fmt: skip
    os.close(near)
    text, end = b"", time.monotonic() + 60
    while b"training" not in text and time.monotonic() < end:
        text += os.read(far, 65536)
    os.close(far)
    try:
        assert training.wait(30) == 0
    finally:
        training.kill()
        training.wait()
    assert (tmp_path / "reason").read_text() == "terminal closed"
    assert list((tmp_path / "checkpoints").iterdir())


def test_a_killed_training_takes_its_screen_along(terminal):
    code = textwrap.dedent("""
        import os, sys, time
        from pathlib import Path
        from burn_train import Interrupter, RunInfo
        from burn_train.views.dashboard import DashboardView
        view = DashboardView(stay=600)
        view.begin(RunInfo(1, 1, 0, [], [], "flex", 1, None, Interrupter()))
        time.sleep(600)
    """)
    near = terminal.near
    training = subprocess.Popen([sys.executable, "-c", code], stdin=near, stdout=near, stderr=near)
    terminal.shows("starting")
    assert terminal.raw
    training.kill()
    training.wait()
    end = time.monotonic() + 15
    while terminal.raw and time.monotonic() < end:
        time.sleep(0.05)
    assert not terminal.raw
