"""Losses of regression and classification; PyTorch's names, arguments and defaults."""

from __future__ import annotations

from burn_core import Buffer, Module
from burn_tensor import Tensor, functional as F


class L1Loss(Module):
    """|x - target|.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.L1Loss()(burn.zeros(2), burn.ones(2)).item()
        1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Module):
    """(x - target)^2.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.MSELoss()(burn.zeros(2), burn.ones(2)).item()
        1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Module):
    """d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2.

    Args:
        reduction: none, mean or sum.
        beta: where the formula changes.

    Example:
        >>> burn.nn.SmoothL1Loss()(burn.zeros(2), burn.ones(2)).item()
        0.5
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        self.reduction = reduction
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Module):
    """d^2 / 2 where d = |x - target| <= delta, else delta (d - delta / 2).

    Args:
        reduction: none, mean or sum.
        delta: where the formula changes.

    Example:
        >>> burn.nn.HuberLoss()(burn.zeros(2), burn.ones(2)).item()
        0.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self.reduction = reduction
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(Module):
    """Cross-entropy of logits with class indices or with probabilities (soft targets).

    Args:
        weight: factor per class, [C].
        ignore_index: target that does not count.
        reduction: none, mean or sum.
        label_smoothing: share of the target spread over all classes.

    Shapes:
        input: [N, C, *] or [C]
        target: [N, *] or [] of integers, or of the input's shape and floats

    Example:
        >>> loss = burn.nn.CrossEntropyLoss()
        >>> round(loss(burn.zeros(1, 2), burn.tensor([0])).item(), 4)
        0.6931
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Module):
    """Negative log-likelihood of log-probabilities with class indices.

    Args:
        weight: factor per class, [C].
        ignore_index: target that does not count.
        reduction: none, mean or sum.

    Shapes:
        input: [N, C, *] or [C]
        target: [N, *] or []

    Example:
        >>> loss = burn.nn.NLLLoss()
        >>> loss(burn.tensor([[-1.0, -2.0]]), burn.tensor([1])).item()
        2.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class BCELoss(Module):
    """Binary cross-entropy of probabilities; logarithms are cut at -100.

    Args:
        weight: factor per element, broadcast.
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.BCELoss()(burn.ones(1), burn.ones(1)).item()
        0.0
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Module):
    """Binary cross-entropy of 1 / (1 + exp(-x)), stable for any finite x.

    Args:
        weight: factor per element, broadcast.
        reduction: none, mean or sum.
        pos_weight: factor of the positive part, per class.

    Example:
        >>> round(burn.nn.BCEWithLogitsLoss()(burn.zeros(1), burn.ones(1)).item(), 4)
        0.6931
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction
        self.pos_weight = None if pos_weight is None else Buffer(pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(Module):
    """Kullback-Leibler divergence of log-probabilities from a target.

    Args:
        reduction: none, mean, batchmean or sum.
        log_target: the target is a logarithm too.

    Example:
        >>> burn.nn.KLDivLoss("sum")(burn.zeros(1), burn.ones(1)).item()
        0.0
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(Module):
    """Negative log-likelihood of counts with a Poisson distribution.

    Args:
        log_input: the input is the logarithm of the rate.
        full: add Stirling's approximation of log(target!).
        eps: added to a rate before its logarithm.
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.PoissonNLLLoss()(burn.zeros(1), burn.zeros(1)).item()
        1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        self.log_input = log_input
        self.full = full
        self.eps = eps
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(Module):
    """Negative log-likelihood of a target with a normal distribution.

    Args:
        full: add log(2 pi) / 2.
        eps: least variance.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.GaussianNLLLoss()
        >>> loss(burn.zeros(1), burn.ones(1), burn.ones(1)).item()
        0.5
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self.full = full
        self.eps = eps
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """Return the loss."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )
