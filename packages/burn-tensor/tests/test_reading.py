"""Values read by a thread."""

from __future__ import annotations

import asyncio

import pytest

import burn_tensor as bt
from burn_std import DTypeError


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
