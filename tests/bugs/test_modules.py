"""Pooling, convolution, resizing, normalisation and dropout."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional

F = functional


def test_b70_average_pool_backward_of_a_channels_last_view(leaf: Any, slope: Any) -> None:
    for layout in ((0, 3, 1, 2), (0, 1, 2, 3)):
        shape = [(1, 4, 4, 2), (1, 2, 4, 4)][layout == (0, 1, 2, 3)]
        x = leaf(np.zeros(shape, np.float32))
        grad = slope(lambda v, d=layout: F.avg_pool2d(v.permute(*d), 2, 1, 1), x)
        np.testing.assert_allclose(grad, 1.0)


def test_b72_pooled_sizes(make: Any) -> None:
    x = make(np.zeros((1, 1, 75), np.float32))
    for pool in (F.avg_pool1d, F.max_pool1d):
        assert pool(x, 2, 2).shape[-1] == 37
        assert pool(x, 2, 2, ceil_mode=True).shape[-1] == 38
        short = make(np.zeros((1, 1, 3), np.float32))
        assert pool(short, 2, 2, padding=1, ceil_mode=True).shape[-1] == 2


def test_b74_stride_and_dilation_of_2(leaf: Any, slope: Any) -> None:
    x, w = leaf([[[7.0, 3.0]], [[3.0, 2.0]]]), leaf([[[3.0, 6.0]], [[4.0, 2.0]]])

    def conv(x: Any, w: Any) -> Any:
        return F.conv1d(x, w, stride=2, padding=1, dilation=2)

    assert conv(x, w).tolist() == [[[18], [6]], [[12], [4]]]
    dx, dw = slope(conv, x, w)
    assert dw.tolist() == [[[0, 5]], [[0, 5]]]
    assert dx.tolist() == [[[0, 8]], [[0, 8]]]


def test_b75_transposed_convolution_with_stride_2(leaf: Any) -> None:
    x, w = leaf([[[[3.0, 5.0]]]]), leaf([[[[2.0]]]])
    y = F.conv_transpose2d(x, w, stride=(1, 2))
    assert y.shape == (1, 1, 1, 3)
    cotangent = burn.tensor([[[[1.5, 0.0, 0.7]]]], device=x.device)
    grads = y.backward(cotangent)
    np.testing.assert_allclose(x.grad(grads).numpy(), [[[[3.0, 1.4]]]], rtol=1e-6)
    np.testing.assert_allclose(w.grad(grads).item(), 1.5 * 3 + 0.7 * 5, rtol=1e-6)


def test_b76_transposed_convolution_is_the_adjoint(make: Any) -> None:
    x = make(np.zeros((1, 1, 2), np.float32))
    w = make(np.zeros((1, 1, 3), np.float32))
    assert F.conv_transpose1d(x, w, stride=2).shape[-1] == 5
    assert F.conv_transpose1d(x, w, stride=2, output_padding=1).shape[-1] == 6
    rng = np.random.default_rng(0)
    for stride, padding, dilation, groups in product((1, 2, 3), (0, 1), (1, 2), (1, 2)):
        a = rng.normal(size=(2, 4, 11))
        k = rng.normal(size=(6, 4 // groups, 3))
        options: dict[str, Any] = {
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "groups": groups,
        }
        y = F.conv1d(make(a), make(k), **options)
        b = rng.normal(size=y.shape)
        extra = 11 - ((y.shape[-1] - 1) * stride - 2 * padding + dilation * 2 + 1)
        back = F.conv_transpose1d(make(b), make(k), output_padding=extra, **options)
        left, right = float((y.numpy() * b).sum()), float((back.numpy() * a).sum())
        assert left == pytest.approx(right, abs=1e-10)


def test_b77_two_conventions_of_resizing(make: Any, leaf: Any, slope: Any) -> None:
    x, y = make([[[0.0, 1.0, 2.0, 3.0]]]), make([[[0.0, 10.0]]])

    def resize(v: Any, size: int, corners: bool) -> Any:
        return F.interpolate(v, size=size, mode="linear", align_corners=corners)

    for v, size, corners, right in (
        (x, 7, True, [0, 0.5, 1, 1.5, 2, 2.5, 3]), (y, 4, True, [0, 3.3333333, 6.6666667, 10]),
        (x, 7, False, [0, 0.357143, 0.928571, 1.5, 2.071429, 2.642857, 3]),
        (y, 4, False, [0, 2.5, 7.5, 10]),
    ):  # fmt: skip
        np.testing.assert_allclose(resize(v, size, corners).numpy()[0, 0], right, atol=1e-5)
    for corners in (False, True):
        assert np.isfinite(resize(x, 1, corners).numpy()).all()
        weights = np.stack(
            [
                resize(make(np.eye(4, dtype="f4")[i].reshape(1, 1, 4)), 7, corners).numpy()[0, 0]
                for i in range(4)
            ]
        )
        grad = slope(lambda v, c=corners: resize(v, 7, c), leaf([[[0.0, 1.0, 2.0, 3.0]]]))
        np.testing.assert_allclose(grad[0, 0], weights.sum(1), rtol=1e-5)


def test_b78_bicubic_to_the_same_size_is_the_identity(make: Any) -> None:
    x = make(np.arange(36, dtype=np.float32).reshape(1, 3, 3, 4))
    for corners in (False, True):
        found = F.interpolate(x, size=(3, 4), mode="bicubic", align_corners=corners)
        np.testing.assert_allclose(found.numpy(), x.numpy(), atol=1e-4)


def test_b79_two_variances_of_batch_norm(tracking: Any) -> None:
    x = burn.tensor([[1.0], [2.0], [3.0], [4.0]], device=tracking)
    norm = burn.nn.BatchNorm1d(1, device=tracking)
    out = norm(x)
    np.testing.assert_allclose(
        out.numpy()[:, 0], [-1.341635, -0.447212, 0.447212, 1.341635], atol=1e-5
    )
    assert norm.running_mean.item() == pytest.approx(0.25, rel=1e-6)
    assert norm.running_var.item() == pytest.approx(1.0666667, rel=1e-6)
    served = norm.valid()(x.detach().to_device(tracking.without_autodiff()))
    np.testing.assert_allclose(
        served.numpy()[:, 0], [0.726181, 1.694422, 2.662664, 3.630905], atol=1e-5
    )
    with pytest.raises(ValueError):
        norm(burn.tensor([[1.0]], device=tracking))


def test_b80_running_statistics_survive(tracking: Any) -> None:
    norm = burn.nn.BatchNorm1d(2, device=tracking)
    x = burn.tensor([[1.0, 10.0], [3.0, 14.0]], device=tracking)
    for _ in range(10):
        norm(x)
    mean = norm.running_mean.tolist()
    assert mean[0] == pytest.approx(2 * (1 - 0.9**10), rel=1e-5)
    infer = norm.valid()
    assert infer.running_mean.tolist() == mean
    assert "running_mean" not in dict(norm.named_parameters())
    other = burn.nn.BatchNorm1d(2, device=tracking)
    other.load_state_dict(norm.state_dict())
    assert other.running_mean.tolist() == mean
    assert not norm.running_mean.is_tracked()


def test_b82_lstm_blocks_are_input_forget_cell_output(device: Any) -> None:
    lstm = burn.nn.LSTM(1, 1, bidirectional=True, device=device)
    lstm.map(lambda path, p: burn.zeros_like(p))
    blocks = burn.tensor([[1.0], [2.0], [3.0], [4.0]], device=device)
    lstm.weight_ih_l0.set(blocks)
    lstm.weight_ih_l0_reverse.set(blocks)
    start = burn.zeros(2, 1, 1, device=device), burn.ones(2, 1, 1, device=device)
    _, (h, c) = lstm(burn.ones(1, 1, 1, device=device), start)
    np.testing.assert_allclose(c.numpy().ravel(), [1.608240] * 2, atol=1e-6)
    np.testing.assert_allclose(h.numpy().ravel(), [0.906300] * 2, atol=1e-6)
    # Both biases count, and what is read backwards stands at its own place.
    lstm.bias_ih_l0.set(burn.full((4,), 0.25, device=device))
    lstm.bias_hh_l0.set(burn.full((4,), -0.25, device=device))
    x = burn.tensor([[[1.0]], [[0.5]], [[0.25]]], device=device)
    output, (h, _) = lstm(x)
    np.testing.assert_allclose(output[-1, 0, 0].numpy(), h[0, 0, 0].numpy())
    np.testing.assert_allclose(output[0, 0, 1].numpy(), h[1, 0, 0].numpy())


def test_b83_attention_dropout_is_off_outside_training(tracking: Any) -> None:
    layer = burn.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True, device=tracking)
    x = burn.randn(2, 5, 8, device=tracking)
    infer, state = layer.valid(), tracking.random_state()
    for need_weights in (True, False):
        first, second = (infer(x, x, x, need_weights=need_weights)[0] for _ in range(2))
        assert first.tolist() == second.tolist()
    assert tracking.random_state() == state
    assert layer(x, x, x)[0].tolist() != layer(x, x, x)[0].tolist()


def test_b84_dropout_is_reproducible_and_scaled(device: Any, tracking: Any) -> None:
    ones = burn.ones(1000, device=device)

    def drawn() -> list[float]:
        return list(F.dropout(ones, 0.5, training=True).tolist())

    device.seed(7)
    first, second = drawn(), drawn()
    device.seed(7)
    assert drawn() == first
    assert first != second
    assert set(first) == {0.0, 2.0}
    assert F.dropout(ones, 0.0, training=True).tolist() == [1.0] * 1000
    assert F.dropout(ones, 1.0, training=True).tolist() == [0.0] * 1000
    assert F.dropout(ones, 0.5, training=False).tolist() == [1.0] * 1000
    for where in (tracking, tracking.gradient_checkpointing()):
        x = burn.ones(1000, device=where).require_grad()
        y = F.dropout(x * 1, 0.5, training=True)
        assert x.grad((y * 1).sum().backward()).tolist() == y.tolist()
        x = burn.ones(10, device=where).require_grad()
        assert x.grad(F.dropout(x, 1.0, training=True).sum().backward()).tolist() == [0.0] * 10


@pytest.mark.parametrize("dtype", [burn.float32, burn.int32])
def test_b137_max_pool_padding_never_wins(dtype: Any, make: Any) -> None:
    x = make([[[-1, -2]]], dtype)
    found = F.max_pool1d(x, 3, 1, 1)
    assert found.dtype is dtype
    assert found.tolist() == [[[-1, -1]]]
    with pytest.raises(ValueError):
        F.max_pool1d(x, 2, 1, 2)


def test_b137_windows_of_minus_inf_keep_their_gradient(leaf: Any, slope: Any) -> None:
    low = float("-inf")
    x = leaf([[[low, low, low]]])
    assert F.max_pool1d(x, 3, 1, 1).tolist() == [[[low, low, low]]]
    grad = slope(lambda v: F.max_pool1d(v, 3, 3, 0), leaf([[[low, low, low]]]))
    assert grad.sum() == 1
