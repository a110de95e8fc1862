import ml_dtypes
import numpy as np
import pytest

from burn_std import dtypes as d

nan, inf = float("nan"), float("inf")
RNG = np.random.default_rng(0)
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def test_softmax_is_stable_and_a_row_of_minus_inf_is_nan(call, same):
    x = np.array([[1e30, 1e30], [-inf, 0], [-inf, -inf]])
    same(call("softmax", x, 1, None), np.array([[0.5, 0.5], [0, 1], [nan, nan]]))
    logs = call("log_softmax", x, 1, None)
    same(logs[1:], np.array([[-inf, 0], [nan, nan]]))
    np.testing.assert_allclose(logs[0], -np.log(2))


def test_softmax_of_rank_0_and_of_nothing(call, same):
    same(call("softmax", np.array(3.0), 0, None), np.array(1.0))
    same(call("log_softmax", np.array(3.0), 0, None), np.array(0.0))
    assert call("softmax", np.zeros((0, 3)), 0, None).shape == (0, 3)
    assert call("softmax", np.zeros((3, 0)), 1, None).shape == (3, 0)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_softmax_of_halves_sums_in_f32(call, same, dtype):
    x = np.zeros(4096, dtype)
    same(call("softmax", x, 0, None), np.full(4096, 1 / 4096, dtype))
    assert call("softmax", x, 0, d.float32).dtype == np.float32
    assert call("softmax", np.zeros(3, np.int64), 0, d.bfloat16).dtype == ml_dtypes.bfloat16


def test_layer_norm_and_its_statistics(call):
    x = RNG.standard_normal((2, 3, 4))
    weight, bias = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4))
    out, mean, rstd = call("layer_norm", x, weight, bias, 2, 1e-5)
    assert mean.shape == rstd.shape == (2, 1, 1)
    want = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, want * weight + bias)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5))


def test_layer_norm_of_values_whose_squares_overflow(call, same):
    x = np.array([[1e30, -1e30, 1e30, -1e30]], np.float32)
    out, _, rstd = call("layer_norm", x, None, None, 1, 1e-5)
    np.testing.assert_allclose(out, [[1, -1, 1, -1]], rtol=1e-6)
    assert rstd.dtype == np.float32
    np.testing.assert_allclose(call("rms_norm", x, None, 1, 1e-5)[0], out, rtol=1e-6)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_eps_is_not_lost_in_halves(call, same, dtype):
    out, mean, rstd = call("layer_norm", np.zeros((1, 8), dtype), None, None, 1, 1e-12)
    same(out, np.zeros((1, 8), dtype))
    assert mean.dtype == rstd.dtype == np.float32
    assert np.isfinite(rstd).all()


def test_rms_norm(call):
    x, weight = RNG.standard_normal((2, 5)), RNG.standard_normal(5)
    out, rstd = call("rms_norm", x, weight, 1, 1e-6)
    np.testing.assert_allclose(rstd, 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6))
    np.testing.assert_allclose(out, x * rstd * weight)


def test_group_norm_of_one_channel_per_group_is_instance_norm(call):
    x = RNG.standard_normal((2, 4, 3, 3))
    out, mean, rstd = call("group_norm", x, np.arange(4.0), np.ones(4), 4, 1e-5)
    assert mean.shape == rstd.shape == (2, 4)
    centred = x - x.mean((2, 3), keepdims=True)
    want = centred / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, want * np.arange(4.0).reshape(4, 1, 1) + 1)


def test_batch_norm_uses_the_biased_variance(call):
    x = np.array([[1.0], [2], [3], [4]])
    out, mean, var = call("batch_norm", x, None, None, np.zeros(1), np.ones(1), True, 1e-5)
    np.testing.assert_allclose(out[:, 0], [-1.341635, -0.447212, 0.447212, 1.341635], atol=1e-6)
    assert (mean, var) == (2.5, 1.25)
    out, _, _ = call(
        "batch_norm", x, None, None, np.array([0.25]), np.array([1.0666667]), False, 1e-5
    )
    np.testing.assert_allclose(out[:, 0], [0.726181, 1.694422, 2.662664, 3.630905], atol=1e-5)


def test_batch_norm_of_halves_with_f32_parameters(call):
    x = RNG.standard_normal((4, 3, 2)).astype(np.float16)
    ones = np.ones(3, np.float32)
    for training in (True, False):
        out, mean, var = call("batch_norm", x, ones, ones, ones, ones, training, 1e-5)
        assert out.dtype == np.float16 and mean.dtype == var.dtype == np.float32


def test_statistics_do_not_alias_the_running_ones(call):
    mean, var = np.zeros(3), np.ones(3)
    _, used, _ = call("batch_norm", np.ones((2, 3)), None, None, mean, var, False, 1e-5)
    assert not np.shares_memory(used, mean)


def test_batch_norm_of_one_value_per_channel_has_variance_0(call, same):
    out, _, var = call("batch_norm", np.full((1, 2), 7.0), None, None, None, None, True, 1e-5)
    same(out, np.zeros((1, 2)))
    same(var, np.zeros(2))


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm", "rms_norm"])
def test_nothing_to_normalise(call, name):
    x = np.zeros((0, 4, 3))
    args = {
        "layer_norm": (None, None, 1, 1e-5), "rms_norm": (None, 1, 1e-5),
        "group_norm": (None, None, 2, 1e-5), "batch_norm": (None,) * 4 + (True, 1e-5),
    }[name]  # fmt: skip
    assert call(name, x, *args)[0].shape == x.shape
