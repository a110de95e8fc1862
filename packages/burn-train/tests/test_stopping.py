"""Early stopping, keep rules, the interrupter."""

from __future__ import annotations

import os
import signal
import threading
import time
from math import nan

import pytest

from burn_std import ArgumentError, StoreError, TrainError
from burn_train import EarlyStopping, Interrupter, KeepBest, KeepEvery, KeepLast


def _rows(values, name="valid loss"):
    return [{"epoch": k, name: v} for k, v in enumerate(values, 1)]


def _stops(stopping, values):
    """The index at which it stops, or None."""
    for k, row in enumerate(_rows(values, stopping.metric)):
        if stopping.update(row):
            return k
    return None


@pytest.mark.parametrize(("settings", "values", "stop", "best"), [
    ({"patience": 2}, [1.0, nan, 1.1, 1.2], 2, 1.0),
    ({"patience": 1}, [1.0, 0.9, 0.8], None, 0.8),
    ({"patience": 2, "min_delta": 0.01}, [0.5, 0.495, 0.492, 0.485], 2, 0.5),
    ({"patience": 1, "min_delta": 0.25}, [0.5, 0.25, 0.25], 1, 0.5),
    ({"patience": 2, "mode": "max"}, [0.1, 0.3, 0.2, 0.3], 3, 0.3),
    ({"patience": 1, "warmup": 3}, [1.0, 2.0, 2.0, 2.0], 3, 1.0),
    ({"patience": 2}, [nan, nan, nan], 1, None),
])  # fmt: skip
def test_when_it_stops(settings, values, stop, best):
    # B95; a gain of exactly min_delta is none.
    stopping = EarlyStopping(**settings)
    assert (_stops(stopping, values), stopping.best) == (stop, best)


def test_counters_are_restored():
    values = [1.0, 0.9, 0.95, 0.93, 0.92]
    whole, first, second = (EarlyStopping(patience=3) for _ in range(3))
    assert _stops(whole, values) == 4
    for row in _rows(values)[:3]:
        first.update(row)
    second.load_state_dict(first.state_dict())
    assert [second.update(row) for row in _rows(values)[3:]] == [False, True]
    with pytest.raises(StoreError):
        second.load_state_dict({"best": 1.0})


def test_an_unknown_metric_is_named():
    with pytest.raises(TrainError, match=r"'valid los'.*Did you mean 'valid loss'"):
        EarlyStopping("valid los").update({"epoch": 1, "valid loss": 1.0})


def test_rules_join():
    rows = _rows([0.5, 0.3, nan, 0.4, 0.3])
    assert KeepLast(2).keep(rows) == {4, 5}
    assert KeepBest("valid loss").keep(rows) == {2}
    assert KeepBest("valid loss", "max", 2).keep(rows) == {1, 4}
    assert (KeepLast(1) | KeepBest("valid loss") | KeepEvery(3)).keep(rows) == {2, 3, 5}
    with pytest.raises(TrainError, match="no such metric"):
        KeepBest("accuracy").keep(rows)


@pytest.mark.parametrize("make", [
    lambda: EarlyStopping(patience=0), lambda: EarlyStopping(mode="less"), lambda: KeepLast(0),
    lambda: KeepBest("a", "less"), lambda: KeepEvery(0), lambda: EarlyStopping(min_delta=-1),
])  # fmt: skip
def test_settings_that_make_no_sense(make):
    with pytest.raises(ArgumentError):
        make()


def test_the_first_to_press_is_the_reason():
    button = Interrupter()
    threads = [threading.Thread(target=button.stop, args=(f"t{k}",)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    first = button.reason
    button.stop("late", save=False)
    assert (button.should_stop, button.reason, button.save) == (True, first, True)
    button.reset()
    assert not button.should_stop


def test_a_signal_presses_and_a_second_one_raises():
    button = Interrupter()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), button.on_signals():
        os.kill(os.getpid(), signal.SIGINT)
        assert button.reason == "Ctrl-C"
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before
    seen = []
    with button.on_signals():
        thread = threading.Thread(target=lambda: seen.append(_enter(Interrupter())))
        thread.start()
        thread.join()
    assert seen == ["entered"]


def _enter(button):
    with button.on_signals():
        return "entered"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without terminals of this kind")
def test_a_closed_terminal_presses_once_and_only_where_it_would_end_the_program():
    button = Interrupter()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with button.on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
        assert (button.reason, button.save) == ("terminal closed", True)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        button.reset()
        with button.on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert not button.should_stop
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_kill_breaks_off_the_main_thread_only_while_it_trains():
    button = Interrupter()
    with pytest.raises(KeyboardInterrupt), button.on_signals():
        button.kill("enough")
        time.sleep(5)
    assert (button.reason, button.save) == ("enough", False)
    button.reset()
    button.kill("nobody trains")
    assert (button.reason, button.save) == ("nobody trains", False)
