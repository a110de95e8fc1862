from math import prod

import numpy as np
import pytest

RNG = np.random.default_rng(0)


def _setting(rank):
    kernel, stride, dilation = (tuple(RNG.integers(1, 4, rank).tolist()) for _ in range(3))
    padding = tuple(RNG.integers(0, 3, rank).tolist())
    groups = int(RNG.choice([1, 1, 2, 3]))
    inside, outside = int(RNG.choice([1, 2, 8])), int(RNG.integers(1, 4))
    length = tuple(
        max(1, d * (k - 1) + 1 - 2 * p) + int(RNG.integers(0, 5))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    x = RNG.standard_normal((int(RNG.integers(1, 4)), groups * inside, *length))
    weight = RNG.standard_normal((groups * outside, inside, *kernel))
    return x, weight, (stride, padding, dilation, groups)


def _by_definition(x, weight, stride, padding, dilation, groups):
    """The sum of the definition, one output element at a time."""
    rank = len(stride)
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    out = tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    )
    y = np.zeros((x.shape[0], weight.shape[0], *out))
    inside, outside = weight.shape[1], weight.shape[0] // groups
    for o in range(weight.shape[0]):
        group = o // outside
        planes = x[:, group * inside : (group + 1) * inside]
        for at in np.ndindex(*out):
            where = tuple(
                slice(a * s, a * s + d * (k - 1) + 1, d)
                for a, s, d, k in zip(at, stride, dilation, weight.shape[2:], strict=True)
            )
            seen = planes[(slice(None), slice(None), *where)]
            y[(slice(None), o, *at)] = (seen * weight[o]).sum(axis=tuple(range(1, rank + 2)))
    return y


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_equals_its_definition(call, rank):
    for _ in range(6):
        x, weight, how = _setting(rank)
        bias = RNG.standard_normal(weight.shape[0])
        want = _by_definition(x, weight, *how) + bias.reshape(-1, *(1,) * rank)
        np.testing.assert_allclose(call("conv", x, weight, bias, *how), want, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_are_the_adjoints_of_conv(call, rank):
    for _ in range(20):
        x, weight, how = _setting(rank)
        y = call("conv", x, weight, None, *how)
        g = RNG.standard_normal(y.shape)
        dx = call("conv_input_grad", g, weight, *how, x.shape)
        dw = call("conv_weight_grad", g, x, *how, weight.shape)
        assert dx.shape == x.shape and dw.shape == weight.shape
        assert abs((y * g).sum() - (dx * x).sum()) < 1e-10
        assert abs((y * g).sum() - (dw * weight).sum()) < 1e-10


def test_stride_and_dilation_together_leave_no_extra_taps(call, same):
    x, w = np.array([[[7.0, 3]], [[3, 2]]]), np.array([[[3.0, 6]], [[4, 2]]])
    how = ((2,), (1,), (2,), 1)
    same(call("conv", x, w, None, *how), np.array([[[18.0], [6]], [[12], [4]]]))
    g = np.ones((2, 2, 1))
    same(call("conv_weight_grad", g, x, *how, w.shape), np.array([[[0.0, 5]], [[0, 5]]]))
    same(call("conv_input_grad", g, w, *how, x.shape), np.array([[[0.0, 8]], [[0, 8]]]))


def test_transposed_kernel_of_one_with_stride(call, same):
    x, w = np.array([[[[3.0, 5]]]]), np.array([[[[2.0]]]])
    how = ((2, 2), (0, 0), (1, 1), 1)
    same(
        call("conv_transpose", x, w, None, (2, 2), (0, 0), (0, 0), (1, 1), 1),
        np.array([[[[6.0, 0, 10]]]]),
    )
    g = np.array([[[[1.5, 0, 0.7]]]])
    same(call("conv", g, w, None, *how), np.array([[[[3.0, 1.4]]]]))
    np.testing.assert_allclose(
        call("conv_weight_grad", x, g, *how, w.shape), [[[[1.5 * 3 + 0.7 * 5]]]]
    )


def test_output_padding_says_which_length_is_meant(call):
    x, w = np.ones((1, 1, 2)), np.ones((1, 1, 3))
    for more, length in ((0, 5), (1, 6)):
        y = call("conv_transpose", x, w, None, (2,), (0,), (more,), (1,), 1)
        assert y.shape == (1, 1, length)


def test_integers_wrap_and_halves_accumulate_in_f32(call, same):
    ones = np.ones((1, 9, 300), np.uint8)
    y = call("conv", ones, np.ones((1, 9, 30), np.uint8), None, (1,), (0,), (1,), 1)
    same(y, np.full((1, 1, 271), 270 % 256, np.uint8))
    x = np.full((1, 1, 4096), 1.0, np.float16)
    y = call("conv", x, np.ones_like(x), np.array([1], np.float16), (1,), (0,), (1,), 1)
    same(y, np.full((1, 1, 1), 4097, np.float16))


def test_empty_batch(call):
    x, w = np.zeros((0, 2, 5, 5)), np.zeros((4, 1, 3, 3))
    how = ((1, 1), (1, 1), (1, 1), 2)
    y = call("conv", x, w, np.zeros(4), *how)
    assert y.shape == (0, 4, 5, 5)
    assert call("conv_input_grad", y, w, *how, x.shape).shape == x.shape
    assert not call("conv_weight_grad", y, x, *how, w.shape).any()


def test_fold_is_the_adjoint_of_unfold(call):
    for _ in range(20):
        x, weight, (stride, padding, dilation, _) = _setting(2)
        kernel = weight.shape[2:]
        columns = call("unfold", x, kernel, dilation, padding, stride)
        assert columns.shape[1] == x.shape[1] * prod(kernel)
        g = RNG.standard_normal(columns.shape)
        back = call("fold", g, kernel, dilation, padding, stride, x.shape[2:])
        assert abs((columns * g).sum() - (back * x).sum()) < 1e-10


def test_unfold_orders_channels_then_taps(call, same):
    x = np.arange(8.0).reshape(1, 2, 2, 2)
    columns = call("unfold", x, (2, 2), (1, 1), (0, 0), (1, 1))
    same(columns, np.arange(8.0).reshape(1, 8, 1))
