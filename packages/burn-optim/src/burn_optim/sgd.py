"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from burn_optim.optimizer import Optimizer
from burn_std import ArgumentError
from burn_tensor import Tensor


class SGD(Optimizer):
    """g += weight_decay p; m = momentum m + (1 - dampening) g; p -= lr m (or g + momentum m).

    Args:
        lr: learning rate.
        momentum: share of the old direction; the first step takes g as it is.
        dampening: share of g left out.
        weight_decay: L2 penalty.
        nesterov: look ahead; needs momentum and no dampening.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is negative, or nesterov lacks momentum.

    Example:
        >>> SGD(lr=0.1, momentum=0.9).lr
        0.1

    Source: Sutskever et al. 2013.
    """

    slots = ("momentum_buffer",)

    def __init__(
        self,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(
                "SGD", "nesterov needs momentum and no dampening", got=f"{momentum=}, {dampening=}"
            )
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.maximize = maximize

    def active_slots(self) -> tuple[str, ...]:
        """Return the momentum buffer if there is momentum."""
        return self.slots if self.momentum else ()

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
        out: list[Tensor] = ctx.sgd_step(
            params,
            grads,
            state[0] if state else [],
            step,
            skip,
            self.nesterov,
            self.maximize,
            lr,
            self.momentum,
            self.dampening,
            self.weight_decay,
        )
        return out
