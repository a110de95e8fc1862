"""What the tests of the examples share: running a script as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(params=["cpu", "flex"])
def device(request: pytest.FixtureRequest) -> str:
    """The device that `BURN_DEVICE` names."""
    return str(request.param)


@pytest.fixture
def run_script(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Run a script of the test's folder and return what it prints; `fails` wants a failure."""
    folder = Path(request.path).parent

    def run(script: str, *args: object, device: str = "cpu", fails: bool = False) -> str:
        # A small network gains nothing from BLAS threads.
        env = {**os.environ, "BURN_DEVICE": device, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(folder / script), *map(str, args)]
        done = subprocess.run(
            command, env=env, check=False, capture_output=True, text=True, timeout=180
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    return run
