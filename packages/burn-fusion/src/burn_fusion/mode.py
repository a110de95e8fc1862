"""How plans run: `BURN_FUSION` is `on` (the default), `off` or `check`.

`off` calls one kernel per operation, in the order of the program. `check` runs every plan that way
too and compares: what a fused plan gives is, bit for bit, what its operations give one by one,
reductions too. A NaN is a NaN: which operand's sign and payload a processor hands on depends on the
order in which a compiler writes the operands of a commutative operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import Backend
from burn_std import ArgumentError, ExecutionError

if TYPE_CHECKING:
    from burn_fusion.plan import Plan

MODES = ("on", "off", "check")


def mode() -> str:
    """Return what the environment asks for.

    Raises:
        ArgumentError: it asks for something else.
    """
    found = os.environ.get("BURN_FUSION", "on")
    if found not in MODES:
        raise ArgumentError("BURN_FUSION", f"is one of {', '.join(MODES)}", got=repr(found))
    return found


def compared(plan: Plan, run: Callable[..., Any], inner: Backend) -> Callable[..., Any]:
    """Return a plan's function that also runs `run`, one kernel per operation, and compares.

    The error names the operation whose result differs first.
    """
    fused = plan.run

    def checked(payloads: list[Any], numbers: dict[int, tuple[Any, ...]]) -> Sequence[Any]:
        found: Sequence[Any] = fused(payloads, numbers)
        expected = run(payloads, numbers)
        for slot, a, b in zip(plan.live, found, expected, strict=True):
            one, other = (inner.to_numpy(x) for x in (a, b))
            same = one.tobytes() == other.tobytes() or _bits(one) == _bits(other)
            if one.dtype == other.dtype and same:
                continue
            step = next(s for s in plan.steps if s.slot <= slot < s.slot + s.outputs)
            raise ExecutionError(
                step.entry.name, "a fused plan gives what its operations give one by one",
                got=f"other bits of {one.dtype.name}{list(one.shape)}",
                remedy="Run with BURN_FUSION=off, and report the program.",
            )  # fmt: skip
        return found

    return checked


def _bits(array: Any) -> bytes:
    """Return the elements, all NaN as one of them."""
    unequal = array != array
    if unequal.any():
        array = array.copy()
        array[unequal] = float("nan")
    return array.tobytes()  # type: ignore[no-any-return]
