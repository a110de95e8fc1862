"""What one step of a program did, as its recorder saw it: the plans it ran, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from burn_fusion.groups import Fused
from burn_fusion.losses import KEPT
from burn_fusion.plan import Plan, Step
from burn_fusion.segment import BASE, Value
from burn_fusion.stages import FIRST, first_shape
from burn_std import OF_A_LOCAL, DType
from burn_std.dtypes import float32, float64

if TYPE_CHECKING:
    from burn_fusion.recorder import Recorder


class PlanRun:
    """One plan that ran in a step.

    Attributes:
        inputs: the values that it read; `outputs` those that it made and that were wanted.
        numbers: run-time values by slot.
        slots: how many slots there are.
    """

    __slots__ = ("_plan", "_recorder", "_specs", "_units", "inputs", "numbers", "outputs", "slots")

    def __init__(
        self, recorder: Recorder, plan: Plan, vals: Sequence[Value], ext: Sequence[Value],
        numbers: dict[int, tuple[Any, ...]],
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._plan = plan
        self.inputs = list(ext)
        self.outputs = [vals[slot] for slot in plan.live]
        self.numbers = dict(numbers)
        self.slots = len(vals)
        self._specs = {slot: (v.shape, v.dtype) for slot, v in enumerate(vals)}
        self._units: list[Step | Fused] = []
        for unit in plan.units:
            apart = isinstance(unit, Fused) and getattr(unit.kernel, "parted", False)
            self._units += unit.parts() if isinstance(unit, Fused) and apart else [unit]
            if not isinstance(unit, Fused):
                continue
            for slot in unit.writes():
                if slot >= KEPT:
                    loss = next(s for s in unit.steps if s.slot == slot - KEPT)
                    target = loss.inputs[1]
                    rows = prod((vals[target] if target >= 0 else ext[-1 - target]).shape)
                    scores = vals[loss.slot].dtype
                    self._specs[slot] = (2, rows), float64 if scores is float64 else float32
            for step in unit.steps:
                if step.slot >= FIRST:
                    shape, dtype = self._specs[step.inputs[0]]
                    self._specs[step.slot] = (first_shape(shape, step.static[0]), dtype)

    def units(self) -> list[tuple[list[str], int, int]]:
        """Return what the plan calls: its operations, the bytes that it reads and that it writes.

        A view moves nothing, and a tensor that is read twice by one call is read once.
        """
        out = []
        for unit in self._units:
            steps = unit.steps if isinstance(unit, Fused) else [unit]
            names = [s.entry.name for s in steps]
            if all(s.entry.klass == "view" or s.is_number for s in steps):
                out.append((names, 0, 0))
                continue
            read = sum(self._bytes(s) for s in dict.fromkeys(unit.reads()))
            out.append((names, read, sum(self._bytes(s) for s in unit.writes())))
        return out

    def least(self) -> int:
        """Return the bytes that any way to compute the plan's results moves: inputs and results.

        Of an input that is read through a view that may be more than the plan itself moves.
        """
        read = sum(_size(v.shape, v.dtype) for v in self.inputs)
        most = read + sum(_size(v.shape, v.dtype) for v in self.outputs)
        return min(most, sum(r + w for _, r, w in self.units()))

    def _bytes(self, slot: int) -> int:
        if slot >= 0:
            return _size(*self._specs[slot])
        v = self.inputs[-1 - slot]
        return _size(v.shape, v.dtype)

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

    def function(self, measured: bool = True) -> Callable[..., Sequence[Any]]:
        """Return what runs the plan on payloads of the inner backend and run-time values.

        Args:
            measured: it is measured if somebody listens now.
        """
        recorder = self._recorder
        run: Callable[..., Sequence[Any]] = (
            recorder.function_of(self._plan) if measured else self._plan.run
        )
        runner = recorder.inner.runner
        if runner is None:
            return run
        return lambda payloads, numbers: runner.run(run, payloads, numbers)


def _size(shape: tuple[int, ...], dtype: DType) -> int:
    return prod(shape) * dtype.bits // 8


class StepLog:
    """The runs of a step.

    Attributes:
        runs: plans, in order.
        subject: what it is, in messages.
        keeps: the plans run again, on the values that they had.
    """

    __slots__ = ("_held", "keeps", "runs", "subject")

    def __init__(self, op: str) -> None:
        self.runs: list[PlanRun] = []
        self.keeps = op != "capture"
        # Values that still have memory, and how often the runs hold each.
        self._held: dict[Value, int] = {}
        self.subject = "a captured step" if op == "capture" else "a program that is explained"

    def add(self, run: PlanRun) -> None:
        """Add a plan that ran."""
        self.runs.append(run)
        for value in (*run.inputs, *run.outputs):
            self._held[value] = self._held.get(value, 0) + 1

    def let_go(self) -> None:
        """Take the memory from values that only the log holds: it needs to know them, not more."""
        if self.keeps:
            return
        for value, times in [*self._held.items()]:
            # references: the runs, the dict, the list of its items, and the loop
            if BASE is not None and getrefcount(value) == times + 2 + OF_A_LOCAL:
                value.buf = None
                del self._held[value]
