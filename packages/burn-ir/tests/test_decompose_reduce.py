"""Reductions and scans: values and edges of their decompositions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from burn_std.dtypes import bfloat16, bool_, float16, float32, float64, int8, int64, uint8

INF, NAN = math.inf, math.nan


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tolerance)
    elif want != want:
        assert got != got
    else:
        assert math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance), (got, want)


def test_mean_of_an_empty_axis_is_nan(fake: Any) -> None:
    x = fake.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert fake.mean(x, (1,), False, None).list() == [1.5, 4.0]
    assert fake.mean(x, None, True, float32).list() == [[2.75]]
    close(fake.mean(fake.tensor([], shape=(2, 0)), (1,), False, None).list(), [NAN, NAN])


def test_mean_of_f16_is_computed_in_f32(fake: Any) -> None:
    x = fake.tensor([60000.0, 60000.0], float16)
    assert fake.mean(x, None, False, None).data == [60000.0]


def test_amin_of_smallest_integer_and_nan(fake: Any) -> None:
    assert fake.amin(fake.tensor([3, -128, 5], int8), (0,), False).data == [-128]
    assert fake.amin(fake.tensor([3, 200, 5], uint8), None, False).data == [3]
    assert fake.amin(fake.tensor([True, False], bool_), None, False).data == [False]
    close(fake.amin(fake.tensor([1.0, NAN, -INF]), (0,), False).data, [NAN])


def test_arg_reductions_take_the_lowest_index_and_the_first_nan(fake: Any) -> None:
    assert fake.argmin(fake.tensor([2, 1, 1], int64), 0, False).data == [1]
    assert fake.argmin(fake.tensor([2.0, NAN, NAN, 0.0]), 0, True).data == [1]
    values, index = fake.max_dim(fake.tensor([[1.0, 7.0, 7.0], [NAN, 2.0, NAN]]), 1, False)
    close(values.list(), [7.0, NAN])
    assert index.list() == [1, 0]
    values, index = fake.min_dim(fake.tensor([True, False, False], bool_), 0, False)
    assert (values.list(), index.list()) == (False, 1)
    values, index = fake.max_dim(fake.tensor(3.0), 0, True)
    assert (values.list(), index.list()) == (3.0, 0)


def test_truth_of_u8_stays_u8(fake: Any) -> None:
    x = fake.tensor([[0, 2], [0, 0]], uint8)
    assert fake.any(x, (1,), False).list() == [1, 0]
    assert fake.any(x, (1,), False).dtype is uint8
    assert fake.all(fake.tensor([], shape=(0, 2)), (0,), False).list() == [True, True]
    assert fake.any(fake.tensor([], shape=(0, 2)), (0,), False).list() == [False, False]
    assert fake.any(fake.tensor([0.0, NAN]), None, False).list() is True
    assert fake.count_nonzero(fake.tensor([True, False, True], bool_), None, False).list() == 2


def test_median_is_the_lower_one_and_nan_wins(fake: Any) -> None:
    x = fake.tensor([[4.0, 1.0, 3.0, 2.0], [1.0, NAN, 0.0, 9.0]])
    values, index = fake.median_dim(x, 1, False)
    close(values.list(), [2.0, NAN])
    assert index.list() == [3, 1]
    values, index = fake.median_dim(x, 1, True)
    assert values.shape == index.shape == (2, 1)


def test_var_divides_by_what_is_left(fake: Any) -> None:
    x = fake.tensor([[1.0, 2.0, 4.0]])
    close(fake.var(x, (1,), False, 1).list(), [7 / 3])
    close(fake.var(x, (1,), True, 0).list(), [[14 / 9]])
    close(fake.var(fake.tensor([5.0]), (0,), False, 1).list(), NAN)
    close(fake.var(fake.tensor([5.0, 6.0]), (0,), False, 3).list(), INF)


def test_logsumexp_with_infinities_and_nothing(fake: Any) -> None:
    x = fake.tensor([[1000.0, 1000.0], [-INF, -INF], [INF, 1.0], [NAN, 1.0]])
    close(fake.logsumexp(x, (1,), False).list(), [1000 + math.log(2), -INF, INF, NAN])
    close(fake.logsumexp(fake.tensor([], shape=(0,)), (0,), False).list(), -INF)


@pytest.mark.parametrize(
    ("order", "want"),
    [(0, 2.0), (1, 7.0), (2, 5.0), (3, 91 ** (1 / 3)), (INF, 4.0), (-INF, 0.0)],
)
def test_vector_norm(fake: Any, order: float, want: float) -> None:
    x = fake.tensor([3.0, 0.0, -4.0])
    close(fake.vector_norm(x, None, False, order).list(), want)
    close(fake.vector_norm(x, (0,), True, order).list(), [want])


def test_running_extremes_take_the_last_index(fake: Any) -> None:
    x = fake.tensor([1.0, 3.0, 3.0, NAN, 5.0, NAN])
    values, index = fake.cummax(x, 0)
    close(values.list(), [1.0, 3.0, 3.0, NAN, NAN, NAN])
    assert index.list() == [0, 1, 2, 3, 3, 5]
    y = fake.tensor([[3, 1, 2], [1, 1, 0], [2, 0, 5], [0, 4, 0], [1, 0, 0]], int64)
    values, index = fake.cummin(y, 0)
    assert values.list() == [[3, 1, 2], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert index.list() == [[0, 0, 0], [1, 1, 1], [1, 2, 1], [3, 2, 3], [3, 4, 4]]


def test_topk_has_nan_first_and_is_stable(fake: Any) -> None:
    x = fake.tensor([[1.0, NAN, 3.0, 3.0]])
    values, index = fake.topk(x, 1, True, True, 3)
    close(values.list(), [[NAN, 3.0, 3.0]])
    assert index.list() == [[1, 2, 3]]
    values, index = fake.topk(x, 1, False, True, 2)
    assert (values.list(), index.list()) == ([[1.0, 3.0]], [[0, 2]])
    assert fake.topk(fake.tensor([1.0, 2.0]), 0, True, True, 0)[0].shape == (0,)


def test_softmax_is_stable_and_all_minus_infinity_is_nan(fake: Any) -> None:
    x = fake.tensor([[1e4, 1e4], [-INF, -INF], [0.0, -INF]])
    close(fake.softmax(x, 1, None).list(), [[0.5, 0.5], [NAN, NAN], [1.0, 0.0]])
    close(fake.log_softmax(x, 1, None).list()[0], [-math.log(2)] * 2)
    assert fake.softmax(fake.tensor(3.0), 0, None).list() == 1.0
    assert fake.softmax(fake.tensor([], shape=(0, 3)), 0, None).shape == (0, 3)
    assert fake.softmax(fake.tensor([1, 1], int64), 0, float32).dtype is float32
    half = fake.softmax(fake.tensor([1.0, 2.0], bfloat16), 0, None)
    assert half.dtype is bfloat16
    close(sum(half.data), 1.0, 1e-2)
    assert fake.softmax(fake.tensor([1.0, 2.0], float32), 0, float64).dtype is float64
