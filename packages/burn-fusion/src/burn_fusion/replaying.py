"""A step done again: the plans that its record holds, one after the other, on other values.

The function is written out for the step, so that little stands between two plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_fusion.segment import Poison, Value
from burn_fusion.step import PlanRun

if TYPE_CHECKING:
    from burn_fusion.recorder import Recorder

# Where a payload comes from: `("given", k)`, `("constant", k)`, or `("made", run, position)`.
Source = tuple[Any, ...]
Replayer = Callable[[Sequence[Value], Sequence[Any]], list[Value] | None]


def replayer(
    recorder: Recorder, runs: Sequence[tuple[PlanRun, Sequence[Source]]], given: int,
    constants: Sequence[Any], results: Sequence[tuple[int, int]],
) -> Replayer:  # fmt: skip
    """Return a function from values, and the numbers of each run, to the values of the results.

    All values are looked at before anything runs, whether a plan reads them or not: one that has
    gone wrong says so. It returns None, and has done nothing, in a thread that writes down a step.

    Args:
        recorder: whose values these are.
        runs: the plans and where their inputs come from.
        given: how many values there are.
        constants: payloads.
        results: run and position of what is wanted.
    """
    scope: dict[str, Any] = {
        "RECORDER": recorder, "BUFFER": recorder.buffer, "POISON": Poison, "VALUE": Value,
        "TLS": recorder.tls,
    }  # fmt: skip
    lines = [
        "def replay(V, N):",
        "    if TLS.log is not None: return None",
        "    if RECORDER.lost is not None: raise RECORDER.lost.with_traceback(None)",
        "    watched = RECORDER.watched",
    ]
    if given:
        lines.append(f"    {', '.join(f'v{k}' for k in range(given))}, = V")
    for k in range(given):
        lines += [
            f"    b{k} = v{k}.buf if v{k}.seg is None else BUFFER(v{k})",
            f"    if b{k}.__class__ is POISON: BUFFER(v{k})",
        ]

    def name(source: Source) -> str:
        if source[0] == "made":
            return f"r{source[1]}[{source[2]}]"
        return f"b{source[1]}" if source[0] == "given" else f"C{source[1]}"

    scope |= {f"C{k}": payload for k, payload in enumerate(constants)}
    for e, (run, sources) in enumerate(runs):
        scope |= {f"RUN{e}": run.function(measured=False), f"FUNCTION{e}": run.function}
        inputs = "".join(f"{name(s)}, " for s in sources)
        # Who measures puts other functions in the places of the plans'.
        lines.append(f"    run = FUNCTION{e}() if watched else RUN{e}")
        lines.append(f"    r{e} = run(({inputs}), N[{e}])")
    for n, (e, k) in enumerate(results):
        made = runs[e][0].outputs[k]
        scope |= {f"S{n}": made.shape, f"D{n}": made.dtype}
        lines += [
            f"    x{n} = VALUE(); x{n}.shape = S{n}; x{n}.dtype = D{n}; x{n}.slot = -1",
            f"    x{n}.seg = x{n}.op = None; x{n}.buf = r{e}[{k}]",
        ]
    lines.append(f"    return [{', '.join(f'x{n}' for n in range(len(results)))}]")
    exec(compile("\n".join(lines), "<burn replay of a step>", "exec"), scope)
    return scope["replay"]  # type: ignore[no-any-return]
