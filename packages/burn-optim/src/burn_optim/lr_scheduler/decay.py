"""Schedules that fall, or rise, once: steps, powers, lines, functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from burn_optim.lr_scheduler.schedule import LRScheduler, count
from burn_std import ArgumentError


class StepLR(LRScheduler):
    """lr gamma^(k // step_size).

    Args:
        lr: base rate.
        step_size: steps between falls.
        gamma: factor of a fall.

    Example:
        >>> schedule = StepLR(1.0, step_size=2)
        >>> [schedule.rate(k) for k in range(4)]
        [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(self, lr: float, /, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(lr)
        self.step_size = count("StepLR", "step_size", step_size)
        self.gamma = gamma

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * self.gamma ** (position // self.step_size)


class MultiStepLR(LRScheduler):
    """lr gamma^(how many milestones are reached).

    Args:
        lr: base rate.
        milestones: steps, in ascending order, at which the rate falls; one may stand twice.
        gamma: factor of a fall.

    Raises:
        ArgumentError: the milestones do not ascend.

    Example:
        >>> schedule = MultiStepLR(1.0, milestones=[1, 3], gamma=0.5)
        >>> [schedule.rate(k) for k in range(4)]
        [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, lr: float, /, milestones: Sequence[int], gamma: float = 0.1) -> None:
        super().__init__(lr)
        self.milestones = list(milestones)
        if self.milestones != sorted(self.milestones):
            raise ArgumentError("MultiStepLR", "milestones ascend", got=self.milestones)
        self.gamma = gamma

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * self.gamma ** sum(m <= position for m in self.milestones)


class ConstantLR(LRScheduler):
    """lr factor for `total_iters` steps, then lr.

    Args:
        lr: base rate.
        factor: from 0 to 1.
        total_iters: how many steps it lasts.

    Raises:
        ArgumentError: the factor is outside [0, 1].

    Example:
        >>> schedule = ConstantLR(1.0, factor=0.5, total_iters=2)
        >>> [schedule.rate(k) for k in range(4)]
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(self, lr: float, /, factor: float = 1 / 3, total_iters: int = 5) -> None:
        super().__init__(lr)
        if not 0 <= factor <= 1:
            raise ArgumentError("ConstantLR", "factor is in [0, 1]", got=factor)
        self.factor = factor
        self.total_iters = count("ConstantLR", "total_iters", total_iters, 0)

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * (self.factor if position < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """A line from lr start_factor to lr end_factor over `total_iters` steps, then level.

    Args:
        lr: base rate.
        start_factor: in (0, 1].
        end_factor: in [0, 1].
        total_iters: length of the line.

    Raises:
        ArgumentError: a factor is outside its range.

    Example:
        >>> schedule = LinearLR(1.0, start_factor=0.5, total_iters=2)
        >>> [schedule.rate(k) for k in range(4)]
        [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self, lr: float, /, start_factor: float = 1 / 3, end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:  # fmt: skip
        super().__init__(lr)
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ArgumentError(
                "LinearLR", "start_factor is in (0, 1], end_factor in [0, 1]",
                got=f"{start_factor=}, {end_factor=}",
            )  # fmt: skip
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = count("LinearLR", "total_iters", total_iters)

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        done = min(position, self.total_iters) / self.total_iters
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * done)


class ExponentialLR(LRScheduler):
    """lr gamma^k.

    Args:
        lr: base rate.
        gamma: factor per step.

    Example:
        >>> schedule = ExponentialLR(1.0, gamma=0.5)
        >>> [schedule.rate(k) for k in range(3)]
        [1.0, 0.5, 0.25]
    """

    def __init__(self, lr: float, /, gamma: float) -> None:
        super().__init__(lr)
        self.gamma = gamma

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * self.gamma**position


class PolynomialLR(LRScheduler):
    """lr (1 - k / total_iters)^power, then 0.

    Args:
        lr: base rate.
        total_iters: when it reaches 0.
        power: of the fall.

    Example:
        >>> schedule = PolynomialLR(1.0, total_iters=4)
        >>> [schedule.rate(k) for k in range(6)]
        [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    def __init__(self, lr: float, /, total_iters: int = 5, power: float = 1.0) -> None:
        super().__init__(lr)
        self.total_iters = count("PolynomialLR", "total_iters", total_iters)
        self.power = power

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        left = 1 - min(position, self.total_iters) / self.total_iters
        return self.base_lr * float(left**self.power)


class LambdaLR(LRScheduler):
    """lr times a function of the step.

    Args:
        lr: base rate.
        lr_lambda: `k -> factor`.

    Example:
        >>> LambdaLR(2.0, lambda k: 1 / (1 + k)).rate(3)
        0.5
    """

    def __init__(self, lr: float, /, lr_lambda: Callable[[int], float]) -> None:
        super().__init__(lr)
        self.lr_lambda = lr_lambda

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * self.lr_lambda(position)


class MultiplicativeLR(LRScheduler):
    """lr times the product of a function of every step made so far.

    Args:
        lr: base rate.
        lr_lambda: `k -> factor` of going from step k - 1 to step k.

    Example:
        >>> MultiplicativeLR(1.0, lambda k: 0.5).rate(3)
        0.125
    """

    def __init__(self, lr: float, /, lr_lambda: Callable[[int], float]) -> None:
        super().__init__(lr)
        self.lr_lambda = lr_lambda

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self.base_lr * prod(self.lr_lambda(k) for k in range(1, position + 1))


class NoamLR(LRScheduler):
    """lr model_size^-0.5 min((k + 1)^-0.5, (k + 1) warmup_steps^-1.5).

    Args:
        lr: factor of the whole.
        warmup_steps: steps of the rise; the rate peaks at its end.
        model_size: width of the model.

    Example:
        >>> schedule = NoamLR(1.0, warmup_steps=4, model_size=16)
        >>> [round(schedule.rate(k), 4) for k in (0, 3, 15)]
        [0.0312, 0.125, 0.0625]

    Source: Vaswani et al. 2017, section 5.3.
    """

    def __init__(self, lr: float, /, warmup_steps: int = 4000, model_size: int = 512) -> None:
        super().__init__(lr)
        self.warmup_steps = count("NoamLR", "warmup_steps", warmup_steps)
        self.model_size = count("NoamLR", "model_size", model_size)

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        k = position + 1
        rise = min(k**-0.5, k * self.warmup_steps**-1.5)
        return self.base_lr * float(self.model_size**-0.5 * rise)
