"""What a user reads when a compiling device fails, and that it works on afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_std import ExecutionError

DEVICES = ["cpu", "eager-cpu", "opencl"]


@pytest.fixture(params=DEVICES)
def device(driver: None, request: pytest.FixtureRequest) -> Any:
    return burn.device(request.param)


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=env, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def says(code: str, **variables: str) -> str:
    done = run(code, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- memory ------------------------------------------------------------------------------------

FILLED = """
import burn
device = burn.Device.default()
backend = device.resource.backend
pool = getattr(backend, 'inner', backend).engine.client.pool
pool.limit = 64 << 20
def ask():
    return burn.ones(1 << 20, device=device) * 2 + 1
for _ in range(100):      # four megabytes each; what is let go is used again
    ask()
held = []
try:
    while True:
        held.append(ask())
except burn.BurnError as error:
    print(type(error).__name__, len(held) > 10)
    print(error)
del held[4:]              # and the device goes on
print(ask().sum().item())
print(burn.zeros(13 << 20, dtype=burn.int8, device=device).sum().item())  # empties the caches
"""


@pytest.mark.parametrize("name", DEVICES)
def test_a_full_device_says_who_holds_what_and_goes_on(name: str) -> None:
    first, *rest, total, other = says(FILLED, BURN_DEVICE=name).splitlines()
    assert first == "OutOfMemoryError True"
    said = "\n".join(rest)
    assert re.search(r"x 4.0 MiB +(add|full)\b", said)
    assert "smaller batches" in said
    assert (float(total), int(other)) == (3.0 * (1 << 20), 0)


# ---- indices -----------------------------------------------------------------------------------


def test_an_index_outside_is_named_at_the_next_read_once(device: Any) -> None:
    x = burn.arange(4, device=device)
    late = x.index_select(0, burn.tensor([1, 9], device=device))
    with pytest.raises(burn.IndexRangeError, match="index") as caught:
        late.tolist()
    assert "9" in str(caught.value)
    device.sync()
    assert (x + 1).tolist() == [1, 2, 3, 4]


# ---- the cache on disk -------------------------------------------------------------------------

WORK = """
import burn
device = burn.Device.default()
x = burn.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
print(x.exp().log().sum(0).tolist(), (x @ x).tolist(), x.sort(0).values.tolist(), flush=True)
"""
LONG = (
    WORK
    + """
for k in range(10_000):
    getattr(x, ["exp", "log", "sin", "cos", "tanh", "abs"][k % 6])().sum(k % 2)
    x = x.unsqueeze(0) if len(x.shape) < 7 else x.reshape(2, 2)
"""
)


@pytest.mark.parametrize("name", DEVICES)
def test_a_process_killed_while_it_compiles_spoils_nothing(name: str, tmp_path: Path) -> None:
    env = {**os.environ, "BURN_DEVICE": name, "BURN_CACHE_DIR": str(tmp_path)}
    for pause in (0.0, 0.1):
        with subprocess.Popen(
            [sys.executable, "-c", LONG], env=env, stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            expected = worker.stdout.readline().strip()
            time.sleep(pause)
            os.kill(worker.pid, signal.SIGKILL)
    assert says(WORK, BURN_DEVICE=name, BURN_CACHE_DIR=str(tmp_path)) == expected


@pytest.mark.parametrize("damage", ["noise", "short", "empty"])
@pytest.mark.parametrize("name", DEVICES)
def test_a_damaged_cache_is_made_anew(name: str, damage: str, tmp_path: Path) -> None:
    settings = {"BURN_DEVICE": name, "BURN_CACHE_DIR": str(tmp_path)}
    expected = says(WORK, **settings)
    file = tmp_path / "kernels.sqlite"
    whole = file.read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, len(whole), np.uint8).tobytes()
    file.write_bytes({"noise": noise, "short": whole[: len(whole) // 2], "empty": b""}[damage])
    assert says(WORK, **settings) == expected
    again = WORK + "from burn_cube.runtime.cache import kernel_cache\nprint(kernel_cache().misses)"
    assert says(again, **settings).splitlines() == [expected, "0"]


# ---- what is missing ---------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules[{library!r}] = None
import burn
print(burn.Device.default())
try:
    burn.device({name!r})
except burn.BackendLoadError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "library"), [("cpu", "llvmlite"), ("opencl", "pyopencl"), ("cuda", "cupy")]
)
def test_a_missing_library_passes_the_default_on_and_is_named(name: str, library: str) -> None:
    default, said = says(WITHOUT.format(name=name, library=library), BURN_DEVICE="").splitlines()
    assert default == ("flex" if name == "cpu" else "cpu")
    assert library in said
    assert f"uv sync --inexact --package burn-cube-backend --extra {name}" in said


NO_DRIVER = """
import pyopencl
def none():
    raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
pyopencl.get_platforms = none
import burn
print([d.name for d in burn.Device.enumerate(burn.DeviceFilter("opencl"))])
try:
    burn.device("opencl")
