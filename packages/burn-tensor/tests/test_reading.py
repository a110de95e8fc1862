"""Values read by a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import burn_tensor as bt
from burn_std import DTypeError, ExecutionError


def test_one_tensor_gives_an_array_and_several_a_tuple() -> None:
    x = bt.tensor([1.0, 2.0])
    assert bt.read_async(x).result().tolist() == [1.0, 2.0]
    a, b = bt.read_async(x + 1, bt.tensor([3])).result()
    assert (a.tolist(), b.tolist()) == ([2.0, 3.0], [3])
    assert not a.flags.writeable


def test_values_are_those_of_the_call() -> None:
    x = bt.tensor([1.0, 2.0])
    future = bt.read_async(x)
    x[0] = 5.0
    assert future.result().tolist() == [1.0, 2.0]


def test_it_can_be_awaited() -> None:
    async def read() -> list[float]:
        array = await asyncio.wrap_future(bt.read_async(bt.ones(2)))
        return array.tolist()  # type: ignore[no-any-return]

    assert asyncio.run(read()) == [1.0, 1.0]


@pytest.mark.parametrize("wrong", [(), (1.0,), ([bt.ones(1)],)])
def test_only_tensors(wrong: tuple[object, ...]) -> None:
    with pytest.raises(DTypeError, match="read_async: takes tensors"):
        bt.read_async(*wrong)  # type: ignore[arg-type]


def test_one_device_is_asked_once_for_all() -> None:
    x, y = bt.tensor([1.0]), bt.tensor([2])
    backend = x.b.resource.backend
    asked: list[int] = []

    def read(payloads: Any) -> Any:
        asked.append(len(payloads))
        return lambda: [backend.to_numpy(p) for p in payloads]

    backend.read_async = read
    try:
        assert [a.tolist() for a in bt.read_async(y, x, y).result()] == [[2], [1.0], [2]]
    finally:
        del backend.read_async
    assert asked == [3]


def test_what_goes_wrong_comes_with_the_future() -> None:
    x = bt.tensor([1.0])

    def fail(payloads: Any) -> Any:
        raise ExecutionError("gather", "fails", got="this")

    x.b.resource.backend.read_async = fail
    try:
        future = bt.read_async(x)
    finally:
        del x.b.resource.backend.read_async
    with pytest.raises(ExecutionError, match="gather: fails"):
        future.result()
