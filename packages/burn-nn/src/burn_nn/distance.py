"""Distances and similarities as modules."""

from __future__ import annotations

from burn_core import Module
from burn_tensor import Tensor, functional as F


class CosineSimilarity(Module):
    """x1 x2 / max(|x1| |x2|, eps) along a dim.

    Args:
        dim: the dim.
        eps: least product of the norms.

    Example:
        >>> round(burn.nn.CosineSimilarity()(burn.ones(1, 2), burn.ones(1, 2)).item(), 4)
        1.0
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the similarity."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of x1 - x2 + eps along the last dim.

    Args:
        p: order of the norm.
        eps: added to every difference.
        keepdim: keep the last dim.

    Example:
        >>> round(burn.nn.PairwiseDistance()(burn.zeros(1, 2), burn.ones(1, 2)).item(), 4)
        1.4142
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distance."""
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
