"""Schedules made of schedules: one after the other, together, after a warm-up, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from burn_optim.lr_scheduler.schedule import LRScheduler, count
from burn_std import ArgumentError, Closed, StoreError


class SequentialLR(LRScheduler):
    """One schedule after the other, each from its own beginning.

    Args:
        schedulers: in order.
        milestones: the step at which each but the first begins.

    Raises:
        ArgumentError: there is not one milestone fewer than schedules, or they do not ascend.

    Example:
        >>> from burn_optim.lr_scheduler import ConstantLR, StepLR
        >>> parts = [ConstantLR(1.0, factor=0.5, total_iters=9), StepLR(1.0, step_size=1)]
        >>> schedule = SequentialLR(parts, milestones=[2])
        >>> [schedule.rate(k) for k in range(4)]
        [0.5, 0.5, 1.0, 0.1]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
        if len(self.schedulers) != len(self.milestones) + 1:
            raise ArgumentError(
                "SequentialLR", "one milestone between every two schedules",
                got=f"{len(self.schedulers)} schedules, {len(self.milestones)} milestones",
            )  # fmt: skip
        if any(b <= a for a, b in zip([0, *self.milestones], self.milestones, strict=False)):
            raise ArgumentError("SequentialLR", "milestones ascend from 1", got=self.milestones)
        super().__init__(self.schedulers[0].base_lr)

    def _active(self) -> LRScheduler:
        return self.schedulers[sum(m <= self.position for m in self.milestones)]

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        which = sum(m <= position for m in self.milestones)
        return self.schedulers[which].rate(position - ([0, *self.milestones][which]))

    def step(self, metric: float | None = None) -> None:
        """Go on to the next step; the schedule whose turn it is sees the metric."""
        self._active().step(metric)
        super().step(metric)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold."""
        return {"position": self.position, "parts": [s.state_dict() for s in self.schedulers]}

    def _take(self, state: Mapping[str, Any]) -> None:
        _parts("SequentialLR", self.schedulers, state["parts"])
        super()._take(state)


class ComposedLR(LRScheduler):
    """Schedules that run together: the product, the mean or the sum of their rates.

    Args:
        schedulers: at least one.
        reduction: `prod`, `mean` or `sum`.

    Raises:
        ArgumentError: no schedule, or an unknown reduction.

    Example:
        >>> from burn_optim.lr_scheduler import ExponentialLR, LinearLR
        >>> both = ComposedLR([ExponentialLR(1.0, gamma=0.5), LinearLR(0.1, total_iters=1)])
        >>> round(both.rate(1), 3)
        0.05
    """

    def __init__(self, schedulers: Sequence[LRScheduler], reduction: str = "prod") -> None:
        self.schedulers = list(schedulers)
        if not self.schedulers or reduction not in ("prod", "mean", "sum"):
            raise ArgumentError(
                "ComposedLR", "needs schedules, and reduction prod, mean or sum",
                got=f"{len(self.schedulers)}, {reduction!r}",
            )  # fmt: skip
        self.reduction = reduction
        super().__init__(self._joined([s.base_lr for s in self.schedulers]))

    def _joined(self, rates: list[float]) -> float:
        if self.reduction == "prod":
            return prod(rates)
        return sum(rates) / (len(rates) if self.reduction == "mean" else 1)

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return self._joined([s.rate(position) for s in self.schedulers])

    def step(self, metric: float | None = None) -> None:
        """Go on to the next step; every part sees the metric."""
        for s in self.schedulers:
            s.step(metric)
        super().step(metric)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold."""
        return {"position": self.position, "parts": [s.state_dict() for s in self.schedulers]}

    def _take(self, state: Mapping[str, Any]) -> None:
        _parts("ComposedLR", self.schedulers, state["parts"])
        super()._take(state)


class ChainedScheduler(ComposedLR):
    """Schedules of one base rate that run together: the product of their factors.

    Args:
        schedulers: at least one, all of one base rate.

    Raises:
        ArgumentError: no schedule, or several base rates.

    Example:
        >>> from burn_optim.lr_scheduler import ConstantLR, ExponentialLR
        >>> parts = [ConstantLR(0.1, factor=0.5, total_iters=2), ExponentialLR(0.1, gamma=0.5)]
        >>> schedule = ChainedScheduler(parts)
        >>> [schedule.rate(k) for k in range(4)]
        [0.05, 0.025, 0.025, 0.0125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler]) -> None:
        super().__init__(schedulers)
        bases = {s.base_lr for s in self.schedulers}
        if len(bases) != 1:
            raise ArgumentError(
                "ChainedScheduler", "schedules of one base rate", got=sorted(bases),
                remedy="Use ComposedLR, whose rates are multiplied as they are.",
            )  # fmt: skip
        self.base_lr = self.schedulers[0].base_lr

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        if not self.base_lr:
            return 0.0
        factors = [s.rate(position) / self.base_lr for s in self.schedulers]
        return prod(factors, start=self.base_lr)


class WarmupLR(LRScheduler):
    """A rise in a line over `steps` steps, then another schedule from its beginning.

    Step k of the rise uses (k + 1) / steps of the other's first rate: the first step is not
    wasted on a rate of 0, and the last of the rise has the full rate.

    Args:
        scheduler: what follows; a number for a constant rate.
        steps: length of the rise.

    Example:
        >>> schedule = WarmupLR(0.1, steps=4)
        >>> [round(schedule.rate(k), 3) for k in range(6)]
        [0.025, 0.05, 0.075, 0.1, 0.1, 0.1]
    """

    def __init__(self, scheduler: LRScheduler | float, steps: int) -> None:
        if not isinstance(scheduler, LRScheduler):
            scheduler = _Level(scheduler)
        super().__init__(scheduler.base_lr)
        self.scheduler = scheduler
        self.steps = count("WarmupLR", "steps", steps)

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        if position < self.steps:
            return self.scheduler.rate(0) * (position + 1) / self.steps
        return self.scheduler.rate(position - self.steps)

    def step(self, metric: float | None = None) -> None:
        """Go on to the next step; what follows sees the metric once it has begun."""
        if self.position >= self.steps:
            self.scheduler.step(metric)
        super().step(metric)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold."""
        return {"position": self.position, "parts": [self.scheduler.state_dict()]}

    def _take(self, state: Mapping[str, Any]) -> None:
        _parts("WarmupLR", [self.scheduler], state["parts"])
        super()._take(state)


class GroupLR(Closed):
    """A schedule for the base rate and others for groups of parameters.

    Args:
        base: of what no group takes, and of groups without a schedule, in their ratio.
        **groups: by name of group, as given to `Optimizer.add_group`.

    Example:
        >>> from burn_optim.lr_scheduler import ExponentialLR
        >>> schedule = GroupLR(ExponentialLR(1.0, gamma=0.5), head=ExponentialLR(0.1, gamma=0.9))
        >>> schedule.step()
        >>> schedule.lr
        {'': 0.5, 'head': 0.09000000000000001}
    """

    def __init__(self, base: LRScheduler, **groups: LRScheduler) -> None:
        self.schedulers: dict[str, LRScheduler] = {"": base, **groups}

    @property
    def lr(self) -> dict[str, float]:
        """The learning rates of the step to come, as `Optimizer.step` takes them."""
        return {name: s.lr for name, s in self.schedulers.items()}

    @property
    def position(self) -> int:
        """Steps made so far."""
        return self.schedulers[""].position

    def step(self, metric: float | None = None) -> None:
        """Go on to the next step.

        Args:
            metric: what `ReduceLROnPlateau` watches.
        """
        for s in self.schedulers.values():
            s.step(metric)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold."""
        return {name: s.state_dict() for name, s in self.schedulers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take what `state_dict` returned.

        Args:
            state: by name of group.

        Raises:
            StoreError: it is the state of another schedule; nothing is changed then.
        """
        names = list(self.schedulers)
        parts = [state.get(n, {}) for n in names]
        extra = [state[n] for n in state if n not in names]
        _parts("GroupLR", list(self.schedulers.values()), [*parts, *extra])


class _Level(LRScheduler):
    """The same rate always."""

    def rate(self, position: int) -> float:
        return self.base_lr


def _parts(name: str, schedulers: Sequence[LRScheduler], states: Any) -> None:
    """Restore several schedules, all or none."""
    if not isinstance(states, list) or len(states) != len(schedulers):
        raise StoreError(name, f"the state has {len(schedulers)} parts", got=states)
    before = [s.state_dict() for s in schedulers]
    try:
        for s, state in zip(schedulers, states, strict=True):
            s.load_state_dict(state)
    except StoreError:
        for s, state in zip(schedulers, before, strict=True):
            s.load_state_dict(state)
        raise
