"""Dropout family: on only where the outermost module call shows training behaviour."""

from __future__ import annotations

from collections.abc import Callable

from burn_core import Module, is_training
from burn_std import ArgumentError
from burn_tensor import Tensor, functional as F, randn_like


class _Dropout(Module):
    """What the dropouts share."""

    _drop: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(type(self).__name__, "p is a probability", got=p)
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with dropout in training."""
        return self._drop(input, self.p, is_training())


class Dropout(_Dropout):
    """Zero elements with probability p in training, and scale the others by 1 / (1 - p).

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.Dropout(0.5)
        >>> bool((layer(burn.ones(1, 2, 2, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Srivastava et al. 2014
    """

    _drop = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """Zero whole channels of [N, C, L] or [C, L] with probability p in training.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.Dropout1d(0.5)
        >>> bool((layer(burn.ones(1, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Tompson et al. 2015
    """

    _drop = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """Zero whole channels of [N, C, H, W] with probability p in training.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.Dropout2d(0.5)
        >>> bool((layer(burn.ones(1, 2, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Tompson et al. 2015
    """

    _drop = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """Zero whole channels of [N, C, D, H, W] with probability p in training.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.Dropout3d(0.5)
        >>> bool((layer(burn.ones(1, 2, 2, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Tompson et al. 2015
    """

    _drop = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of a SELU network.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.AlphaDropout(0.5)
        >>> bool((layer(burn.ones(1, 2, 2, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Klambauer et al. 2017
    """

    _drop = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> layer = burn.nn.FeatureAlphaDropout(0.5)
        >>> bool((layer(burn.ones(1, 2, 2, 2, 2)) == 1).all())  # no autodiff device: no training
        True

    Source: Klambauer et al. 2017
    """

    _drop = staticmethod(F.feature_alpha_dropout)


class GaussianNoise(Module):
    """Add normal noise in training.

    Args:
        std: standard deviation of the noise.

    Raises:
        ArgumentError: std is negative.

    Example:
        >>> burn.nn.GaussianNoise(0.1)(burn.ones(2)).tolist()  # no autodiff device: no training
        [1.0, 1.0]
    """

    def __init__(self, std: float) -> None:
        if not std >= 0.0:
            raise ArgumentError("GaussianNoise", "std is not negative", got=std)
        self.std = std

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with noise in training."""
        if not is_training() or self.std == 0.0:
            return input
        return input + randn_like(input.detach()) * self.std


class DropPath(_Dropout):
    """Zero whole samples of a residual branch with probability p in training.

    Args:
        p: probability of zero.
        inplace: leave to overwrite the input, which is never made use of.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> burn.nn.DropPath(0.5)(burn.ones(2)).tolist()  # no autodiff device: no training
        [1.0, 1.0]

    Source: Huang et al., Deep Networks with Stochastic Depth, 2016
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with samples dropped in training."""
        if not is_training() or self.p == 0.0:
            return input
        ones = input.detach().new_ones((input.shape[0], *[1] * (len(input.shape) - 1)))
        return input * F.dropout(ones, self.p, True)
