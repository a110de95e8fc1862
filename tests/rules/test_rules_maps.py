"""Elementwise rules: slopes, and what the numerics contract says at edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

INF, NAN = np.inf, np.nan

POSITIVE = ("log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal")
ANY = (
    "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "erf", "sigmoid",
    "softsign", "tanhshrink", "neg", "abs", "square", "sign", "floor", "ceil", "trunc", "selu",
    "silu", "mish", "logsigmoid", "hardsigmoid", "hardswish", "relu", "relu6", "contiguous",
)  # fmt: skip
WITH_ATTRS = [
    ("elu", (1.3,)), ("celu", (0.7,)), ("leaky_relu", (0.1,)), ("softplus", (1.5, 1.0)),
    ("hardshrink", (0.5,)), ("softshrink", (0.5,)), ("gelu", ("none",)), ("gelu", ("tanh",)),
    ("hardtanh", (-0.8, 0.9)), ("threshold", (0.1, 3.0)), ("round", (0,)),
    ("nan_to_num", (0.0, None, None)),
]  # fmt: skip


@pytest.mark.parametrize("op", POSITIVE)
def test_maps_of_positive_numbers(rules: Any, rand: Any, op: str) -> None:
    rules.check(op, [rand(3, 4, low=0.3, high=2.0)])


@pytest.mark.parametrize("op", ANY)
def test_maps_of_any_number(rules: Any, rand: Any, op: str) -> None:
    rules.check(op, [rand(3, 4)])
    rules.check(op, [rand()])


@pytest.mark.parametrize("op", ["asin", "acos", "atanh"])
def test_maps_of_the_open_unit_interval(rules: Any, rand: Any, op: str) -> None:
    rules.check(op, [rand(5, low=-0.8, high=0.8)])


def test_acosh(rules: Any, rand: Any) -> None:
    rules.check("acosh", [rand(5, low=1.2, high=3.0)])


@pytest.mark.parametrize(("op", "attrs"), WITH_ATTRS)
def test_maps_with_attributes(rules: Any, rand: Any, op: str, attrs: tuple[Any, ...]) -> None:
    rules.check(op, [rand(3, 4)], attrs)


@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "maximum", "minimum", "atan2", "hypot", "logaddexp", "mul_no_nan"]
)
def test_maps_of_two_tensors_that_broadcast(rules: Any, rand: Any, op: str) -> None:
    rules.check(op, [rand(3, 4), rand(4)])
    rules.check(op, [rand(2, 1), rand(2, 3)])
    rules.check(op, [rand(3), 0.5])
    rules.check(op, [0.5, rand(3)])


@pytest.mark.parametrize("op", ["div", "remainder", "fmod", "floor_divide", "div_trunc"])
def test_divisions(rules: Any, rand: Any, op: str) -> None:
    x, y = rand(3, 4, low=1.0, high=5.0), rand(4, low=0.6, high=1.4)
    rules.check(op, [x, y], tol=1e-5)
    rules.check(op, [x, 0.7])
    rules.check(op, [2.7, y], tol=1e-5)


def test_pow(rules: Any, rand: Any) -> None:
    x, y = rand(3, 4, low=0.3, high=2.0), rand(4)
    rules.check("pow", [x, y])
    for exponent in (3.0, 2, 1, 0, -1.5, 0.5):
        rules.check("pow", [x, exponent])
    rules.check("pow", [2.5, y])
    rules.check("pow", [rand(4), 3.0])


def test_prelu_and_lerp(rules: Any, rand: Any) -> None:
    rules.check("prelu", [rand(2, 3, 4), rand(3, 1)])
    rules.check("lerp", [rand(3, 4), rand(4), rand(3, 1)])
    rules.check("lerp", [rand(3, 4), rand(3, 4), 0.3])


def test_where_and_clamp(rules: Any, rand: Any) -> None:
    cond = rand(3, 4) > 0
    rules.check("where", [cond, rand(4), rand(3, 1)])
    rules.check("where", [cond, rand(3, 4), 0.0])
    rules.check("clamp", [rand(3, 4), -0.7, 0.6])
    rules.check("clamp", [rand(3, 4), None, 0.6])
    rules.check("clamp", [rand(3, 4), rand(4, low=-1, high=0), rand(3, 1, low=0, high=1)])
    rules.check("clamp", [rand(3, 4), rand(4), None])


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(got, np.array(want, dtype=float))


def test_pow_subgradients(rules: Any) -> None:
    for x, y, want in ((0, 2, 0), (-2, 2, -4), (0, 1, 1), (0, 0, 0), (0, 0.5, INF), (-2, 3, 12)):
        same(rules.grads("pow", [np.array([float(x)]), y])[0], [want])
        same(rules.grads("pow", [np.array([float(x)]), np.array([float(y)])])[0], [want])


def test_pow_of_zero_has_slope_zero_in_the_exponent(rules: Any) -> None:
    got = rules.grads("pow", [np.zeros(3), np.array([0.0, 2.0, -1.0])])[1]
    assert list(got[:2]) == [0, 0]
    assert got[2] == -INF


def test_ties_share_by_halves(rules: Any) -> None:
    x, y = np.array([1.0, 2.0, NAN]), np.array([1.0, 3.0, 1.0])
    gx, gy = rules.grads("maximum", [x, y])
    same(gx, [0.5, 0, 1])
    same(gy, [0.5, 1, 1])
    gx, gy = rules.grads("minimum", [x, y])
    same(gx, [0.5, 1, 1])
    same(gy, [0.5, 0, 1])


def test_bounds(rules: Any) -> None:
    same(rules.grads("clamp", [np.array([-0.1, 0.0, 1.0, 1.1]), 0.0, 1.0])[0], [0, 1, 1, 0])
    same(rules.grads("relu", [np.array([-1.0, 0.0, 1.0, NAN])])[0], [0, 0, 1, 1])
    same(rules.grads("relu6", [np.array([0.0, 3.0, 6.0])])[0], [0, 1, 0])
    same(rules.grads("hardtanh", [np.array([-1.0, 0.0, 1.0])], (-1.0, 1.0))[0], [0, 1, 0])
    same(rules.grads("abs", [np.array([-2.0, 0.0, 2.0])])[0], [-1, 0, 1])


def test_clamp_with_crossed_bounds_gives_everything_to_max(rules: Any) -> None:
    low, high = np.array([2.0]), np.array([1.0])
    gx, glow, ghigh = rules.grads("clamp", [np.array([1.5]), low, high])
    assert (gx[0], glow[0], ghigh[0]) == (0, 0, 1)


def test_origin(rules: Any) -> None:
    zero = np.zeros(1)
    assert [float(g[0]) for g in rules.grads("atan2", [zero, zero])] == [0, 0]
    assert rules.grads("sqrt", [zero])[0][0] == INF
    assert [float(g[0]) for g in rules.grads("logaddexp", [zero - INF, zero - INF])] == [0, 0]


@pytest.mark.parametrize(
    ("op", "x"),
    [("sqrt", -1.0), ("rsqrt", 0.0), ("log", 0.0), ("log1p", -2.0), ("reciprocal", 0.0),
     ("exp", INF), ("expm1", INF), ("sin", INF), ("cos", INF), ("tan", INF), ("sinh", INF),
     ("cosh", INF), ("asin", 2.0), ("acos", 2.0), ("acosh", 0.5), ("atanh", 1.0)],
)  # fmt: skip
def test_nothing_leaks_from_a_branch_not_taken(rules: Any, op: str, x: float) -> None:
    assert rules.grads(op, [np.array([x])], cotangents=[np.zeros(1)])[0][0] == 0


def test_nothing_leaks_at_second_order(rules: Any) -> None:
    ctx, tape = rules.ctx, rules.tape
    x = rules.tensor(np.array([-1.0, 4.0]), track=True)
    y = ctx.where(ctx.gt(x, 0.0), ctx.sqrt(x), x)
    g = tape.backward([ctx.sum(y, None, False, None)], [None], create_graph=True).get(x)
    same(rules.numpy(g), [1, 0.25])
    h = tape.backward([ctx.sum(g, None, False, None)], [None]).get(x)
    same(rules.numpy(h), [0, -1 / 32])


def test_half_precision_rounds_once(rules: Any, rand: Any) -> None:
    from ml_dtypes import bfloat16

    x = rand(200).astype(bfloat16)
    got = rules.grads("silu", [x.astype(np.float64)])[0]
    ctx, tape = rules.ctx, rules.tape
    t = rules.decorator.leaf(ctx.tensor_from_numpy(x))
    y = ctx.silu(t)
    g = tape.backward([y], [ctx.full(y.dtype, y.shape, 1)]).get(t)
    assert g.dtype is t.dtype
    np.testing.assert_allclose(rules.numpy(g).astype(float), got, rtol=2**-8, atol=1e-6)
