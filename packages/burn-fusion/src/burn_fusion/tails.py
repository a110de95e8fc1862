"""Elementwise operations behind one that ends in an elementwise kernel of its own: batch norm.

Where the backend has such an operation as one, its last kernel can compute what reads the result:
an activation, a residual. One group is taken, of which nothing that it reads beside is computed
from the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import Fuser
from burn_fusion.extents import TensorOf, is_elementwise
from burn_fusion.groups import Fused, ordered
from burn_fusion.losses import Chain

if TYPE_CHECKING:
    from burn_fusion.plan import Step


def with_tails(
    units: Sequence[Step | Fused], live: Sequence[int], tensor: TensorOf, fuser: Fuser
) -> Sequence[Step | Fused]:
    """Return units of a program in which operations have what stands behind them in their kernel.

    Args:
        units: in the order in which they run.
        live: slots whose values are wanted.
        tensor: slot to what has its dtype and shape.
        fuser: the backend's side.
    """
    found = [u for u in units if not isinstance(u, Fused) and u.entry.name in fuser.tails]
    now = list(units)
    for step in found:
        tail = _tail(step, now, tensor)
        if tail is not None:
            made = _unit(step, tail, now, live, tensor, fuser)
            now = ordered([made, *[u for u in now if u is not step and u is not tail]])
    return now


def _tail(step: Step, units: Sequence[Step | Fused], tensor: TensorOf) -> Step | Fused | None:
    """Return the unit that goes into the kernel of a step."""
    if not tensor(step.slot).shape:
        return None
    # What is computed from the step, in order of the units.
    made = set(step.writes())
    for unit in units:
        reads = unit.reads()
        if step.slot in reads and made.intersection(reads) == {step.slot}:
            steps = [*unit.numbers, *unit.steps] if isinstance(unit, Fused) else [unit]
            rank = len(tensor(step.slot).shape)
            if not (isinstance(unit, Fused) and unit.rows) and all(
                s.is_number or (is_elementwise(s) and len(tensor(s.slot).shape) == rank)
                for s in steps
            ):
                return unit
        if not made.isdisjoint(reads):
            made.update(unit.writes())
    return None


def _unit(
    step: Step, tail: Step | Fused, units: Sequence[Step | Fused], live: Sequence[int],
    tensor: TensorOf, fuser: Fuser,
) -> Fused:  # fmt: skip
    """Return a step and the unit behind it as one."""
    steps = [*tail.numbers, *tail.steps] if isinstance(tail, Fused) else [tail]
    inside = {s for t in steps for s in t.writes()}
    others = dict.fromkeys(s for t in steps for s in t.reads() if s not in inside)
    del others[step.slot]
    others_read = {s for u in units if u is not tail for s in u.reads()}
    asked = step.slot in live or step.slot in others_read
    wanted = [*([step.slot] if asked else []), *tail.writes()]
    chain = Chain(steps, step.slot, wanted, list(others))
    unit = Fused([step, *[s for s in steps if not s.is_number]], [])
    there = [s for s in step.inputs if s is not None]
    unit.inputs = [*there, *others]
    unit.outputs = [*wanted, *step.writes()[1:]]
    unit.run_time = [(step.slot, j) for j in step.run_time()] + chain.numbers()
    absent = [s is None for s in step.inputs]
    unit.kernel = _called(
        fuser.tails[step.entry.name], absent, step.static, len(step.run_time()),
        (chain.group(tensor), len(others)),
    )  # fmt: skip
    return unit


def _called(
    function: Any, absent: Sequence[bool], static: tuple[Any, ...], late: int, tail: tuple[Any, int]
) -> Any:
    """Return a function of the inputs that are there, of those of the tail and run-time values."""
    inputs = absent.count(False)
    group, others = tail

    def called(*args: Any) -> Any:
        given = iter(args[:inputs])
        own = [None if none else next(given) for none in absent]
        beside, values = args[inputs : inputs + others], args[inputs + others :]
        return function((group, beside, values[late:]), *own, *static, *values[:late])

    return called
