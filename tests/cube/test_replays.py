"""Plans that run as one native call or one graph give what their kernels give one by one."""

from __future__ import annotations

import gc
import os
import random
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn_std import IndexRangeError
from tests.laws.test_programs import OPS, run, same

F = burn.functional
# The same holds for lists of OpenCL, and on a machine with a GPU for graphs: BURN_DEVICE names it.
NAME = os.environ.get("BURN_DEVICE", "")
NAME = NAME if NAME in ("cuda", "opencl") else "cpu"
EAGER, FUSED = burn.device(f"eager-{NAME}"), burn.device(NAME)
# Equal numbers make a replay; others make numbers late, check them, and replay with them.
SHIFTS = (0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 0.0)


def replays() -> list[Any]:
    """Return what replays exist on the fused device."""
    backend: Any = FUSED.without_autodiff().context.resource.backend.inner
    return [
        layout.replay
        for plan in backend.engine.replayed
        for layout in plan._layouts.values()
        if layout.replay is not None
    ]


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int) -> None:
    dice = random.Random(seed)
    names = [*OPS, "cast", "drop", "drop", "read"]
    program = [
        (dice.choice(names), dice.randrange(31), dice.randrange(31),
         dice.choice([0.5, 2.0, -1.25, 3.0]))
        for _ in range(dice.randint(4, 40))
    ]  # fmt: skip
    for shift in SHIFTS:
        expected, refused = run(program, EAGER, shift)
        found, also = run(program, FUSED, shift)
        assert [r.partition(":")[0] for r in also] == [r.partition(":")[0] for r in refused]
        for a, b in zip(found, expected, strict=True):
            same(a, b)


OPEN = (
    (0.5,), (0.5,), (0.5, 3.0), (1.5, 2.0), (2.5, 1.0), (2.5, None), (1.0, 4.0), (0.0, None, None),
    (0.0, 1, -1), (0.0, 2, -2), (True, 3, -2), (False, None, -2.5), (1, 2, -3), (2, 3, -4),
    (2, None, -4), (3, 4, None), (3.5, 4, -1.0), (4.5, 5, -2.0), (5.5, None, -3.0),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::burn.ReplayWarning")
@pytest.mark.parametrize("dtype", [burn.float32, burn.float16, burn.bfloat16])
def test_a_number_may_be_open_in_the_next_run(dtype: Any) -> None:
    """A number that changed from run to run was followed to the launch; None is none."""
    for numbers in OPEN:
        found, expected = (
            burn.tensor([1.0, burn.inf, burn.nan, -burn.inf], dtype=dtype, device=device)
            for device in (FUSED, EAGER)
        )
        found = (found * 2).nan_to_num(*numbers) + 1
        same(found, (expected * 2).nan_to_num(*numbers) + 1)


def train(device: Any, steps: int) -> tuple[list[float], list[Any]]:
    """Return losses and parameters of a small network with dropout and a changing rate."""
    tracking = device.autodiff()
    tracking.seed(3)
    burn.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(6, 16, device=tracking), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(16, 3, device=tracking),
    )  # fmt: skip
    optimizer = optim.AdamW(lr=1e-2)
    rng = np.random.default_rng(0)
    losses = []
    for step in range(steps):
        x = burn.tensor(rng.standard_normal((8, 6)).astype(np.float32), device=device)
        y = burn.tensor(rng.integers(0, 3, 8), device=device)
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward(), lr=1e-2 / (1 + step))
        losses.append(loss)
    return [v.item() for v in losses], [p.numpy() for p in model.parameters()]


