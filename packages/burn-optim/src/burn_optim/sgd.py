"""Stochastic gradient descent, plain and averaged, and Rprop, which follows signs alone."""

from __future__ import annotations

from typing import Any

from burn_core import Parameter
from burn_optim.optimizer import Optimizer
from burn_optim.ranges import two
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
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.sgd_step(
            params, grads, state["momentum_buffer"], counts["step"], skip,
            self.nesterov, self.maximize, lr, self.momentum, self.dampening, self.weight_decay,
        )  # fmt: skip
        return out


class ASGD(Optimizer):
    """SGD with a decaying rate that also keeps an average of the weights.

    p -= lr / (1 + lambd lr t)^alpha g; the average `ax` begins to average after `t0` steps.

    Args:
        lr: learning rate.
        lambd: decay of the weights and of the rate.
        alpha: power of the rate's decay.
        t0: step at which averaging begins.
        weight_decay: L2 penalty.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is negative.

    Example:
        >>> ASGD().t0
        1000000.0

    Source: Polyak and Juditsky 1992. A rate that a schedule changes counts from this step on; in
        PyTorch it counts from the next.
    """

    slots = ("ax",)

    def __init__(
        self,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay)
        self.lambd = lambd
        self.alpha = alpha
        self.t0 = t0
        self.weight_decay = weight_decay
        self.maximize = maximize

    def averaged(self, p: Parameter) -> Tensor:
        """Return the average of a parameter's values: a snapshot.

        Args:
            p: the parameter; one that was never updated is its own average.
        """
        for optimizer in (self, *(g.optimizer for g in self.groups)):
            state = optimizer._state_of(p)
            if "ax" in state:
                return state["ax"].detach()
        return p.detach()

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.asgd_step(
            params, grads, state["ax"], counts["step"], skip, self.maximize,
            lr, self.lambd, self.alpha, self.t0, self.weight_decay,
        )  # fmt: skip
        return out


class Rprop(Optimizer):
    """Steps whose sizes depend on the gradient's signs alone; for whole batches.

    Where the sign stays, the size grows; where it changes, the size shrinks and nothing moves.

    Args:
        lr: the first size; later rates have no effect.
        etas: factors by which sizes shrink and grow.
        step_sizes: the least and the largest size.
        maximize: climb instead.

    Raises:
        ArgumentError: a factor or a size is out of its range.

    Example:
        >>> Rprop().etas
        (0.5, 1.2)

    Source: Riedmiller and Braun 1993.
    """

    slots = ("prev", "step_size")

    def __init__(
        self, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr)
        self.etas = two("Rprop", "etas", etas)
        self.step_sizes = two("Rprop", "step_sizes", step_sizes)
        if not 0 < self.etas[0] < 1 < self.etas[1]:
            raise ArgumentError("Rprop", "0 < etas[0] < 1 < etas[1]", got=etas)
        if not 0 < self.step_sizes[0] <= self.step_sizes[1]:
            raise ArgumentError("Rprop", "0 < step_sizes[0] <= step_sizes[1]", got=step_sizes)
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.rprop_step(
            params, grads, state["prev"], state["step_size"], counts["step"], skip, self.maximize,
            lr, *self.etas, *self.step_sizes,
        )  # fmt: skip
        return out
