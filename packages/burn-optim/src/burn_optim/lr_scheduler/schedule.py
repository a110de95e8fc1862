"""What schedules share: a position, a rate that is a function of it, save and restore."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

from burn_std import ArgumentError, Closed, StoreError, unknown_keyword, unwritten

# What PyTorch's schedules take, and what to write instead.
_OTHERWISE = {
    "optimizer": "A schedule holds no optimizer: pass the rate first, and write "
    "opt.step(model, grads, lr=schedule.lr).",
    "last_epoch": "Set schedule.position, or load_state_dict.",
    "verbose": "Print schedule.lr.",
}


class LRScheduler(Closed):
    """Base of schedules; a subclass writes `rate`.

    Args:
        lr: base learning rate.

    Attributes:
        position: steps made so far.

    Raises:
        ArgumentError: the rate is no number, negative or not finite.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse settings that there are not."""
        error = unknown_keyword(cls.__name__, cls.__init__, kwargs, _OTHERWISE)
        if error is not None:
            raise error
        return super().__new__(cls)

    def __init__(self, lr: float, /) -> None:
        given: Any = lr
        if not isinstance(given, Real):
            raise ArgumentError(
                type(self).__name__, "lr is a number; a schedule holds no optimizer",
                got=type(given).__name__, remedy="Write opt.step(model, grads, lr=schedule.lr).",
            )  # fmt: skip
        if not 0 <= lr < float("inf"):
            raise ArgumentError(
                type(self).__name__, "lr must not be negative and is finite", got=lr
            )
        self.base_lr = lr
        self.position = 0

    def rate(self, position: int) -> float:
        """Return the learning rate of a step; a function of the position alone.

        Args:
            position: 0 for the first step.
        """
        raise unwritten(self, "rate")

    @property
    def lr(self) -> float:
        """The learning rate of the step to come."""
        return self.rate(self.position)

    def step(self, metric: float | None = None) -> None:
        """Go on to the next step.

        Args:
            metric: what `ReduceLROnPlateau` watches; others do not look at it.
        """
        self.position += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the state, numbers that JSON can hold."""
        return {"position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take what `state_dict` returned.

        Args:
            state: by name.

        Raises:
            StoreError: it is the state of another schedule; nothing is changed then.
        """
        known = self.state_dict()
        if set(state) != set(known):
            raise StoreError(
                type(self).__name__, "the state is that of such a schedule", got=sorted(state),
                remedy=f"It has {sorted(known)}.",
            )  # fmt: skip
        self._take(state)

    def _take(self, state: Mapping[str, Any]) -> None:
        self.position = int(state["position"])


def count(name: str, what: str, value: int, least: int = 1) -> int:
    """Return a number of steps.

    Raises:
        ArgumentError: it is no int, or too small.
    """
    if type(value) is not int or value < least:
        raise ArgumentError(name, f"{what} is an int of at least {least}", got=value)
    return value
