"""A softmax over very many classes in which rare ones share clusters with small layers."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

from burn_core import Module
from burn_dispatch import Device
from burn_nn.containers import ModuleList, Sequential
from burn_nn.linear import Linear
from burn_std import ArgumentError, DType, DTypeError, IndexRangeError, ShapeError
from burn_tensor import Tensor, cat, functional as F, tensor


class ASMOutput(NamedTuple):
    """What `AdaptiveLogSoftmaxWithLoss` returns.

    Attributes:
        output: log-probability of the target, per row.
        loss: its mean, negated.
    """

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities over many classes, sorted from frequent to rare, and their loss.

    The head decides among the classes below the first cutoff and one entry per cluster; the layers
    of a cluster get smaller with its rarity and see only the rows that fall into it. The targets
    are read on the host, to know which rows these are.

    Args:
        in_features: size of a row.
        n_classes: how many classes.
        cutoffs: where clusters begin, ascending, below n_classes.
        div_value: cluster i has an inner size of in_features / div_value^(i + 1).
        head_bias: add a bias in the head.
        device: where the parameters live; the default device if None.
        dtype: of the parameters; the device's default float if None.

    Shapes:
        input: [N, in_features] or [in_features]
        target: [N] or []
        returns: output [N] or [], loss []

    Raises:
        ArgumentError: the cutoffs are not ascending between 1 and n_classes - 1.
        ShapeError: input and target do not fit.
        IndexRangeError: a target is no class.
        DTypeError: the targets are no integers.

    Example:
        >>> layer = burn.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
        >>> output, loss = layer(burn.zeros(3, 8), burn.tensor([0, 7, 19]))
        >>> output.shape, loss.shape, layer.log_prob(burn.zeros(3, 8)).shape
        ((3,), (), (3, 20))

    Source: Grave et al., Efficient softmax approximation for GPUs, 2017
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        edges = [index(c) for c in cutoffs]
        if not edges or edges != sorted({*edges}) or not 0 < edges[0] <= edges[-1] < n_classes:
            raise ArgumentError(
                type(self).__name__, "cutoffs ascend, each between 1 and n_classes - 1",
                got=f"{list(cutoffs)} for {n_classes} classes",
            )  # fmt: skip
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*edges, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = edges[0]
        self.n_clusters = len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for k in range(self.n_clusters):
            inner = int(in_features // div_value ** (k + 1))
            classes = self.cutoffs[k + 1] - self.cutoffs[k]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, device, dtype),
                    Linear(inner, classes, False, device, dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Fill the layers of head and clusters anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> Any:
        """Return the targets as an array, [N]."""
        name = type(self).__name__
        rank = len(input.shape)
        if rank not in (1, 2) or input.shape[-1] != self.in_features:
            raise ShapeError(
                name, f"the input is [N, {self.in_features}] or [{self.in_features}]",
                got=list(input.shape),
            )  # fmt: skip
        if target.shape != input.shape[:-1]:
            raise ShapeError(
                name, "there is one target per row",
                got=f"input {list(input.shape)}, target {list(target.shape)}",
            )  # fmt: skip
        if not target.dtype.is_int:
            raise DTypeError(name, "targets are integers", got=target.dtype)
        host = target.numpy().reshape(-1).astype("int64")
        if host.size and not 0 <= host.min() <= host.max() < self.n_classes:
            raise IndexRangeError(
                name, f"targets are in [0, {self.n_classes - 1}]",
                got=f"{host.min()} to {host.max()}",
            )  # fmt: skip
        return host

    def forward(self, input: Tensor, target: Tensor) -> ASMOutput:
        """Return the log-probabilities of the targets, and the loss."""
        host = self._check(input, target)
        single = len(input.shape) == 1
        x = input.unsqueeze(0) if single else input
        home = x.device.without_autodiff()
        # The cluster of each row, 0 for the head's own classes, and the rows in their order.
        cluster = sum(host >= edge for edge in self.cutoffs[:-1]) + 0
        order = cluster.argsort(kind="stable")
        # The head's entry: the class itself, or the one of its cluster.
        own = cluster == 0
        column = host * own + (self.shortlist_size + cluster - 1) * ~own
        head = F.log_softmax(self.head(x), 1)
        found = head.gather(1, tensor(column, device=home).unsqueeze(1)).squeeze(1)
        parts = [found.index_select(0, tensor(order[: own.sum()], device=home))]
        for k, layers in enumerate(self.tail):
            rows = order[cluster[order] == k + 1]
            if not rows.size:
                continue
            chosen = tensor(rows, device=home)
            local = F.log_softmax(layers(x.index_select(0, chosen)), 1)
            entry = tensor(host[rows] - self.cutoffs[k], device=home).unsqueeze(1)
            parts.append(found.index_select(0, chosen) + local.gather(1, entry).squeeze(1))
        output = cat(parts).index_select(0, tensor(order.argsort(), device=home))
        loss = -output.mean()
        return ASMOutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes.

        Args:
            input: rows, [N, in_features].
        """
        head = F.log_softmax(self.head(input), 1)
        first = self.shortlist_size
        parts = [head[:, :first]]
        for k, layers in enumerate(self.tail):
            parts.append(F.log_softmax(layers(input), 1) + head[:, first + k : first + k + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row.

        Nothing is read on the host: all clusters are evaluated for all rows.

        Args:
            input: rows, [N, in_features].
        """
        return self.log_prob(input).argmax(1)
