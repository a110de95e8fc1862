"""Checks of settings that several optimizers make."""

from __future__ import annotations

from burn_std import ArgumentError


def decay_rates(name: str, betas: tuple[float, ...], count: int = 2) -> tuple[float, ...]:
    """Return the decay rates of averages, each in [0, 1).

    Raises:
        ArgumentError: another number of them, or one outside.
    """
    betas = tuple(betas)
    if len(betas) != count or not all(0 <= b < 1 for b in betas):
        raise ArgumentError(name, f"betas are {count} numbers in [0, 1)", got=betas)
    return betas


def two(name: str, what: str, values: tuple[float, float]) -> tuple[float, float]:
    """Return a pair of numbers.

    Raises:
        ArgumentError: another number of them.
    """
    found = tuple(values)
    if len(found) != 2:
        raise ArgumentError(name, f"{what} are two numbers", got=values)
    return float(found[0]), float(found[1])


def share(name: str, what: str, value: float) -> float:
    """Return a number in [0, 1].

    Raises:
        ArgumentError: it is outside.
    """
    if not 0 <= value <= 1:
        raise ArgumentError(name, f"{what} is in [0, 1]", got=value)
    return value