def train_images(device: Any, steps: int) -> tuple[list[float], list[Any]]:
    """Return losses and parameters of a convolutional network whose last batches are shorter."""
    tracking = device.autodiff()
    burn.manual_seed(4)
    on = {"device": tracking}
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, **on), nn.ReLU(), nn.Conv2d(16, 24, 3, padding=1, **on), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(24, 20, 3, stride=2, **on), nn.Flatten(),
        nn.Linear(20 * 9, 3, **on),
    )  # fmt: skip
    optimizer = optim.AdamW(lr=1e-2)
    rng = np.random.default_rng(0)
    losses = []
    for step in range(steps):
        count = 5 if step % 4 == 3 else 8
        x = burn.tensor(rng.standard_normal((count, 1, 17, 17)).astype(np.float32), device=device)
        y = burn.tensor(rng.integers(0, 3, count), device=device)
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        losses.append(loss)
    return [v.item() for v in losses], [p.numpy() for p in model.parameters()]


def test_training_of_convolutions() -> None:
    expected, params = train_images(EAGER, 12)
    before = len(replays())
    found, fused = train_images(FUSED, 12)
    assert found == expected
    for a, b in zip(fused, params, strict=True):
        assert np.array_equal(a, b)
    assert len(replays()) > before


def test_training_with_a_rate_that_changes_and_random_numbers() -> None:
    expected, params = train(EAGER, 12)
    found, fused = train(FUSED, 12)
    assert found == expected
    for a, b in zip(fused, params, strict=True):
        assert np.array_equal(a, b)
    assert any(r.lates and r.checked for r in replays())


def test_a_result_that_is_held_is_never_written_again() -> None:
    x = burn.rand(64, device=FUSED)
    held = []
    for k in range(12):
        y = (x + k) * 2
        FUSED.flush()
        held.append((k, y))
    for k, y in held:
        assert np.array_equal(y.numpy(), ((x + k) * 2).numpy())


def test_views_of_results_keep_their_memory() -> None:
    x = burn.arange(12, dtype=burn.float32, device=FUSED).reshape(3, 4)
    kept = []
    for k in range(10):
        y = (x * 2 + k)[1]
        FUSED.flush()
        kept.append(y)
    for k, y in enumerate(kept):
        assert y.tolist() == [8.0 + k, 10.0 + k, 12.0 + k, 14.0 + k]


def test_a_view_made_later_keeps_the_memory_of_a_result() -> None:
    x = burn.arange(12, dtype=burn.float32, device=FUSED).reshape(3, 4)
    kept = []
    for k in range(10):
        y = x * 2 + k
        FUSED.flush()
        row = y[1]
        FUSED.flush()
        del y
        kept.append(row)
    for k, row in enumerate(kept):
        assert row.tolist() == [8.0 + k, 10.0 + k, 12.0 + k, 14.0 + k]


def test_an_index_out_of_range_is_found_in_a_replay() -> None:
    x = burn.arange(5, dtype=burn.float32, device=FUSED)

    def pick(at: list[int]) -> Any:
        return x.index_select(0, burn.tensor(at, device=FUSED)) * 1.5

    for _ in range(5):
        assert pick([0, 4]).tolist() == [0.0, 6.0]
    with pytest.raises(IndexRangeError):
        pick([0, 7]).tolist()
    for _ in range(3):
        assert pick([1, 3]).tolist() == [1.5, 4.5]
    with pytest.raises(IndexRangeError):
        pick([5, 0]).tolist()


def test_inputs_that_share_memory_once_need_not_do_so_again() -> None:
    a = burn.rand(4, 4, device=FUSED)
    b = burn.rand(4, 4, device=FUSED)
    FUSED.sync()
    for p, q in [(a, a), (a, a), (a, a), (a, b), (b, a), (a, b), (b, b)]:
        left, right = p[1], q[1]
        FUSED.flush()
        assert np.array_equal((left * 3 - right).numpy(), p.numpy()[1] * 3 - q.numpy()[1])


def test_memory_stays_flat() -> None:
    model = nn.Linear(64, 64, device=FUSED.autodiff())
    optimizer = optim.SGD(lr=0.01)
    x = burn.rand(16, 64, device=FUSED)

    def step() -> None:
        optimizer.step(model, model(x).square().mean().backward())

    for _ in range(20):
        step()
    gc.collect()
    before = FUSED.memory_report()
    for _ in range(200):
        step()
    gc.collect()
    after = FUSED.memory_report()
    assert after["in_use"] <= before["in_use"]
    assert after["reserved"] <= before["reserved"]


