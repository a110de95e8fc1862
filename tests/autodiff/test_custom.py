"""A third party's operation with a kernel and a backward rule of its own, registered late."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import burn
from burn_autodiff import rule
from burn_autodiff.rules import RULES
from burn_backend import Kernel
from burn_fusion.backend import open_segment
from burn_ir import CATALOG, Entry, register
from burn_ir.rules.basic import broadcast
from burn_testing.devices import another

NAME = "burntests::scaled_square"
_INDICES = itertools.count(3000)


def scaled_square(x: burn.Tensor, scale: float) -> burn.Tensor:
    """Return scale x^2."""
    made: burn.Tensor = getattr(x.b, NAME)(x, scale)
    return made


@contextmanager
def known(device: burn.Device) -> Iterator[Entry]:
    """Have the operation and its rule in the catalogue, and its kernel on the device."""
    # The device has been used before: what is registered now must still be found.
    burn.ones(1, device=device).item()
    if NAME not in CATALOG:
        register(Entry(NAME, "x", "scale@", broadcast(NAME, "float"), "map", "scale x x"))

    @rule(NAME, saves="x")
    def backward(c: Any, g: burn.Tensor, x: burn.Tensor) -> burn.Tensor:
        return c.ops.mul(g, c.ops.mul(x, 2 * c.attrs[0]))  # type: ignore[no-any-return]

    backend: Any = device.resource.backend
    holds = getattr(backend, "inner", backend)  # the recorder's kernels take payloads of its inner

    def kernel(x: Any, scale: float) -> Any:
        a = holds.to_numpy(x)
        return holds.from_numpy((a * a * scale).astype(a.dtype), True)

    backend.table[NAME] = Kernel(lambda dtype: kernel)
    yield CATALOG[NAME]
    # Others compare the tables with the catalogue of this project.
    del backend.table[NAME], RULES[NAME]


@pytest.fixture
def operation(device: burn.Device) -> Iterator[Entry]:
    with known(device) as entry:
        yield entry


def test_it_runs_and_has_gradients_of_any_order(device: burn.Device, operation: Entry) -> None:
    x = burn.tensor([1.0, -3.0], device=device.autodiff()).require_grad()
    y = scaled_square(x, 0.5)
    assert y.tolist() == [0.5, 4.5]
    first = x.grad(y.sum().backward(create_graph=True))
    assert first.tolist() == [1.0, -3.0]
    assert x.grad(first.sum().backward()).tolist() == [1.0, 1.0]


def test_it_is_recorded_under_its_own_name(backend: str) -> None:
    device = burn.device(backend)
    if not device.resource.backend.records:
        device = burn.device(f"fusion-{backend.removeprefix('eager-')}")
    with known(device) as operation:
        x = burn.tensor(np.ones(2, np.float32), device=device)
        device.flush()
        y = scaled_square(x, 3.0)
        segment = open_segment(device.resource.backend)
        assert [v.op[0] for v in segment.vals] == [operation.code]
        assert y.tolist() == [3.0, 3.0]


def test_it_refuses_like_any_other(device: burn.Device, operation: Entry) -> None:
    with pytest.raises(burn.DTypeError, match=f"{NAME}: scale must be a number"):
        scaled_square(burn.ones(2, device=device), "wide")  # type: ignore[arg-type]


def test_devices_made_later_do_not_need_it(device: burn.Device, operation: Entry) -> None:
    backend: Any = device.resource.backend
    kernel = backend.table.pop(NAME)
    later = another(device, next(_INDICES))
    backend.table[NAME] = kernel
    x = burn.ones(2, device=later)
    assert (x + 1).tolist() == [2.0, 2.0]
