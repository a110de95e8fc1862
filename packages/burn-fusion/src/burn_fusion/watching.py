"""What a recorder does differently while `burn.profile` is open: it measures.

The measuring functions stand on the recorder in the place of its own for that long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import FunctionType
from typing import Any

from burn_backend import Watcher
from burn_fusion.groups import Fused
from burn_fusion.mode import mode
from burn_fusion.plan import Plan, Step
from burn_fusion.recorder import Recorder
from burn_fusion.segment import Segment, Value


class Watched:
    """The measuring functions of a recorder, for all profiles that listen."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.watchers: list[Watcher] = []

    @contextmanager
    def open(self, watcher: Watcher) -> Iterator[None]:
        """Let a watcher listen inside the block."""
        recorder = self.recorder
        with recorder.lock:
            self.watchers.append(watcher)
            recorder.execute = self._execute  # type: ignore[method-assign]  # see above
            recorder.new_plan = self._new_plan  # type: ignore[method-assign]
            recorder.function_of = self._function_of  # type: ignore[method-assign]
            recorder.watched = True
        try:
            yield
        finally:
            with recorder.lock:
                self.watchers.remove(watcher)
                if not self.watchers:
                    del recorder.execute, recorder.new_plan, recorder.function_of
                    recorder.watched = False

    def _span(self, lane: str, name: str, start: float, facts: dict[str, Any]) -> None:
        end = perf_counter()
        for watcher in list(self.watchers):
            watcher.span(lane, name, start, end, facts)

    def _execute(self, seg: Segment) -> None:
        start, waiting = perf_counter(), len(seg.vals)
        Recorder.execute(self.recorder, seg)
        outcome = seg.outcome
        results: Sequence[Any] = outcome[1] if outcome is not None else ()
        name = f"{waiting} operations"
        facts = {"inputs": len(seg.ext), "results": len(results), "failed": seg.error is not None}
        self._span("flushes", name, start, facts)
        for watcher in list(self.watchers):
            watcher.holds(results)

    def _new_plan(
        self, vals: list[Value], ext: list[Value], live: tuple[int, ...], donate: frozenset[int]
    ) -> Plan:
        start = perf_counter()
        plan = Recorder.new_plan(self.recorder, vals, ext, live, donate)
        facts = {"operations": len(plan.steps), "calls": len(plan.units)}
        self._span("plans", f"plan of {len(plan.steps)} operations", start, facts)
        return plan

    def _function_of(self, plan: Plan) -> Any:
        return plan.run if mode() == "check" else self._measuring(plan)

    def _measuring(self, plan: Plan) -> Callable[..., Any]:
        """Return the plan's function with kernels that are measured."""
        # One code object, so that what a failure left behind is found as it is without us.
        function = plan.function
        kernels = {
            f"k{k}": self._measured(unit, function.__globals__[f"k{k}"])
            for k, unit in enumerate(plan.units)
        }
        return FunctionType(function.__code__, function.__globals__ | kernels)

    def _measured(self, unit: Step | Fused, kernel: Callable[..., Any]) -> Callable[..., Any]:
        lane = "launches" if self.recorder.inner.clocked else "kernels"
        name, facts = name_of(unit)

        def measured(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            out = kernel(*args, **kwargs)
            self._span(lane, name, start, facts)
            return out

        return measured


def name_of(unit: Step | Fused) -> tuple[str, dict[str, Any]]:
    """Return the name of a call of a plan, and its operations where they are several."""
    if isinstance(unit, Step):
        return unit.entry.name, {}
    names = [s.entry.name for s in unit.steps]
    shown = " ".join(names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return shown + more, {"operations": " ".join(names)}
