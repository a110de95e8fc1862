"""Weights that a convolution packs: their form is kept with the value, and is never stale."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn_cube_backend.packs import Packs

F = burn.functional
CPU, EAGER = burn.device("cpu"), burn.device("eager-cpu")
# By transforms of tiles, and from windows as they lie.
# Large enough for a step to write over them (`replay.WORTH_OVERWRITING`).
SHAPES = [(64, 64, 3), (64, 32, 5)]


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def kept() -> int:
    """Return how many packed forms there are."""
    gc.collect()
    packs = [p for p in gc.get_objects() if isinstance(p, Packs)]
    return sum(form is not None for p in packs for form in p.forms.values())


def plainly(x: Any, w: Any) -> Any:
    """Return the convolution of arrays, by the device that runs operations at once."""
    given = (burn.tensor(np.array(a), device=EAGER) for a in (x, w))
    return F.conv2d(*given).numpy()


def same(got: Any, x: Any, w: Any) -> None:
    assert got.numpy().tobytes() == plainly(x, w).tobytes()


@pytest.fixture(params=SHAPES, ids=str)
def given(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    """Return an input, a weight as an array, and the weight as a parameter."""
    outs, channels, k = request.param
    CPU.memory_cleanup()
    w = floats(outs, channels, k, k, seed=1)
    x = burn.tensor(floats(2, channels, 9, 9), device=CPU)
    return x, w, nn.Parameter(burn.tensor(w, device=CPU.autodiff()))


def forward(param: Any) -> Callable[[Any], Any]:
    return lambda x: F.conv2d(x, param.detach())


@pytest.mark.parametrize("device", ["cpu", "eager-cpu"])
def test_a_weight_that_stays_is_packed_once(device: str) -> None:
    x = burn.tensor(floats(1, 16, 8, 8), device=burn.device(device))
    w = burn.tensor(floats(16, 16, 3, 3), device=x.device)
    before = kept()
    results = [F.conv2d(x, w).numpy().tobytes() for _ in range(6)]
    assert len(set(results)) == 1
    assert kept() == before + 1
    del w
    x.device.sync()
    assert kept() == before


def test_the_report_counts_it_and_a_clean_up_frees_it(given: tuple[Any, Any, Any]) -> None:
    x, w, param = given
    run = forward(param)
    for _ in range(5):
        same(run(x), x, w)
    assert "packed weights" in str(burn.memory_report())
    CPU.memory_cleanup()
    assert "packed weights" not in str(burn.memory_report())
    for _ in range(5):
        same(run(x), x, w)
    assert "packed weights" in str(burn.memory_report())


@pytest.mark.parametrize("captured", [False, True], ids=["plain", "captured"])
def test_a_parameter_that_is_rebound(given: tuple[Any, Any, Any], captured: bool) -> None:
    x, w, param = given
    run: Any = forward(param)
    if captured:
        run = burn.capture(run, state=param)
    for turn in range(4):
        for _ in range(4):
            same(run(x), x, w)
        w = floats(*w.shape, seed=10 + turn)
        param.set(burn.tensor(w, device=CPU))


@pytest.mark.parametrize("captured", [False, True], ids=["plain", "captured"])
def test_weights_that_a_step_changes_where_they_lie(
    given: tuple[Any, Any, Any], captured: bool
) -> None:
    x, _, param = given
    model = nn.Module()
    model.w = param
    optimizer = optim.SGD(lr=0.1)

    def train(x: Any) -> None:
        optimizer.step(model, F.conv2d(x, model.w).square().mean().backward())

    run = forward(param)
    step: Any = train
    if captured:
        step = burn.capture(train, state=(model, optimizer))
        run = burn.capture(run, state=param)
    before = kept()
    for _ in range(8):
        step(x)
    CPU.sync()
    assert kept() == before  # what changes in every step is not worth keeping
    for _ in range(5):
        for _ in range(4):
            same(run(x), x, param.detach().numpy())
        assert kept() > before
        step(x)
    for _ in range(3):
        step(x)
        same(run(x), x, param.detach().numpy())


def test_a_frozen_layer_below_one_that_learns(given: tuple[Any, Any, Any]) -> None:
    x, w, _ = given

    def losses(device: Any, captured: bool) -> list[float]:
        burn.manual_seed(0)
        here, frozen = (burn.tensor(v, device=device) for v in (x.numpy(), w))
        model = nn.Linear(w.shape[0], 512, device=device.autodiff())
        optimizer = optim.Adam(lr=0.01)

        def train(x: Any) -> Any:
            loss = model(F.conv2d(x, frozen).mean((2, 3))).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        step = burn.capture(train, state=(model, optimizer, frozen)) if captured else train
        made = [step(here).item() for _ in range(10)]
        assert "packed weights" in str(burn.memory_report())
        return made

    plain = losses(CPU, False)
    assert losses(CPU, True) == plain
    np.testing.assert_allclose(plain, losses(EAGER, False), 1e-4)


@pytest.mark.parametrize("channels", [16, 64])
def test_memory_of_a_weight_that_another_gets(channels: int) -> None:
    x = burn.tensor(floats(2, channels, 9, 9), device=CPU)
    for seed in range(12):
        w = floats(16, channels, 3, 3, seed=seed)
        made = burn.tensor(w, device=CPU) * 1  # a result: its memory is used in turn
        for _ in range(4):
            same(F.conv2d(x, made), x, w)


def test_windows_on_one_weight_have_forms_of_their_own() -> None:
    x = burn.tensor(floats(1, 16, 8, 8), device=EAGER)
    both = burn.tensor(floats(32, 16, 3, 3), device=EAGER)
    for _ in range(4):
        for part in (both[:16], both[16:], both.flip((2,))[:16]):
            assert F.conv2d(x, part).numpy().tobytes() == plainly(x, part.numpy()).tobytes()


def test_threads_that_share_a_model() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, device=CPU), nn.ReLU(), nn.Conv2d(16, 16, 3, device=CPU)
    )
    x = burn.tensor(floats(1, 3, 12, 12), device=CPU)
    expected = model(x).numpy().tobytes()
    failed: list[Any] = []

    def work() -> None:
        for k in range(30):
            if k % 10 == 5:
                CPU.memory_cleanup()
            if model(x).numpy().tobytes() != expected:
                failed.append(k)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