def test_threads_share_plans() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        x = burn.full((257,), float(seed), device=FUSED)
        for k in range(60):
            y = ((x * 2 + 1) / 4 - k).numpy()
            if not (y == (seed * 2 + 1) / 4 - k).all():
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_memory_kept_between_runs_goes_with_a_cleanup() -> None:
    x = burn.rand(1 << 17, device=FUSED)
    for k in range(6):
        assert (x + k).numpy().max() > k
    before = FUSED.memory_report()["in_use"]
    FUSED.memory_cleanup()
    assert FUSED.memory_report()["in_use"] <= before - 4 * x.numpy().size


def test_pointers_of_native_code_belong_to_the_memory_they_lie_in() -> None:
    from contextlib import nullcontext

    from burn_cube import client
    from burn_cube.spi import NativeCall
    from burn_cube_backend.launch_log import LaunchLog
    from burn_cube_backend.payload import CubeTensor
    from burn_std import dtypes as d

    whole = client("cpu").empty(256, d.float32)
    tail = whole.view((128,), None, 128)
    log = LaunchLog([CubeTensor(tail, (128,), (1,), d.float32)])
    end = whole.pointer + whole.storage.bytes
    words = np.array([tail.pointer + 8, whole.pointer, end, 7], np.int64).tobytes()
    log.native(NativeCall(0, words, 1, 1), nullcontext(), None)
    assert [(p.word, p.base, p.delta) for p in log.pointers] == [
        (0, ("input", 0), 8), (1, ("input", 0), -512),
    ]  # fmt: skip


def test_numbers_that_change_seldom_are_never_given_up() -> None:
    import warnings

    tracking = FUSED.autodiff()
    model, optimizer = nn.Linear(3, 2, device=tracking), optim.AdamW(lr=0.01)
    x = burn.ones(5, 3, device=FUSED)
    before = len(replays())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(12):
            optimizer.weight_decay = k / 100
            for _ in range(10):
                optimizer.step(model, model(x).square().mean().backward())
    assert len(replays()) > before


def test_another_thread_may_clean_up_during_a_native_call(monkeypatch: pytest.MonkeyPatch) -> None:
    x = burn.rand(64, 64, device=FUSED)

    def program() -> float:
        y = x @ x
        return ((y @ x).cumsum(0) @ y).sum().item()

    expected = [program() for _ in range(5)][-1]
    backend: Any = FUSED.context.resource.backend.inner
    engine, alive = backend.engine, []
    held = weakref.ref(engine._scratch.held.storage)

    def cleaning(call: Any) -> Any:
        def cleaned(*bases: int) -> Any:
            thread = threading.Thread(target=FUSED.memory_cleanup)
            thread.start()
            thread.join()
            alive.append(held() is not None)
            return call(*bases)

        return cleaned

    for replayed in engine.replayed:
        for layout in replayed._layouts.values():
            replay = layout.replay
            if replay is None or not replay.scratch:
                continue
            if replay.builtin is None:
                monkeypatch.setattr(replay.calls, "run", cleaning(replay.calls.run))
            else:
                names = layout.quick.__globals__
                monkeypatch.setitem(names, "CALL", cleaning(names["CALL"]))
    assert program() == expected
    assert alive and all(alive)


@pytest.mark.filterwarnings("ignore::burn.ReplayWarning")
@pytest.mark.parametrize("order", [1, -1])
def test_a_number_of_another_class_is_another_one(order: int) -> None:
    """Whole numbers count in integers; a start between them does not."""
    for start in [2, 3, 1, 4, -0.5, 0.5, -1.5, 0, 5, -2.25, 7][::order]:
        found, expected = (
            burn.arange(start, start + 4, 1, dtype=burn.int64, device=device) for device in
            (FUSED, EAGER)
        )  # fmt: skip
        assert found.tolist() == expected.tolist()
