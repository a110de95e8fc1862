"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

from burn_optim.optimizer import Optimizer
from burn_std import ArgumentError
from burn_tensor import Tensor


class Adam(Optimizer):
    """m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m^ / (sqrt(v^) + eps).

    m^ and v^ are divided by 1 - b^t; weight decay is added to g (L2).

    Args:
        lr: learning rate.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: L2 penalty.
        amsgrad: divide by the largest v^ so far.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Adam().lr
        0.001

    Source: Kingma and Ba 2015; Reddi et al. 2018 for amsgrad.
    """

    slots = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    decoupled = False

    def __init__(
        self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        if len(betas) != 2 or not all(0 <= b < 1 for b in betas):
            raise ArgumentError(type(self).__name__, "betas are two numbers in [0, 1)", got=betas)
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.amsgrad = amsgrad
        self.maximize = maximize

    def active_slots(self) -> tuple[str, ...]:
        """Return two averages, and the maximum for amsgrad."""
        return self.slots if self.amsgrad else self.slots[:2]

    def update(
        self,
        ctx: Any,
        lr: float,
        params: list[Tensor],
        grads: list[Tensor],
        state: list[list[Tensor]],
        step: Tensor,
        skip: Tensor | None,
    ) -> list[Tensor]:
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adam_step(
            params, grads, state[0], state[1], state[2] if self.amsgrad else [], step, skip,
            self.decoupled, self.maximize, lr, *self.betas, self.eps, self.weight_decay,
        )  # fmt: skip
        return out


class AdamW(Adam):
    """Adam with decoupled weight decay: p is first multiplied by 1 - lr weight_decay.

    Args:
        lr: learning rate.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: decoupled decay.
        amsgrad: divide by the largest v^ so far.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> AdamW().weight_decay
        0.01

    Source: Loshchilov and Hutter 2019.
    """

    decoupled = True

    def __init__(
        self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
