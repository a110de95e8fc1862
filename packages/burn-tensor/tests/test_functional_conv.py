"""Convolution and pooling: PyTorch's forms of arguments, reported failures, adjoints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_tensor import functional as F

RNG = np.random.default_rng(0)


def given(*shape: int) -> burn.Tensor:
    return burn.tensor(RNG.standard_normal(shape))


def grads_of(out: burn.Tensor, cotangent: object, *leaves: burn.Tensor) -> list[object]:
    grads = out.backward(burn.tensor(cotangent))
    return [leaf.grad(grads).tolist() for leaf in leaves]


def leaf(data: object) -> burn.Tensor:
    return burn.tensor(data, device=Device.default().autodiff()).require_grad()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_unbatched_signal_is_a_batch_of_one(n: int) -> None:
    x, w = given(2, *(5,) * n), given(4, 2, *(3,) * n)
    conv = getattr(F, f"conv{n}d")
    np.testing.assert_array_equal(conv(x, w).numpy(), conv(x.unsqueeze(0), w)[0].numpy())
    back, wt = getattr(F, f"conv_transpose{n}d"), given(2, 4, *(3,) * n)
    np.testing.assert_array_equal(back(x, wt).numpy(), back(x.unsqueeze(0), wt)[0].numpy())


@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (4, 1), (2, 3), (3, 2)])
def test_same_padding_keeps_the_extents_and_pads_the_odd_rest_at_the_end(
    kernel: int, dilation: int
) -> None:
    x, w = given(1, 1, 7), given(1, 1, kernel)
    out = F.conv1d(x, w, padding="same", dilation=dilation)
    total = dilation * (kernel - 1)
    padded = F.pad(x, (total // 2, total - total // 2))
    np.testing.assert_allclose(out.numpy(), F.conv1d(padded, w, dilation=dilation).numpy())
    assert out.shape == x.shape


def test_valid_padding_is_none_and_lists_are_tuples() -> None:
    x, w = given(1, 2, 5, 6), given(3, 2, 2, 3)
    plain = F.conv2d(x, w).numpy()
    np.testing.assert_array_equal(F.conv2d(x, w, padding="valid", stride=[1, 1]).numpy(), plain)
    np.testing.assert_array_equal(F.conv2d(x, w, padding=[0], stride=(1,)).numpy(), plain)


def test_conv_refuses_what_has_no_meaning() -> None:
    x, w = given(1, 2, 5), given(3, 2, 2)
    with pytest.raises(ArgumentError, match="conv1d: padding 'same' needs stride 1"):
        F.conv1d(x, w, padding="same", stride=2)
    with pytest.raises(ArgumentError, match="conv1d: padding is ints, 'same' or 'valid'"):
        F.conv1d(x, w, padding="full")
    with pytest.raises(ArgumentError, match="conv1d: stride must be an int or 1 ints"):
        F.conv1d(x, w, stride=(1, 2))
    with pytest.raises(DTypeError, match="conv1d: stride must be an int"):
        F.conv1d(x, w, stride=1.5)
    with pytest.raises(ShapeError, match="channels"):
        F.conv1d(x, given(3, 1, 2))


def test_stride_and_dilation_of_two() -> None:  # B74
    x, w = leaf([[[7.0, 3.0]], [[3.0, 2.0]]]), leaf([[[3.0, 6.0]], [[4.0, 2.0]]])
    y = F.conv1d(x, w, padding=1, stride=2, dilation=2)
    assert y.tolist() == [[[18.0], [6.0]], [[12.0], [4.0]]]
    dx, dw = grads_of(y, [[[1.0], [1.0]]] * 2, x, w)
    assert dx == [[[0.0, 8.0]], [[0.0, 8.0]]]
    assert dw == [[[0.0, 5.0]], [[0.0, 5.0]]]


def test_transposed_conv_of_one_tap_with_stride() -> None:  # B75
    x, w = leaf([[[[5.0, 7.0]]]]), leaf([[[[2.0]]]])
    y = F.conv_transpose2d(x, w, stride=2)
    assert y.tolist() == [[[[10.0, 0.0, 14.0]]]]
    dx, dw = grads_of(y, [[[[1.5, 0.0, 0.7]]]], x, w)
    np.testing.assert_allclose(dx, [[[[3.0, 1.4]]]], rtol=1e-6)
    np.testing.assert_allclose(dw, [[[[1.5 * 5 + 0.7 * 7]]]], rtol=1e-6)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    list(itertools.product((1, 2, 3), (0, 1), (1, 2), (1, 2))),
)
def test_transposed_conv_is_the_adjoint(
    stride: int, padding: int, dilation: int, groups: int
) -> None:  # B76
    x, w = given(2, 4, 9), given(6, 4 // groups, 3)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = F.conv1d(x, w, **how)
    g = given(*y.shape)
    rest = x.shape[2] - F.conv_transpose1d(g, w, **how).shape[2]
    back = F.conv_transpose1d(g, w, output_padding=rest, **how)
    one = float((y.numpy() * g.numpy()).sum())
    assert abs(one - float((x.numpy() * back.numpy()).sum())) < 1e-10 * max(1, abs(one))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unbatched_pools(n: int) -> None:
    x = given(2, *(6,) * n)
    for name, more in (
        (f"max_pool{n}d", {"kernel_size": 2}),
        (f"avg_pool{n}d", {"kernel_size": [2] * n, "stride": []}),
        (f"adaptive_avg_pool{n}d", {"output_size": 4}),
        (f"adaptive_max_pool{n}d", {"output_size": (None,) * n}),
        (f"lp_pool{n}d", {"norm_type": 2.0, "kernel_size": 3}),
    ):
        pool = getattr(F, name)
        np.testing.assert_array_equal(
            pool(x, **more).numpy(), pool(x.unsqueeze(0), **more)[0].numpy()
        )


def test_pooled_sizes() -> None:  # B72
    x = burn.ones(1, 1, 75)
    assert F.max_pool1d(x, 2, 2).shape[2] == 37
    assert F.max_pool1d(x, 2, 2, ceil_mode=True).shape[2] == 38
    assert F.avg_pool1d(x, 2, 2, ceil_mode=True).shape[2] == 38
    assert F.max_pool1d(burn.ones(1, 1, 3), 2, 2, 1, ceil_mode=True).shape[2] == 2


def test_average_pool_backward_of_a_channels_last_view() -> None:  # B70
    x = leaf(np.ones((1, 4, 4, 2))).permute(0, 3, 1, 2)
    y = F.avg_pool2d(x, 2, 1, 1)
    source = leaf(np.ones((1, 4, 4, 2)))
    y = F.avg_pool2d(source.permute(0, 3, 1, 2), 2, 1, 1)
    (dx,) = grads_of(y, np.ones(y.shape), source)
    assert dx == np.ones((1, 4, 4, 2)).tolist()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_puts_maxima_back(n: int) -> None:
    x = given(2, 3, *(6,) * n)
    values, indices = getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)
    out = getattr(F, f"max_unpool{n}d")(values, indices, 2).numpy()
    assert out.shape == x.shape
    assert np.array_equal(out[out != 0], x.numpy()[out != 0])
    assert np.count_nonzero(out) == values.numel()


def test_unpooling_of_overlapping_windows_assigns() -> None:
    x = burn.tensor([[[1.0, 5.0, 1.0]]])
    values, indices = F.max_pool1d(x, 2, 1, return_indices=True)
    assert F.max_unpool1d(values, indices, 2, 1).tolist() == [[[0.0, 5.0, 0.0]]]


def test_lp_pool_is_a_norm_of_windows() -> None:
    out = F.lp_pool1d(burn.tensor([[[3.0, 4.0, 0.0, 5.0]]]), 2.0, 2)
    np.testing.assert_allclose(out.numpy(), [[[5.0, 5.0]]], rtol=1e-6)


def test_conv_transpose_of_an_empty_signal_has_empty_gradients():
    device = Device.default().autodiff()
    x = burn.zeros(2, 0, 3, device=device).require_grad()
    weight = burn.ones(2, 2, 2, 2, device=device).require_grad()
    grads = F.conv_transpose2d(x, weight).sum().backward()
    assert x.grad(grads).shape == (2, 0, 3)
    assert weight.grad(grads).sum().item() == 0
