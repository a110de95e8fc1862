"""A disk that is really full: typed errors, the last good files intact, nothing left over.

One child runs under a limit on the size of files, which every machine has; the other on a small
file system of its own, where the machine lets a process mount one.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("full_disk.py")


def judged(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    kinds = {name: said.partition(":")[0] for name, said in found["said"].items()}
    assert kinds == {
        "store.safetensors": "StoreError", "store.bpk": "StoreError", "store.npz": "StoreError",
        "checkpoint": "TrainError", "rows": "TrainError", "message": "TrainError",
        "table": "TrainError",
    }, found["said"]  # fmt: skip
    assert not found["changed"] and not found["gone"], found
    assert found["read"] and found["loaded"] == [1.0, 1.0]


def test_a_limit_on_files_leaves_what_was_good(tmp_path: Path) -> None:
    command = [sys.executable, str(CHILD), str(tmp_path / "run"), "limit"]
    judged(subprocess.run(command, capture_output=True, text=True, timeout=120, check=False))


def test_a_full_file_system_leaves_what_was_good(tmp_path: Path) -> None:
    namespace = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=2m none {shlex.quote(str(disk))}"
    try:
        probe = subprocess.run([*namespace, "sh", "-c", mount], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("the machine has no unshare")
    if probe.returncode:
        pytest.skip("the machine lets this process mount no file system")
    # The mount is seen by this child alone and goes with it.
    command = shlex.join([sys.executable, str(CHILD), str(disk / "run"), "tmpfs"])
    done = subprocess.run(
        [*namespace, "sh", "-c", f"{mount} && exec {command}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    judged(done)
    assert "No space left" in done.stdout and not list(disk.iterdir())
