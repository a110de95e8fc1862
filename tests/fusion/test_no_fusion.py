"""`burn.no_fusion()`: operations run at once inside, nothing is tested outside."""

from __future__ import annotations

import asyncio
import itertools
import threading

import numpy as np
import pytest

import burn
from burn import Device, nn, optim

_INDICES = itertools.count(700)


@pytest.fixture(params=["fusion-flex", "cpu"])
def device(request: pytest.FixtureRequest) -> Device:
    """A resource of its own, so that counts start at zero."""
    return burn.device(f"{request.param}:{next(_INDICES)}")


def waiting(device: Device) -> int:
    """Operations noted and not run."""
    return device.resource.backend.report()["waiting"]


def flushes(device: Device) -> int:
    """Segments that ran."""
    return device.resource.backend.report()["flushes"]


def test_operations_run_at_once(device):
    x = burn.tensor([1.0, 2.0], device=device)
    with burn.no_fusion():
        y = (x * 2 + 1).sqrt().sum()
        z = burn.cat([x, x]).split(2)[1]
        assert waiting(device) == 0
        assert y.v.seg is None and z.v.seg is None
    assert flushes(device) == 0
    assert y.item() == pytest.approx(3**0.5 + 5**0.5, rel=1e-6)
    assert z.tolist() == [1.0, 2.0]


def test_values_mix_with_those_outside(device):
    x = burn.ones(4, device=device)
    noted = x * 3
    with burn.no_fusion():
        inside = noted + 1
        assert waiting(device) == 0
    after = inside * noted
    assert waiting(device) == 1
    assert after.tolist() == [12.0] * 4


def test_nested_and_as_a_decorator(device):
    x = burn.ones(2, device=device)

    @burn.no_fusion()
    def inner(x):
        """Run at once."""
        return x + 1

    device.flush()
    with burn.no_fusion(), burn.no_fusion(), burn.no_grad():
        inner(x)
    with burn.no_fusion():
        with burn.no_fusion():
            x + 1
        x + 1
        assert waiting(device) == 0
    y = inner(x)
    assert waiting(device) == 0 and y.tolist() == [2.0, 2.0]
    x + 1
    assert waiting(device) > 0


def test_outside_nothing_asks(device):
    x = burn.ones(2, device=device)
    plain = x.b.add
    with burn.no_fusion():
        assert x.b.add is not plain
    assert x.b.add is plain


def test_an_error_comes_at_its_own_line(device):
    x = burn.ones(2, 3, device=device)
    with burn.no_fusion():
        with pytest.raises(burn.ShapeError):
            x @ x
        with pytest.raises(burn.IndexRangeError):
            x.index_select(0, burn.tensor([5], device=device)).numpy()
    assert waiting(device) == 0


def test_each_thread_has_its_own(device):
    x = burn.ones(2, device=device)
    device.flush()
    seen: list[int] = []
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        x + 1
        seen.append(waiting(device))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with burn.no_fusion():
        inside.set()
        done.wait(10)
        x + 1
        assert waiting(device) == 0
    thread.join()
    assert seen[0] > 0


def test_each_coroutine_has_its_own(device):
    x = burn.ones(2, device=device)
    seen = {}

    async def part(name: str, block: bool) -> None:
        if block:
            with burn.no_fusion():
                await asyncio.sleep(0.01)
                seen[name] = (x + 1).v.seg is None
        else:
            await asyncio.sleep(0.005)
            seen[name] = (x + 1).v.seg is None
            await asyncio.sleep(0.01)

    async def both() -> None:
        await asyncio.gather(part("in", True), part("out", False))

    asyncio.run(both())
    assert seen == {"in": True, "out": False}


def _trained(device: Device, block: bool) -> list[np.ndarray]:
    burn.manual_seed(3)
    device.seed(3)
    tracking = device.autodiff()
    model = nn.Sequential(
        nn.Linear(4, 8, device=tracking), nn.GELU(), nn.Dropout(0.3),
        nn.Linear(8, 2, device=tracking),
    )  # fmt: skip
    optimizer = optim.AdamW(lr=0.1)
    x = burn.tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4), device=device)
    for _ in range(4):
        if block:
            with burn.no_fusion():
                optimizer.step(model, model(x).square().mean().backward())
        else:
            optimizer.step(model, model(x).square().mean().backward())
    return [p.numpy() for p in model.parameters()]


def test_training_gives_the_same_bits(device):
    for one, other in zip(_trained(device, True), _trained(device, False), strict=True):
        assert one.tobytes() == other.tobytes()


def test_gradients_checkpoints_and_autocast(device):
    tracking = device.autodiff()
    x = burn.tensor([0.5, 1.5], device=tracking).require_grad()

    def f(x):
        return burn.checkpoint(lambda x: (x * x).exp(), x).sum()

    expected = x.grad(f(x).backward()).tolist()
    with burn.no_fusion():
        assert x.grad(f(x).backward()).tolist() == expected
        with burn.autocast(burn.bfloat16):
            assert (burn.ones(2, 2, device=device) @ burn.ones(2, 2, device=device)).dtype is (
                burn.bfloat16
            )


def test_a_captured_step_refuses_it(device):
    x = burn.ones(2, device=device)

    def step(x):
        with burn.no_fusion():
            return x + 1

    captured = burn.capture(step)
    captured(x), captured(x)
    with pytest.raises(burn.CaptureError, match="records all of its operations"):
        captured(x)


def test_devices_that_record_nothing_are_as_they_were():
    x = burn.ones(2, device=burn.device("flex"))
    with burn.no_fusion():
        assert (x + 1).tolist() == [2.0, 2.0]
        assert (x == x).tolist() == [True, True]
