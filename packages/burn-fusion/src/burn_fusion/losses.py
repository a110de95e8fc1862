"""A loss and its gradient in one program: what the one found out about rows, the other takes.

The gradient of a cross-entropy asks again for the greatest score of each row and for the sum of its
powers. Where the backend can hand them on, both are units with one value between them that the
program does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import Fuser
from burn_fusion.groups import Fused

if TYPE_CHECKING:
    from burn_fusion.plan import Step

# Slots of what is handed on: of the loss, and this.
KEPT = 1 << 31


def paired(units: Sequence[Step | Fused], fuser: Fuser) -> Sequence[Step | Fused]:
    """Return units of a program with losses that hand on what their gradients ask for.

    Args:
        units: in the order in which they run.
        fuser: the backend's side.
    """
    out = list(units)
    losses: dict[Any, tuple[int, Step]] = {}
    taken: dict[int, Fused] = {}
    for k, unit in enumerate(units):
        if isinstance(unit, Fused):
            continue
        name = unit.entry.name
        if name in fuser.losses:
            losses.setdefault((name, tuple(unit.inputs), unit.static), (k, unit))
        elif name.endswith("_backward"):
            key = (name.removesuffix("_backward"), tuple(unit.inputs[1:]), unit.static)
            if key not in losses:
                continue
            at, loss = losses[key]
            forward, backward = fuser.losses[key[0]]
            kept = KEPT + loss.slot
            if at not in taken:
                taken[at] = out[at] = _unit(loss, [], forward)  # type: ignore[assignment]
                taken[at].outputs.append(kept)
            out[k] = _unit(unit, [kept], backward)
    return out


def _unit(step: Step, kept: list[int], function: Any) -> Fused:
    """Return a step as a unit that calls a function with all its arguments."""
    unit = Fused([step], [])
    given = [*kept, *step.inputs]
    unit.inputs = [slot for slot in given if slot is not None]
    unit.outputs = [step.slot]
    unit.run_time = [(step.slot, j) for j in step.run_time()]
    unit.kernel = _called(function, [slot is None for slot in given], step.static)
    return unit


def _called(function: Any, absent: Sequence[bool], static: tuple[Any, ...]) -> Any:
    """Return a function of the inputs that are there and of run-time values."""

    def called(*args: Any) -> Any:
        given = iter(args)
        inputs = [None if none else next(given) for none in absent]
        made = function(*inputs, *static, *given)
        return made if isinstance(made, tuple) else (made,)

    return called
