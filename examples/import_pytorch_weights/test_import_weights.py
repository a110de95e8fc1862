"""The three networks answer as PyTorch does; the weights come as the README says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's own optional group, installed beside the environment, not into it."""
    target = tmp_path_factory.mktemp("weights")
    found = shutil.which("uv")
    uv = [found] if found else [sys.executable, "-m", "uv"]
    group = f"{HERE / 'pyproject.toml'}:weights"
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--no-deps", "--target", target, "--group", group],
        check=True,
    )
    return target / "facenet_pytorch" / "data"


def test_outputs_match_pytorch(
    weights: Path, tmp_path: Path, run_script: Callable[..., str], device: str
) -> None:
    said = run_script("compare.py", "--weights", weights, "--save", tmp_path, device=device)
    found = re.findall(r"([PRO]Net): .* difference to PyTorch (\S+)", said)
    assert [name for name, _ in found] == ["PNet", "RNet", "ONet"]
    assert all(float(difference) < 1e-5 for _, difference in found)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}net.safetensors" for name in "pro"
    }


def test_missing_weights_name_the_remedy(tmp_path: Path, run_script: Callable[..., str]) -> None:
    for arguments in ([], ["--weights", tmp_path]):
        said = run_script("compare.py", *arguments, fails=True)
        assert "--group import_pytorch_weights/pyproject.toml:weights" in said
        assert "Traceback" not in said


def test_damaged_weights_are_refused(
    weights: Path, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    for path in weights.glob("*.pt"):
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-1000])
    assert "StoreError" in run_script("compare.py", "--weights", tmp_path, fails=True)