except burn.BurnError as error:
    print(error)
"""


def test_without_a_driver_there_is_no_device_and_the_error_says_so() -> None:
    found, said = says(NO_DRIVER).splitlines()
    assert found == "[]"
    assert "finds 0 devices" in said
    assert "driver" in said or "doctor" in said


def test_without_a_blas_the_own_kernels_multiply() -> None:
    code = "import burn; x = burn.rand(70, 90); print(bool((x @ x.t()).isfinite().all()))"
    assert says(code, BURN_DEVICE="cpu", BURN_CPU_BLAS="off") == "True"
    done = run(code, BURN_DEVICE="cpu", BURN_CPU_BLAS="/nowhere/libblas.so")
    assert done.returncode == 1
    assert "BURN_CPU_BLAS" in done.stderr.splitlines()[-1]
    assert "/nowhere/libblas.so" in done.stderr


# ---- threads and forks -------------------------------------------------------------------------


def test_threads_on_one_device_get_their_own_answers(device: Any) -> None:
    def work(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        a = rng.standard_normal((40, 60)).astype(np.float32)
        out = []
        for _ in range(30):
            x = burn.tensor(a, device=device)
            y = (x @ x.t()).softmax(1).sum(0) + x.sort(1).values.mean(1)
            out.append(y.numpy())
        assert all((o == out[0]).all() for o in out)
        return out[0]

    alone = [work(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(4)))
    for a, b in zip(alone, together, strict=True):
        assert (a == b).all()


FORKED = """
import os
import burn
device = burn.Device.default()
x = burn.rand(300, 300, device=device)
y = (x @ x).sum().item()
before = (x @ x).sum()  # where operations are recorded, it runs in both processes
child = os.fork()
if child == 0:
    try:
        same = (x @ x).sum().item() == y and (x * 2).exp().sum().isfinite().item()
        same = same and before.item() == y
        print("same" if same else "other", flush=True)
    except burn.DeviceError as error:
        print(error, flush=True)
    os._exit(0)
left = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("left", left, (x @ x).sum().item() == y == before.item())
"""


@pytest.mark.parametrize("name", ["cpu", "eager-cpu"])
def test_a_forked_child_uses_the_processor(name: str) -> None:
    assert says(FORKED, BURN_DEVICE=name).splitlines() == ["same", "left 0 True"]


APART = """
import os
import burn
device = burn.Device.default()
kept = [burn.full((n,), 1.0, device=device) + 0 for n in (64, 1 << 16, 3 << 20)]
assert [t.max().item() for t in kept] == [1.0, 1.0, 1.0]
child = os.fork()
if child == 0:
    sizes = [t.shape for t in kept]
    del kept
    made = [burn.full(s, 7.0, device=device) + 0 for s in sizes]
    print([t.min().item() for t in made], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print([(t.min().item(), t.max().item()) for t in kept])
"""


@pytest.mark.parametrize("name", ["cpu", "eager-cpu"])
def test_a_forked_child_has_memory_of_its_own(name: str) -> None:
    said = says(APART, BURN_DEVICE=name).splitlines()
    assert said == [str([7.0] * 3), str([(1.0, 1.0)] * 3)]


@pytest.mark.parametrize("name", ["opencl"])
def test_a_forked_child_is_told_to_open_a_device_of_its_own(name: str) -> None:
    said, after = says(FORKED, BURN_DEVICE=name).splitlines()
    assert "a device belongs to the process that opened it" in said
    assert "spawn" in said
    assert after == "left 0 True"


def test_errors_of_memory_are_those_that_the_guide_names() -> None:
    from burn_cube import OutOfMemoryError

    assert issubclass(OutOfMemoryError, ExecutionError)


LOST = """
import burn, pyopencl as cl

class DeadQueue:
    # the queue of a device that failed
    def __init__(self, queue):
        self.queue = queue
    def __getattr__(self, name):
        return getattr(self.queue, name)
    def finish(self):
        raise cl.RuntimeError("it burnt")

device = burn.Device.default()
backend = device.context.resource.backend
runtime = getattr(backend, "inner", backend).engine.client.runtime
y = burn.arange(4, device=device) * 2
device.sync()
other = burn.ones(3, device=burn.device("cpu"))
runtime.queue = DeadQueue(runtime.queue)
def zeros():
    burn.zeros(7, device=device) * 1
    device.sync()
for ask in (device.sync, y.tolist, lambda: (y + 1).tolist(), zeros):
    try:
        ask()
    except burn.DeviceLostError as error:
        print("burnt" if "it burnt" in str(error) and "new process" in str(error) else error)
    else:
        print("no error")
print((other + 1).tolist())
"""


# in a process of its own, as a device is lost for as long as its process lives
@pytest.mark.parametrize("name", ["opencl", "eager-opencl"])
def test_every_value_of_a_lost_device_says_so(driver: None, name: str) -> None:
    assert says(LOST, BURN_DEVICE=name).splitlines() == ["burnt"] * 4 + ["[2.0, 2.0, 2.0]"]
