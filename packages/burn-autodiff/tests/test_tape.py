"""The tape over an algebra of Python numbers: no backend, no numpy."""

from __future__ import annotations

from typing import Any

import pytest

from burn_autodiff.plugin import decorator
from burn_autodiff.tape import Call, backward, make_node
from burn_backend import TensorBase
from burn_ir import CATALOG
from burn_std import AutodiffError, ShapeError
from burn_std.dtypes import float32


class Number:
    """A payload of rank 0."""

    shape: tuple[int, ...] = ()
    dtype = float32

    def __init__(self, value: float) -> None:
        self.value = value


class Numbers:
    """A context of one resource that adds and multiplies numbers."""

    is_autodiff = False
    dtypes = {float32: float32}
    device = "numbers"

    def __init__(self) -> None:
        self.resource = self
        self.base = self

    def plain_context(self) -> Numbers:
        return self

    def make(self, payload: Number, node: Any = None) -> TensorBase:
        t = object.__new__(TensorBase)
        t.b, t.v, t.node = self, payload, node
        return t

    def full(self, dtype: Any, shape: tuple[int, ...], value: float) -> TensorBase:
        return self.make(Number(value))

    def add(self, x: TensorBase, y: TensorBase) -> TensorBase:
        return self.make(Number(x.v.value + y.v.value))

    def mul(self, x: TensorBase, y: TensorBase) -> TensorBase:
        out = self.make(Number(x.v.value * y.v.value))
        if x.node is not None or y.node is not None:
            call = Call("rule", CATALOG["mul"], _product, ((False, 0), (False, 1)), ((), ()), self)
            out.node = make_node(call, (x.node, y.node), (x.v, y.v), (), ((), ()))
            out.node.dtype = float32
        return out


def _product(c: Any, g: TensorBase, x: TensorBase, y: TensorBase) -> Any:
    return (c.ops.mul(g, y) if c.need[0] else None, c.ops.mul(g, x) if c.need[1] else None)


@pytest.fixture
def ctx() -> Numbers:
    return Numbers()


def leaf(ctx: Numbers, value: float) -> TensorBase:
    return ctx.make(Number(value), decorator.leaf_node())


def test_contributions_add_up(ctx):
    x, y = leaf(ctx, 3.0), leaf(ctx, 5.0)
    z = ctx.mul(ctx.mul(x, y), x)
    grads = backward([z], [None])
    assert grads.get(x).v.value == 30.0
    assert grads.get(y).v.value == 9.0
    assert len(grads) == 2


def test_used_nodes_are_freed_unless_kept(ctx):
    x = leaf(ctx, 2.0)
    z = ctx.mul(x, x)
    assert backward([z], [None], retain_graph=True).get(x).v.value == 4.0
    assert backward([z], [None]).get(x).v.value == 4.0
    with pytest.raises(AutodiffError, match="freed"):
        backward([z], [None])


def test_taking_and_setting(ctx):
    x = leaf(ctx, 2.0)
    grads = backward([ctx.mul(x, x)], [None])
    assert x in grads
    assert grads.take(x).v.value == 4.0
    with pytest.raises(AutodiffError, match="keep"):
        grads.get(x)
    grads.set(x, ctx.make(Number(1.0)))
    assert grads.get(x).v.value == 1.0


def test_an_untracked_output_and_a_wrong_cotangent(ctx):
    with pytest.raises(AutodiffError, match="not tracked"):
        backward([ctx.make(Number(1.0))], [None])
    x = leaf(ctx, 1.0)

    class Row(Number):
        shape = (2,)

    with pytest.raises(ShapeError):
        backward([ctx.mul(x, x)], [ctx.make(Row(1.0))])


def test_wanted_intermediates_are_kept(ctx):
    x = leaf(ctx, 3.0)
    y = ctx.mul(x, x)
    z = ctx.mul(y, y)
    grads = backward([z], [None], wanted=[y])
    assert grads.get(y).v.value == 18.0
    assert grads.get(x).v.value == 108.0
