"""Normalisation: running statistics, small and huge values, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import float16, float64
from burn_tensor import functional as F


class Buffer(burn.Tensor):
    """Stands in for burn_core's class, which lies above this package."""

    is_buffer = True

    def __new__(cls, value: burn.Tensor) -> Buffer:
        made: Buffer = object.__new__(cls)
        made.b, made.v, made.node = value.b, value.v, None
        return made

    def __init__(self, value: burn.Tensor) -> None:
        pass

    def set(self, value: burn.Tensor) -> None:
        self.v = value.to(self.dtype).v


X = [[1.0], [2.0], [3.0], [4.0]]


def test_batch_norm_has_two_variances() -> None:  # B79
    mean, var = Buffer(burn.zeros(1)), Buffer(burn.ones(1))
    out = F.batch_norm(burn.tensor(X), mean, var, training=True)
    expected = [-1.341635, -0.447212, 0.447212, 1.341635]
    np.testing.assert_allclose(out.flatten().numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(mean.numpy(), [0.25], rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), [1.0666667], rtol=1e-6)
    later = F.batch_norm(burn.tensor(X), mean, var)
    expected = [0.726181, 1.694422, 2.662664, 3.630905]
    np.testing.assert_allclose(later.flatten().numpy(), expected, rtol=1e-5)


def test_plain_tensors_are_values_and_stay() -> None:
    mean, var = burn.zeros(1), burn.ones(1)
    F.batch_norm(burn.tensor(X), mean, var, training=True)
    F.instance_norm(burn.tensor([[[1.0, 3.0]]]), mean, var)
    assert mean.tolist() == [0.0]
    assert var.tolist() == [1.0]


def test_buffers_are_rebound_untracked_on_an_autodiff_device() -> None:
    x = burn.tensor(X, device=Device.default().autodiff()).require_grad()
    mean, var = Buffer(burn.zeros(1)), Buffer(burn.ones(1, dtype=float64))
    F.batch_norm(x, mean, var, training=True, momentum=1.0)
    assert mean.node is None
    assert mean.tolist() == [2.5]
    assert var.dtype is float64
    assert not mean.b.is_autodiff


def test_a_checkpoint_updates_buffers_once() -> None:
    x = burn.tensor(X, device=Device.default().autodiff()).require_grad()
    mean, var = Buffer(burn.zeros(1)), Buffer(burn.ones(1))
    y = burn.checkpoint(lambda a: F.batch_norm(a, mean, var, training=True), x)
    first = mean.tolist()
    y.sum().backward()
    assert mean.tolist() == first


def test_instance_norm_tracks_the_mean_over_samples() -> None:
    mean, var = Buffer(burn.zeros(1)), Buffer(burn.zeros(1))
    F.instance_norm(burn.tensor([[[0.0, 2.0]], [[4.0, 8.0]]]), mean, var, momentum=0.5)
    assert mean.tolist() == [1.75]
    assert var.tolist() == [0.5 * (2.0 + 8.0) / 2]


def test_one_value_per_channel_is_refused() -> None:
    with pytest.raises(ShapeError, match="batch_norm: training needs more than one value"):
        F.batch_norm(burn.ones(1, 3), None, None, training=True)
    with pytest.raises(ShapeError, match="instance_norm: needs more than one value"):
        F.instance_norm(burn.ones(2, 3, 1))
    with pytest.raises(ShapeError, match="group_norm: needs more than one value"):
        F.group_norm(burn.ones(1, 3), 3)
    with pytest.raises(ArgumentError, match="running statistics"):
        F.batch_norm(burn.ones(2, 3), None, None)


def test_last_dims_must_be_the_normalised_shape() -> None:
    with pytest.raises(ShapeError, match="layer_norm: the input's last dims"):
        F.layer_norm(burn.ones(2, 3), (2,))
    with pytest.raises(ShapeError, match="rms_norm: the input's last dims"):
        F.rms_norm(burn.ones(2, 3), ())


def test_layer_norm_of_zeros_in_half_precision() -> None:  # B44
    x = burn.zeros(4, dtype=float16)
    assert F.layer_norm(x, (4,), eps=1e-12).tolist() == [0.0] * 4


def test_normalize_along_several_dims() -> None:
    x = burn.tensor([[[3.0, 0.0], [0.0, 4.0]]])
    np.testing.assert_allclose(F.normalize(x, dim=(1, 2)).numpy(), x.numpy() / 5, rtol=1e-6)


def test_cosine_similarity_of_a_zero_vector_is_zero_with_a_gradient() -> None:
    x = burn.tensor([[0.0, 0.0]], device=Device.default().autodiff()).require_grad()
    out = F.cosine_similarity(x, burn.tensor([[1.0, 0.0]]))
    assert out.tolist() == [0.0]
    assert np.isfinite(x.grad(out.sum().backward()).numpy()).all()
