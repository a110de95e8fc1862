"""Rules of views, joins, padding and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

VIEWS = [
    ("reshape", ((6, 4),)), ("permute", ((2, 0, 1),)), ("expand", ((5, 2, 3, 4),)),
    ("unsqueeze", ((1, 3),)), ("flip", ((0, 2),)), ("diagonal", (0, 2, 1)),
    ("diagonal", (2, 1, -1)), ("unfold_dim", (2, 3, 1)), ("unfold_dim", (1, 2, 1)),
    ("roll", ((0, 2), (1, -1))), ("repeat", ((2, 1, 3),)), ("repeat", ((2, 1, 1, 2),)),
    ("tril", (0,)), ("triu", (1,)), ("contiguous", ()),
    ("slice", ((1, 1, 1), (0, 1, 0), (2, 3, 4))), ("slice", ((1, -1, -2), (1, 2, 3), (2, -1, -1))),
    ("slice", ((1, 1, 2), (1, 1, 1), (1, 1, 4))),
    ("pad", ("constant", ((1, 0), (-1, 2), (0, -2)), 7.0)),
    ("pad", ("reflect", ((0, 0), (2, 1), (1, 3)), 0.0)),
    ("pad", ("replicate", ((0, 0), (2, 0), (1, 3)), 0.0)),
    ("pad", ("replicate", ((0, 0), (-1, 0), (-1, 3)), 0.0)),
    ("pad", ("circular", ((0, 0), (2, 1), (4, 3)), 0.0)),
]  # fmt: skip
ADJOINTS = [
    ("slice_backward", (2, 1, 2), ((1, -1, 2), (0, 2, 1), (2, 1, 4), (2, 3, 4))),
    ("diagonal_backward", (3, 1), (0, 2, (2, 3, 2), 1)),
    ("unfold_dim_backward", (2, 3, 2, 3), (2, 3, 1, (2, 3, 4))),
    ("pad_backward", (3, 4), ("constant", ((1, 0), (-1, 2)))),
    ("pad_backward", (3, 6), ("reflect", ((0, 0), (2, 1)))),
    ("pad_backward", (3, 6), ("replicate", ((0, 0), (2, 1)))),
    ("pad_backward", (3, 6), ("circular", ((0, 0), (2, 1)))),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs"), VIEWS)
def test_views(rules: Any, rand: Any, op: str, attrs: tuple[Any, ...]) -> None:
    rules.check(op, [rand(2, 3, 4)], attrs)


@pytest.mark.parametrize(("op", "shape", "attrs"), ADJOINTS)
def test_adjoints(rules: Any, rand: Any, op: str, shape: Any, attrs: tuple[Any, ...]) -> None:
    rules.check(op, [rand(*shape)], attrs)


def test_ones_come_and_go(rules: Any, rand: Any) -> None:
    rules.check("squeeze", [rand(2, 1, 3, 1)], ((1, 3),))
    rules.check("expand", [rand(2, 1, 1)], ((4, 2, 3, 1),))
    rules.check("expand", [rand()], ((2, 3),))
    rules.check("repeat", [rand(2, 3)], ((0, 2),))
    rules.check("unfold_dim", [rand()], (0, 1, 1))


def test_cat(rules: Any, rand: Any) -> None:
    rules.check("cat", [[rand(2, 3), rand(2, 0), rand(2, 1)]], (1,))
    rules.check("cat", [[rand(2, 3), rand(1, 3)]], (0,))


def test_cat_of_a_constant(rules: Any, rand: Any) -> None:
    ctx = rules.ctx
    x, y = rules.tensor(rand(2), track=True), rules.tensor(rand(3))
    out = ctx.cat([x, y], 0)
    g = rules.tape.backward([out], [rules.tensor(np.arange(5.0))]).get(x)
    np.testing.assert_array_equal(rules.numpy(g), [0, 1])


def test_slice_assign(rules: Any, rand: Any) -> None:
    rules.check("slice_assign", [rand(4, 6), rand(2, 3)], ((2, -2), (0, 5), (4, -1)))
    rules.check("slice_assign", [rand(4, 6), rand(3)], ((2, 2), (0, 1), (4, 6)))
    rules.check("slice_assign", [rand(6), rand()], ((1,), (2,), (4,)))
    base, value = rules.grads(
        "slice_assign", [np.zeros(6), np.ones(3)], ((-2,), (5,), (-1,)), [np.arange(6.0)]
    )
    np.testing.assert_array_equal(base, [0, 0, 2, 0, 4, 0])
    np.testing.assert_array_equal(value, [5, 3, 1])


# ---- indexing -----------------------------------------------------------------------------------

INDEX = np.array([[0, 2, 1], [2, 0, 0]])
ONCE = np.array([[0, 2, 1], [2, 0, 2]])


def test_gather(rules: Any, rand: Any) -> None:
    rules.check("gather", [rand(4, 3), INDEX], (0,))
    rules.check("gather", [rand(2, 4), INDEX], (1,))
    rules.check("gather", [rand(), np.array(0)], (0,))


@pytest.mark.parametrize("mode", ["assign", "add", "multiply", "amin", "amax"])
def test_scatter(rules: Any, rand: Any, mode: str) -> None:
    rules.check("scatter", [rand(4, 3), ONCE, rand(2, 3)], (0, mode))
    rules.check("scatter", [rand(4, 5), ONCE, rand(3, 4)], (0, mode))
    if mode != "assign":
        rules.check("scatter", [rand(2, 4), INDEX, rand(2, 3)], (1, mode))


def test_scatter_multiply_with_zeros(rules: Any) -> None:
    index = np.array([0, 0, 1, 1])
    x, src = np.array([2.0, 3.0]), np.array([0.0, 5.0, 0.0, 0.0])
    gx, gs = rules.grads("scatter", [x, index, src], (0, "multiply"))
    np.testing.assert_array_equal(gx, [0, 0])
    np.testing.assert_array_equal(gs, [10, 0, 0, 0])


def test_scatter_extremes_share(rules: Any) -> None:
    x, index, src = np.array([2.0]), np.zeros(3, int), np.array([2.0, 2.0, 1.0])
    gx, gs = rules.grads("scatter", [x, index, src], (0, "amax"))
    np.testing.assert_allclose(gx, [1 / 3])
    np.testing.assert_allclose(gs, [1 / 3, 1 / 3, 0])


def test_select_and_add(rules: Any, rand: Any) -> None:
    index = np.array([2, 0, 2])
    rules.check("index_select", [rand(3, 4), index], (0,))
    rules.check("index_select", [rand(3, 4), np.array(1)], (1,))
    rules.check("index_select", [rand(), np.array([0])], (0,))
    rules.check("index_add", [rand(3, 4), index, rand(3, 4)], (0, 1))
    rules.check("index_add", [rand(2, 3), index, rand(2, 3)], (1, 2.5))


def test_integer_arrays(rules: Any, rand: Any) -> None:
    rows, columns = np.array([[0, 2], [-1, 2]]), np.array([1, 1])
    rules.check("index", [rand(3, 4, 2), [rows, columns]], ((0, 1),))
    rules.check("index", [rand(3, 4, 2), [rows, columns]], ((0, 2),))
    rules.check("index_put", [rand(3, 4), rand(2, 2), [rows, columns]], ((0, 1), True))
    rules.check("index_put", [rand(3, 4), rand(2), [np.array([0, 2]), columns]], ((0, 1), False))
    rules.check("index_put", [rand(3, 4), rand(), [np.array([0, 2])]], ((1,), False))


def test_embedding(rules: Any, rand: Any) -> None:
    index = np.array([[0, 2], [2, 1]])
    rules.check("embedding", [rand(4, 3), index], (None,))
    rules.check("embedding_backward", [rand(2, 2, 3), index], (None, 4))
    rules.check("embedding_backward", [rand(2, 2, 3), index], (2, 4))
    got = rules.grads("embedding", [np.zeros((4, 1)), index], (2,))[0]
    np.testing.assert_array_equal(got[:, 0], [1, 1, 0, 0])


def test_masked_select(rules: Any, rand: Any) -> None:
    rules.check("masked_select", [rand(3, 4), np.arange(12).reshape(3, 4) % 5 == 1])
    got = rules.grads("masked_select", [rand(4), np.zeros(4, bool)])[0]
    np.testing.assert_array_equal(got, np.zeros(4))


def test_cast(rules: Any, rand: Any) -> None:
    from burn_std.dtypes import float32

    got = rules.grads("cast", [rand(3)], (float32,))[0]
    assert got.dtype == np.float64


def test_dropout_uses_the_mask_of_the_forward(rules: Any) -> None:
    rules.check("dropout", [np.ones((20, 30))], (0.3, (5, 9)))
    x = np.ones(1000)
    np.testing.assert_array_equal(
        rules.grads("dropout", [x], (0.5, (5, 9)))[0],
        rules.numpy(rules.plain.dropout(rules.plain.tensor_from_numpy(x), 0.5, (5, 9))),
    )
