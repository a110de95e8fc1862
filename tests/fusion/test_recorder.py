"""The recorder behind real tensors: programs, plans, liveness, failures, threads, interrupts."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import threading

import numpy as np
import pytest

import burn
from burn import Device


@pytest.fixture
def device() -> Device:
    """A resource of its own, so that counts start at zero."""
    return burn.device(f"fusion-flex:{next(_INDICES)}")


_INDICES = itertools.count(100)


def report(device: Device) -> dict[str, int]:
    """Plans made, flushes, waiting operations."""
    out: dict[str, int] = device.resource.backend.report()
    return out


def recorder(device: Device):
    """The recorder of a device."""
    return device.resource.backend.recorder


def test_nothing_runs_before_a_read(device):
    x = burn.ones(3, device=device)
    y = x + 1
    assert report(device)["flushes"] == 0
    assert report(device)["waiting"] > 0
    assert y.tolist() == [2.0, 2.0, 2.0]
    assert report(device)["waiting"] == 0


def test_scalars_and_batch_sizes_rebuild_nothing(device):
    for n, lr in ((2, 0.1), (3, 0.2), (7, 0.3), (5, 0.1)):
        x = burn.from_numpy(np.ones((n, 4), np.float32)).to_device(device)
        assert (x - x * lr).sum().item() == pytest.approx(4 * n * (1 - lr), rel=1e-5)
    assert report(device)["plans"] == 1


def test_equal_extents_are_not_the_same_dim(device):
    def attend(b, s):
        q = burn.from_numpy(np.ones((b, s, 2), np.float32)).to_device(device)
        return (q @ q.transpose(1, 2)).softmax(-1).sum().item()

    assert attend(3, 4) == pytest.approx(12, rel=1e-5)
    assert attend(4, 4) == pytest.approx(16, rel=1e-5)
    assert report(device)["plans"] == 1


def test_an_extent_of_one_is_another_class(device):
    for n in (2, 1, 3):
        x = burn.from_numpy(np.ones((n, 4), np.float32)).to_device(device)
        (x + 1).numpy()
    assert report(device)["plans"] == 2


def test_dead_values_are_not_returned(device):
    x = burn.from_numpy(np.ones(4, np.float32)).to_device(device)
    kept = (((x + 1) * 2) - 3).exp()
    kept.numpy()
    plan = next(iter(recorder(device).plans()))
    assert len(plan.live) == 1


def test_a_live_view_keeps_its_base_intact(device):
    x = burn.from_numpy(np.arange(6, dtype=np.float32)).to_device(device)
    base = x + 0
    view = base.reshape(2, 3)
    other = base * 10
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert other.tolist() == [0, 10, 20, 30, 40, 50]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]


def test_donation_never_writes_what_somebody_sees(device):
    source = np.arange(4, dtype=np.float32)
    x = burn.tensor(source, device=device)
    seen = x.numpy()
    for _ in range(3):
        x = x + 1
        x.device.flush()
    assert seen.tolist() == [0, 1, 2, 3]
    assert source.tolist() == [0, 1, 2, 3]
    assert x.tolist() == [3, 4, 5, 6]


def test_dead_externals_are_donated(device):
    x = burn.tensor(np.zeros(4, np.float32), device=device)
    for _ in range(4):
        x = x + 1
        device.flush()
    assert any(p.donate for p in recorder(device).plans())
    assert x.tolist() == [4, 4, 4, 4]


def test_an_error_names_its_operation_and_poisons_only_its_own_values(device):
    x = burn.tensor([1.0, 2.0, 3.0], device=device)
    index = burn.tensor([0, 7], device=device)
    good = x * 2
    bad = x.index_select(0, index)
    worse = bad + 1
    fine = good + 1
    with pytest.raises(burn.IndexRangeError, match="index_select"):
        worse.numpy()
    assert fine.tolist() == [3, 5, 7]
    assert good.tolist() == [2, 4, 6]
    for t in (bad, worse):
        with pytest.raises(burn.IndexRangeError, match="index_select"):
            t.numpy()
    with pytest.raises(burn.IndexRangeError):
        (worse * 2).numpy()
    assert (x + 1).tolist() == [2, 3, 4]


def test_a_failed_rebinding_is_undone(device):
    p = burn.Parameter(burn.tensor([1.0, 2.0], device=device))
    bad = p.detach().index_select(0, burn.tensor([0, 9], device=device))
    p.set(bad)
    with pytest.raises(burn.IndexRangeError):
        device.sync()
    assert p.tolist() == [1.0, 2.0]


def test_two_resources_record_apart(device):
    other = burn.device("fusion-flex:99")
    a, b = burn.ones(2, device=device), burn.ones(2, device=other)
    a2, b2 = a + 1, b + 2
    assert a2.tolist() == [2, 2]
    assert report(other)["waiting"] > 0
    assert b2.tolist() == [3, 3]
    with pytest.raises(burn.DeviceError):
        a + b


def test_two_threads_share_values(device):
    x = burn.tensor(np.arange(8, dtype=np.float32), device=device)
    errors: list[BaseException] = []
    results: list[float] = []

    def work(k: int) -> None:
        try:
            for _ in range(200):
                y = (x + k) * 2
                results.append((y - 2 * k).sum().item())
        except BaseException as e:  # noqa: BLE001 - handed to the main thread
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert set(results) == {56.0}


def test_a_foreign_reader_seals_an_open_segment(device):
    x = burn.tensor([1.0, 2.0], device=device)
    ready, go = threading.Event(), threading.Event()
    box: list[burn.Tensor] = []
    errors: list[BaseException] = []

    def owner() -> None:
        try:
            y = x
            for step in range(300):
                y = y + 1
                box.append(y)
                if step == 50:
                    ready.set()
                    go.wait()
            assert y.tolist() == [301.0, 302.0]
        except BaseException as e:  # noqa: BLE001 - handed to the main thread
            errors.append(e)

    thread = threading.Thread(target=owner)
    thread.start()
    ready.wait()
    assert box[50].tolist() == [52.0, 53.0]
    go.set()
    for k in (60, 100, 200):
        while len(box) <= k:
            pass
        assert box[k].tolist() == [k + 2.0, k + 3.0]
    thread.join()
    assert not errors


def test_ctrl_c_in_mid_segment_leaves_a_working_recorder(device):
    x = burn.tensor([1.0], device=device)
    y = x
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10_000_000):
            y = y * 1
    assert y.tolist() == [1.0]
    assert (x + 1).tolist() == [2.0]


def test_ctrl_c_in_a_flush_finishes_it_first(device, monkeypatch):
    x = burn.tensor([1.0], device=device)
    kept = [x + k for k in range(50)]
    backend = device.resource.backend
    runner = backend.inner.runner

    class Interrupting:
        """Raises the signal in the middle of a plan."""

        @staticmethod
        def run(fn, *args):
            os.kill(os.getpid(), signal.SIGINT)
            return runner.run(fn, *args)

    monkeypatch.setattr(backend.inner, "runner", Interrupting, raising=False)
    with pytest.raises(KeyboardInterrupt):
        device.flush()
    monkeypatch.undo()
    assert [t.item() for t in kept] == [1.0 + k for k in range(50)]


def test_long_chains_are_cut_and_make_few_plans(device):
    x = burn.tensor(np.ones(4, np.float32), device=device)
    w = burn.tensor(np.eye(4, dtype=np.float32), device=device)
    y = x
    for _ in range(4000):
        y = (y @ w) * 1.0
    assert y.tolist() == [1, 1, 1, 1]
    assert report(device)["flushes"] >= 4
    assert report(device)["plans"] <= 8


def test_no_plan_after_the_third_step_and_memory_stays_flat(device):
    d = device.autodiff()
    model = burn.nn.Sequential(
        burn.nn.Linear(8, 16, device=d), burn.nn.ReLU(), burn.nn.Linear(16, 4, device=d)
    )
    opt = burn.optim.Adam()
    rng = np.random.default_rng(0)
    device.flush()
    made = []
    for step in range(8):
        n = (16, 16, 4, 9, 16, 2, 3, 16)[step]
        x = burn.tensor(rng.standard_normal((n, 8)).astype(np.float32), device=d)
        t = burn.tensor(rng.integers(0, 4, n), device=d)
        loss = burn.functional.cross_entropy(model(x), t)
        opt.step(model, loss.backward(), lr=0.1 / (step + 1))
        made.append(report(device)["plans"])
        del loss, x, t
    assert made[-1] == made[2]
    assert made[-1] <= 3


def test_bits_are_those_of_flex(device):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((5, 7)).astype(np.float32)

    def f(d: Device) -> np.ndarray:
        x = burn.tensor(a, device=d)
        return ((x.exp() * 2 - x).tanh().softmax(1) @ x.T).numpy()

    assert np.array_equal(f(device), f(Device.flex()))


def test_nothing_lingers(device):
    x = burn.tensor(np.ones(16, np.float32), device=device)
    for _ in range(50):
        (x + 1).numpy()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(500):
        (x + 1).numpy()
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_reading_in_the_background_runs_what_was_recorded_and_tells_what_failed(device):
    x = burn.tensor([1.0, 2.0], device=device)
    assert burn.read_async(x + 1).result().tolist() == [2.0, 3.0]
    bad = x.index_select(0, burn.tensor([9], device=device))
    future = burn.read_async(bad)
    with pytest.raises(burn.IndexRangeError):
        future.result()


def test_what_a_waiting_task_raises_is_not_taken_for_an_empty_list() -> None:
    recorder = burn.device("fusion-flex").resource.backend.recorder
    recorder.waiting.append([].pop)
    with pytest.raises(IndexError):
        recorder.work()
    assert not recorder.waiting


def test_the_backward_of_a_layer_on_rows_records_what_it_needs() -> None:
    device = burn.device("fusion-flex").autodiff()
    layer = burn.nn.Linear(3, 2, device=device)
    x = burn.ones(4, 3, device=device).require_grad()
    device.flush()
    grads = layer(x).backward(burn.ones(4, 2, device=device))
    program, _ = device.resource.backend.recorded()
    names = [op.name for op in program.ops if op.name != "full"]
    assert names == ["linear", "matmul", "permute", "matmul", "sum"]
    assert layer.bias.grad(grads).tolist() == [4.0, 4.0]
    assert layer.weight.grad(grads).tolist() == [[4.0] * 3] * 2
    rows = layer(burn.ones(2, 2, 3, device=device)).sum().backward()
    assert layer.weight.grad(rows).tolist() == [[4.0] * 3] * 2
