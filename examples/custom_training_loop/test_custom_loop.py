"""The loop learns, and a run that was stopped ends like one that was not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path


def test_it_learns_and_resumes_exactly(
    tmp_path: Path, run_script: Callable[..., str], device: str
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    said = run_script("train.py", "--epochs", 6, "--out", whole, device=device)
    run_script("train.py", "--epochs", 6, "--stop-after", 2, "--out", parts, device=device)
    rest = run_script("train.py", "--epochs", 6, "--resume", "--out", parts, device=device)
    assert "epoch  2" not in rest
    assert said.endswith(rest.partition("epoch  3")[2]), "the same lines from epoch 3 on"
    for name in ("model", "optimizer", "average"):
        file = f"checkpoint/{name}.safetensors"
        assert (whole / file).read_bytes() == (parts / file).read_bytes()
    accuracies = [float(a) for a in re.findall(r"test accuracy of .*: ([0-9.]+) %", said)]
    assert len(accuracies) == 2
    assert min(accuracies) > 90
