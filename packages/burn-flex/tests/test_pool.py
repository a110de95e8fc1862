import ml_dtypes
import numpy as np
import pytest

nan, inf = float("nan"), float("inf")
RNG = np.random.default_rng(0)
# Indices that lie anywhere in their plane.
NO = ((), (), (), ())
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def test_ties_go_to_the_lowest_index_and_nan_wins(call, same):
    x = np.array([[[1.0, 1, 0, nan, nan, 2]]])
    values, indices = call("max_pool", x, (2,), (2,), (0,), (1,), False)
    same(values, np.array([[[1.0, nan, nan]]]))
    same(indices, np.array([[[0, 3, 4]]]))
    values, indices = call("max_pool", x, (3,), (3,), (0,), (1,), False)
    same(indices, np.array([[[0, 3]]]))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_padding_never_wins(call, same, dtype):
    low = -inf if dtype is np.float32 else np.iinfo(dtype).min
    x = np.full((1, 1, 2, 2), low, dtype)
    values, indices = call("max_pool", x, (2, 2), (2, 2), (1, 1), (1, 1), False)
    same(values, x)
    same(indices, np.arange(4).reshape(1, 1, 2, 2))


def test_indices_are_flat_in_each_plane(call, same):
    x = RNG.standard_normal((2, 3, 5, 7))
    values, indices = call("max_pool", x, (3, 2), (2, 1), (1, 1), (2, 1), True)
    flat = x.reshape(2, 3, 35)
    same(np.take_along_axis(flat, indices.reshape(2, 3, -1), 2).reshape(values.shape), values)
    same(call("pool_gather", x, indices), values)


def test_windows_that_see_only_padding_still_point_into_the_plane(call):
    _, indices = call("max_pool", np.ones((1, 1, 1)), (2,), (1,), (1,), (2,), False)
    assert indices.max() == 0


def test_ceil_mode_drops_windows_that_start_in_the_right_padding(call):
    x = np.ones((1, 1, 75))
    for ceil, length in ((False, 37), (True, 38)):
        assert call("max_pool", x, (2,), (2,), (0,), (1,), ceil)[0].shape[2] == length
        assert call("avg_pool", x, (2,), (2,), (0,), ceil, True, None).shape[2] == length
    assert call("max_pool", x[..., :3], (2,), (2,), (1,), (1,), True)[0].shape[2] == 2


def test_backward_counts_duplicates(call, same):
    g = np.array([[[1.0, 2, 4]]], np.float32)
    indices = np.array([[[1, 1, 0]]])
    same(call("max_pool_backward", g, indices, *NO, (1, 1, 3)), np.array([[[4, 3, 0]]], np.float32))


def test_mean_divides_by_what_pytorch_divides_by(call, same):
    x = np.ones((1, 1, 4))
    how = ((3,), (2,), (1,))
    same(call("avg_pool", x, *how, True, True, None), np.array([[[2 / 3, 1, 1 / 2]]]))
    same(call("avg_pool", x, *how, False, False, None), np.array([[[1.0, 1]]]))
    same(call("avg_pool", x, *how, False, True, 4), np.array([[[0.5, 0.75]]]))


def test_integer_means_truncate(call, same):
    x = np.array([[[-3, -2, 7, 8]]])
    same(call("avg_pool", x, (2,), (2,), (0,), False, True, None), np.array([[[-2, 7]]]))
    u8 = np.full((1, 1, 4), 255, np.uint8)
    same(
        call("avg_pool", u8, (4,), (4,), (0,), False, True, None), np.full((1, 1, 1), 255, np.uint8)
    )
    same(call("adaptive_avg_pool", u8, (2,)), np.full((1, 1, 2), 255, np.uint8))


def test_gradient_of_a_mean_over_a_permuted_view(call, same):
    g = np.ones((1, 2, 5, 5)).transpose(0, 1, 3, 2)
    dx = call("avg_pool_backward", g, (2, 2), (1, 1), (1, 1), False, True, None, (1, 2, 4, 4))
    same(dx, np.ones((1, 2, 4, 4)))


def test_backwards_are_adjoints(call):
    for _ in range(40):
        rank = int(RNG.integers(1, 4))
        kernel = tuple(RNG.integers(1, 4, rank).tolist())
        stride = tuple(RNG.integers(1, 4, rank).tolist())
        padding = tuple(int(RNG.integers(0, k // 2 + 1)) for k in kernel)
        x = RNG.standard_normal((2, 3, *(int(RNG.integers(k, 8)) for k in kernel)))
        how = (kernel, stride, padding, bool(RNG.integers(2)), bool(RNG.integers(2)), None)
        y = call("avg_pool", x, *how)
        g = RNG.standard_normal(y.shape)
        back = call("avg_pool_backward", g, *how, x.shape)
        assert abs((y * g).sum() - (back * x).sum()) < 1e-10
        size = tuple(RNG.integers(1, 9, rank).tolist())
        y = call("adaptive_avg_pool", x, size)
        g = RNG.standard_normal(y.shape)
        back = call("adaptive_avg_pool_backward", g, x.shape)
        assert abs((y * g).sum() - (back * x).sum()) < 1e-10


def test_adaptive_windows_overlap_where_extents_do_not_divide(call, same):
    x = np.array([[[1.0, 5, 5, 2, 9]]])
    same(call("adaptive_avg_pool", x, (2,)), np.array([[[11 / 3, 16 / 3]]]))
    values, indices = call("adaptive_max_pool", x, (2,))
    same(values, np.array([[[5.0, 9]]]))
    same(indices, np.array([[[1, 4]]]))


def test_adaptive_maxima_take_the_lowest_flat_index(call, same):
    x = np.array([[[[0.0, 1], [1, 0]]]])
    _, indices = call("adaptive_max_pool", x, (1, 1))
    same(indices, np.array([[[[1]]]]))
    x[0, 0, 1, 1] = nan
    values, indices = call("adaptive_max_pool", x, (1, 1))
    same(indices, np.array([[[[3]]]]))
    assert np.isnan(values).all()


def test_adaptive_sizes_may_be_zero(call):
    assert call("adaptive_avg_pool", np.ones((2, 3, 4)), (0,)).shape == (2, 3, 0)
    assert call("adaptive_max_pool", np.ones((2, 3, 4)), (0,))[1].shape == (2, 3, 0)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_keep_their_dtype_and_indices_stay_int64(call, dtype):
    x = RNG.standard_normal((1, 2, 6)).astype(dtype)
    values, indices = call("max_pool", x, (2,), (2,), (0,), (1,), False)
    assert values.dtype == dtype and indices.dtype == np.int64
    assert call("max_pool_backward", values, indices, *NO, x.shape).dtype == dtype
