"""The loss of RNN transducers: all alignments of a target with a grid of predictions."""

from __future__ import annotations

from burn_core import Module
from burn_nn.dense_loss import reduced
from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import float32
from burn_tensor import Tensor, arange, functional as F, stack, where


class RNNTLoss(Module):
    """- log of the sum over all alignments that emit a target while time passes.

    a(t, u) = logaddexp(a(t - 1, u) + blank(t - 1, u), a(t, u - 1) + label(t, u - 1)),
    loss = -(a(T - 1, U) + blank(T - 1, U))

    The grid is walked by its anti-diagonals, T + U steps of a whole batch.

    Args:
        blank: class that lets time pass.
        reduction: none, mean or sum over the batch.
        from_logits: take the log-softmax of the input first.

    Shapes:
        logits: [N, T, U + 1, C]; targets: [N, U]; logit_lengths, target_lengths: [N]

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: blank is no class.

    Example:
        >>> loss = burn.nn.RNNTLoss()
        >>> one = burn.tensor([1])
        >>> round(loss(burn.zeros(1, 1, 2, 2), burn.tensor([[1]]), one, one).item(), 4)
        1.3863

    Source: Graves, Sequence Transduction with Recurrent Neural Networks, 2012
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", from_logits: bool = True) -> None:
        self.blank = blank
        self.reduction = reduction
        self.from_logits = from_logits

    def forward(
        self, logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """Return the loss."""
        if len(logits.shape) != 4 or targets.shape != (logits.shape[0], logits.shape[2] - 1):
            raise ShapeError(
                "RNNTLoss", "logits are [N, T, U + 1, C] and targets [N, U]",
                got=f"{logits.shape}, {targets.shape}",
            )  # fmt: skip
        n, steps, rows, classes = logits.shape
        if not 0 <= self.blank < classes:
            raise ArgumentError("RNNTLoss", f"blank is in [0, {classes})", got=self.blank)
        x = logits.to(float32) if logits.dtype.bits == 16 else logits
        logs = F.log_softmax(x, -1) if self.from_logits else x
        blanks = logs[..., self.blank]
        index = targets.long()[:, None, :, None].expand(n, steps, rows - 1, 1)
        labels = logs[:, :, :-1].gather(3, index).squeeze(3)
        last = self._walk(blanks, labels, logit_lengths, target_lengths)
        return reduced("RNNTLoss", -last, self.reduction)

    def _walk(self, blanks: Tensor, labels: Tensor, times: Tensor, lengths: Tensor) -> Tensor:
        """Return log of the sum over alignments, [N]."""
        n, steps, rows = blanks.shape
        # Finite, so that a difference of two of them is no NaN in the backward.
        never = -1e30
        device = blanks.device.without_autodiff()
        u = arange(rows, device=device)
        alpha = where(u == 0, 0.0, never).to(blanks.dtype).expand(n, rows)
        ends, total = lengths.long(), blanks.new_zeros((n,))
        for d in range(steps + rows - 1):
            # On diagonal d the cell of row u is at time d - u.
            t = d - u
            inside = (t >= 0) & (t < steps)
            at = t.clamp(0, steps - 1).expand(n, 1, rows)
            blank = blanks.gather(1, at).squeeze(1)
            stop = (ends.unsqueeze(1) == u) & (times.long().unsqueeze(1) - 1 == t)
            total = total + where(stop, alpha + blank, 0.0).sum(1)
            if d == steps + rows - 2:
                break
            stay = where(inside, alpha + blank, never)
            if rows > 1:
                label = labels.gather(1, at[:, :, :-1]).squeeze(1)
                move = where(inside[:-1], alpha[:, :-1] + label, never)
                move = F.pad(move, [1, 0], value=never)
                # Time passing keeps the row, a label goes to the next; both reach diagonal d + 1.
                alpha = stack([stay, move]).logsumexp(0)
            else:
                alpha = stay
        return total
