"""The example as a user runs it, briefly; and what the recorder makes of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import burn

HERE = Path(__file__).parent


def run(script: str, *args: object, device: str = "cpu") -> str:
    # A small network gains nothing from BLAS threads.
    env = {**os.environ, "BURN_DEVICE": device, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / script), *map(str, args)]
    done = subprocess.run(
        command, env=env, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracy(text: str) -> float:
    found = re.search(r"test accuracy: ([0-9.]+) %", text)
    assert found, text
    return float(found[1])


@pytest.mark.parametrize("device", ["cpu", "flex"])
def test_it_trains_resumes_and_serves(tmp_path: Path, device: str) -> None:
    run("train.py", "--epochs", 1, "--out", tmp_path, device=device)
    said = run("train.py", "--epochs", 3, "--resume", "--out", tmp_path, device=device)
    assert "\x1b" not in said
    assert accuracy(said) > 90
    assert {"model.safetensors", "model.json", "curves.png"} <= {p.name for p in tmp_path.iterdir()}
    # What was saved answers alike, and on a device of another kind.
    assert accuracy(run("serve.py", "--check", "--out", tmp_path)) == accuracy(said)
    assert run("serve.py", 0, 7, "--out", tmp_path).count("digit") == 2


def test_a_resumed_run_prints_what_the_whole_one_prints(tmp_path: Path) -> None:
    whole = run("train.py", "--epochs", 2, "--out", tmp_path / "whole")
    run("train.py", "--epochs", 1, "--out", tmp_path / "half")
    half = run("train.py", "--epochs", 2, "--resume", "--out", tmp_path / "half")
    assert accuracy(whole) == accuracy(half)
    saved = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "half")]
    assert saved[0] == saved[1]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> object:
    """The training script as a module, beside the modules it imports by their plain names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(HERE)
    import train

    yield train
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) in {str(p) for p in HERE.glob("*.py")}:
            del sys.modules[name]


@pytest.mark.parametrize(("capture", "plans"), [(False, 3), (None, 4)])
def test_the_recorder_makes_few_plans_in_all(
    example: object, tmp_path: Path, capture: bool | None, plans: int
) -> None:
    device = burn.device(f"fusion-flex:{90 + plans}")
    training, learner = example.prepare(  # type: ignore[attr-defined]
        device, epochs=2, directory=tmp_path, view="plain"
    )
    learner.captured.wanted = capture
    training.run(learner)
    counts = device.resource.backend.report()
    # One program makes the model, one is the step, one the validation: from the first step on,
    # and over batches of two sizes each. A captured step returns nothing, so it is another plan.
    assert counts["plans"] <= plans
    assert counts["waiting"] == 0
