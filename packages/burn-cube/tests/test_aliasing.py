"""Which buffers of a kernel may lie over which: said where it holds, and not where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn_cube as bc
from burn_cube import Builder
from burn_cube.spi import overlays
from burn_std.dtypes import float32, int64


def built(body: Callable[[Builder, Any, Any, Any], None]) -> Any:
    b = Builder("k", 64, index=int64, bounds="unchecked")
    x, out, n = b.buffer("x", float32), b.buffer("out", float32), b.scalar("n", int64)
    body(b, x, out, n)
    return b.finish()


def pairs(kernel: Any) -> list[tuple[int, int]]:
    return [(over.out, over.x) for over in overlays(kernel)]


def test_a_map_with_an_offset_holds_where_the_offset_is_zero() -> None:
    def body(b: Builder, x: Any, out: Any, n: Any) -> None:
        i = b.special("absolute_pos")
        b.store(out, i, b.load(x, b.op("add", n, i)))

    (over,) = overlays(built(body))
    assert (over.out, over.x, over.zeros) == (1, 0, (2,))
    assert over.holds([None, None, 0], (1, 1, 1))
    assert not over.holds([None, None, 4], (1, 1, 1))


def test_equal_strides_are_a_condition() -> None:
    b = Builder("k", 64, index=int64, bounds="unchecked")
    x, out = b.buffer("x", float32), b.buffer("out", float32)
    one, other = b.scalar("one", int64), b.scalar("other", int64)
    unit, row, column = (b.special(s) for s in ("unit_pos_x", "cube_pos_y", "cube_pos_x"))
    place = b.op("add", b.op("mul", column, b.const(64, int64)), unit)
    value = b.load(x, b.op("add", b.op("mul", row, one), place))
    b.store(out, b.op("add", b.op("mul", row, other), place), value)
    (over,) = overlays(b.finish())
    assert over.equals in (((2, 3),), ((3, 2),))
    assert over.holds([None, None, 8, 8], (1, 5, 1))
    assert not over.holds([None, None, 0, 8], (1, 5, 1))
    assert not over.holds([None, None, 8, 8], (1, 5, 2))


def reversed_(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("absolute_pos")
    b.store(out, i, b.load(x, b.op("sub", n, i)))


def shifted(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("absolute_pos")
    b.store(out, i, b.load(x, b.op("add", i, b.const(1, int64))))


def twice(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("absolute_pos")
    b.store(out, i, b.op("add", b.load(x, i), b.load(x, b.const(0, int64))))


def after(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("absolute_pos")
    b.store(out, i, b.const(1.0, float32))
    with b.if_(b.op("lt", b.load(x, i), b.const(0.0, float32))):
        b.store(out, i, b.const(2.0, float32))


def looped(b: Builder, x: Any, out: Any, n: Any) -> None:
    zero, one = b.const(0, int64), b.const(1, int64)
    with b.for_(zero, n, one) as k:
        place = b.op("add", b.special("absolute_pos"), k)
        b.store(out, place, b.load(x, place))


def outside(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("absolute_pos")
    value = b.load(x, i)
    with b.if_(b.op("lt", i, n)):
        b.store(out, i, value)


def one_place(b: Builder, x: Any, out: Any, n: Any) -> None:
    b.store(out, n, b.load(x, n))


def cubes_alone(b: Builder, x: Any, out: Any, n: Any) -> None:
    i = b.special("cube_pos_x")
    b.store(out, i, b.load(x, i))


@pytest.mark.parametrize(
    "body", [reversed_, shifted, twice, after, looped, outside, one_place, cubes_alone]
)
def test_what_may_read_another_element_or_store_twice_is_not_said(body: Any) -> None:
    assert pairs(built(body)) == []


def test_a_kernel_written_over_its_input_gives_the_same() -> None:
    b = Builder("scale", 64, index=int64, bounds="checked")
    x, out = b.buffer("x", float32), b.buffer("out", float32)
    i = b.special("absolute_pos")
    with b.if_(b.op("lt", i, b.length(x))):
        b.store(out, i, b.op("mul", b.load(x, i), b.const(3.0, float32)))
    kernel = b.finish()
    assert pairs(kernel) == [(1, 0)]
    device = bc.client("cpu")
    values = np.arange(1000, dtype=np.float32)
    array, other = device.from_numpy(values), device.from_numpy(values)
    program = device.load(kernel)
    device.run(program, (16, 1, 1), [array, array])
    device.run(program, (16, 1, 1), [other, other])
    assert np.array_equal(array.numpy(), values * 3)
    assert np.array_equal(other.numpy(), values * 3)
