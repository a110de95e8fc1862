"""Rates per element from past squares: RMSprop, Adagrad, Adadelta."""

from __future__ import annotations

from typing import Any

from burn_optim.optimizer import Optimizer
from burn_optim.ranges import share
from burn_tensor import Tensor


class RMSprop(Optimizer):
    """v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps), or through a momentum.

    Args:
        lr: learning rate.
        alpha: decay of the average.
        eps: added to the denominator.
        weight_decay: L2 penalty.
        momentum: share of the old direction.
        centered: divide by the variance: the squared average of g is taken off v.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> RMSprop().alpha
        0.99

    Source: Tieleman and Hinton 2012; Graves 2013 for the centered form.
    """

    slots = ("square_avg", "grad_avg", "momentum_buffer")

    def __init__(
        self, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay, momentum=momentum)
        self.alpha = share("RMSprop", "alpha", alpha)
        self.eps = eps
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.centered = centered
        self.maximize = maximize

    def active_slots(self) -> tuple[str, ...]:
        """Return the squares, the averages if centered, the buffer if there is momentum."""
        used = (True, self.centered, self.momentum > 0)
        return tuple(s for s, u in zip(self.slots, used, strict=True) if u)

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.rmsprop_step(
            params, grads, *state.values(), counts["step"], skip, self.maximize,
            lr, self.alpha, self.eps, self.weight_decay, self.momentum,
        )  # fmt: skip
        return out


class Adagrad(Optimizer):
    """s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps).

    Args:
        lr: learning rate.
        lr_decay: decay of the rate.
        weight_decay: L2 penalty.
        initial_accumulator_value: what s begins with.
        eps: added to the denominator.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is negative.

    Example:
        >>> Adagrad().eps
        1e-10

    Source: Duchi et al. 2011.
    """

    slots = ("sum",)

    def __init__(
        self, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
            initial_accumulator_value=initial_accumulator_value,
        )  # fmt: skip
        self.lr_decay = lr_decay
        self.weight_decay = weight_decay
        self.initial_accumulator_value = initial_accumulator_value
        self.eps = eps
        self.maximize = maximize

    def first_value(self, slot: str) -> float:
        """Return what the sum begins with."""
        return self.initial_accumulator_value

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adagrad_step(
            params, grads, state["sum"], counts["step"], skip, self.maximize,
            lr, self.lr_decay, self.eps, self.weight_decay,
        )  # fmt: skip
        return out


class Adadelta(Optimizer):
    """v = rho v + (1 - rho) g^2; d = sqrt(a + eps) / sqrt(v + eps) g; p -= lr d; a averages d^2.

    Args:
        lr: factor of the move.
        rho: decay of the two averages.
        eps: added under the roots.
        weight_decay: L2 penalty.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Adadelta().lr
        1.0

    Source: Zeiler 2012.
    """

    slots = ("square_avg", "acc_delta")

    def __init__(
        self, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        self.rho = share("Adadelta", "rho", rho)
        self.eps = eps
        self.weight_decay = weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adadelta_step(
            params, grads, *state.values(), counts["step"], skip, self.maximize,
            lr, self.rho, self.eps, self.weight_decay,
        )  # fmt: skip
        return out
