"""A captured step as one function: its plans one after the other, on values.

A backend that puts one call in the place of a plan's function does so for the whole step: what one
plan makes and another reads is then memory of the inside, and the new state lies where the old one
was, if nobody else holds that. What stands around that call is written out for the step.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount
from typing import Any

from burn_backend import OverwrittenError
from burn_fusion.mode import mode
from burn_fusion.recorder import Recorder
from burn_fusion.recovery import typed
from burn_fusion.segment import BASE, Poison, Value
from burn_fusion.step import PlanRun
from burn_std import BurnError, DeviceLostError

# Where an input of a plan comes from: a number of the step's inputs, or the run and the position
# that made it.
From = int | tuple[int, int]
# Says by how many objects of the state each value is held that may be written over, else 0.
Holders = Callable[[Sequence[Any]], Sequence[int]]


class Running:
    """Stands as the segment of values that a running step will make: a reader waits for its end.

    A step that writes over its state gives the state these values before it begins, so that
    another thread gets what was before or what comes after, and nothing in between.

    Attributes:
        lock: held while the step runs.
    """

    __slots__ = ("lock", "rebinds")

    # What a reader asks once it has waited.
    done = True

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.rebinds: deque[Any] = deque(maxlen=0)  # a step undoes its own


class WholeStep:
    """The plans of a step, in order.

    Args:
        recorder: of the device; its inner backend executes.
        runs: the plans as they ran.
        sources: where the inputs of each come from: values first, then constants.
        values: how many values there are, arguments and state.
        constants: payloads.
        wanted: the results.
        heirs: the input that a result succeeds, by the result's position.
        changing: run, slot and position of the numbers that change from step to step.
        holders: takes the owners that a run is given.
        rematerialise: compute cheap values again where that makes the peak of memory smaller.

    Attributes:
        overwrites: the next run may write over values of the state. An interrupt has to wait then
            until the state has its new values, see `Shield`, and so has another thread: the state
            gets what is `coming` before the run, see `Running`.
        bound: what the backend put in the place of the plans.
    """

    def __init__(
        self, recorder: Recorder, runs: Sequence[PlanRun], sources: Sequence[Sequence[From]],
        values: int, constants: Sequence[Any], wanted: Sequence[From], heirs: Mapping[int, int],
        changing: Sequence[tuple[int, int, int]], holders: Holders, rematerialise: bool = False,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._runs, self._sources, self._wanted = runs, sources, wanted
        self._values, self._constants = values, constants
        self._heirs, self._holders = dict(heirs), holders
        # Slots of one program for all: those of a run begin where the ones before it end.
        self._first: list[int] = []
        self._numbers: dict[int, tuple[Any, ...]] = {}
        top = 0
        for run in runs:
            self._first.append(top)
            self._numbers |= {top + slot: given for slot, given in run.numbers.items()}
            top += run.slots
        self._places = [(self._first[e] + slot, k) for e, slot, k in changing]
        self.overwrites = False
        self.running = Running()
        # Of what the plans make and the step wants; the runs themselves are let go.
        outputs = [runs[s[0]].outputs[s[1]] for s in wanted if not isinstance(s, int)]
        self._kinds = [(v.shape, v.dtype) for v in outputs]
        self._plans = self._written_plans()
        self.bound: Any = self._plans
        if mode() == "on":
            self.bound = recorder.inner.bound_step(self._plans, self._places, rematerialise)

    def _written_plans(self) -> Callable[..., tuple[Any, ...]]:
        """Return the plans as one function of payloads; what no later one reads is let go."""
        lines = ["def a_captured_step(E, N):", "    watched = RECORDER.watched"]
        scope: dict[str, Any] = {"RECORDER": self._recorder}
        last = {s: e for e, froms in enumerate(self._sources) for s in froms}
        changed = {slot for slot, _ in self._places}

        def name(source: From) -> str:
            return f"E[{source}]" if isinstance(source, int) else f"r{source[0]}_{source[1]}"

        for e, (run, froms) in enumerate(zip(self._runs, self._sources, strict=True)):
            scope |= {f"RUN{e}": run.function(measured=False), f"FUNCTION{e}": run.function}
            # Who measures puts other functions in the places of the plans'.
            lines.append(f"    run = FUNCTION{e}() if watched else RUN{e}")
            first = self._first[e]
            if any(first + slot in changed for slot in run.numbers):
                numbers = ", ".join(f"{slot}: N[{first + slot}]" for slot in run.numbers)
                numbers = f"{{{numbers}}}"
            else:
                numbers, scope[f"N{e}"] = f"N{e}", run.numbers
            inputs = "".join(f"{name(s)}, " for s in froms)
            made = "".join(f"r{e}_{k}, " for k in range(len(run.outputs)))
            call = f"run(({inputs}), {numbers})"
            lines.append(f"    {made}= {call}" if made else f"    {call}")
            ended = [s for s in dict.fromkeys(froms) if last[s] == e and s not in self._wanted]
            ended += [(e, k) for k in range(len(run.outputs)) if (e, k) not in last]
            ended = [s for s in ended if not isinstance(s, int) and s not in self._wanted]
            lines += [f"    del {name(s)}" for s in dict.fromkeys(ended)]
        lines.append(f"    return ({''.join(f'{name(s)}, ' for s in self._wanted)})")
        exec(compile("\n".join(lines), "<a captured step>", "exec"), scope)
        return scope.pop("a_captured_step")  # type: ignore[no-any-return]

    def written(self) -> Callable[..., list[Value] | None]:
        """Return `(values, numbers that change, owners, values to come) -> new values`.

        All values are looked at before anything runs, whether a plan reads them or not: one that
        has gone wrong says so. It returns None, and has done nothing, in a thread that writes down
        a step. Values to come are None, or what `coming` returned: those that are returned.
        """
        recorder = self._recorder
        scope: dict[str, Any] = {
            "RECORDER": recorder, "BUFFER": recorder.buffer, "POISON": Poison, "VALUE": Value,
            "TLS": recorder.tls, "NUMBERS": self._numbers, "PLANS": self._plans,
            "BOUND": self.bound, "SLOW": self._slow, "FAILED": self._failed,
        }  # fmt: skip
        made = [f"x{n}" for n in range(len(self._wanted))]
        names = [f"v{k}" for k in range(self._values)]
        lines = [
            "if RECORDER.logs and TLS.log is not None: return None",
            "if RECORDER.lost is not None: raise RECORDER.lost.with_traceback(None)",
        ]
        if names:
            lines.append(f"{', '.join(names)}, = V")
        lines += [
            f"if {v}.seg is not None or {v}.buf.__class__ is POISON: BUFFER({v})" for v in names
        ]
        scope |= {f"C{k}": payload for k, payload in enumerate(self._constants)}
        given = [f"{v}.buf" for v in names] + [f"C{k}" for k in range(len(self._constants))]
        lines += [f"E = ({''.join(f'{x}, ' for x in given)})", *self._numbered(scope)]
        lines.append("try:")
        if self.bound is self._plans:
            lines.append("    outs = PLANS(E, N)")
        else:
            lines += [
                "    if RECORDER.watched: outs = PLANS(E, N)",
                "    else:",
                "        quick = BOUND.quick",
                "        outs = None if quick is None else quick(E, N)",
                "        if outs is None: outs = SLOW(V, E, N, O)",
            ]
        lines.append("except Exception as cause: outs = FAILED(cause, V, E, N)")
        if made:
            lines.append(f"{''.join(f'o{n}, ' for n in range(len(made)))}= outs")
            lines += ["if X is not None:", f"    {', '.join(made)}, = X"]
            lines += [f"    {x}.buf = o{n}; {x}.seg = None" for n, x in enumerate(made)]
            lines.append("    return X")
        for n, (shape, dtype) in enumerate(self._kinds):
            scope |= {f"S{n}": shape, f"D{n}": dtype}
            lines += [
                f"x{n} = VALUE(); x{n}.shape = S{n}; x{n}.dtype = D{n}; x{n}.slot = -1",
                f"x{n}.seg = x{n}.op = None; x{n}.buf = o{n}",
            ]
        lines.append(f"return [{', '.join(made)}]")
        text = "\n    ".join(["def run(V, C, O, X=None):", *lines])
        exec(compile(text, "<burn replay of a step>", "exec"), scope)
        return scope.pop("run")  # type: ignore[no-any-return]

    def coming(self) -> Callable[[Sequence[Value]], list[Value] | None]:
        """Return `values -> what a run of them will make`, for the state to hold meanwhile.

        It returns None in a thread that writes down a step. The values are computed here, since a
        reader of them may not wait for the run.
        """
        recorder = self._recorder
        scope: dict[str, Any] = {
            "BUFFER": recorder.buffer, "POISON": Poison, "VALUE": Value, "TLS": recorder.tls,
            "RUNNING": self.running,
        }  # fmt: skip
        lines = [
            "if TLS.log is not None: return None", "for v in V:",
            "    if v.seg is not None or v.buf.__class__ is POISON: BUFFER(v)",
        ]  # fmt: skip
        for n, (shape, dtype) in enumerate(self._kinds):
            scope |= {f"S{n}": shape, f"D{n}": dtype}
            lines += [
                f"x{n} = VALUE(); x{n}.shape = S{n}; x{n}.dtype = D{n}; x{n}.slot = -1",
                f"x{n}.op = x{n}.buf = None; x{n}.seg = RUNNING",
            ]
        lines.append(f"return [{', '.join(f'x{n}' for n in range(len(self._kinds)))}]")
        text = "\n    ".join(["def coming(V):", *lines])
        exec(compile(text, "<burn values to come>", "exec"), scope)
        return scope.pop("coming")  # type: ignore[no-any-return]

    @staticmethod
    def failed(coming: Sequence[Value], old: Mapping[int, Value], error: Any) -> None:
        """Let values that a run was to make stand for what the state held in their place.

        Args:
            coming: the values.
            old: what the state held, by position; others are no part of the state.
            error: what went wrong.
        """
        for n, v in enumerate(coming):
            v.buf = old[n].buf if n in old else Poison(typed("capture", error))
            v.seg = None

    def _numbered(self, scope: dict[str, Any]) -> list[str]:
        """Return the lines that make the run-time values of a run."""
        if not self._places:
            return ["N = NUMBERS"]
        by_slot: dict[int, dict[int, int]] = {}
        for n, (slot, k) in enumerate(self._places):
            by_slot.setdefault(slot, {})[k] = n
        lines = ["N = dict(NUMBERS)"]
        for slot, changed in by_slot.items():
            scope[f"N{slot}"] = self._numbers[slot]
            places = range(len(self._numbers[slot]))
            values = [f"C[{changed[k]}]" if k in changed else f"N{slot}[{k}]" for k in places]
            lines.append(f"N[{slot}] = ({', '.join(values)},)")
        return lines

    def _slow(
        self, values: Sequence[Value], inputs: Sequence[Any], numbers: Mapping[int, Any],
        owners: Sequence[Any],
    ) -> Sequence[Any]:  # fmt: skip
        """Run the step where results may take the memory of state, or nothing is known yet."""
        bound = self.bound
        if not hasattr(bound, "overwrites"):
            return bound(inputs, numbers)  # type: ignore[no-any-return]
        free = _Unheld(values, self._holders(owners), self._heirs)
        outs: Sequence[Any] = bound(inputs, numbers, free)
        self.overwrites = bound.overwrites
        return outs

    def _failed(
        self, cause: Exception, values: Sequence[Value], inputs: Sequence[Any],
        numbers: Mapping[int, Any],
    ) -> Sequence[Any]:  # fmt: skip
        """Run the step once more where memory was short.

        Raises:
            BurnError: what went wrong; nothing was changed. Where memory was short, freeing the
                caches was not enough.
            OverwrittenError: values of the state are gone.
        """
        recorder = self._recorder
        if isinstance(cause, OverwrittenError):
            lost = Poison(cause)
            for k in cause.inputs:
                values[k].buf = lost
        if isinstance(cause, DeviceLostError):
            recorder.lost = cause
        if isinstance(cause, (BurnError, Warning)):
            raise cause
        if not isinstance(cause, MemoryError):
            raise typed("capture", cause) from cause
        # Nothing was launched: all memory is taken first.
        recorder.inner.memory_cleanup()
        run = self._plans if recorder.watched else self.bound
        try:
            return run(inputs, numbers)
        except MemoryError as error:
            raise typed("capture", error) from error


class _Unheld:
    """Which values of a state nobody else holds."""

    __slots__ = ("_holders", "_values", "heirs")

    def __init__(
        self, values: Sequence[Value], holders: Sequence[int], heirs: Mapping[int, int]
    ) -> None:
        self._values = values
        self._holders = holders
        self.heirs = heirs

    def __call__(self, numbers: Sequence[int]) -> list[bool]:
        """Return of inputs whether only the state holds their values."""
        if BASE is None:
            return [False] * len(numbers)
        holders, top = self._holders, len(self._values)
        # references beside the list: the objects of the state, a name of `run`
        counts = list(map(getrefcount, self._values))
        return [
            k < top and holders[k] > 0 and counts[k] == BASE + 1 + holders[k] for k in numbers
        ]  # fmt: skip
