"""Losses as modules; PyTorch's names, arguments and defaults."""

from __future__ import annotations

from typing import Any

from burn_core import Buffer, Module
from burn_tensor import Tensor, functional as F


class _Loss(Module):
    """What the losses share: a reduction."""

    reduction: str


class MSELoss(_Loss):
    """Mean of (x - target)^2.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> import burn_tensor as bt
        >>> MSELoss()(bt.zeros(2), bt.ones(2)).item()
        1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Mean of |x - target|.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> import burn_tensor as bt
        >>> L1Loss()(bt.zeros(2), bt.ones(2)).item()
        1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Quadratic below beta, linear above.

    Args:
        reduction: none, mean or sum.
        beta: where it changes.

    Example:
        >>> import burn_tensor as bt
        >>> SmoothL1Loss()(bt.zeros(2), bt.ones(2)).item()
        0.5
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        self.reduction = reduction
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Quadratic below delta, linear above, with slope delta.

    Args:
        reduction: none, mean or sum.
        delta: where it changes.

    Example:
        >>> import burn_tensor as bt
        >>> HuberLoss()(bt.zeros(2), bt.ones(2)).item()
        0.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self.reduction = reduction
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_Loss):
    """Cross-entropy of logits with class indices or probabilities.

    Args:
        weight: weight per class.
        ignore_index: target that does not count.
        reduction: none, mean or sum.
        label_smoothing: share spread over all classes.

    Shapes:
        input: [N, C, *] or [C]; target: [N, *] of ints, or the input's shape of floats

    Example:
        >>> import burn_tensor as bt
        >>> round(CrossEntropyLoss()(bt.zeros(1, 2), bt.tensor([0])).item(), 4)
        0.6931
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class NLLLoss(_Loss):
    """Negative log-likelihood of log-probabilities with class indices.

    Args:
        weight: weight per class.
        ignore_index: target that does not count.
        reduction: none, mean or sum.

    Example:
        >>> import burn_tensor as bt
        >>> NLLLoss()(bt.tensor([[-1.0, -2.0]]), bt.tensor([1])).item()
        2.0
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Loss):
    """Binary cross-entropy of probabilities, logs capped at -100.

    Args:
        weight: weight per element, broadcast.
        reduction: none, mean or sum.

    Example:
        >>> import burn_tensor as bt
        >>> BCELoss()(bt.ones(1), bt.ones(1)).item()
        0.0
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of sigmoid(input), stable for any finite input.

    Args:
        weight: weight per element, broadcast.
        reduction: none, mean or sum.
        pos_weight: weight of positive targets per class.

    Example:
        >>> import burn_tensor as bt
        >>> round(BCEWithLogitsLoss()(bt.zeros(1), bt.ones(1)).item(), 4)
        0.6931
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction
        self.pos_weight = None if pos_weight is None else Buffer(pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of log-probabilities from a target.

    Args:
        reduction: none, mean, batchmean or sum.
        log_target: the target is a log-probability too.

    Example:
        >>> import burn_tensor as bt
        >>> KLDivLoss(reduction="sum")(bt.zeros(1), bt.ones(1)).item()
        0.0
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Return the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)
