"""The choice between run-time values, as lowering rules use it."""

from __future__ import annotations

from typing import Any

from burn_cube import language
from burn_cube.frontend.values import Val


def select(cond: Val, then: Any, other: Any) -> Val:
    """Return `then` where the run-time condition holds, else `other`."""
    made: Val = language.select(cond, then, other)
    return made
