"""Rules of reductions, scans and orderings; zeros, ties and empty tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

INF, NAN = np.inf, np.nan
DIMS = [((1,), False), ((0, 2), True), (None, False), (None, True), ((2,), True)]


def same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, np.array(want, dtype=float), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("dims", "keepdim"), DIMS)
@pytest.mark.parametrize(
    ("op", "more"),
    [("sum", (None,)), ("prod", (None,)), ("mean", (None,)), ("amax", ()), ("amin", ()),
     ("var", (1,)), ("var", (0,)), ("logsumexp", ()), ("vector_norm", (2,)), ("vector_norm", (1,)),
     ("vector_norm", (3.5,)), ("vector_norm", (0.5,)), ("vector_norm", (1.5,)),
     ("vector_norm", (INF,)), ("vector_norm", (-INF,)), ("vector_norm", (-1.5,))],
)  # fmt: skip
def test_reductions(
    rules: Any, rand: Any, op: str, more: tuple[Any, ...], dims: Any, keepdim: bool
) -> None:
    x = rand(2, 3, 4)
    if more == (-1.5,) or op == "prod":
        x = np.sign(x) * (np.abs(x) + 0.3)
    rules.check(op, [x], (dims, keepdim, *more), tol=1e-5)


@pytest.mark.parametrize("op", ["sum", "mean", "prod"])
def test_dtype_of_a_reduction_does_not_reach_the_gradient(rules: Any, rand: Any, op: str) -> None:
    from burn_std.dtypes import float64

    x = rand(3, 4).astype(np.float32)
    assert rules.grads(op, [x], ((1,), False, float64))[0].dtype == np.float32


@pytest.mark.parametrize("op", ["sum", "prod", "mean", "amax", "logsumexp"])
def test_rank_zero(rules: Any, rand: Any, op: str) -> None:
    more = (None,) if op in ("sum", "prod", "mean") else ()
    for dims in (None, (), (0,)):
        rules.check(op, [rand()], (dims, False, *more))


def test_prod_with_zeros_is_exact(rules: Any) -> None:
    for x, want in (
        ([2.0, 0.0, 3.0], [0, 6, 0]), ([0.0, 0.0, 3.0], [0, 0, 0]), ([2.0, 4.0], [4, 2]),
    ):  # fmt: skip
        same(rules.grads("prod", [np.array(x)], (None, False, None))[0], want)
    rules.check("prod", [np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0]])], ((1,), False, None))


def test_cumprod_with_zeros_is_exact(rules: Any, rand: Any) -> None:
    rules.check("cumprod", [rand(3, 5)], (1, None))
    rules.check("cumprod", [rand(5, 2)], (0, None))
    rules.check("cumprod", [rand()], (0, None))
    rules.check("cumprod", [rand(1, 2)], (0, None))
    rules.check("cumprod", [np.array([2.0, 0.0, 3.0, 0.0, 5.0])], (0, None))
    rules.check("cumprod", [np.array([0.0, 2.0, 3.0])], (0, None))
    same(
        rules.grads("cumprod", [np.array([2.0, 0.0, 3.0])], (0, None))[0], [1, 2 + 6, 0]
    )  # 2, 2 x, 2 x 3: the slopes in x are 2 and 6


def test_scans(rules: Any, rand: Any) -> None:
    for op, more in (("cumsum", (None,)), ("cummax", ()), ("cummin", ())):
        rules.check(op, [rand(3, 5)], (1, *more))
        rules.check(op, [rand(3, 5)], (0, *more))
        rules.check(op, [rand()], (0, *more))


def test_orderings(rules: Any, rand: Any) -> None:
    for op in ("max_dim", "min_dim", "median_dim"):
        rules.check(op, [rand(3, 5)], (1, False))
        rules.check(op, [rand(3, 5)], (0, True))
        rules.check(op, [rand()], (0, False))
    rules.check("sort", [rand(3, 5)], (1, True))
    rules.check("sort", [rand()], (0, False))
    rules.check("topk", [rand(3, 5)], (1, True, True, 2))
    rules.check("topk", [rand(3, 5)], (0, False, True, 2))


def test_ties(rules: Any) -> None:
    x = np.array([2.0, 2.0, 1.0])
    same(rules.grads("amax", [x], (None, False))[0], [0.5, 0.5, 0])
    same(rules.grads("amin", [x], (None, False))[0], [0, 0, 1])
    same(rules.grads("max_dim", [x], (0, False))[0], [1, 0, 0])
    same(rules.grads("cummax", [x], (0,))[0], [1, 2, 0])
    same(rules.grads("vector_norm", [-x], (None, False, INF))[0], [-0.5, -0.5, 0])


def test_norm_of_zeros_has_subgradient_zero(rules: Any) -> None:
    for order in (0.5, 1, 1.5, 2, 3, INF, -INF):
        got = rules.grads("vector_norm", [np.zeros((2, 3))], ((1,), False, order))[0]
        same(got, np.zeros((2, 3)))
    half = rules.grads("vector_norm", [np.array([[0.0, 0.0], [3.0, 4.0]])], ((1,), False, 2))[0]
    same(half, [[0, 0], [0.6, 0.8]])
    same(rules.grads("vector_norm", [np.array([0.0, 4.0])], (None, False, 0.5))[0], [0, 1])


def test_norm_of_zeros_is_finite_at_second_order(rules: Any) -> None:
    x = rules.tensor(np.zeros(3), track=True)
    y = rules.ctx.vector_norm(x, None, False, 2)
    g = rules.tape.backward([y], [None], create_graph=True).get(x)
    h = rules.tape.backward([g], [rules.tensor(np.ones(3))]).get(x)
    assert h is None or np.isfinite(rules.numpy(h)).all()


def test_logsumexp_edges(rules: Any) -> None:
    same(rules.grads("logsumexp", [np.array([-INF, -INF])], (None, False))[0], [0, 0])
    same(rules.grads("logsumexp", [np.array([-INF, 1.0])], (None, False))[0], [0, 1])
    same(rules.grads("logsumexp", [np.array([1000.0, 1000.0])], (None, False))[0], [0.5, 0.5])


def test_empty_tensors(rules: Any) -> None:
    empty = np.zeros((0, 3))
    for op, attrs in (
        ("sum", ((0,), False, None)), ("mean", (None, False, None)), ("prod", ((0,), False, None)),
        ("var", (None, False, 1)), ("cumsum", (0, None)), ("cumprod", (0, None)),
        ("logsumexp", ((0,), False)), ("amax", ((1,), False)), ("sort", (1, False)),
    ):  # fmt: skip
        assert rules.grads(op, [empty], attrs)[0].shape == (0, 3), op


def test_variance_of_one_element(rules: Any) -> None:
    assert np.isnan(rules.grads("var", [np.array([3.0])], ((0,), False, 1))[0]).all()
    same(rules.grads("var", [np.array([3.0])], ((0,), False, 0))[0], [0])
