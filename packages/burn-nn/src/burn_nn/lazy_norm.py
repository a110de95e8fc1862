"""Norms that learn their number of features from the first input."""

from __future__ import annotations

from typing import Any

from burn_core import Buffer, Parameter
from burn_dispatch import Device
from burn_nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from burn_nn.lazy import Lazy
from burn_nn.norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from burn_std import DType


class _LazyNorm(Lazy):
    """What the lazy batch and instance norms share."""

    size = "num_features"

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Device | None = None, dtype: DType | None = None,
        *, bias: bool = True,
    ) -> None:  # fmt: skip
        kind: Any = self.plain
        made = kind(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name, value in made.__dict__.items():
            if not name.startswith("__"):
                lazy = isinstance(value, Parameter)
                self.__dict__[name] = Parameter.lazy(dtype, device) if lazy else value

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters."""
        shape = (self.__dict__[self.size],)
        for name in ("running_mean", "running_var"):
            buffer = self.__dict__[name]
            if isinstance(buffer, Buffer) and buffer.shape != shape:
                start = 0.0 if name == "running_mean" else 1.0
                # The object stays: valid() copies share it.
                buffer.replace(buffer.b.full(buffer.dtype, shape, start))
        return {"weight": shape, "bias": shape}


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A `BatchNorm1d` that takes num_features from its first input.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyBatchNorm1d()
        >>> layer(burn.zeros(3, 2)).shape, layer.num_features
        ((3, 2), 2)
    """

    plain = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A `BatchNorm2d` that takes num_features from its first input.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyBatchNorm2d()
        >>> layer(burn.zeros(3, 2, 4, 4)).shape, layer.num_features
        ((3, 2, 4, 4), 2)
    """

    plain = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A `BatchNorm3d` that takes num_features from its first input.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics; None takes the average of all batches.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyBatchNorm3d()
        >>> layer(burn.zeros(3, 2, 2, 2, 2)).shape, layer.num_features
        ((3, 2, 2, 2, 2), 2)
    """

    plain = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An `InstanceNorm1d` that takes num_features from its first input.

    As in PyTorch it learns weight and bias and keeps statistics unless told not to.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyInstanceNorm1d()
        >>> layer(burn.zeros(3, 2, 4)).shape, layer.num_features
        ((3, 2, 4), 2)
    """

    plain = InstanceNorm1d
    dim = -2


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An `InstanceNorm2d` that takes num_features from its first input.

    As in PyTorch it learns weight and bias and keeps statistics unless told not to.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyInstanceNorm2d()
        >>> layer(burn.zeros(3, 2, 4, 4)).shape, layer.num_features
        ((3, 2, 4, 4), 2)
    """

    plain = InstanceNorm2d
    dim = -3


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An `InstanceNorm3d` that takes num_features from its first input.

    As in PyTorch it learns weight and bias and keeps statistics unless told not to.

    Args:
        eps: added to the variance.
        momentum: share of the batch in the new statistics.
        affine: learn weight and bias.
        track_running_stats: keep running statistics.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.
        bias: False learns a weight alone.

    Example:
        >>> layer = burn.nn.LazyInstanceNorm3d()
        >>> layer(burn.zeros(3, 2, 2, 2, 2)).shape, layer.num_features
        ((3, 2, 2, 2, 2), 2)
    """

    plain = InstanceNorm3d
    dim = -4
