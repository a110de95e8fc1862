"""Checkpoints: whole or absent, pruned by rule, refused when damaged; the writer's errors."""

from __future__ import annotations

import json
import os
import threading

import pytest

import burn_tensor as bt
from burn_std import TrainError
from burn_train import Checkpoints, KeepBest, KeepLast, Mark
from burn_train.checkpoint import Writer

PARTS = {"model": {"w": bt.tensor([1.0, 2.0])}, "optimizer": {}}


def _rows(values):
    return [{"epoch": k, "valid loss": v} for k, v in enumerate(values, 1)]


def test_what_is_saved_comes_back(tmp_path):
    checkpoints = Checkpoints(tmp_path / "new")
    assert checkpoints.latest() is None
    checkpoints.save(Mark(2, 7), PARTS, {"history": [{"epoch": 1}], "none": None})
    found = checkpoints.load(Mark(2, 7))
    assert found.mark == (2, 7)
    assert found.parts["model"]["w"].tolist() == [1, 2]
    assert found.parts["optimizer"] == {}
    assert (found.state["history"], found.state["none"]) == ([{"epoch": 1}], None)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["epoch-2-batch-7"]


def test_the_best_and_the_newest_stay(tmp_path):
    checkpoints = Checkpoints(tmp_path, KeepLast(1) | KeepBest("valid loss"))
    rows = _rows([0.5, 0.3, 0.4, 0.35])
    for k in range(1, 5):
        assert checkpoints.wanted(rows[:k])
        checkpoints.save(Mark(k), PARTS, {}, rows[:k])
    assert checkpoints.marks() == [(2, 0), (4, 0)]
    best_only = Checkpoints(tmp_path, KeepBest("valid loss"))
    assert not best_only.wanted(_rows([0.5, 0.3, 0.4, 0.35, 0.9]))


def test_a_place_inside_an_epoch_stays_until_there_is_a_newer_one(tmp_path):
    checkpoints = Checkpoints(tmp_path, KeepLast(2))
    checkpoints.save(Mark(1), PARTS, {}, _rows([1.0]))
    checkpoints.save(Mark(1, 5), PARTS, {}, _rows([1.0]))
    assert checkpoints.marks() == [(1, 0), (1, 5)]
    checkpoints.save(Mark(1, 9), PARTS, {}, _rows([1.0]))
    assert checkpoints.marks() == [(1, 0), (1, 9)]
    checkpoints.save(Mark(2), PARTS, {}, _rows([1.0, 1.0]))
    assert checkpoints.marks() == [(1, 0), (2, 0)]


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "state", "list", "escape"])
def test_a_damaged_one_is_passed_over(tmp_path, damage):
    # B97
    checkpoints = Checkpoints(tmp_path, KeepLast(3))
    for k in (1, 2):
        checkpoints.save(Mark(k), PARTS, {}, _rows([1.0] * k))
    file = checkpoints.path(Mark(2)) / "model.safetensors"
    state = checkpoints.path(Mark(2)) / "state.json"
    data = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(data[:-3])
    elif damage == "flip":
        data[-1] ^= 1
        file.write_bytes(data)
    elif damage == "missing":
        file.unlink()
    elif damage == "state":
        state.write_text(state.read_text()[:-9])
    elif damage == "list":
        state.write_text("[]")
    else:
        content = json.loads(state.read_text())
        content["files"] = {"../epoch-1/model.safetensors": [1, 2]}
        state.write_text(json.dumps(content))
    with pytest.raises(TrainError, match="not whole"):
        checkpoints.load(Mark(2))
    notes = []
    found = checkpoints.load_newest(notes.append)
    assert found.mark == (1, 0)
    assert "epoch-2 is not whole" in notes[0]


def test_no_character_of_a_state_is_another_unseen(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(
        Mark(1), PARTS, {"learner": {"steps": 12, "x": float("nan")}, "stopped": False}
    )
    state = checkpoints.path(Mark(1)) / "state.json"
    text = state.read_text()
    assert checkpoints.load(Mark(1)).state["learner"]["steps"] == 12
    for at, letter in enumerate(text):
        if letter.isspace():
            continue
        state.write_text(text[:at] + ("7" if letter != "7" else "8") + text[at + 1 :])
        with pytest.raises(TrainError, match="not whole"):
            checkpoints.load(Mark(1))
    state.write_text("[" * 100_000)
    with pytest.raises(TrainError, match="not whole"):
        checkpoints.load(Mark(1))


def test_a_state_that_json_cannot_hold_is_said(tmp_path):
    with pytest.raises(TrainError, match="could not be written"):
        Checkpoints(tmp_path).save(Mark(1), PARTS, {"own": object()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", [1, 2])
def test_one_that_is_written_again_is_there_at_any_time(tmp_path, monkeypatch, when):
    checkpoints = Checkpoints(tmp_path, KeepLast(1))
    checkpoints.save(Mark(1), PARTS, {"n": 1})
    checkpoints.save(Mark(1), PARTS, {"n": 2})
    assert checkpoints.load_newest().state["n"] == 2
    replace, calls = os.replace, []

    class Killed(BaseException):
        pass

    def killed(a, b):
        calls.append(a)
        if len(calls) >= when:
            raise Killed
        replace(a, b)

    with monkeypatch.context() as patched:
        patched.setattr("burn_train.checkpoint.os.replace", killed)
        patched.setattr("burn_train.checkpoint.shutil.rmtree", lambda *args, **more: None)
        with pytest.raises(Killed):
            checkpoints.save(Mark(1), PARTS, {"n": 3})
    again = Checkpoints(tmp_path)
    assert again.load_newest().state["n"] == 2
    again.save(Mark(2), PARTS, {"n": 4})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["epoch-1", "epoch-2"]


def test_none_whole_is_an_error_and_none_at_all_is_not(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.load_newest() is None
    checkpoints.save(Mark(1), PARTS, {})
    (checkpoints.path(Mark(1)) / "state.json").unlink()
    with pytest.raises(TrainError, match="epoch-1"):
        checkpoints.load_newest()


@pytest.mark.parametrize("when", ["tensors", "rename"])
def test_a_full_disk_leaves_the_last_good_one(tmp_path, monkeypatch, when):
    checkpoints = Checkpoints(tmp_path, KeepLast(1))
    checkpoints.save(Mark(1), PARTS, {}, _rows([1.0]))

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    name = "burn_train.checkpoint." + ("save_tensors" if when == "tensors" else "os.replace")
    monkeypatch.setattr(name, full)
    with pytest.raises(TrainError, match=r"No space left.*as they were"):
        checkpoints.save(Mark(2), PARTS, {}, _rows([1.0, 1.0]))
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-1"]
    assert checkpoints.load(Mark(1)).parts["model"]["w"].tolist() == [1, 2]


def test_what_a_killed_process_left_is_swept_up(tmp_path):
    left = tmp_path / ".epoch-9.123.tmp"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.marks() == []
    checkpoints.save(Mark(1), PARTS, {})
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-1"]


def test_the_writers_first_error_comes_out_with_its_traceback():
    # B99
    writer = Writer()
    writer.submit(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        writer.submit(lambda: None)
    assert any(frame.name == "<lambda>" for frame in caught.traceback)
    writer.wait()


def test_the_writer_keeps_the_order():
    writer, gate, done = Writer(), threading.Event(), []
    writer.submit(lambda: gate.wait(5) and done.append(1))
    threading.Timer(0.05, gate.set).start()
    writer.submit(lambda: done.append(2))
    writer.wait()
    assert done == [1, 2]
