"""Dropout: on only where the outermost module call shows training behaviour."""

from __future__ import annotations

from burn_core import Module, is_training
from burn_std import ArgumentError
from burn_tensor import Tensor, functional as F


class _Dropout(Module):
    """What the dropouts share."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(type(self).__name__, "p is a probability", got=p)
        self.p = p

    def extra_repr(self) -> str:
        """Return the probability."""
        return f"p {self.p}"


class Dropout(_Dropout):
    """Zero elements with probability p in training and scale the others by 1 / (1 - p).

    Args:
        p: probability of zero.

    Raises:
        ArgumentError: p is outside [0, 1].

    Example:
        >>> import burn_tensor as bt
        >>> Dropout(0.5)(bt.ones(2)).tolist()  # a plain device: no training, no dropout
        [1.0, 1.0]

    Source: Srivastava et al. 2014.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dropout in training."""
        return F.dropout(x, self.p, is_training())


class Dropout1d(_Dropout):
    """Zero whole channels of [N, C, L] in training.

    Example:
        >>> import burn_tensor as bt
        >>> Dropout1d()(bt.ones(1, 2, 3)).shape
        (1, 2, 3)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channel dropout in training."""
        return F.dropout1d(x, self.p, is_training())


class Dropout2d(_Dropout):
    """Zero whole channels of [N, C, H, W] in training.

    Example:
        >>> import burn_tensor as bt
        >>> Dropout2d()(bt.ones(1, 2, 3, 3)).shape
        (1, 2, 3, 3)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channel dropout in training."""
        return F.dropout2d(x, self.p, is_training())
