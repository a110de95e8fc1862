"""Images with their channels last: operations keep that order, with the values of any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F, nn, optim
from burn_cube_backend import geometry
from burn_cube_backend.kernels.orders import laid
from burn_cube_backend.kernels.pooling_extra import gathered, max_pool_backward
from burn_cube_backend.plugin import interp, opencl
from burn_dispatch import Device

# Devices of their own, on which results keep the order; elsewhere only CUDA with cuDNN does so.
ROWS, KEEPING, KEEPING_EAGER = "eager-cpu", "cpu:5", "eager-cpu:5"


def engine_of(device: Device) -> Any:
    backend: Any = device.context.resource.backend
    return getattr(backend, "inner", backend).engine


def keeping(name: str) -> Device:
    device = burn.device(name)
    engine_of(device).keeps_last = True
    return device


def sent(x: Any, device: Device, last: bool = True) -> Any:
    """Return an array on a device, its channels last in memory if asked for."""
    if not last:
        return burn.tensor(x, device=device)
    rank = x.ndim
    made = burn.tensor(np.ascontiguousarray(np.moveaxis(x, 1, -1)), device=device)
    return made.permute(0, rank - 1, *range(1, rank - 1))


def is_last(x: Any) -> bool:
    """Return whether a tensor's channels lie last in memory."""
    x.device.flush()
    payload = getattr(x.v, "buf", None) if not hasattr(x.v, "strides") else x.v
    return bool(payload.strides[1] == 1 and payload.strides[-1] == x.shape[1])


def image(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def normed(x: Any, s: Any) -> Any:
    """Return a batch norm by hand, whose statistics are given."""
    mean, scale = s[0].reshape(1, -1, 1, 1), s[1].reshape(1, -1, 1, 1)
    return F.relu((x - mean) * scale.exp())


# Programs of x and y [2, 5, 12, 14] and s [2, 5].
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "map": lambda x, y, s: x.tanh(),
    "maps": lambda x, y, s: (x * y + 1).tanh() * y - x,
    "channels": lambda x, y, s: x * s[0].reshape(5, 1, 1) + s[1].reshape(1, 5, 1, 1),
    "norm": lambda x, y, s: normed(x, s) + y,
    "number": lambda x, y, s: F.relu(x * 2 - 0.5),
    "half": lambda x, y, s: (x.to(burn.float16) * 2).to(burn.float32) + y,
    "where": lambda x, y, s: burn.where(x > 0, x, y * 2),
    "max_pool": lambda x, y, s: F.relu(F.max_pool2d(x + y, 3, 2, 1)) * 2,
    "avg_pool": lambda x, y, s: F.avg_pool2d(x * y, 2),
    "mixed": lambda x, y, s: (x + y.contiguous()) * 2,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("device", [KEEPING_EAGER, KEEPING])
def test_values_are_those_of_rows_and_the_order_stays(name: str, device: str) -> None:
    made = keeping(device)
    for shape in ((2, 5, 12, 14), (3, 40, 24, 30)):  # of few elements, and of many
        given = image(*shape), image(*reversed(shape)).reshape(shape), image(2, shape[1])
        program = PROGRAMS[name]
        if name == "channels" and shape[1] != 5:
            continue
        rows = [burn.tensor(v, device=burn.device(ROWS)) for v in given]
        want = program(*rows).numpy()
        for _ in range(4):  # recorded, noted, replayed
            x, y = (sent(v, made) for v in given[:2])
            out = program(x, y, burn.tensor(given[2], device=made))
            assert is_last(out)
            assert out.numpy().tobytes() == want.tobytes()


def test_results_of_one_kernel_each_lie_as_they_would_alone() -> None:
    """Sums go by the order in memory: what nothing with channels last goes into lies in rows."""
    shape, found = (2, 5, 12, 14), {}
    a, b, c = image(*shape), image(*reversed(shape)).reshape(shape), image(*shape) * 2
    for name in (KEEPING_EAGER, KEEPING):
        device = keeping(name)
        for _ in range(4):  # recorded, noted, replayed
            x, y, z = sent(a, device, False), sent(b, device, False), sent(c, device)
            rows = x * y + 1
            both = (rows * z).tanh()
            found[name] = [(is_last(v), v.numpy(), v.sum().numpy()) for v in (both, rows)]
            assert [last for last, *_ in found[name]] == [True, False]
            rows = x - y
            both = rows + z
            assert [is_last(v) for v in (rows, both)] == [False, True]
    for one, other in zip(*found.values(), strict=True):
        assert [v.tobytes() for v in one[1:]] == [v.tobytes() for v in other[1:]]


def test_gradients_of_a_network_keep_the_order() -> None:
    def run(device: Device, last: bool) -> list[Any]:
        burn.manual_seed(0)
        tracked = device.autodiff()
        model = nn.Sequential(
            nn.Conv2d(4, 8, 3, padding=1, bias=False, device=tracked),
            nn.BatchNorm2d(8, device=tracked), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(8, 8, 3, padding=1, device=tracked), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3, device=tracked),
        )  # fmt: skip
        optimizer = optim.SGD(lr=0.1, momentum=0.9)
        x, y = sent(image(6, 4, 12, 12), device, last), burn.tensor(np.arange(6) % 3, device=device)
        losses = []
        for _ in range(6):
            loss = F.cross_entropy(model(x), y)
            optimizer.step(model, loss.backward())
            losses.append(loss.numpy())
        return [*losses, *(p.numpy() for _, p in model.named_parameters())]

    want = run(burn.device(ROWS), False)
    for name in (KEEPING_EAGER, KEEPING):
        for a, b in zip(run(keeping(name), True), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


WINDOWS = {
    "3": ((3, 3), (2, 2), (1, 1), (1, 1)), "2": ((2, 2), (2, 2), (0, 0), (1, 1)),
    "holes": ((2, 3), (1, 2), (1, 1), (2, 1)), "gaps": ((1, 2), (3, 3), (0, 0), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 4, 5, 8)], ids=["odd", "fours"])
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("name", ["interp", "opencl"])
def test_gradients_of_maxima_are_gathered_where_they_lie(
    name: str, windows: str, shape: tuple[int, ...]
) -> None:
    if name == "opencl" and not burn.Device.enumerate(burn.DeviceFilter("opencl")):
        pytest.skip("no OpenCL device")
    backend = {"interp": interp, "opencl": opencl}[name].create(0)
    engine, how = backend.engine, WINDOWS[windows]
    x = image(*shape).round(1)  # with ties
    flex = burn.device("flex").context
    values, places = flex.max_pool(burn.tensor(x, device=burn.device("flex")), *how, False)
    g, at = image(*values.shape), places.numpy()
    want = flex.max_pool_backward(
        burn.tensor(g, device=burn.device("flex")), places, *how, x.shape
    ).numpy()
    for last in (False, True):
        given = [backend.from_numpy(t, True) for t in (g, at)]
        made = gathered(engine, *given, how, x.shape, last)
        assert backend.to_numpy(made).tobytes() == want.tobytes()
        engine.keeps_last = last
        given = [laid(engine, t, last) for t in given]
        anywhere = max_pool_backward(engine, *given, (), (), (), (), x.shape)
        assert backend.to_numpy(anywhere).tobytes() == want.tobytes()
        assert geometry.is_last(anywhere.shape, anywhere.strides) == last


def test_others_give_rows() -> None:
    x = sent(image(2, 5, 6, 7), burn.device(ROWS))
    assert is_last(x)
    assert not is_last(x + 1)
