"""Schedules of waves: cosine, restarts, cycles."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi

from burn_optim.lr_scheduler.schedule import LRScheduler, count
from burn_std import ArgumentError


def _wave(start: float, end: float, done: float) -> float:
    """Return a half wave from start to end; `done` is from 0 to 1."""
    return end + (start - end) * (1 + cos(pi * done)) / 2


class CosineAnnealingLR(LRScheduler):
    """eta_min + (lr - eta_min) (1 + cos(pi k / T_max)) / 2: down, and after T_max up again.

    Args:
        lr: base rate.
        T_max: steps of a half wave.
        eta_min: lowest rate.

    Example:
        >>> schedule = CosineAnnealingLR(1.0, T_max=2)
        >>> [round(schedule.rate(k), 6) for k in range(3)]
        [1.0, 0.5, 0.0]

    Source: Loshchilov and Hutter 2017.
    """

    def __init__(self, lr: float, /, T_max: int, eta_min: float = 0.0) -> None:
        super().__init__(lr)
        self.T_max = count("CosineAnnealingLR", "T_max", T_max)
        self.eta_min = eta_min

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        return _wave(self.base_lr, self.eta_min, position / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half waves from lr down to eta_min, each T_mult times as long as the one before.

    Args:
        lr: base rate.
        T_0: steps of the first.
        T_mult: growth of the length.
        eta_min: lowest rate.

    Example:
        >>> schedule = CosineAnnealingWarmRestarts(1.0, T_0=2, T_mult=2)
        >>> [round(schedule.rate(k), 3) for k in range(6)]
        [1.0, 0.5, 1.0, 0.854, 0.5, 0.146]

    Source: Loshchilov and Hutter 2017.
    """

    def __init__(self, lr: float, /, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
        super().__init__(lr)
        self.T_0 = count("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = count("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min = eta_min

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        length = self.T_0
        if self.T_mult == 1:
            position %= length
        while position >= length:
            position -= length
            length *= self.T_mult
        return _wave(self.base_lr, self.eta_min, position / length)


class OneCycleLR(LRScheduler):
    """Up to max_lr, then down to far below the start, in one cycle of `total_steps`.

    Args:
        lr: not used; the rates come from max_lr.
        max_lr: the top.
        total_steps: length of the cycle; or give the next two.
        epochs: times this
        steps_per_epoch: is the length.
        pct_start: share of the rise.
        anneal_strategy: `cos` or `linear`.
        div_factor: the start is max_lr over this.
        final_div_factor: the end is the start over this.
        three_phase: come back to the start before the last fall.

    Raises:
        ArgumentError: no length, an unknown strategy, or a share outside [0, 1].

    Example:
        >>> schedule = OneCycleLR(0.1, max_lr=1.0, total_steps=5, pct_start=0.5)
        >>> [round(schedule.rate(k), 3) for k in range(5)]
        [0.04, 0.76, 0.905, 0.345, 0.0]

    Source: Smith and Topin 2018.
    """

    def __init__(
        self, lr: float, /, max_lr: float, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        if total_steps is None:
            raise ArgumentError(
                "OneCycleLR", "needs total_steps, or epochs and steps_per_epoch", got="neither"
            )
        if anneal_strategy not in ("cos", "linear") or not 0 <= pct_start <= 1:
            raise ArgumentError(
                "OneCycleLR", "anneal_strategy is cos or linear, pct_start in [0, 1]",
                got=f"{anneal_strategy!r}, {pct_start}",
            )  # fmt: skip
        self.total_steps = count("OneCycleLR", "total_steps", total_steps)
        self.anneal_strategy = anneal_strategy
        if not div_factor > 0 or not final_div_factor > 0:
            raise ArgumentError(
                "OneCycleLR", "div_factor and final_div_factor are positive",
                got=f"{div_factor}, {final_div_factor}",
            )  # fmt: skip
        start = max_lr / div_factor
        end = start / final_div_factor
        top = pct_start * self.total_steps - 1
        last = self.total_steps - 1
        # (last step, rate at the start, rate at the end) of each phase.
        if three_phase:
            back = 2 * pct_start * self.total_steps - 2
            self._phases = [(top, start, max_lr), (back, max_lr, start), (last, start, end)]
        else:
            self._phases = [(top, start, max_lr), (last, max_lr, end)]

    def rate(self, position: int) -> float:
        """Return the learning rate of a step; after the cycle, that of its end."""
        position = min(position, self.total_steps - 1)
        begin = 0.0
        for end, start, goal in self._phases:
            if position <= end or end == self._phases[-1][0]:
                done = (position - begin) / (end - begin) if end > begin else 1.0
                if self.anneal_strategy == "cos":
                    return _wave(start, goal, done)
                return start + (goal - start) * done
            begin = end
        return self._phases[-1][2]


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up and down in lines.

    Args:
        lr: not used; the rates come from base_lr and max_lr.
        base_lr: bottom.
        max_lr: top.
        step_size_up: steps of the rise.
        step_size_down: steps of the fall; as many if None.
        mode: `triangular`, `triangular2` (the height halves every cycle) or `exp_range` (it is
            multiplied by gamma every step).
        gamma: for exp_range.
        scale_fn: own function for the height, in place of the mode.
        scale_mode: what scale_fn gets: `cycle`, from 1, or `iterations`, from 0.
        cycle_momentum: only False, since momentum is a setting of the optimizer.

    Raises:
        ArgumentError: an unknown mode, or cycle_momentum.

    Example:
        >>> schedule = CyclicLR(0.1, base_lr=0.0, max_lr=1.0, step_size_up=2)
        >>> [schedule.rate(k) for k in range(5)]
        [0.0, 0.5, 1.0, 0.5, 0.0]

    Source: Smith 2017.
    """

    def __init__(
        self, lr: float, /, base_lr: float, max_lr: float, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[int], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lr)
        if cycle_momentum:
            raise ArgumentError(
                "CyclicLR", "momentum does not cycle", got="cycle_momentum=True",
                remedy="Set the optimizer's momentum in the loop.",
            )  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ArgumentError(
                "CyclicLR", "mode is triangular, triangular2 or exp_range", got=mode
            )
        if scale_mode not in ("cycle", "iterations"):
            raise ArgumentError("CyclicLR", "scale_mode is cycle or iterations", got=scale_mode)
        self.bottom = base_lr
        self.max_lr = max_lr
        self.up = count("CyclicLR", "step_size_up", step_size_up)
        self.down = self.up if step_size_down is None else step_size_down
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode

    def rate(self, position: int) -> float:
        """Return the learning rate of a step."""
        length = self.up + self.down
        cycle = position // length + 1
        done = position / length - (cycle - 1)
        rise = self.up / length
        part = done / rise if done <= rise else (done - 1) / (rise - 1)
        return self.bottom + (self.max_lr - self.bottom) * part * self._height(cycle, position)

    def _height(self, cycle: int, position: int) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else position)
        if self.mode == "triangular2":
            return float(0.5 ** (cycle - 1))
        return self.gamma**position if self.mode == "exp_range" else 1.0
