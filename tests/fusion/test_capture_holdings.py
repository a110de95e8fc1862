"""Captured steps see what changes inside the things that their modules hold, or refuse them."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn

F = burn.functional


@pytest.fixture(params=["fusion-flex", "fusion-cpu"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Config:
    scale: float = 2.0
    more: dict[str, list[float]] = field(default_factory=lambda: {"scales": [2.0]})


@dataclass(slots=True)
class Slotted:
    scale: float = 2.0


class Held(nn.Module):
    """A module that holds something, and multiplies by what a function reads of it."""

    def __init__(self, held: Any, read: Any) -> None:
        super().__init__()
        self.held = held
        self.__dict__["__read__"] = read

    def forward(self, x: Any) -> Any:
        return x * self.__dict__["__read__"](self.held)


def _reordered(d: dict[str, float]) -> None:
    """Give both values the other's name, in the same order."""
    a, b = d.values()
    d.clear()
    d.update({"b": a, "a": b})


class Scaling:
    """Its method is what a module holds."""

    def __init__(self) -> None:
        self.by = 2.0

    def read(self) -> float:
        return self.by


def _bound() -> Any:
    return Scaling().read


CASES: dict[str, tuple[Any, Any, Any]] = {
    "dict in list in dict": (
        lambda: {"a": [{"b": 2.0}]}, lambda h: h["a"][0]["b"],
        lambda h: h["a"][0].update(b=3.0),
    ),
    "list in tuple": (
        lambda: (1, ([2.0],)), lambda h: h[1][0][0], lambda h: h[1][0].__setitem__(0, 3.0),
    ),
    "names of a dict": (lambda: {"a": 2.0, "b": 3.0}, lambda h: h["a"], _reordered),
    "dataclass": (Config, lambda h: h.scale, lambda h: setattr(h, "scale", 3.0)),
    "list in a dict of a dataclass": (
        lambda: [Config()], lambda h: h[0].more["scales"][0],
        lambda h: h[0].more["scales"].__setitem__(0, 3.0),
    ),
    "dataclass with slots": (Slotted, lambda h: h.scale, lambda h: setattr(h, "scale", 3.0)),
    "namespace": (
        lambda: SimpleNamespace(scale=2.0), lambda h: h.scale, lambda h: setattr(h, "scale", 3.0),
    ),
    "set": (lambda: {2.0}, max, lambda h: h.add(3.0)),
    "deque": (lambda: deque([2.0]), lambda h: h[0], lambda h: h.appendleft(3.0)),
    "ordered dict": (
        lambda: OrderedDict(a=2.0), lambda h: h["a"], lambda h: h.update(a=3.0),
    ),
    "proxy": (
        lambda: MappingProxyType(Config().__dict__), lambda h: h["more"]["scales"][0],
        lambda h: h["more"]["scales"].__setitem__(0, 3.0),
    ),
    "array": (
        lambda: np.array([2.0]), lambda h: float(h[0]), lambda h: h.__setitem__(0, 3.0),
    ),
    "array of dates": (
        lambda: np.array(["2020-01-02"], "datetime64[D]"), lambda h: float(h[0].item().day),
        lambda h: h.__setitem__(0, np.datetime64("2020-01-03")),
    ),
    "array that is a view": (
        lambda: np.array([1.0, 2.0])[1:], lambda h: float(h[0]),
        lambda h: h.base.__setitem__(1, 3.0),
    ),
    "array of objects": (
        lambda: np.array([[2.0], None], object), lambda h: h[0][0],
        lambda h: h[0].__setitem__(0, 3.0),
    ),
    "bytes": (lambda: bytearray(b"\2"), lambda h: float(h[0]), lambda h: h.__setitem__(0, 3)),
    "partial": (
        lambda: partial(float, [2.0, 0][:1][0]), lambda h: h(), lambda h: h.__setstate__(
            (float, (3.0,), {}, {})
        ),
    ),
    "keywords of a partial": (
        lambda: partial(dict, by=2.0), lambda h: h()["by"], lambda h: h.keywords.update(by=3.0),
    ),
    "bound method": (_bound, lambda h: h(), lambda h: setattr(h.__self__, "by", 3.0)),
    "class that counts": (
        lambda: type("List", (list,), {})([2.0]), lambda h: h[0], lambda h: h.__setitem__(0, 3.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_a_module_holds_may_change_between_calls(name: str, what: str) -> None:
    make, read, change = CASES[what]
    model = Held(make(), read)
    step = burn.capture(model, state=model)
    x = burn.ones(3, device=burn.device(name))
    for k in range(14):
        if k == 7:
            assert step.replays == 3
            change(model.held)
        assert step(x).tolist() == [2.0 if k < 7 else 3.0] * 3, k
    assert step.replays == 6


def test_functions_of_a_partial_are_looked_at(name: str) -> None:
    inner = Scaling()
    model = Held(partial(inner.read), lambda h: h())
    step = burn.capture(model, state=model)
    x = burn.ones(3, device=burn.device(name))
    for k in range(14):
        inner.by = 2.0 if k < 7 else 3.0
        assert step(x).tolist() == [inner.by] * 3


def test_tensors_that_are_no_parameters(name: str) -> None:
    device = burn.device(name)

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = burn.ones(3, device=device)
            self.masks = {"a": [burn.ones(3, device=device)]}
            self.box = SimpleNamespace(mask=burn.ones(3, device=device))
            self.again = self.mask.detach()

        def forward(self, x: Any) -> Any:
            found = x * self.mask + self.masks["a"][0] * 10 + self.box.mask * 100
            return found + self.again * 1000

    model = Masked()
    step, x = burn.capture(model, state=model), burn.ones(3, device=device)
    for k in range(24):
        for at, t in ((8, model.mask), (12, model.masks["a"][0]), (16, model.box.mask)):
            if k == at:
                t[...] = t * 2
        if k == 20:
            model.again[...] = model.again * 3
        assert step(x).tolist() == model(x).tolist(), k
    assert step.replays > 6


def test_a_module_for_inference_follows_its_source(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.Linear(4, 2, device=device), burn.optim.SGD(lr=0.1)
    served = model.valid()
    x = burn.ones(3, 4, device=device.without_autodiff())

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))
    ask = burn.capture(served, state=served)
    for _ in range(10):
        step(x)
        assert ask(x).tolist() == served(x).tolist()
    assert ask.replays == 6


def test_a_module_inside_of_a_plain_object(name: str) -> None:
    device = burn.device(name)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.box = SimpleNamespace(inner=nn.Linear(3, 3, device=device))

        def forward(self, x: Any) -> Any:
            return self.box.inner(x)

    model = Outer()
    step, x = burn.capture(model, state=model), burn.ones(1, 3, device=device)
    for k in range(12):
        if k == 7:
            model.box.inner.weight.set(burn.zeros(3, 3, device=device))
        assert step(x).tolist() == model(x).tolist()
    assert step.replays == 4


UNSEEN = {
    "random numbers": lambda: np.random.default_rng(0),
    "a method that draws": lambda: np.random.default_rng(0).random,
    "a counter": lambda: itertools.count(),
    "an iterator": lambda: iter([1.0]),
    "a large array": lambda: np.zeros(100_000),
}


@pytest.mark.parametrize("what", UNSEEN)
def test_what_may_change_unseen_is_refused_by_name(name: str, what: str) -> None:
    model = Held({"inside": [UNSEEN[what]()]}, lambda h: 2.0)
    step = burn.capture(model, state=model)
    with pytest.raises(burn.CaptureError, match=r"Held.held\['inside'\]\[0\]"):
        step(burn.ones(3, device=burn.device(name)))


def test_a_large_array_that_cannot_change_and_what_is_no_data(name: str) -> None:
    table = np.zeros(100_000)
    table.flags.writeable = False
    held = [table, threading.Lock(), np.add, len, F.relu, range(3), nn.Linear, ..., np.float32(2)]
    model = Held(held, lambda h: 2.0)
    step, x = burn.capture(model, state=model), burn.ones(3, device=burn.device(name))
    for _ in range(6):
        assert step(x).tolist() == [2.0] * 3
    assert step.replays == 2


class Counting(nn.Module):
    """Its forward changes something that is no tensor."""

    def __init__(self, box: Any) -> None:
        super().__init__()
        self.box = box
        self.calls = 0

    def forward(self, x: Any) -> Any:
        if self.box is None:
            self.calls += 1
        else:
            self.box["calls"] = self.box.get("calls", 0) + 1
        return x * 2


@pytest.mark.parametrize(("box", "where"), [
    (None, r"Counting\.calls"), ({}, r"Counting\.box\['calls'\]"),
])  # fmt: skip
def test_a_step_that_changes_what_its_modules_hold_is_refused(
    name: str, box: Any, where: str
) -> None:
    model = Counting(box)
    step, x = burn.capture(model, state=model), burn.ones(3, device=burn.device(name))
    with pytest.raises(burn.CaptureError, match=where):
        for _ in range(6):
            step(x)


@pytest.mark.parametrize("kind", [list, dict])
def test_tensors_that_a_module_collects_are_named(name: str, kind: Any) -> None:
    class Collecting(nn.Module):
        def __init__(self) -> None:
            self.kept = kind()

        def forward(self, x: Any) -> Any:
            y = x * 2
            if isinstance(self.kept, list):
                self.kept.append(y)
            else:
                self.kept[len(self.kept)] = y
            return x * 3

    model = Collecting()
    step, x = burn.capture(model, state=model), burn.ones(3, device=burn.device(name))
    with pytest.raises(burn.CaptureError, match=r"Collecting\.kept"):
        for _ in range(10):
            assert step(x).tolist() == [3.0] * 3
    assert repr(step) == "<captured step Collecting, 0 replays>"


def test_what_is_made_in_the_first_calls_is_no_change(name: str) -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache: dict[int, float] = {}

        def forward(self, x: Any) -> Any:
            self.cache.setdefault(x.shape[0], 2.0)
            return x * self.cache[x.shape[0]]

    model = Caching()
    step, x = burn.capture(model, state=model), burn.ones(3, device=burn.device(name))
    for _ in range(6):
        assert step(x).tolist() == [2.0] * 3
    assert step.replays == 2


def test_settings_of_an_optimizer_in_a_list(name: str) -> None:
    def trained(captured: bool) -> list[Any]:
        device = burn.device(name).autodiff()
        burn.manual_seed(0)
        model = nn.Linear(4, 2, bias=False, device=device)
        given: Any = [3.4445, -4.7750, 2.0315]
        optimizer = burn.optim.Muon(lr=0.1, ns_coefficients=given)

        def train(x: Any) -> None:
            optimizer.step(model, model(x).square().mean().backward())

        step: Any = burn.capture(train, state=(model, optimizer)) if captured else train
        for k in range(12):
            if k == 7:
                given[0] = 3.0
            step(burn.ones(3, 4, device=device.without_autodiff()))
        return model.weight.tolist()

    assert trained(True) == trained(False)
