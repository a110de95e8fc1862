"""Losses that PyTorch lacks: powers, focal, dice, contrastive."""

from __future__ import annotations

from typing import Any

from burn_core import Buffer, Module
from burn_std import ArgumentError, ShapeError
from burn_tensor import Tensor, functional as F


def reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    """Return a loss reduced.

    Args:
        name: what an error names.
        loss: one number per element.
        reduction: none, mean or sum.

    Raises:
        ArgumentError: another reduction.
    """
    given: Any = reduction
    if not isinstance(given, str) or given not in ("none", "mean", "sum"):
        raise ArgumentError(name, "reduction is none, mean or sum", got=repr(reduction))
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


class LpLoss(Module):
    """|x - target|^p.

    Args:
        p: the power; positive.
        reduction: none, mean or sum.

    Raises:
        ArgumentError: p is not positive.

    Example:
        >>> burn.nn.LpLoss(3.0)(burn.zeros(2), burn.full((2,), 2.0)).item()
        8.0
    """

    def __init__(self, p: float = 2.0, reduction: str = "mean") -> None:
        if not p > 0:
            raise ArgumentError("LpLoss", "p is positive", got=p)
        self.p = p
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        d = (input - target).abs()
        # The slope of a power below 2 is no float at 0, those of 1 and 2 are.
        loss = d if self.p == 1 else d * d if self.p == 2 else d**self.p
        return reduced("LpLoss", loss, self.reduction)


class FocalLoss(Module):
    """Cross-entropy of logits in which what is known well counts little: (1 - p)^gamma times it.

    Targets of the input's shape (0 to 1) are binary labels, as in torchvision: the positive part
    is weighted by alpha, the negative by 1 - alpha. Integer targets are classes along dim 1.

    Args:
        alpha: weight of positives; None for none. Not used with classes.
        gamma: how fast the well known fade.
        weight: factor per class.
        reduction: none, mean or sum.

    Shapes:
        input: [*], target: [*]; or input: [N, C, *], target: [N, *] of integers

    Example:
        >>> loss = burn.nn.FocalLoss(alpha=None)
        >>> round(loss(burn.zeros(1), burn.ones(1)).item(), 4)  # 0.5^2 log 2
        0.1733

    Source: Lin et al. 2017
    """

    def __init__(
        self, alpha: float | None = 0.25, gamma: float = 2.0, weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        self.alpha = alpha
        self.gamma = gamma
        self.weight = None if weight is None else Buffer(weight)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        if target.dtype.is_int and target.shape != input.shape:
            logs = F.log_softmax(input, 1)
            loss = F.nll_loss(logs, target, self.weight, reduction="none")
            known = logs.gather(1, target.unsqueeze(1).long()).squeeze(1).exp()
            return reduced("FocalLoss", (1.0 - known) ** self.gamma * loss, self.reduction)
        goal = target.to(input.dtype)
        loss = F.binary_cross_entropy_with_logits(input, goal, self.weight, reduction="none")
        p = input.sigmoid()
        missed = p + goal - 2.0 * p * goal
        loss = loss * missed**self.gamma
        if self.alpha is not None:
            loss = loss * (self.alpha * goal + (1.0 - self.alpha) * (1.0 - goal))
        return reduced("FocalLoss", loss, self.reduction)


class DiceLoss(Module):
    """1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth), per sample and class.

    Args:
        smooth: added above and below; keeps empty masks at 0.
        from_logits: take the sigmoid of the input first.
        reduction: none, mean or sum over samples and classes.

    Shapes:
        input, target: [N, C, *]; without positions [N, *] counts as one class

    Example:
        >>> burn.nn.DiceLoss()(burn.ones(1, 1, 4), burn.ones(1, 1, 4)).item()
        0.0

    Source: Milletari et al., V-Net, 2016
    """

    def __init__(
        self, smooth: float = 1.0, from_logits: bool = False, reduction: str = "mean"
    ) -> None:
        self.smooth = smooth
        self.from_logits = from_logits
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        if input.shape != target.shape or len(input.shape) < 2:
            raise ShapeError(
                "DiceLoss", "input and target have one shape, [N, C, *] or [N, *]",
                got=f"{input.shape}, {target.shape}",
            )  # fmt: skip
        p = input.sigmoid() if self.from_logits else input
        t = target.to(p.dtype)
        dims = tuple(range(2 if len(p.shape) > 2 else 1, len(p.shape)))
        both, each = (p * t).sum(dims), p.sum(dims) + t.sum(dims)
        loss = 1.0 - (2.0 * both + self.smooth) / (each + self.smooth)
        return reduced("DiceLoss", loss, self.reduction)


class ContrastiveLoss(Module):
    """d^2 where target is 1, max(0, margin - d)^2 where it is 0, d the distance of a pair; halved.

    Args:
        margin: how far what differs shall be.
        reduction: none, mean or sum.

    Shapes:
        input1, input2: [N, D]; target: [N]

    Example:
        >>> loss = burn.nn.ContrastiveLoss(margin=2.0)
        >>> round(loss(burn.zeros(1, 2), burn.zeros(1, 2), burn.zeros(1)).item(), 3)
        2.0

    Source: Hadsell, Chopra and LeCun 2006
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        self.margin = margin
        self.reduction = reduction

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        d = F.pairwise_distance(input1, input2)
        t = target.to(d.dtype)
        far = F.relu(self.margin - d)
        loss = 0.5 * (t * d * d + (1.0 - t) * far * far)
        return reduced("ContrastiveLoss", loss, self.reduction)
