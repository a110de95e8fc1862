"""Autotuning: what is chosen, when, and what never happens."""

import time

import numpy as np
import pytest

import burn_cube as bc
from burn_cube import autotune
from burn_cube.autotune import Candidate, Tuner, anchor, frozen
from burn_std import ConfigError

pytest.importorskip("llvmlite")


@pytest.fixture
def device():
    return bc.client("cpu")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("BURN_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("BURN_AUTOTUNE", raising=False)
    autotune._store.cache_clear()
    yield
    autotune._store.cache_clear()


def candidates(log, slow=0.004, fast=0.0):
    def make(name, seconds):
        def run(*args):
            log.append(name)
            time.sleep(seconds)

        return Candidate(name, run)

    return [make("slow", slow), make("fast", fast)]


def test_the_fastest_is_chosen_once_the_key_is_hot(device):
    log = []
    tuner = Tuner("t", candidates(log), after=2)
    for _ in range(3):
        tuner.run(device, (128,), scratch=lambda: ())
    assert log[:2] == ["slow", "slow"]
    log.clear()
    tuner.run(device, (128,), scratch=lambda: ())
    assert log == ["fast"]
    tuner.run(device, (256,), scratch=lambda: ())
    assert log == ["fast", "slow"]


def test_choices_survive_the_process_and_fall_with_the_candidates(device, monkeypatch):
    log = []
    Tuner("t", candidates(log), after=0).run(device, (1,), scratch=lambda: ())
    log.clear()
    monkeypatch.setenv("BURN_AUTOTUNE", "cached")
    Tuner("t", candidates(log)).run(device, (1,), scratch=lambda: ())
    assert log == ["fast"]
    renamed = [Candidate("slow 2", log.append), *candidates(log)[1:]]
    Tuner("t", renamed).run(device, (1,), "slow 2", scratch=lambda: ("x",))
    assert log == ["fast", "slow 2"]


@pytest.mark.parametrize("mode", ["off", "cached"])
def test_modes_that_never_measure(device, monkeypatch, mode):
    monkeypatch.setenv("BURN_AUTOTUNE", mode)
    log = []
    tuner = Tuner("t", candidates(log), after=0)
    for _ in range(3):
        tuner.run(device, (1,), scratch=lambda: ())
    assert log == ["slow"] * 3


def test_an_unknown_mode_is_refused(device, monkeypatch):
    monkeypatch.setenv("BURN_AUTOTUNE", "maybe")
    with pytest.raises(ConfigError, match="on, cached, off"):
        Tuner("t", candidates([])).run(device, (1,))


def test_nothing_is_measured_in_a_capture_or_without_scratch(device):
    log = []
    tuner = Tuner("t", candidates(log), after=0)
    with frozen():
        tuner.run(device, (1,), scratch=lambda: ())
    tuner.run(device, (1,))
    assert log == ["slow", "slow"]


def test_a_failing_candidate_is_dropped(device, caplog):
    def fail(*args):
        raise RuntimeError("too many registers")

    log = []
    slow, fast = candidates(log)
    tuner = Tuner("t", [slow, Candidate("bad", fail), fast], after=0)
    with caplog.at_level("WARNING"):
        tuner.run(device, (1,), scratch=lambda: ())
    assert "too many registers" in caplog.text
    assert log[-1] == "fast"


def test_candidates_that_do_not_fit_are_not_tried(device):
    log = []
    slow, fast = candidates(log)
    tuner = Tuner("t", [slow, fast._replace(fits=lambda key: key[0] % 4 == 0)], after=0)
    tuner.run(device, (6,), scratch=lambda: ())
    assert set(log) == {"slow"}
    tuner.run(device, (8,), scratch=lambda: ())
    assert log[-1] == "fast"


def test_a_later_group_waits_for_the_failure_of_the_first(device):
    log = []
    slow, fast = candidates(log)
    tuner = Tuner("t", [slow, fast._replace(group=1)], after=0)
    tuner.run(device, (1,), scratch=lambda: ())
    assert set(log) == {"slow"}


def test_the_budget_ends_measuring(device):
    log = []
    tuner = Tuner("t", candidates(log), after=0, budget=0.0)
    tuner.run(device, (1,), scratch=lambda: ())
    assert log == ["slow"]


def test_choices_travel_as_a_file(device, tmp_path):
    log = []
    tuner = Tuner("t", candidates(log), after=0)
    tuner.run(device, (1, "f32"), scratch=lambda: ())
    tuner.export(tmp_path / "choices.json")
    other = Tuner("t", candidates(log), after=100)
    assert other.load(tmp_path / "choices.json") == 1
    log.clear()
    other.run(device, (1, "f32"))
    assert log == ["fast"]
    with pytest.raises(ConfigError, match="holds choices of u"):
        Tuner("u", candidates(log)).load(tmp_path / "choices.json")
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ConfigError, match="as JSON"):
        other.load(tmp_path / "bad.json")


def test_kernels_are_tuned_on_scratch_data(device):
    @bc.cube
    def double(x: bc.Array[bc.Float], out: bc.Array[bc.Float]):
        if len(out) > bc.ABSOLUTE_POS:
            out[bc.ABSOLUTE_POS] = x[bc.ABSOLUTE_POS] * 2.0

    def way(cube_dim):
        def run(x, out):
            double.launch(device, -(-x.length // cube_dim), x, out, cube_dim=cube_dim)

        return Candidate(f"cube {cube_dim}", run)

    tuner = Tuner("double", [way(256), way(32)], after=0)
    x, out = device.from_numpy(np.ones(100, np.float32)), device.zeros(100, bc_f32())
    spare = device.zeros(100, bc_f32())
    tuner.run(device, (anchor(100),), x, out, scratch=lambda: (x, spare))
    assert (out.numpy() == 2).all()


def bc_f32():
    from burn_std.dtypes import float32

    return float32


def test_names_must_differ():
    with pytest.raises(ConfigError, match="names of their own"):
        Tuner("t", [])
