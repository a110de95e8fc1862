"""Memory of plans and captured steps: places used again, inputs written over, nothing lost."""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn_backend import OverwrittenError
from burn_cube_backend import replay as replay_module
from burn_std import ExecutionError
from tests.cube.carried import carried

F = burn.functional
GPU = os.environ.get("BURN_DEVICE") == "cuda"
NAMES = ["cuda"] if GPU else ["cpu", "opencl"]


@pytest.fixture(params=NAMES)
def name(driver: None, request: pytest.FixtureRequest) -> str:
    return str(request.param)


def engine(device: Any) -> Any:
    return device.context.resource.backend.inner.engine


def pool(device: Any) -> Any:
    return engine(device.without_autodiff()).client.pool


def network(device: Any, width: int = 256) -> Any:
    tracked = device.autodiff()
    burn.manual_seed(0)
    device.seed(0)
    return nn.Sequential(
        nn.LayerNorm(32, device=tracked), nn.Linear(32, width, device=tracked), nn.GELU(),
        nn.LayerNorm(width, device=tracked), nn.Linear(width, width, device=tracked), nn.GELU(),
        nn.Dropout(0.1), nn.Linear(width, 4, device=tracked),
    )  # fmt: skip


def batch(device: Any, seed: int, rows: int = 64) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 32)).astype(np.float32)
    return burn.tensor(x, device=device), burn.tensor(rng.integers(0, 4, rows), device=device)


def trained(
    name: str, steps: int, capture: bool = False, hold: Callable[[Any, Any], Any] | None = None,
    rows: int = 64, **options: Any,
) -> tuple[list[float], list[Any], Any]:  # fmt: skip
    """Return losses and parameters of a network; `hold` sees model and optimizer between steps."""
    device = burn.device(name)
    model, optimizer = network(device), optim.AdamW(lr=1e-2)
    rate = optim.lr_scheduler.ExponentialLR(1e-2, gamma=0.9)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward(), lr=rate.lr)
        rate.step()
        return loss

    run: Any = step
    if capture:
        run = burn.capture(step, state=(model, optimizer, rate), **options)
    losses = []
    for k in range(steps):
        losses.append(run(*batch(device, k, rows)))
        if hold is not None:
            hold(model, optimizer)
    return [v.item() for v in losses], [p.numpy() for p in model.parameters()], run


def replay_of(captured: Any) -> Any:
    """Return the list of launches that stands for a captured step."""
    (instance,) = captured._instances.values()
    (layout,) = instance._writer.whole.bound._layouts.values()
    assert layout.replay is not None, layout.why
    return layout.replay


# ---- bits, and what the user holds -----------------------------------------------------------


@pytest.mark.parametrize("capture", [False, True])
def test_overwriting_changes_no_bits_and_no_snapshot(name: str, capture: bool) -> None:
    expected = trained(name, 14)
    held: list[tuple[Any, Any]] = []

    def hold(model: Any, optimizer: Any) -> None:
        if len(held) < 60:
            states = [*model.state_dict().values(), *optimizer.state_dict(model).values()]
            weight = next(iter(model.parameters()))
            states += [weight.detach(), model[1].weight.detach()[3], model[1].weight.detach().t()]
            if len(held) % 2 == 0:  # some steps see snapshots, some do not
                held.extend((s, s.numpy().copy()) for s in states)

    found = trained(f"fusion-{name}", 14, capture, hold)
    assert found[0] == expected[0]
    for a, b in zip(found[1], expected[1], strict=True):
        assert np.array_equal(a, b)
    for tensor, value in held:
        assert np.array_equal(tensor.numpy(), value)


