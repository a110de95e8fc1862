"""The example, briefly: drawings become alike to digits in what can be measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path


def test_it_learns_to_draw(tmp_path: Path, run_script: Callable[..., str], device: str) -> None:
    said = run_script("train.py", "--epochs", 3, "--out", tmp_path, device=device)
    losses = [float(x) for x in re.findall(r"(?:discriminator|generator) ([0-9.]+)", said)]
    assert len(losses) == 4
    assert all(0 < loss < 10 for loss in losses)
    assert (tmp_path / "samples.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "generator.safetensors").is_file()
    drawn = [line for line in said.splitlines() if len(line) == 6 * 16 + 5 * 2]
    assert len(drawn) == 8
    # Digits are bright in the middle and dark at the sides.
    assert sum(line[0] in " ." for line in drawn) >= 6
    assert any(c in "*#%@" for line in drawn for c in line)
