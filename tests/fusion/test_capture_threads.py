"""Threads that read the state while a captured step runs see what was, or what comes after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn

SIZE, PARTS = 1 << 18, 4


class Counted(nn.Module):
    """All of its numbers are the count of steps."""

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.parts = [nn.Buffer(burn.zeros(SIZE, device=device)) for _ in range(PARTS)]

    def forward(self) -> None:
        for part in self.parts:
            part.set(part.detach() + 1)


def beside(step: Callable[[], Any], read: Callable[[], None], times: int = 150) -> None:
    """Make steps in this thread while another one reads."""
    ended, wrong = threading.Event(), []

    def reading() -> None:
        try:
            while True:
                read()
                if ended.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - told below
            wrong.append(error)

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for _ in range(times):
            step()
    finally:
        ended.set()
        thread.join()
    assert not wrong, wrong[0]


@pytest.fixture(params=["fusion-flex", "fusion-cpu"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def counted(name: str) -> tuple[Counted, Any]:
    model = Counted(burn.device(name))
    step = burn.capture(model, state=model)
    for _ in range(8):
        step()
    assert step.replays == 4
    return model, step


def whole(part: Any) -> int:
    values = part.numpy()
    assert values.min() == values.max(), np.unique(values)
    return int(values[0])


def test_no_tensor_is_seen_half_written(name: str) -> None:
    model, step = counted(name)
    seen: list[int] = []
    beside(step, lambda: seen.extend(whole(p) for p in model.parts))
    assert seen
    assert [whole(p) for p in model.parts] == [158] * PARTS


def test_what_is_computed_from_the_state_is_of_one_step(name: str) -> None:
    model, step = counted(name)

    def read() -> None:
        for part in model.parts:
            assert whole(part.detach() * 2 + 1) % 2 == 1

    beside(step, read)


def test_all_of_the_state_is_that_of_one_step_under_the_lock(name: str) -> None:
    model, step = counted(name)

    def read() -> None:
        with step.lock:
            kept = list(model.state_dict().values())
        assert len({whole(t) for t in kept}) == 1

    beside(step, read)


def test_a_captured_step_that_reads_beside_one_that_changes(name: str) -> None:
    model, step = counted(name)
    ask = burn.capture(lambda: [p.detach() * 1 for p in model.parts], state=model)

    def read() -> None:
        with step.lock if ask.replays < 1 else threading.Lock():
            found = ask()
        assert all(whole(t) > 0 for t in found)

    for _ in range(6):
        read()
    beside(step, read)


def test_a_step_that_fails_leaves_readers_the_old_values(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, step = counted(name)
    held = [p.v for p in model.parts]
    recorder: Any = burn.device(name).resource.backend.recorder
    kept: list[Any] = []

    def failing(plan: Any) -> Any:
        def fail(*args: Any) -> Any:
            kept.extend(p.v for p in model.parts)
            raise ValueError("kernel")

        return fail

    del held
    monkeypatch.setattr(recorder, "function_of", failing)
    monkeypatch.setattr(recorder, "watched", True)
    with pytest.raises(burn.ExecutionError):
        step()
    monkeypatch.undo()
    for value in kept:
        assert float(recorder.inner.to_numpy(recorder.buffer(value))[0]) == 8
    assert [whole(p) for p in model.parts] == [8] * PARTS
    step()
    assert [whole(p) for p in model.parts] == [9] * PARTS
