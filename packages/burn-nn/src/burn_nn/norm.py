"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from burn_core import Buffer, Module, Parameter, init, is_training
from burn_core.init import fresh
from burn_dispatch import Device, current_scope
from burn_std import DType, ShapeError
from burn_std.dtypes import int64
from burn_tensor import Tensor, functional as F


class _BatchNorm(Module):
    """What the batch norms of 1 to 3 dims share."""

    ranks: tuple[int, ...] = ()

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = Parameter(fresh(shape, dtype, device)) if affine else None
        self.bias = Parameter(fresh(shape, dtype, device)) if affine else None
        self.running_mean: Buffer | None = None
        self.running_var: Buffer | None = None
        self.num_batches_tracked: Buffer | None = None
        if track_running_stats:
            self.running_mean = Buffer(fresh(shape, dtype, device))
            self.running_var = Buffer(fresh(shape, dtype, device))
            self.num_batches_tracked = Buffer(fresh((), int64, device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight 1, bias 0, running mean 0 and variance 1."""
        for leaf, value in ((self.weight, 1.0), (self.bias, 0.0), (self.running_mean, 0.0), (self.running_var, 1.0)):
            if leaf is not None:
                init.constant_(leaf, value)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised tensor; in training the running statistics follow the batch."""
        if len(x.shape) not in self.ranks:
            raise ShapeError(type(self).__name__, f"the input has rank {' or '.join(map(str, self.ranks))}", got=x.shape)
        training = is_training()
        use_batch = training or not self.track_running_stats
        mean: Any = self.running_mean
        var: Any = self.running_var
        momentum = 0.0 if self.momentum is None else self.momentum
        update = training and self.track_running_stats and not current_scope().recompute
        if update:
            assert self.num_batches_tracked is not None  # noqa: S101 - made when statistics are
            self.num_batches_tracked.set(self.num_batches_tracked.detach() + 1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked.item())
        if use_batch and not update:
            mean = var = None
        return F.batch_norm(x, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)

    def extra_repr(self) -> str:
        """Return the number of features."""
        return f"{self.num_features}, eps {self.eps}, momentum {self.momentum}"


_DOC = """Normalise each channel over the batch and the positions.

    y = (x - mean) / sqrt(var + eps) * weight + bias

    In training mean and (biased) variance are the batch's and the running statistics move towards
    them by `momentum` (the variance unbiased); else the running statistics are used.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of the new value; None takes the average over all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        x and the result: {shape}

    Example:
        >>> import burn_tensor as bt
        >>> BatchNorm{n}d(2)(bt.zeros({zeros})).shape
        ({zeros})

    Source: Ioffe and Szegedy 2015.
    """


class BatchNorm1d(_BatchNorm):
    __doc__ = _DOC.format(n=1, shape="[N, C] or [N, C, L]", zeros="3, 2, 4")
    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _DOC.format(n=2, shape="[N, C, H, W]", zeros="3, 2, 4, 4")
    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _DOC.format(n=3, shape="[N, C, D, H, W]", zeros="3, 2, 4, 4, 4")
    ranks = (5,)


class LayerNorm(Module):
    """Normalise over the last dims: y = (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        normalized_shape: extents of the last dims.
        eps: added to the variance.
        elementwise_affine: learn a weight.
        bias: learn a bias too.
        device: where the parameters live; default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        x and the result: [..., *normalized_shape]

    Example:
        >>> import burn_tensor as bt
        >>> LayerNorm(4)(bt.zeros(2, 4)).shape
        (2, 4)

    Source: Ba, Kiros and Hinton 2016.
    """

    def __init__(
        self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.weight = Parameter(fresh(shape, dtype, device)) if elementwise_affine else None
        self.bias = Parameter(fresh(shape, dtype, device)) if elementwise_affine and bias else None
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised tensor."""
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the normalised shape."""
        return f"{list(self.normalized_shape)}, eps {self.eps}"