def test_parameters_stay_where_they_are(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    model, optimizer = network(device), optim.AdamW(lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss

    captured = burn.capture(step, state=(model, optimizer))

    def places() -> list[Any]:
        """Return the memory of parameters and states of some size."""
        backend: Any = device.resource.backend
        tensors = [*model.parameters(), *optimizer.step_tensors()]
        owners = [backend.memory_of(t.v)[0] for t in tensors if t.numel() > 1]
        return [id(owner) for owner, _ in owners]

    for run in (step, captured):
        for k in range(10):
            run(*batch(device, k))
        device.sync()
        before = places()
        for k in range(4):
            run(*batch(device, k))
            device.sync()
            assert places() == before


def test_values_for_a_backward_and_views_are_not_written_over(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    x = burn.rand(300, 40, device=device.autodiff()).require_grad()
    device.sync()
    for _ in range(6):
        y = (x * 2).exp()
        view = y.detach()[::2]
        device.flush()
        z = (y + 1).sin()  # of the size of y, which the tape and a view still need
        device.flush()
        grads = z.sum().backward()
        first = x.numpy()
        assert np.array_equal(view.numpy(), y.numpy()[::2])
        twice = np.exp(first * 2)
        assert np.allclose(x.grad(grads).numpy(), np.cos(twice + 1) * twice * 2, atol=1e-4)


def test_a_map_writes_over_what_dies_and_over_nothing_else(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    other = burn.rand(1, 600, device=device)

    for _ in range(4):
        x = burn.rand(500, 600, device=device)
        first = x.numpy()
        for _ in range(4):
            x = x * 1.5 + other
            device.flush()
    expected = first
    for _ in range(4):
        expected = expected * np.float32(1.5) + other.numpy()
    assert np.array_equal(x.numpy(), expected)
    taken = [
        layout.replay.over
        for plan in engine(device).replayed
        for layout in plan._layouts.values()
        if layout.replay is not None
    ]
    assert any(taken)


def test_state_that_a_step_only_reads_is_not_written_over(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    model, optimizer = network(device), optim.AdamW(lr=1e-2)
    fixed = nn.Linear(256, 256, device=device)
    before = fixed.weight.numpy().copy()

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss, fixed.weight.detach() * 2

    captured = burn.capture(step, state=(model, optimizer, fixed))
    for k in range(10):
        _, twice = captured(*batch(device, k))
        assert np.array_equal(twice.numpy(), before * 2)
    assert captured.replays == 6 and replay_of(captured).over
    assert np.array_equal(fixed.weight.numpy(), before)


def test_states_that_swap_their_values_keep_both(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    burn.manual_seed(0)
    a, b = (nn.Linear(256, 256, bias=False, device=device) for _ in range(2))
    one, other = a.weight.numpy().copy(), b.weight.numpy().copy()

    def step(x: Any) -> Any:
        old = a.weight.detach()
        a.weight.set(b.weight.detach())
        b.weight.set(old)
        return (x + old).sum()

    captured = burn.capture(step, state=(a, b))
    x = burn.ones(256, 256, device=device)
    for k in range(11):
        captured(x)
        assert np.array_equal(a.weight.numpy(), (other, one)[k % 2])
        assert np.array_equal(b.weight.numpy(), (one, other)[k % 2])


@pytest.mark.parametrize("seed", range(20))
def test_random_loops_that_carry_tensors_from_round_to_round(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "WORTH_OVERWRITING", 0)
    expected = carried(seed, burn.device(name))
    found = carried(seed, burn.device(f"fusion-{name}"))
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


def test_two_windows_on_one_result_stay_two(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "WORTH_OVERWRITING", 0)
    device = burn.device(f"fusion-{name}")
    x = burn.arange(600, dtype=burn.float32, device=device).reshape(20, 30)
    device.sync()
    for k in range(8):
        x = x * 0.5 + 1  # lies over what it was
        turned, flat = x.t(), x.reshape(600)
        device.flush()
        assert (x.shape, turned.shape, flat.shape) == ((20, 30), (30, 20), (600,))
        value = x.numpy()
        assert np.array_equal(turned.numpy(), value.T), k
        assert np.array_equal(flat.numpy(), value.reshape(600)), k
        if k % 2:
            del turned, flat  # the next run may lie over it


# ---- how much ------------------------------------------------------------------------------------


def intervals(replay: Any) -> int:
    """Return the most bytes that must live at once beside the inputs, from the launches alone."""
    log, count = replay.log, len(replay.log.calls)
    results = {o[1] for o in replay.outs if o[0] == "block"}
    instead = {b for b, k in replay.number_of.items() if k in replay.over}
    live = [0] * count
    for number, block in enumerate(log.blocks):
        if block.first < 0 or number in instead:
            continue
        end = count - 1 if number in results else block.last
        for k in range(block.first, end + 1):
            live[k] += block.size
    return max(live)


@pytest.mark.parametrize("again", [False, True])
def test_a_captured_step_needs_what_lives_and_ten_percent(name: str, again: bool) -> None:
    device = burn.device(f"fusion-{name}")
    *_, run = trained(f"fusion-{name}", 9, True, rematerialise=again)
    replay = replay_of(run)
    most = intervals(replay)
    gc.collect()
    device.memory_cleanup()
    data = [batch(device, k) for k in range(3)]
    device.sync()
    memory = pool(device)
    memory.forget_peak()
    start = memory.report().in_use
    for x, y in data:
        run(x, y)
    device.sync()
    assert most > 100_000
    # Where launches run side by side, small steps let memory rest before it serves again.
    rest = replay_module.SMALL if replay.branches else 0
    assert memory.report().peak - start <= 1.1 * most + rest
    # Nothing of the state lies there twice.
    sizes = [size for k, (size, _) in enumerate(replay.own) if k not in replay.over]
    assert sum(sizes) <= 4096


def test_values_made_again_need_less_and_have_the_same_bits(name: str) -> None:
    plain = trained(f"fusion-{name}", 12, True, rows=700)
    again = trained(f"fusion-{name}", 12, True, rows=700, rematerialise=True)
    assert again[0] == plain[0]
    for a, b in zip(again[1], plain[1], strict=True):
        assert np.array_equal(a, b)
    one, other = replay_of(plain[2]), replay_of(again[2])
    assert other.live < one.live and other.scratch < one.scratch
    assert len(other.log.calls) > len(one.log.calls)


@pytest.mark.parametrize("capture", [False, True])
def test_memory_is_flat_over_changing_batches_rates_and_errors(name: str, capture: bool) -> None:
    device = burn.device(f"fusion-{name}")
    model, optimizer = network(device, 16), optim.AdamW(lr=1e-2)
    rate = optim.lr_scheduler.ExponentialLR(1e-2, gamma=0.999)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward(), lr=rate.lr)
        rate.step()
        return loss

    run: Any = burn.capture(step, state=(model, optimizer, rate)) if capture else step

    def some(steps: int) -> None:
        for k in range(steps):
            x, y = batch(device, k, 8)
            run(x, y)
            if k % 20 == 3:
                with pytest.raises(burn.BurnError):
                    run(x, y[:5])
                with pytest.raises(burn.IndexRangeError):
                    x.index_select(0, burn.tensor([9], device=device)).tolist()
        gc.collect()
        device.sync()

    some(60)
    before, resident = device.memory_report(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(240)
    after = device.memory_report()
    assert after["in_use"] <= before["in_use"] + 1024
    assert after["reserved"] <= before["reserved"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 16 << 10


# ---- when it fails -------------------------------------------------------------------------------


def test_a_run_without_memory_changes_nothing_and_is_tried_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = burn.device(f"fusion-{name}")
    model = network(device).valid()
    captured = burn.capture(lambda x, y: F.cross_entropy(model(x), y), state=model)
    x, y = batch(device, 0)
    for _ in range(8):
        expected = captured(x, y).item()
    calls = []

    def full(size: int) -> Any:
        calls.append(size)
        raise MemoryError("full")

    with monkeypatch.context() as patch:
        patch.setattr(engine(device), "scratch", full)
        with pytest.raises(ExecutionError, match="MemoryError"):
            captured(x, y)
        assert len(calls) == 2
    assert captured(x, y).item() == expected


def test_a_failure_after_inputs_were_written_over_is_told_of_every_value(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = burn.device(f"fusion-{name}")
    model, optimizer = network(device), optim.AdamW(lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss

    captured = burn.capture(step, state=(model, optimizer))
    for k in range(8):
        captured(*batch(device, k))
    replay = replay_of(captured)
    before = [t.numpy() for t in optimizer.step_tensors()]

    def broken(*bases: int) -> None:
        raise ExecutionError("test", "breaks half way")

    (instance,) = captured._instances.values()
    (layout,) = instance._writer.whole.bound._layouts.values()
    with monkeypatch.context() as patch:
        if replay.builtin is None:
            patch.setattr(replay.calls, "run", broken)
        else:
            patch.setitem(layout.quick.__globals__, "CALL", broken)
        with pytest.raises(OverwrittenError, match="half way"):
            captured(*batch(device, 9))
    weight = model[1].weight
    with pytest.raises(OverwrittenError):
        weight.numpy()
    assert (burn.ones(3, device=device) * 2).tolist() == [2.0] * 3
    assert len(before) == len(optimizer.step_tensors())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that interrupts")
def test_ctrl_c_waits_for_the_end_of_a_step_that_writes_over_its_state(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    state = [burn.zeros(64, 64, device=device) for _ in range(9)]

    def count() -> None:
        for t in state:
            t[...] = t + 1

    step = burn.capture(count, state=state)
    for _ in range(8):
        step()
    assert replay_of(step).over
    armed, caught = [False], 0

    def alarm(number: int, frame: Any) -> None:
        if armed[0]:
            armed[0] = False
            signal.raise_signal(signal.SIGINT)

    old = [signal.signal(signal.SIGALRM, alarm)]
    old.append(signal.signal(signal.SIGINT, signal.default_int_handler))
    try:
        for k in range(100):
            try:
                armed[0] = True
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + 13 * k % 197))
                for _ in range(200):
                    step()
                armed[0] = False
            except KeyboardInterrupt:
                caught += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len({float(x) for t in state for x in t.numpy().flat}) == 1, k
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old[0])
        signal.signal(signal.SIGINT, old[1])
    assert caught > 50


# ---- reports -------------------------------------------------------------------------------------


def test_a_report_after_replays_names_parameters_states_and_scratch(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    model, optimizer = network(device), optim.AdamW(lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss

    captured = burn.capture(step, state=(model, optimizer))
    for k in range(8):
        captured(*batch(device, k))
    gc.collect()  # garbage of others that is found meanwhile would count once and not again
    (use,) = burn.memory_report(device)
    count = 4 * sum(p.numel() for p in model.parameters())
    assert count <= use.of("parameter") <= 1.2 * count + 8192
    assert 2 * count <= use.of("optimizer") <= 2.4 * count + 16384
    scratch = [h for h in use.holders if h.name == "scratch of plans"]
    assert sum(h.bytes for h in scratch) >= replay_of(captured).scratch
    assert sum(h.bytes for h in use.holders) == use.in_use
    assert use.peak is not None and use.peak >= use.in_use


def test_a_captured_step_that_is_let_go_leaves_no_memory_behind(name: str) -> None:
    device = burn.device(f"fusion-{name}")
    gc.collect()
    device.sync()
    before = device.memory_report()["in_use"]
    gc.disable()  # no part of a replay refers to itself
    try:
        model = network(device).valid()
        captured = burn.capture(model.__call__, state=model)
        x, _ = batch(device, 0)
        for _ in range(8):
            captured(x)
        assert replay_of(captured)
        device.sync()
        del captured, model, x
        engine(device).cleanup()
        left = device.memory_report()["in_use"] - before
    finally:
        gc.enable()
    assert left < 64 << 10
