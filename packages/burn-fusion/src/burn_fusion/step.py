"""What one step of a program did, as its recorder saw it: the plans it ran, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import Backend
from burn_fusion.plan import Plan
from burn_fusion.segment import Value


class PlanRun:
    """One plan that ran in a step.

    Attributes:
        inputs: the values that it read; `outputs` those that it made and that were wanted.
        numbers: run-time values by slot.
    """

    __slots__ = ("_inner", "_plan", "inputs", "numbers", "outputs")

    def __init__(
        self, inner: Backend, plan: Plan, vals: Sequence[Value], ext: Sequence[Value],
        numbers: dict[int, tuple[Any, ...]],
    ) -> None:  # fmt: skip
        self._inner = inner
        self._plan = plan
        self.inputs = list(ext)
        self.outputs = [vals[slot] for slot in plan.live]
        self.numbers = dict(numbers)

    def same_program(self, other: PlanRun) -> bool:
        """Return whether another run was one of the same plan."""
        return self._plan is other._plan

    def places(self) -> list[tuple[int, int, str, str]]:
        """Return slot, position, operation and name of every run-time number, no extents."""
        out = []
        for step in self._plan.steps:
            names = [a for a in step.entry.attrs if a.kind != "static"]
            out += [(step.slot, k, step.entry.name, names[k].name) for k in step.scalars()]
        return out

    def extents(self) -> dict[tuple[int, int], Any]:
        """Return the run-time values that are no numbers, by slot and position."""
        numbers = {(slot, k) for slot, k, _, _ in self.places()}
        return {
            (slot, k): value
            for slot, values in self.numbers.items()
            for k, value in enumerate(values)
            if (slot, k) not in numbers
        }

    def name_of(self, position: int) -> str:
        """Return the operation that made an output."""
        slot = self._plan.live[position]
        made = (s for s in self._plan.steps if s.slot <= slot < s.slot + s.outputs)
        return next(made).entry.name

    def run(self, payloads: list[Any], numbers: dict[int, tuple[Any, ...]]) -> Sequence[Any]:
        """Run the plan on payloads of the inner backend."""
        runner = self._inner.runner
        if runner is None:
            return self._plan.run(payloads, numbers)  # type: ignore[no-any-return]
        return runner.run(self._plan.run, payloads, numbers)  # type: ignore[no-any-return]


class StepLog:
    """The runs of a step."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[PlanRun] = []
