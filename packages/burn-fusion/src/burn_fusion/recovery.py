"""What becomes of a segment whose plan failed: the rest of it, one operation at a time.

Where the plan overwrote externals it cannot run again from the start. Then the walk goes on at the
step that failed, with the values that the plan's own frame still holds; those are all that later
steps read. No step writes over an operand here, so this is the one retry without donation.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from burn_backend import Backend, OverwrittenError
from burn_fusion.plan import Plan, Step, bind_kernels
from burn_fusion.segment import Poison, Value
from burn_std import BurnError, DeviceLostError, ExecutionError, IndexRangeError


def recover(
    inner: Backend,
    plan: Plan,
    vals: Sequence[Value],
    ext: Sequence[Value],
    rt: dict[int, tuple[Any, ...]],
    cause: Exception,
) -> tuple[list[Any], BurnError | None]:
    """Return what every slot of a failed segment gets, payload or `Poison`, and the error.

    The error is None where memory was short and freeing the caches was enough.
    """
    if isinstance(cause, (DeviceLostError, OverwrittenError)):
        lost = Poison(cause)
        for k in getattr(cause, "inputs", ()):
            ext[k].buf = lost
        return [lost] * len(vals), cause
    start, bufs = _standing(plan, cause, ext)
    if isinstance(cause, MemoryError):
        inner.memory_cleanup()
    error = _walk(inner, plan.steps[start:], vals, ext, rt, bufs)
    if isinstance(cause, IndexRangeError):
        # The walk met the index again; a device that notes it for later has said it already.
        with suppress(IndexRangeError):
            inner.sync()
    if error is None and not isinstance(cause, MemoryError):
        # The plan is at fault, not a kernel: the values are right, and it is said all the same.
        error = typed("flush", cause)
    # A slot without payload was dropped before the failure: only a rebinding can ask for it.
    gone = Poison(error or typed("flush", cause))
    return [bufs.get(slot, gone) for slot in range(len(vals))], error


def typed(op: str, cause: Exception) -> BurnError:
    """Return an error of the framework as it is, anything else as an ExecutionError."""
    if isinstance(cause, BurnError):
        return cause.with_traceback(None)
    error = ExecutionError(
        op, "failed when the recorded operations ran", got=f"{type(cause).__name__}: {cause}"
    )
    error.__cause__ = cause
    return error


def _standing(plan: Plan, cause: Exception, ext: Sequence[Value]) -> tuple[int, dict[int, Any]]:
    """Return the step to go on at and the payloads by slot."""
    bufs: dict[int, Any] = {-1 - k: v.buf for k, v in enumerate(ext)}
    start = 0
    frame = _frame_of(plan, cause.__traceback__)
    if plan.donate and frame is not None:
        start = plan.step_at(frame.tb_lineno)
        for name, payload in frame.tb_frame.f_locals.items():
            kind, number = name[0], name[1:]
            if number.isdigit():
                bufs[int(number) if kind == "v" else -1 - int(number)] = payload
    return start, bufs


def let_go(error: BaseException | None, first: BaseException | None) -> None:
    """Take payloads and values out of an error, which may be kept for long.

    They stand in the locals of the frames that it passed and of those that called them; those that
    still run stay as they are.

    Args:
        error: what a value of the segment raises.
        first: what the plan raised. What was being handled before that is the program's.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            ended: FrameType | None = frame
            while ended is not None:
                try:
                    ended.clear()
                except RuntimeError:  # it still runs, and so do all that called it
                    break
                ended = ended.f_back
        error = None if error is first else error.__cause__ or error.__context__


def _frame_of(plan: Plan, tb: TracebackType | None) -> TracebackType | None:
    code = plan.function.__code__
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    return tb


def _walk(
    inner: Backend,
    steps: Sequence[Step],
    vals: Sequence[Value],
    ext: Sequence[Value],
    rt: dict[int, tuple[Any, ...]],
    bufs: dict[int, Any],
) -> BurnError | None:
    """Execute steps one by one, poisoning what depends on a failed one; return the first error."""
    runner = inner.runner
    first: BurnError | None = None
    for step in steps:
        outs = range(step.slot, step.slot + step.outputs)
        broken = next((bufs[s] for s in step.reads() if bufs[s].__class__ is Poison), None)
        if broken is not None:
            bufs.update(dict.fromkeys(outs, broken))
            continue
        try:
            bind_kernels([step], inner, lambda s: (vals[s] if s >= 0 else ext[-1 - s]).dtype)
            args = [
                None if i is None else [bufs[s] for s in i] if isinstance(i, tuple) else bufs[i]
                for i in step.inputs
            ]
            # An operation that Ctrl-C cut short left its numbers here, and another took the slot.
            numbers = rt[step.slot] if step.run_time() else ()
            call = (step.kernel, *args, *step.static, *numbers)
            out = call[0](*call[1:]) if runner is None else runner.run(*call)
            results = list(out) if step.entry.multi else [out]
            ready = inner.ready
            bufs.update(
                (s, r if ready is None or r.__class__ is ready else inner.wrap(r))
                for s, r in zip(outs, results, strict=True)
            )
        except Exception as cause:  # noqa: BLE001 - kept as the error of the values
            error = typed(step.entry.name, cause)
            first = first or error
            bufs.update(dict.fromkeys(outs, Poison(error)))
    return first
