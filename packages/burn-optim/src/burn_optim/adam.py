"""Adam and its nearest kin: AdamW, Adamax, NAdam, RAdam."""

from __future__ import annotations

from typing import Any

from burn_optim.optimizer import Optimizer
from burn_optim.ranges import decay_rates
from burn_std.dtypes import float64, int64
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
        self.betas = decay_rates(type(self).__name__, betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.amsgrad = amsgrad
        self.maximize = maximize

    def active_slots(self) -> tuple[str, ...]:
        """Return two averages, and the maximum for amsgrad."""
        return self.slots if self.amsgrad else self.slots[:2]

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adam_step(
            params, grads, *state.values(), counts["step"], skip,
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


class Adamax(Optimizer):
    """u = max(b2 u, |g| + eps); p -= lr / (1 - b1^t) m / u: Adam by the infinity norm.

    Args:
        lr: learning rate.
        betas: decay of the average and of the maximum.
        eps: added to |g|.
        weight_decay: L2 penalty.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Adamax().lr
        0.002

    Source: Kingma and Ba 2015, section 7.
    """

    slots = ("exp_avg", "exp_inf")

    def __init__(
        self, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        self.betas = decay_rates("Adamax", betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adamax_step(
            params, grads, *state.values(), counts["step"], skip, self.maximize,
            lr, *self.betas, self.eps, self.weight_decay,
        )  # fmt: skip
        return out


class NAdam(Optimizer):
    """Adam with Nesterov momentum whose size grows along a schedule of its own.

    Args:
        lr: learning rate.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: L2 penalty, or decay of the weights if decoupled.
        momentum_decay: how fast the momentum grows to betas[0].
        decoupled_weight_decay: as in AdamW.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> NAdam().momentum_decay
        0.004

    Source: Dozat 2016.
    """

    slots = ("exp_avg", "exp_avg_sq")
    shared = {"step": (int64, 0), "mu_product": (float64, 1.0)}

    def __init__(
        self, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        self.betas = decay_rates("NAdam", betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.momentum_decay = momentum_decay
        self.decoupled_weight_decay = decoupled_weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.nadam_step(
            params, grads, *state.values(), *counts.values(), skip,
            self.decoupled_weight_decay, self.maximize,
            lr, *self.betas, self.eps, self.weight_decay, self.momentum_decay,
        )  # fmt: skip
        return out


class RAdam(Optimizer):
    """Adam that moves by the average alone until the variance of its squares is known.

    Args:
        lr: learning rate.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: L2 penalty, or decay of the weights if decoupled.
        decoupled_weight_decay: as in AdamW.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> RAdam().lr
        0.001

    Source: Liu et al. 2020.
    """

    slots = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        self.betas = decay_rates("RAdam", betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.decoupled_weight_decay = decoupled_weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.radam_step(
            params, grads, *state.values(), counts["step"], skip,
            self.decoupled_weight_decay, self.maximize,
            lr, *self.betas, self.eps, self.weight_decay,
        )  # fmt: skip
        return out
