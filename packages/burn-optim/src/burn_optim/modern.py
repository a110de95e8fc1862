"""Optimizers of large models: Lion, Adan, LAMB, Adafactor, Muon."""

from __future__ import annotations

from typing import Any

from burn_core import Parameter
from burn_optim.optimizer import Optimizer
from burn_optim.ranges import decay_rates, share
from burn_std import ArgumentError, ShapeError
from burn_tensor import Tensor

# Distance from 1 to the next number of each float dtype, by its bits and name.
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class Lion(Optimizer):
    """p -= lr (sign(b1 m + (1 - b1) g) + weight_decay p); m = b2 m + (1 - b2) g.

    Args:
        lr: size of every element's move; a tenth of Adam's suits.
        betas: share of m in the move, and decay of m.
        weight_decay: decoupled decay.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Lion().betas
        (0.9, 0.99)

    Source: Chen et al. 2023, "Symbolic discovery of optimization algorithms".
    """

    slots = ("exp_avg",)

    def __init__(
        self, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, weight_decay=weight_decay)
        self.betas = decay_rates("Lion", betas)
        self.weight_decay = weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.lion_step(
            params, grads, state["exp_avg"], counts["step"], skip, self.maximize,
            lr, *self.betas, self.weight_decay,
        )  # fmt: skip
        return out


class Adan(Optimizer):
    """Adam with a third average, of the change of the gradient, that looks ahead.

    Args:
        lr: learning rate.
        betas: decay of the averages of g, of its change, and of squares.
        eps: added to the denominator.
        weight_decay: decoupled decay.
        no_prox: decay before the move, as AdamW does; else p is divided by 1 + lr weight_decay.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Adan().betas
        (0.98, 0.92, 0.99)

    Source: Xie et al. 2022, algorithm 1; settings as in Rust's Burn.
    """

    slots = ("exp_avg", "exp_avg_diff", "exp_avg_sq", "previous_grad")

    def __init__(
        self, lr: float = 1e-3, betas: tuple[float, float, float] = (0.98, 0.92, 0.99),
        eps: float = 1e-8, weight_decay: float = 0.0, no_prox: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        self.betas = decay_rates("Adan", betas, 3)
        self.eps = eps
        self.weight_decay = weight_decay
        self.no_prox = no_prox

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.adan_step(
            params, grads, *state.values(), counts["step"], skip, self.no_prox,
            lr, *self.betas, self.eps, self.weight_decay,
        )  # fmt: skip
        return out


class LAMB(Optimizer):
    """Adam's move r, plus weight_decay p, scaled per tensor: p -= lr |p| / |r| r.

    A norm of zero, of the weights or of the move, leaves r as it is.

    Args:
        lr: learning rate.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: share of p in the move.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> LAMB().eps
        1e-06

    Source: You et al. 2020, algorithm 2.
    """

    slots = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, eps=eps, weight_decay=weight_decay)
        self.betas = decay_rates("LAMB", betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.maximize = maximize

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.lamb_step(
            params, grads, *state.values(), counts["step"], skip, self.maximize,
            lr, *self.betas, self.eps, self.weight_decay,
        )  # fmt: skip
        return out


class Adafactor(Optimizer):
    """Squares of a matrix held as means of its rows and columns; the move scales with the weights.

    A parameter of [.., M, N] has states of [.., M, 1] and [.., 1, N]; one of rank below 2 has all
    its squares.

    Args:
        lr: bound of the relative rate min(lr, 1 / sqrt(t)).
        beta2_decay: the average of squares takes in t^beta2_decay of the new ones.
        eps: bounds of the squares and of the weights' root mean square; None for the first takes
            the parameter dtype's epsilon.
        d: the move's root mean square is brought down to it.
        weight_decay: decoupled decay.
        maximize: climb instead.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> Adafactor().lr
        0.01

    Source: Shazeer and Stern 2018, algorithm 6, as PyTorch has it.
    """

    slots = ("row_var", "col_var", "variance")

    def __init__(
        self, lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr, weight_decay=weight_decay)
        if beta2_decay > 0 or d < 1 or any(e is not None and e < 0 for e in eps):
            raise ArgumentError(
                "Adafactor", "beta2_decay is at most 0, d at least 1, eps not negative",
                got=f"{beta2_decay=}, {d=}, {eps=}",
            )  # fmt: skip
        self.beta2_decay = beta2_decay
        self.eps = eps
        self.d = d
        self.weight_decay = weight_decay
        self.maximize = maximize

    def slot_shapes(self, p: Parameter) -> dict[str, tuple[int, ...]]:
        """Return means of rows and columns for matrices, else all squares."""
        shape = p.shape
        if len(shape) < 2:
            return {"variance": shape}
        return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        first, second = self.eps
        first = _EPSILON[params[0].dtype.name] if first is None else first
        out: list[Tensor] = ctx.adafactor_step(
            params, grads, *state.values(), counts["step"], skip, self.maximize,
            lr, self.beta2_decay, first, second, self.d, self.weight_decay,
        )  # fmt: skip
        return out


class Muon(Optimizer):
    """Momentum made nearly orthogonal by a Newton-Schulz iteration; for matrices.

    Vectors and embeddings want another optimizer, which `add_group` gives them.

    Args:
        lr: learning rate.
        weight_decay: decoupled decay.
        momentum: decay of the average of gradients.
        nesterov: look ahead.
        ns_coefficients: of x, x x^T x and (x x^T)^2 x in an iteration.
        eps: least norm that is divided by.
        ns_steps: iterations.
        adjust_lr_fn: `original` or None multiplies the rate by sqrt(max(1, rows / columns)),
            `match_rms_adamw` by 0.2 sqrt(max(rows, columns)).

    Raises:
        ArgumentError: a setting is out of its range.
        ShapeError: at a step, a parameter is no matrix.

    Example:
        >>> hidden = Muon(lr=0.02)
        >>> hidden.add_group(lambda path, p: len(p.shape) != 2, burn.optim.AdamW()).groups[0].name
        'group0'

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """

    slots = ("momentum_buffer",)

    def __init__(
        self, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(lr, weight_decay=weight_decay, eps=eps)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                "Muon", "adjust_lr_fn is original, match_rms_adamw or None", got=adjust_lr_fn
            )
        if not 1 <= ns_steps < 100 or len(ns_coefficients) != 3:
            raise ArgumentError(
                "Muon", "ns_steps is from 1 to 99, ns_coefficients are three",
                got=f"{ns_steps=}, {ns_coefficients=}",
            )  # fmt: skip
        self.momentum = share("Muon", "momentum", momentum)
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_coefficients = ns_coefficients
        self.eps = eps
        self.ns_steps = ns_steps
        self.adjust_lr_fn = adjust_lr_fn

    def check(self, path: str, p: Parameter) -> None:
        """Raise for what is no matrix."""
        if len(p.shape) != 2:
            raise ShapeError(
                "Muon", "parameters are matrices", got=f"{path} of shape {p.shape}",
                remedy="Give the others an optimizer of their own with add_group.",
            )  # fmt: skip

    def update(
        self, ctx: Any, lr: float, params: list[Tensor], grads: list[Tensor],
        state: dict[str, list[Tensor]], counts: dict[str, Tensor], skip: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Return the new values; one operation."""
        out: list[Tensor] = ctx.muon_step(
            params, grads, state["momentum_buffer"], counts["step"], skip,
            self.nesterov, self.adjust_lr_fn == "match_rms_adamw", self.ns_steps,
            lr, self.momentum, self.weight_decay, *self.ns_coefficients, self.eps,
        )  # fmt: skip
        return out
