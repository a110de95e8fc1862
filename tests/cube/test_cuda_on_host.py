"""A whole step on the cuda device of `cuda_on_host`: what runs side by side meets nowhere."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("g++") is None, reason="compiles kernels for the host with g++")
def test_a_step_as_a_graph_gives_what_its_launches_give_one_by_one(tmp_path):
    pytest.importorskip("llvmlite")
    command = [sys.executable, "-m", "tests.cube.cuda_on_host", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "equal"
