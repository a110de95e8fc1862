"""What compiles and when: never twice for one machine, never for another batch size.

The counters of the cache on disk tell: every kernel that is loaded asks it once, and a miss is a
compilation.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
DEVICES = ["cpu", "eager-cpu", "opencl"]

COUNTED = """
import runpy, sys
sys.path.insert(0, {folder!r})
sys.argv = ["train.py", "--epochs", "1", "--out", {out!r}]
runpy.run_path({folder!r} + "/train.py", run_name="__main__")
from burn_cube.runtime.cache import kernel_cache
print("counted", kernel_cache().hits, kernel_cache().misses)
"""

SIZES = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import burn
from burn import nn, optim
from burn_cube.runtime.cache import kernel_cache
from model import Digits

device = burn.Device.default().autodiff()
model, optimizer, loss_of = Digits(device=device), optim.AdamW(lr=1e-3), nn.CrossEntropyLoss()
rng = np.random.default_rng(0)

def step(size):
    images = burn.tensor(rng.random((size, 1, 8, 8), np.float32), device=device)
    labels = burn.tensor(rng.integers(0, 10, size), device=device)
    loss = loss_of(model(images), labels)
    optimizer.step(model, loss.backward())
    (model.valid()(images).argmax(1) == labels).sum().item()

# The third run of one size loads what calls a whole plan, on a device that makes such calls, and
# from the eighth of a program on the functions of its operations, some at each flush.
for size in (1, 2, *[64] * 10):
    step(size)
recorder = getattr(device.resource.backend, "recorder", None)
while recorder is not None and recorder.waiting:
    step(64)
cache = kernel_cache()
before = cache.hits + cache.misses
for size in range(1, 101):
    step(size)
print("counted", before, cache.hits + cache.misses - before)
"""


def counted(script: str, device: str, cache: Path, out: Path) -> tuple[int, int]:
    env = {**os.environ, "BURN_DEVICE": device, "BURN_CACHE_DIR": str(cache)}
    code = script.format(folder=str(DIGITS), out=str(out))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env, check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    word, first, second = done.stdout.splitlines()[-1].split()
    assert word == "counted"
    return int(first), int(second)


@pytest.mark.parametrize("device", DEVICES)
def test_a_second_process_compiles_nothing(device: str, tmp_path: Path) -> None:
    hits, misses = counted(COUNTED, device, tmp_path / "cache", tmp_path / "first")
    assert hits == 0
    assert misses > 20
    again = counted(COUNTED, device, tmp_path / "cache", tmp_path / "second")
    assert again == (misses, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_hundred_batch_sizes_need_the_kernels_of_three(device: str, tmp_path: Path) -> None:
    known, more = counted(SIZES, device, tmp_path / "cache", tmp_path)
    assert known > 20
    assert more == 0
