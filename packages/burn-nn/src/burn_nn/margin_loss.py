"""Losses of margins, pairs, triplets and sequences; PyTorch's names and defaults."""

from __future__ import annotations

from collections.abc import Callable

from burn_core import Buffer, Module
from burn_tensor import Tensor, functional as F


class MarginRankingLoss(Module):
    """max(0, -target (x1 - x2) + margin): target 1 wants x1 above x2, -1 below.

    Args:
        margin: wanted distance.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.MarginRankingLoss(margin=1.0)
        >>> loss(burn.zeros(1), burn.zeros(1), burn.ones(1)).item()
        1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin = margin
        self.reduction = reduction

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class HingeEmbeddingLoss(Module):
    """x where target is 1, max(0, margin - x) where it is -1.

    Args:
        margin: wanted distance of what differs.
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.HingeEmbeddingLoss()(burn.zeros(1), -burn.ones(1)).item()
        1.0
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        self.margin = margin
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Module):
    """log(1 + exp(-target x)), targets 1 and -1.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> round(burn.nn.SoftMarginLoss()(burn.zeros(1), burn.ones(1)).item(), 4)
        0.6931
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CosineEmbeddingLoss(Module):
    """1 - cos(x1, x2) where target is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Args:
        margin: angle, as a cosine, that is far enough.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.CosineEmbeddingLoss()
        >>> loss(burn.ones(1, 2), burn.ones(1, 2), -burn.ones(1)).item() > 0.99
        True
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self.margin = margin
        self.reduction = reduction

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(Module):
    """sum over i != y of max(0, margin - x[y] + x[i])^p / C.

    Args:
        p: 1 or 2.
        margin: wanted distance.
        weight: factor per class.
        reduction: none, mean or sum.

    Example:
        >>> burn.nn.MultiMarginLoss()(burn.zeros(1, 2), burn.tensor([0])).item()
        0.5
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean"
    ) -> None:
        self.p = p
        self.margin = margin
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(Module):
    """sum over targets j, others i of max(0, 1 - x[j] + x[i]) / C; -1 ends the targets.

    Args:
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.MultiLabelMarginLoss()
        >>> loss(burn.zeros(1, 2), burn.tensor([[0, -1]])).item()
        0.5
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(Module):
    """Mean over the classes of the binary cross-entropy of logits.

    Args:
        weight: factor per class.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.MultiLabelSoftMarginLoss()
        >>> round(loss(burn.zeros(1, 2), burn.ones(1, 2)).item(), 4)
        0.6931
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(Module):
    """max(0, |a - p| - |a - n| + margin).

    Args:
        margin: how much farther the negative shall be.
        p: order of the norm.
        eps: added to differences.
        swap: take the nearer of anchor and positive to the negative.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.TripletMarginLoss()
        >>> round(loss(burn.zeros(1, 2), burn.zeros(1, 2), burn.zeros(1, 2)).item(), 4)
        1.0

    Source: Balntas et al. 2016
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap
        self.reduction = reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(Module):
    """Connectionist temporal classification: all alignments of a shorter target.

    Args:
        blank: class of no label.
        reduction: none, mean or sum.
        zero_infinity: targets too long for their input count 0, with gradient 0.

    Shapes:
        log_probs: [T, N, C] or [T, C]
        targets: [N, S] or the targets one after the other
        input_lengths, target_lengths: [N]

    Example:
        >>> log_probs = burn.zeros(3, 1, 2).log_softmax(-1)
        >>> loss = burn.nn.CTCLoss()
        >>> round(loss(log_probs, burn.tensor([[1]]), burn.tensor([3]), burn.tensor([1])).item(), 4)
        0.2877

    Source: Graves et al. 2006
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        self.blank = blank
        self.reduction = reduction
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """Return the loss."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            blank=self.blank,
            reduction=self.reduction,
            zero_infinity=self.zero_infinity,
        )


class TripletMarginWithDistanceLoss(Module):
    """max(0, d(a, p) - d(a, n) + margin) with a distance of one's own.

    Args:
        distance_function: takes two tensors; the Euclidean distance if None.
        margin: how much farther the negative shall be.
        swap: take the nearer of anchor and positive to the negative.
        reduction: none, mean or sum.

    Example:
        >>> loss = burn.nn.TripletMarginWithDistanceLoss(
        ...     distance_function=lambda a, b: (a - b).abs().sum(-1))
        >>> loss(burn.zeros(1, 2), burn.zeros(1, 2), burn.ones(1, 2)).item()
        0.0
    """

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0, swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap
        self.reduction = reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip
