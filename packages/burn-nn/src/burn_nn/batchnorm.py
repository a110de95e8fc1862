"""Batch normalisation, with running statistics in Buffers that `valid()` copies share."""

from __future__ import annotations

from burn_core import Buffer, Module, Parameter, init, is_training, updates_statistics
from burn_dispatch import Device
from burn_std import DType, ShapeError
from burn_std.dtypes import float32, int64
from burn_tensor import Tensor, functional as F


class _BatchNorm(Module):
    """What the batch norms of 1 to 3 dims share."""

    ranks: tuple[int, ...] = ()

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Device | None = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = Parameter(init.fresh(shape, dtype, device)) if affine else None
        self.bias = Parameter(init.fresh(shape, dtype, device)) if affine and bias else None
        self.running_mean: Buffer | None = None
        self.running_var: Buffer | None = None
        self.num_batches_tracked: Buffer | None = None
        if track_running_stats:
            self.running_mean = Buffer(init.fresh(shape, dtype, device))
            self.running_var = Buffer(init.fresh(shape, dtype, device))
            self.num_batches_tracked = Buffer(init.fresh((), int64, device))
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set running mean and count to 0 and running variance to 1."""
        for leaf, value in (
            (self.running_mean, 0.0), (self.running_var, 1.0), (self.num_batches_tracked, 0),
        ):  # fmt: skip
            if leaf is not None:
                init.constant_(leaf, value)

    def reset_parameters(self) -> None:
        """Set weight 1, bias 0, and the running statistics to their start."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input; in training the running statistics follow the batch."""
        if len(input.shape) not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            raise ShapeError(type(self).__name__, f"the input has rank {ranks}", got=input.shape)
        mean, var, count = self.running_mean, self.running_var, self.num_batches_tracked
        if mean is None or var is None or count is None:
            return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)
        if not is_training():
            return F.batch_norm(input, mean, var, self.weight, self.bias, False, 0.0, self.eps)
        momentum = self.momentum
        own = momentum is not None
        out = F.batch_norm(
            input, mean if own else None, var if own else None, self.weight, self.bias, True,
            momentum or 0.0, self.eps,
        )  # fmt: skip
        # A batch that is refused, or holds nothing, is none that was seen.
        if updates_statistics() and 0 not in input.shape:
            count.set(count.detach() + 1)
            if momentum is None:
                _average(input, mean, var, count)
        return out


def _average(input: Tensor, mean: Buffer, var: Buffer, count: Buffer) -> None:
    """Move running statistics to the average over all batches; the count is not read."""
    x = input.detach()
    if x.dtype.bits == 16:
        x = x.to(float32)
    dims = (0, *range(2, len(x.shape)))
    share = count.detach().to(x.dtype).reciprocal()
    for running, seen in ((mean, x.mean(dims)), (var, x.var(dims))):
        old = running.detach().to(x.dtype)
        running.set(old + (seen - old) * share)


class BatchNorm1d(_BatchNorm):
    """Normalise each channel over the batch and the positions.

    y = (x - mean) / sqrt(var + eps) weight + bias

    In training, mean and (biased) variance are the batch's, and the running statistics move
    towards them by `momentum` (the variance unbiased); else the running statistics are used.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics; without them the batch's are always used.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C] or [N, C, L]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel in training.

    Example:
        >>> burn.nn.BatchNorm1d(2)(burn.zeros(3, 2, 4)).shape
        (3, 2, 4)

    Source: Ioffe and Szegedy 2015
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of images over the batch and the positions, as `BatchNorm1d` does.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics; without them the batch's are always used.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, H, W]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel in training.

    Example:
        >>> burn.nn.BatchNorm2d(2)(burn.zeros(3, 2, 4, 4)).shape
        (3, 2, 4, 4)

    Source: Ioffe and Szegedy 2015
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of volumes over the batch and the positions, as `BatchNorm1d` does.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics; without them the batch's are always used.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Shapes:
        input: [N, C, D, H, W]; returns the same

    Raises:
        ShapeError: another rank, or one value per channel in training.

    Example:
        >>> burn.nn.BatchNorm3d(2)(burn.zeros(3, 2, 2, 2, 2)).shape
        (3, 2, 2, 2, 2)

    Source: Ioffe and Szegedy 2015
    """

    ranks = (5,)
