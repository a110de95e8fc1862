"""A line search for the strong Wolfe conditions: far enough down, and flat enough there."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A place on the line.

    Attributes:
        t: distance from the start.
        value: the loss there.
        grad: the gradient there.
        slope: its part along the line.
    """

    t: float
    value: float
    grad: Any
    slope: float


def strong_wolfe(
    at: Callable[[float], Point],
    start: Point,
    t: float,
    largest: float,
    *,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_steps: int = 25,
) -> tuple[Point, int]:
    """Return a point where the loss fell by c1 of what the slope promises and the slope by c2.

    Args:
        at: evaluates a point.
        start: the point at distance 0, with a negative slope.
        t: what is tried first.
        largest: largest element of the direction; ends the search when steps get too small.
        c1: share of the promised descent.
        c2: share of the slope that may be left.
        tolerance_change: least length of a bracket, times `largest`.
        max_steps: how many points are tried at most.

    Returns:
        The point, the best of those tried if none qualifies, and how many were tried.

    Source: Nocedal and Wright, algorithms 3.5 and 3.6.
    """

    def falls(p: Point) -> bool:
        return p.value <= start.value + c1 * p.t * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    last, tried = start, 0
    bracket: tuple[Point, Point] | None = None
    while tried < max_steps:
        here = at(t)
        tried += 1
        if not isfinite(here.value):
            # Beyond the domain: come back half the way.
            bracket, t = None, (last.t + t) / 2
            continue
        if not falls(here) or (tried > 1 and here.value >= last.value):
            bracket = (last, here)
            break
        if flat(here):
            return here, tried
        if here.slope >= 0:
            bracket = (last, here)
            break
        near, far = here.t + 0.01 * (here.t - last.t), here.t * 10
        t, last = cubic_minimum(last, here, (near, far)), here
    if bracket is None:
        return last, tried
    return _zoom(
        at, bracket, falls, flat, tried, max_steps, tolerance_change / max(largest, 1e-300)
    )


def _zoom(
    at: Callable[[float], Point],
    bracket: tuple[Point, Point],
    falls: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    tried: int,
    max_steps: int,
    least: float,
) -> tuple[Point, int]:
    """Narrow a bracket that holds a good point; its first end is kept the lower one."""
    low, high = sorted(bracket, key=lambda p: p.value)
    stuck = False
    while tried < max_steps and abs(high.t - low.t) >= least:
        left, right = sorted((low.t, high.t))
        t = cubic_minimum(low, high)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            # Too near an end: once is a coincidence, twice or outside is forced inwards.
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = at(t)
        tried += 1
        if not falls(here) or not here.value < low.value:
            high = here
            if not here.value >= low.value:  # NaN on the far side
                high = Point(here.t, float("inf"), here.grad, 0.0)
            continue
        if flat(here):
            return here, tried
        if here.slope * (high.t - low.t) >= 0:
            high = low
        low = here
    return low, tried


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return where the cubic through two points and slopes is least, within bounds.

    Args:
        a: one point.
        b: another.
        bounds: the two places if None.

    Example:
        >>> cubic_minimum(Point(0.0, 1.0, None, -2.0), Point(2.0, 1.0, None, 2.0))
        1.0

    Source: Nocedal and Wright, equation 3.59.
    """
    low, high = sorted((a.t, b.t)) if bounds is None else bounds
    if a.t == b.t or not isfinite(b.value) or not isfinite(a.value):
        return (low + high) / 2
    left, right = (a, b) if a.t <= b.t else (b, a)
    d1 = left.slope + right.slope - 3 * (left.value - right.value) / (left.t - right.t)
    square = d1 * d1 - left.slope * right.slope
    if square < 0:
        return (low + high) / 2
    d2 = float(square**0.5)
    below = right.slope - left.slope + 2 * d2
    if below == 0:
        return (low + high) / 2
    place = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / below)
    return min(max(place, low), high)
