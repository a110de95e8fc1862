import ml_dtypes
import numpy as np
import pytest

from burn_std import dtypes as d

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)]
HALVES = FLOATS[:2]
INTS = [np.dtype(f"{k}{n}") for k in ("int", "uint") for n in (8, 16, 32, 64)]
nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTS], ids=str)
def test_sums_and_products_of_integers_are_int64(call, same, dtype):
    x = np.ones((300, 2), dtype)
    same(call("sum", x, (0,), False, None), np.array([300, 300]))
    same(call("prod", x, None, True, None), np.array([[1]]))
    same(call("cumsum", x[:3], 0, None), np.array([[1, 1], [2, 2], [3, 3]]))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_accumulate_in_f32(call, same, dtype):
    x = np.full((5000, 2), 100.0, dtype)
    same(call("mean", x, None, False, None), np.array(100, dtype))
    same(call("mean", x, (0,), True, None), np.full((1, 2), 100, dtype))
    ones = np.ones(4096, dtype)
    same(call("sum", ones, None, False, None), np.array(4096, dtype))
    same(call("cumsum", ones, 0, None)[-1], np.array(4096, dtype))
    same(call("var", x, None, False, 0), np.array(0, dtype))
    zeros = np.zeros(65536, np.float16)
    assert abs(float(call("logsumexp", zeros, None, False)) - 11.0904) < 0.01


def test_sum_converts_first(call, same):
    x = np.array([1.7, 1.7, nan], np.float32)
    same(call("sum", x, None, False, d.int32), np.array(2, np.int32))
    same(call("sum", x[:2], None, False, d.float64), np.array(np.float64(np.float32(1.7)) * 2))
    same(call("cumprod", np.array([200, 2], np.uint8), 0, d.uint8), np.array([200, 144], np.uint8))


@pytest.mark.parametrize("shape", [(200_000, 3), (3, 200_000), (7, 30_001, 2)])
@pytest.mark.parametrize("flipped", [False, True])
def test_long_sums_stay_accurate_along_any_dim(call, shape, flipped):
    x = np.full(shape, 0.1, np.float32)
    dim = shape.index(max(shape))
    if flipped:
        x, dim = x.T, len(shape) - 1 - dim
    got = call("sum", x, (dim,), False, None)
    assert got.shape == tuple(n for i, n in enumerate(x.shape) if i != dim)
    assert np.allclose(got, max(shape) * float(np.float32(0.1)), rtol=3e-6)
    kept = call("sum", x, (dim,), True, None)
    assert kept.shape == tuple(1 if i == dim else n for i, n in enumerate(x.shape))


def test_reductions_of_nothing(call, same):
    x = np.zeros((0, 3), np.float32)
    same(call("sum", x, (0,), False, None), np.zeros(3, np.float32))
    same(call("prod", x, (0,), False, None), np.ones(3, np.float32))
    same(call("mean", x, (0,), False, None), np.full(3, nan, np.float32))
    same(call("any", x, None, False), np.array(False))
    same(call("all", x, None, False), np.array(True))
    same(call("var", x, (0,), False, 1), np.full(3, nan, np.float32))
    same(call("logsumexp", x, (0,), False), np.full(3, -inf, np.float32))
    same(call("amax", x, (1,), False), np.zeros(0, np.float32))
    for name in ("amax", "amin"):
        with pytest.raises(ValueError):
            call(name, x, (0,), False)
        with pytest.raises(ValueError):
            call(name, np.zeros((0, 0), np.float32), (0,), False)
    with pytest.raises(ValueError):
        call("argmax", x, 0, False)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_wins_extremes(call, same, dtype):
    x = np.array([1, nan, 3, nan], dtype)
    for name in ("amax", "amin"):
        same(call(name, x, None, False), np.array(nan, dtype))
    for name in ("argmax", "argmin"):
        same(call(name, x, None, False), np.array(1))
    for name in ("max_dim", "min_dim", "median_dim"):
        values, indices = call(name, x, 0, False)
        same(values, np.array(nan, dtype))
        same(indices, np.array(1))
    values, indices = call("cummax", np.array([1, nan, 5, nan, 2], dtype), 0)
    same(values, np.array([1, nan, nan, nan, nan], dtype))
    same(indices, np.array([0, 1, 1, 3, 3]))


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTS, *FLOATS], ids=str)
def test_ties_take_the_lowest_index_and_scans_the_last(call, same, dtype):
    x = np.array([[0, 1, 1, 0]], dtype)
    same(call("max_dim", x, 1, True)[1], np.array([[1]]))
    same(call("min_dim", x, 1, False)[1], np.array([0]))
    same(call("cummax", x, 1)[1], np.array([[0, 1, 2, 2]]))
    same(call("cummin", x, 1)[1], np.array([[0, 0, 0, 3]]))
    same(call("amax", x, (0,), False), x[0])


def test_truth_of_u8_is_u8(call, same):
    x = np.array([[0, 7], [0, 0]], np.uint8)
    same(call("any", x, (1,), False), np.array([1, 0], np.uint8))
    same(call("all", x, (0,), True), np.array([[0, 0]], np.uint8))
    same(call("any", np.array([0.0, nan]), None, False), np.array(True))
    same(call("count_nonzero", np.array([[0.0, nan, 2]]), (1,), False), np.array([2]))


