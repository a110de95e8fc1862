"""What a failed flush leaves: rebindings undone, memory retried, a device lost, interrupts."""

from __future__ import annotations

import gc
import linecache
import os
import signal
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Device
from burn_fusion import recorder as recorder_module, segment as segment_module
from burn_ir import CATALOG


@pytest.fixture
def device() -> Device:
    """A resource of its own, so that counts start at zero and patched kernels stay here."""
    device = burn.device(f"fusion-flex:{next(_INDICES)}")
    inner = device.resource.backend.inner
    inner.table = dict(inner.table)
    return device


_INDICES = iter(range(1000, 2000))


def _patch(
    device: Device, name: str, fn: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Exchange the float32 kernel of an operation on this device."""
    kernels = device.resource.backend.inner.kernels(CATALOG[name])
    key = np.dtype(np.float32)
    kernels[key] = fn(kernels[key])


def _failing(error: Exception, times: int = 1) -> Callable[..., Any]:
    left = [times]

    def patch(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise error
            return kernel(*args, **kwargs)

        return run

    return patch


def _bad(x: burn.Tensor) -> burn.Tensor:
    """A value of x's shape whose computation fails."""
    n = x.shape[0]
    return x.index_select(0, burn.full((n,), 99, dtype=burn.int64, device=x.device))


def test_an_assignment_that_fails_is_undone(device):
    x = burn.tensor([1.0, 2.0], device=device)
    x[0] = 5.0
    good = x + 0
    x[0:2] = _bad(x)
    with pytest.raises(burn.IndexRangeError):
        device.sync()
    assert x.tolist() == [5.0, 2.0]
    assert good.tolist() == [5.0, 2.0]


def test_an_assignment_that_fails_gives_the_place_on_the_tape_back(device):
    w = burn.tensor([1.0, 2.0], device=device.autodiff()).require_grad()
    x = w * 3
    x[0:2] = _bad(w)
    with pytest.raises(burn.IndexRangeError):
        device.sync()
    assert x.tolist() == [3.0, 6.0]
    assert w.grad(x.sum().backward()).tolist() == [3.0, 3.0]


def test_a_note_stands_in_the_segment_that_makes_the_value(device):
    p = burn.Parameter(burn.tensor([1.0, 2.0], device=device))
    bad = _bad(p.detach())
    with pytest.raises(burn.IndexRangeError):
        device.flush()
    with pytest.raises(burn.IndexRangeError):
        p.set(bad)
    assert p.tolist() == [1.0, 2.0]


def test_buffers_and_twins_get_their_old_value_back(device):
    b = burn.nn.Buffer(burn.tensor([1.0, 2.0], device=device))
    p = burn.Parameter(burn.tensor([3.0, 4.0], device=device))
    twin = p.twin()
    b.set(_bad(b.detach()))
    p.set(_bad(p.detach()))
    with pytest.raises(burn.IndexRangeError):
        device.sync()
    assert (b.tolist(), p.tolist(), twin.tolist()) == ([1.0, 2.0], [3.0, 4.0], [3.0, 4.0])


def test_a_failed_step_leaves_parameters_and_the_optimizer_as_they_were(device):
    model = burn.nn.Linear(2, 1, device=device.autodiff())
    opt = burn.optim.Adam(lr=0.1)
    x = burn.ones(3, 2, device=device)

    def step(x: burn.Tensor) -> None:
        opt.step(model, model(x).sum().backward())

    step(x)
    before = {k: v.tolist() for k, v in opt.state_dict(model).items()}
    weights = model.weight.tolist()
    with pytest.raises(burn.IndexRangeError):
        step(_bad(x))
        device.sync()
    assert model.weight.tolist() == weights
    assert {k: v.tolist() for k, v in opt.state_dict(model).items()} == before
    step(x)
    assert opt.state_dict(model)["weight.step"].item() == 2


def test_a_note_keeps_neither_object_nor_old_value_alive(device):
    x = burn.zeros(4, device=device)
    gone = weakref.ref(x)
    for k in range(20):
        x[k % 4] = float(k)
    (kept,) = (x.sum(),)
    del x
    assert gone() is None
    assert kept.item() == 16 + 17 + 18 + 19
    assert all(len(p.live) == 1 for p in device.resource.backend.recorder.plans())


@pytest.mark.parametrize("shift", [0, 1])
def test_short_memory_is_retried_without_donation(device, shift):
    """Also after externals were overwritten: the plan goes on where it stopped."""
    _patch(device, "exp", _failing(MemoryError("no room")))
    freed = []
    inner = device.resource.backend.inner
    inner.memory_cleanup = lambda: freed.append(True)
    x = burn.tensor(np.arange(4, dtype=np.float32), device=device)
    for _ in range(2):
        x = x + 1
        device.flush()
    x = x + shift if shift else x
    y = x.exp()
    side = y * 2
    del x
    assert y.tolist() == pytest.approx(np.exp(np.arange(4) + 2.0 + shift), rel=1e-6)
    assert side.tolist() == pytest.approx(2 * np.exp(np.arange(4) + 2.0 + shift), rel=1e-6)
    assert freed


def test_memory_that_stays_short_poisons_only_what_needs_it(device):
    _patch(device, "exp", _failing(MemoryError("no room"), times=2))
    x = burn.tensor(np.arange(4, dtype=np.float32), device=device)
    device.flush()
    x = x + 1
    a = x * 3
    y = x.exp()
    del x
    with pytest.raises(burn.ExecutionError, match="exp"):
        y.numpy()
    assert a.tolist() == [3.0, 6.0, 9.0, 12.0]
    assert (a + 1).tolist() == [4.0, 7.0, 10.0, 13.0]


def test_a_lost_device_loses_every_value(device):
    _patch(device, "exp", _failing(burn.DeviceLostError("exp", "the device is gone"), times=99))
    x = burn.ones(2, device=device)
    other = x + 1
    assert other.tolist() == [2.0, 2.0]
    y = x.exp()
    for t in (y, x, other, other):
        with pytest.raises(burn.DeviceLostError):
            t.numpy()
    with pytest.raises(burn.DeviceLostError):
        (other + 1).numpy()


def test_ctrl_c_while_a_failed_flush_is_mended_is_raised_and_loses_nothing(device):
    def interrupting(kernel):
        def run(*args, **kwargs):
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("broken")

        return run

    x = burn.tensor([1.0, 2.0], device=device)
    good, bad = x * 2, x
    _patch(device, "exp", interrupting)
    bad[0:2] = x.exp()
    with pytest.raises(KeyboardInterrupt):
        device.flush()
    assert good.tolist() == [2.0, 4.0]
    assert bad.tolist() == [1.0, 2.0]


def test_what_a_segment_alone_keeps_alive_is_bounded(device, monkeypatch):
    monkeypatch.setattr(recorder_module, "PINNED", 8 * 2**20)
    monkeypatch.setattr(segment_module, "PINNED", 8 * 2**20)
    device.flush()
    burn.ones((), device=device).item()
    total = burn.zeros((), device=device)
    held = burn.tensor(np.ones(2**20, np.float32), device=device)
    start = device.resource.backend.report()["flushes"]
    alive: list[weakref.ref[burn.Tensor]] = []
    arrays: list[Any] = []
    for k in range(40):
        x = burn.tensor(np.full(2**16, k, np.float32), device=device)  # 256 KiB
        alive.append(weakref.ref(x))
        total = total + (x + held[: 2**16]).sum() / 2**16
        waiting = device.resource.backend.recorder.tls.h.seg.ext
        arrays.append(len(waiting))
    assert max(arrays) <= 12
    assert device.resource.backend.report()["flushes"] - start >= 3
    assert total.item() == sum(range(40)) + 40


def test_what_the_program_holds_anyway_cuts_nothing(device, monkeypatch):
    monkeypatch.setattr(recorder_module, "PINNED", 8 * 2**20)
    monkeypatch.setattr(segment_module, "PINNED", 8 * 2**20)
    parts = [burn.tensor(np.ones(2**16, np.float32), device=device) for _ in range(40)]
    device.flush()
    start = device.resource.backend.report()["flushes"]
    total = burn.zeros((), device=device)
    for p in parts:
        total = total + p.sum()
    assert device.resource.backend.report()["flushes"] == start
    assert total.item() == 40 * 2**16


def test_forgotten_plans_leave_no_text_behind(device, monkeypatch):
    monkeypatch.setattr(recorder_module, "REMEMBERED", 50)
    x = burn.tensor([1.0], device=device)

    def texts() -> int:
        return sum(name.startswith("<burn plan") for name in linecache.cache)

    before = texts()
    for n in range(2, 60):
        y = x
        for _ in range(n % 29 + 1):
            y = y + 1
        assert y.item() == 2 + n % 29
    assert texts() - before <= 50


@pytest.mark.parametrize("seed", range(40))
def test_what_does_not_depend_on_a_failure_is_as_if_run_eagerly(device, seed):
    """Random chains over few names, some flushed midway; the operation `exp` fails at its n-th run.

    Whatever was not reached by the failure has the value of an eager run; a name that an
    assignment would have rebound to a poisoned value keeps its last good one.
    """
    rng = np.random.default_rng(seed)
    memory = bool(seed % 2)
    failing = int(rng.integers(0, 4))
    error = MemoryError("no room") if memory else ValueError("broken")
    plan = [
        (str(rng.choice(["add", "mul", "exp", "assign", "neg"])), *map(int, rng.integers(0, 4, 3)))
        for _ in range(30)
    ]
    runs = [0]

    def patch(kernel):
        def run(x, **kwargs):
            runs[0] += 1
            if float(x[-1]) == marks[failing]:  # the same call, however often it is tried
                raise error
            return kernel(x, **kwargs)

        return run

    # The last element of every argument of `exp` is its serial number, the first is data.
    marks = [1.0 + k / 64 for k in range(64)]
    _patch(device, "exp", patch)
    names = [burn.tensor([0.1 * (k + 1), 0.0], device=device) for k in range(4)]
    plain: list[Any] = [np.array([0.1 * (k + 1), 0.0], np.float32) for k in range(4)]
    exps = 0
    reached = False
    # Names that hold a poisoned value until the failure is known; what reads them is poisoned too.
    stale: set[int] = set()
    for what, a, b, c in plan:
        if (reached and plain[a] is None) or {a, b} & stale:
            continue
        if what != "assign":
            stale.discard(c)
        if what == "exp":
            mark = np.array([0.0, marks[exps]], np.float32)
            zero = np.array([1.0, 0.0], np.float32)
            names[c] = (
                names[a] * 0.1 * burn.tensor(zero, device=device) + burn.tensor(mark, device=device)
            ).exp() * burn.tensor(zero, device=device)
            if exps == failing:
                plain[c] = None
                reached = True
            else:
                x = plain[a] * np.float32(0.1) * zero + mark
                plain[c] = np.exp(x) * zero
            exps += 1
        elif what == "assign":
            if plain[a] is None or a == b:
                continue
            names[a] = names[a] + 0
            names[a][0] = names[b][0]
            if plain[b] is not None:
                plain[a] = np.array([plain[b][0], plain[a][1]], np.float32)
            else:
                stale.add(a)
        elif plain[b] is None and what != "neg":
            names[c], plain[c] = names[a] + names[b], None
        else:
            x, y = names[a], names[b]
            names[c] = x + y if what == "add" else x * y if what == "mul" else -x
            if what == "neg":
                plain[c] = -plain[a]
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    plain[c] = plain[a] + plain[b] if what == "add" else plain[a] * plain[b]
        x = y = None
        if exps <= failing and rng.random() < 0.2:
            device.flush()
    if reached:
        with pytest.raises(burn.ExecutionError, match="exp"):
            device.flush()
    for got, expected in zip(names, plain, strict=True):
        if expected is None:
            with pytest.raises(burn.ExecutionError, match="exp"):
                got.numpy()
        else:
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, equal_nan=True)


def test_an_error_keeps_no_memory(device):
    x = burn.ones(1000, device=device)
    device.flush()
    alive: list[Any] = []

    def failing(kernel):
        def run(a, *args):
            out = kernel(a, *args)
            alive.append(weakref.ref(out))
            if (a > 5).all():
                raise MemoryError
            return out

        return run

    _patch(device, "exp", failing)
    gc.disable()
    try:
        made = [(x + k).exp() for k in range(8)]
        with pytest.raises(burn.ExecutionError) as caught:
            made[0].device.sync()
        del made
        assert caught.value is not None
        assert [r() for r in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_an_error_leaves_those_alone_that_were_there_before(device):
    def fails() -> None:
        kept = 7
        raise KeyError(kept)

    x = burn.ones(3, device=device)
    _patch(device, "exp", _failing(ValueError("broken"), 2))
    try:
        fails()
    except KeyError as earlier:
        with pytest.raises(burn.ExecutionError):
            x.exp().tolist()
        assert earlier.__traceback__.tb_next.tb_frame.f_locals["kept"] == 7
