"""Normalisation inside a sample: layer, root mean square, group, instance, local response."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from burn_core import Buffer, Module, Parameter, init, is_training
from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError
from burn_std.dtypes import int64
from burn_tensor import Tensor, functional as F


def _shape(value: int | Sequence[int]) -> tuple[int, ...]:
    given: Any = value
    return tuple(given) if isinstance(given, (tuple, list)) else (index(given),)


def _ones(shape: tuple[int, ...], dtype: DType | None, device: Device | None) -> Parameter:
    weight = Parameter(init.fresh(shape, dtype, device))
    init.ones_(weight)
    return weight


class LayerNorm(Module):
    """Normalise over the last dims: y = (x - mean) / sqrt(var + eps) weight + bias.

    Args:
        normalized_shape: extents of the last dims.
        eps: added to the variance.
        elementwise_affine: learn a weight.
        bias: learn a bias too.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [..., *normalized_shape]; returns the same

    Example:
        >>> burn.nn.LayerNorm(4)(burn.zeros(2, 4)).shape
        (2, 4)

    Source: Ba, Kiros and Hinton 2016
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5,
        elementwise_affine: bool = True, bias: bool = True, device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        shape = _shape(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = _ones(shape, dtype, device) if elementwise_affine else None
        with_bias = elementwise_affine and bias
        self.bias = Parameter(init.fresh(shape, dtype, device)) if with_bias else None

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divide by the root mean square over the last dims: y = x / sqrt(mean(x^2) + eps) weight.

    Args:
        normalized_shape: extents of the last dims.
        eps: added to the mean; the distance from 1 to the next float of the input if None.
        elementwise_affine: learn a weight.
        device: where the parameter lives; the default device if None.
        dtype: of the parameter; the device's default float if None.

    Shapes:
        input: [..., *normalized_shape]; returns the same

    Example:
        >>> burn.nn.RMSNorm(2, eps=0.0)(burn.ones(1, 2)).tolist()
        [[1.0, 1.0]]

    Source: Zhang and Sennrich 2019
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None,
        elementwise_affine: bool = True, device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.weight = _ones(shape, dtype, device) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Normalise groups of channels of each sample, with a weight and bias per channel.

    Args:
        num_groups: how many groups; channels divide by it.
        num_channels: channels.
        eps: added to the variance.
        affine: learn weight and bias.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, *]; returns the same

    Raises:
        ArgumentError: channels do not divide by groups.

    Example:
        >>> burn.nn.GroupNorm(2, 4)(burn.zeros(1, 4, 3)).shape
        (1, 4, 3)

    Source: Wu and He 2018
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Device | None = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(
                "GroupNorm", "channels must divide by groups", got=f"{num_channels}, {num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = (num_channels,)
        self.weight = _ones(shape, dtype, device) if affine else None
        self.bias = Parameter(init.fresh(shape, dtype, device)) if affine and bias else None

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _InstanceNorm(Module):
    """What the instance norms of 1 to 3 dims share."""

    dims = 0

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Device | None = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = _ones(shape, dtype, device) if affine else None
        self.bias = Parameter(init.fresh(shape, dtype, device)) if affine and bias else None
        self.running_mean: Buffer | None = None
        self.running_var: Buffer | None = None
        self.num_batches_tracked: Buffer | None = None
        if track_running_stats:
            self.running_mean = Buffer(init.fresh(shape, dtype, device))
            self.running_var = Buffer(init.fresh(shape, dtype, device))
            # PyTorch's checkpoints hold it; nothing ever counts.
            self.num_batches_tracked = Buffer(init.fresh((), int64, device))
            init.ones_(self.running_var)

    def reset_parameters(self) -> None:
        """Fill the weight with 1 and the bias with 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input; in training tracked statistics follow the samples."""
        rank = len(input.shape)
        if rank not in (self.dims + 1, self.dims + 2):
            raise ShapeError(
                type(self).__name__, f"the input has rank {self.dims + 1} or {self.dims + 2}",
                got=input.shape,
            )  # fmt: skip
        x = input.unsqueeze(0) if rank == self.dims + 1 else input
        own = is_training() or not self.track_running_stats
        out = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum,
            self.eps,
        )  # fmt: skip
        return out.squeeze(0) if rank == self.dims + 1 else out


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each signal over its positions.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of a batch in the new running statistics.
        affine: learn weight and bias per channel.
        track_running_stats: keep running statistics and use them outside training.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, L] or [C, L]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel of a sample.

    Example:
        >>> burn.nn.InstanceNorm1d(2)(burn.zeros(3, 2, 4)).shape
        (3, 2, 4)

    Source: Ulyanov et al. 2016
    """

    dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each image over its positions.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of a batch in the new running statistics.
        affine: learn weight and bias per channel.
        track_running_stats: keep running statistics and use them outside training.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, H, W] or [C, H, W]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel of a sample.

    Example:
        >>> burn.nn.InstanceNorm2d(2)(burn.zeros(3, 2, 4, 4)).shape
        (3, 2, 4, 4)

    Source: Ulyanov et al. 2016
    """

    dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume over its positions.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of a batch in the new running statistics.
        affine: learn weight and bias per channel.
        track_running_stats: keep running statistics and use them outside training.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, D, H, W] or [C, D, H, W]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel of a sample.

    Example:
        >>> burn.nn.InstanceNorm3d(2)(burn.zeros(3, 2, 2, 2, 2)).shape
        (3, 2, 2, 2, 2)

    Source: Ulyanov et al. 2016
    """

    dims = 3


class LocalResponseNorm(Module):
    """Divide by a power of the mean square over neighbouring channels.

    y = x / (k + alpha mean(x^2 over size channels))^beta

    Args:
        size: how many channels, the own one in the middle.
        alpha: factor of the mean.
        beta: exponent.
        k: added to the mean.

    Shapes:
        input: [N, C, *]; returns the same

    Example:
        >>> burn.nn.LocalResponseNorm(2)(burn.zeros(1, 4, 3)).shape
        (1, 4, 3)

    Source: Krizhevsky et al. 2012
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