def test_rank_0_reduces_to_itself(call, same):
    x = np.array(2.0, np.float32)
    for name in ("sum", "prod", "mean"):
        same(call(name, x, (0,), False, None), x)
    for name in ("amax", "amin", "logsumexp"):
        same(call(name, x, (0,), True), x)
    same(call("any", x, (0,), False), np.array(True))
    for name in ("max_dim", "min_dim", "median_dim"):
        same(call(name, x, 0, False)[1], np.array(0))
    same(call("argmax", x, 0, True), np.array(0))
    same(call("cumsum", x, 0, None), x)
    same(call("var", x, None, False, 1), np.array(nan, np.float32))
    same(call("vector_norm", -x, None, False, inf), x)
    same(call("sort", x, 0, True)[0], x)
    same(call("topk", x, 0, True, True, 1)[0], x)


def test_var_is_two_pass(call):
    x = np.array([1e6, 1e6 + 1, 1e6 + 2], np.float32)
    assert call("var", x, None, False, 1) == 1
    assert call("var", np.array([1.0, 2.0]), None, False, 2) == inf


def test_logsumexp_of_infinities(call, same):
    x = np.array([[-inf, -inf], [1000, 1000], [inf, 0], [nan, 0]])
    same(call("logsumexp", x, (1,), False), np.array([-inf, 1000 + np.log(2.0), inf, nan]))
    same(call("logsumexp", x[:3], None, True), np.array([[inf]]))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, inf, -inf])
def test_vector_norm(call, order):
    x = np.array([[1.0, -2.0, 3.0]])
    want = np.linalg.norm(x, order, 1)
    assert np.allclose(call("vector_norm", x, (1,), False, order), want, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTS, *FLOATS], ids=str)
def test_sort_is_stable_both_ways(call, same, dtype):
    x = np.array([1, 0, 1, 0, 1], dtype)
    values, order = call("sort", x, 0, False)
    same(order, np.array([1, 3, 0, 2, 4]))
    same(values, x[order])
    same(call("sort", x, 0, True)[1], np.array([0, 2, 4, 1, 3]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_is_the_largest(call, same, dtype):
    x = np.array([2, nan, 1, nan], dtype)
    same(call("sort", x, 0, False)[1], np.array([2, 0, 1, 3]))
    same(call("sort", x, 0, True)[1], np.array([1, 3, 0, 2]))
    same(call("topk", x, 0, True, True, 2)[1], np.array([1, 3]))
    same(call("topk", x, 0, False, True, 2)[1], np.array([2, 0]))


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTS, *FLOATS], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_order_of_large_tensors_is_that_of_small_ones(call, same, dtype, dim):
    rng = np.random.default_rng(0)
    x = rng.integers(-20, 20, (70, 60)).astype(dtype)
    if dtype in FLOATS:
        x[rng.random(x.shape) < 0.02] = nan
        x[rng.random(x.shape) < 0.02] = -0.0
        x[rng.random(x.shape) < 0.02] = -inf
        x[0, 0] = np.copysign(np.float32(nan), np.float32(-1)).astype(dtype)
    for descending in (False, True):
        values, order = call("sort", x, dim, descending)
        parts = [call("sort", line, 0, descending)[1] for line in np.moveaxis(x, dim, 0).T]
        same(order, np.stack(parts, 1 - dim))
        same(values, np.take_along_axis(x, order, dim))
        if dtype.kind != "b":
            first = (slice(None),) * dim + (slice(7),)
            same(call("topk", x, dim, descending, True, 7)[0], values[first])
            same(call("topk", x, dim, descending, True, 7)[1], order[first])
    if dtype.kind != "b":
        values, index = call("median_dim", x, dim, True)
        parts = [call("median_dim", line, 0, True)[1] for line in np.moveaxis(x, dim, 0).T]
        same(index, np.stack(parts, 1 - dim))
        same(values, np.take_along_axis(x, index, dim))


def test_median_is_the_lower_one(call, same):
    values, indices = call("median_dim", np.array([[4, 1, 3, 2]]), 1, False)
    same(values, np.array([2]))
    same(indices, np.array([3]))


def test_searchsorted_of_rows(call, same):
    rows = np.array([[1.0, 2, 2, 5], [0, 1, 2, 3]])
    values = np.array([[2.0, 0, nan], [3, -1, 9]])
    same(call("searchsorted", rows, values, False), np.array([[1, 0, 4], [3, 0, 4]]))
    same(call("searchsorted", rows, values, True), np.array([[3, 0, 4], [4, 0, 4]]))
    same(call("searchsorted", rows[0], values, True), np.array([[3, 0, 4], [3, 0, 4]]))


def test_unique_keeps_every_nan(call, same):
    values, inverse, counts = call("unique", np.array([[nan, 1], [nan, 1]]), True, True)
    same(values, np.array([1, nan, nan]))
    same(values[inverse], np.array([[nan, 1], [nan, 1]]))
    same(counts, np.array([2, 1, 1]))
    assert len(call("unique", np.array([3, 3]), False, False)) == 1
