"""Sums over the first dim and the last ones, as two steps of which the first can be fused.

The statistics of a batch norm over images are such sums: neither rows nor columns. A processor
takes the rows first and then what is left of them, so a group of rows takes the first step in. It
is a step of its own only inside a group; else the sum stays as it was called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import STAGED, Fuser
from burn_fusion.extents import TensorOf, is_elementwise
from burn_fusion.segment import axis_classes
from burn_std import dtypes as d

if TYPE_CHECKING:
    from burn_fusion.groups import Fused
    from burn_fusion.plan import Step

# Slots of what the first steps give: of the sums, and this.
FIRST = 1 << 30


class Described:
    """Dtype and shape of a slot."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape


def in_stages(
    steps: Sequence[Step], tensor: TensorOf, fuser: Fuser,
    made: Callable[[Sequence[Step], TensorOf], Sequence[Step | Fused]],
) -> tuple[Sequence[Step | Fused], TensorOf]:  # fmt: skip
    """Return units of a program with sums in two steps where that helps, and what describes slots.

    Args:
        steps: a program.
        tensor: slot to what has its dtype and shape.
        fuser: the backend's side.
        made: returns the units of steps.
    """
    whole: set[int] = set()
    while True:
        new, seen = (
            _split(steps, tensor, whole) if fuser.first_stage is not None else (steps, tensor)
        )
        units = made(new, seen)
        alone = {u.slot for u in units if not hasattr(u, "steps") and u.slot >= FIRST}
        if not alone:
            return units, seen
        whole |= {slot - FIRST for slot in alone}


def first_shape(shape: tuple[int, ...], tail: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of what a first step gives.

    Args:
        shape: of what is summed.
        tail: the last dims.
    """
    return (*shape[: tail[0]], *(1 for _ in tail))


def _split(
    steps: Sequence[Step], tensor: TensorOf, whole: set[int]
) -> tuple[Sequence[Step], TensorOf]:
    made = {s.slot for s in steps if is_elementwise(s) and not s.is_number}
    firsts: dict[int, Described] = {}
    out: list[Step] = []
    for step in steps:
        tail = (
            _tail(step, tensor)
            if step.slot not in whole and step.entry.name == "sum" and step.inputs[0] in made
            else ()
        )
        if not tail:
            out.append(step)
            continue
        (x,), (dims, keepdim, dtype) = step.inputs, step.static
        slot = FIRST + step.slot
        firsts[slot] = Described(tensor(x).dtype, first_shape(tensor(x).shape, tail))
        kind = type(step)
        out.append(kind(step.entry, slot, [x], (tail, True, dtype, STAGED)))
        out.append(kind(step.entry, step.slot, [slot], (dims, keepdim, dtype)))
    if not firsts:
        return steps, tensor
    return out, lambda slot: firsts.get(slot) or tensor(slot)


def _tail(step: Step, tensor: TensorOf) -> tuple[int, ...]:
    """Return the last dims that a sum reduces beside the first, none where it is no such sum."""
    if step.entry.name != "sum" or not isinstance(step.static[0], tuple):
        return ()
    dims, _, dtype = step.static
    x = tensor(step.inputs[0])
    classes = axis_classes(x.shape)
    tail = tuple(sorted(dims))[1:]
    alike = x.dtype in (d.float32, d.float64) and dtype in (None, x.dtype)
    if not alike or 0 not in dims or not tail or 0 in classes:
        return ()
    last = tail == tuple(range(len(classes) - len(tail), len(classes)))
    between = classes[1 : tail[0]]
    many = classes[0] == 2 and 2 in between and 2 in classes[tail[0] :]
    return tail if last and many else ()
