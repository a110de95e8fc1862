"""What reads a batch norm goes into its last kernel where it is one operation, as on CUDA."""

from __future__ import annotations

import subprocess
import sys

import pytest

import burn


def test_tails_have_the_bits_of_single_kernels() -> None:
    if not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
    # In a process of its own: a device that called the operation before keeps to its parts.
    command = [sys.executable, "-m", "tests.cube.norm_tails"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr
    count, units = made.stdout.strip().split(" ", 1)
    assert int(count) == 216
    assert units == "[('batch_norm', 'add', 'relu')]"
