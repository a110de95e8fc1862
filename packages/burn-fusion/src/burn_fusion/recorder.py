"""The recorder of one resource: cutting, sealing, flushing, failing.

Flushing happens at reads, at content-defined points before large operations, and at a hard cap;
never because of memory pressure, so the same program is always cut at the same places.
"""

from __future__ import annotations

import signal
import threading
import weakref
from itertools import islice
from sys import getrefcount
from typing import Any

from burn_backend import Backend, Memo
from burn_fusion.plan import Plan, bind_kernels, can_fail, decode
from burn_fusion.segment import (
    Externals,
    Holder,
    Local,
    Poison,
    Segment,
    Value,
    axis_classes,
    live_slots,
)
from burn_ir import CATALOG
from burn_std import BurnError, ExecutionError

# A whole training step of a small model stays one segment: its optimizer ends it.
SOFT = 256
CAP = 1024


class Recorder:
    """Segments, plans and counts of one resource.

    Attributes:
        inner: the backend that executes.
        tls: per thread, `tls.h.seg` is the open segment.
        classes: shape to axis classes, remembered.
        plans_made, flushes: counts for reports and tests.
    """

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.lock = threading.RLock()
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self.tls = Local(self._register, self.buffer)
        self.classes = Memo(axis_classes)
        self.plans: dict[Any, Plan] = {}
        self.by_program: dict[Any, list[Plan]] = {}
        self.plans_made = 0
        self.flushes = 0

    def _register(self, holder: Holder) -> None:
        with self.lock:
            self.holders.add(holder)

    # ---- called by generated functions ----------------------------------------------------

    def cut(self, holder: Holder) -> None:
        """Flush the thread's segment at the start of an operation."""
        self.flush(holder.seg)

    def content_cut(self, vals: list[Value]) -> bool:
        """Return whether to cut here, by a test of the last operations.

        So a loop is cut at the same places of its body, whatever its length.
        """
        return hash(tuple([v.op[0] for v in vals[-16:]])) & 3 == 0

    def buffer(self, value: Value) -> Any:
        """Return the payload of a value, running its segment if need be."""
        seg = value.seg
        if seg is not None:
            self.flush(seg)
            if value.seg is not None:
                raise ExecutionError("read", "the value's segment did not run", got=value.shape)
        buf = value.buf
        if buf.__class__ is Poison:
            raise buf.error
        return buf

    # ---- flushing ---------------------------------------------------------------------------

    def flush_open(self) -> None:
        """Flush this thread's segment."""
        self.flush(self.tls.h.seg)

    def flush_all(self) -> None:
        """Flush the segments of all threads."""
        for holder in list(self.holders):
            self.flush(holder.seg)

    def seal(self, seg: Segment) -> None:
        """Take a segment from its thread; later operations go to a new one."""
        with self.lock:
            for holder in self.holders:
                if holder.seg is seg:
                    holder.seg = Segment(self.buffer)

    def flush(self, seg: Segment) -> None:
        """Seal and run a segment; safe from any thread."""
        h = self.tls.h
        if h.seg is seg:
            if not seg.vals:
                return
            h.seg = Segment(self.buffer)
        else:
            self.seal(seg)
        with seg.lock:
            if seg.done:
                return
            try:
                self._run(seg)
            except KeyboardInterrupt:
                # A sealed segment is finished first; `_run` goes on where it was.
                with _Shield():
                    self._run(seg)
                raise

    def _run(self, seg: Segment) -> None:
        if seg.outcome is None:
            try:
                self._execute(seg)
            except Exception as cause:  # noqa: BLE001 - made typed and raised there
                try:
                    self._failed(seg, cause)
                finally:
                    self._close(seg)
        assert seg.outcome is not None  # noqa: S101 - a failure was raised above
        vals = seg.vals
        for slot, buf in zip(*seg.outcome, strict=True):
            v = vals[slot]
            v.buf = buf
            v.seg = None
        self._close(seg)

    def _close(self, seg: Segment) -> None:
        seg.done = True
        self.flushes += 1
        seg.vals = []
        seg.ext = []
        seg.slots = Externals(self.buffer, seg.ext)
        seg.rt = {}
        seg.rebinds = []
        seg.outcome = None

    def _execute(self, seg: Segment) -> None:
        """Run the segment's plan and note what it returned."""
        # The owner of a segment that another thread sealed may still append to it, an operation
        # that it will record again elsewhere. Its externals come before it, so the count of the
        # values is read first and what comes later is left out.
        vals = seg.vals
        count = seg.count = len(vals)
        ext = seg.ext[:]
        live = live_slots(vals, count)
        donate = self._donated(ext) if ext else frozenset()
        plan = self._plan(vals, count, ext, live, donate)
        payloads = [v.buf for v in ext]
        runner = self.inner.runner
        run = plan.run if runner is None else runner.run
        args = (payloads, seg.rt) if runner is None else (plan.run, payloads, seg.rt)
        if plan.donate:
            # Overwritten inputs cannot be run again, so an interrupt waits.
            seg.donated = True
            with _Shield():
                seg.outcome = (plan.live, run(*args))
        else:
            seg.outcome = (plan.live, run(*args))
        plan.runs += 1

    def _donated(self, ext: list[Value]) -> frozenset[int]:
        """Return the externals that nobody else can see, neither value nor memory."""
        # references: the segment's list and slots, this copy, the argument of getrefcount
        return frozenset(
            [
                -1 - k
                for k in range(len(ext))
                if getrefcount(ext[k]) == 4 and self.inner.owned(ext[k])
            ]
        )

    def _plan(
        self,
        vals: list[Value],
        count: int,
        ext: list[Value],
        live: tuple[int, ...],
        donate: frozenset[int],
    ) -> Plan:
        classes = self.classes
        codes = tuple([v.op for v in islice(vals, count)])
        program = (codes, tuple([(v.dtype, classes[v.shape]) for v in ext]))
        key = (program, live, donate)
        plan = self.plans.get(key)
        if plan is not None:
            return plan
        if donate and any(can_fail(CATALOG.by_code[c[0]]) for c in codes if c[0] != -1):
            donate = frozenset()
        known = self.by_program.setdefault(program, [])
        wanted = set(live)
        for plan in known:
            if wanted <= set(plan.live) and plan.donate <= donate:
                break
        else:
            plan = Plan(vals[:count], ext, live, donate, self.inner)
            self.plans_made += 1
            known.append(plan)
        if len(self.plans) >= 4096:
            self.plans.clear()
            self.by_program.clear()
        self.plans[key] = plan
        return plan

    def _failed(self, seg: Segment, cause: Exception) -> None:
        """Run again one by one, and raise the error.

        What does not depend on the failed operation gets its value, the rest is poisoned, and
        rebound objects get their old value back.
        """
        vals, ext = seg.vals[: seg.count], seg.ext[:]
        bufs: dict[int, Any] = {-1 - k: v.buf for k, v in enumerate(ext)}
        error: BurnError | None = None
        if not seg.donated:
            error = self._interpret(seg, vals, ext, bufs)
        if error is None:
            error = _typed("flush", cause)
        poison = Poison(error)
        for slot, v in enumerate(vals):
            v.buf = bufs.get(slot, poison)
            v.seg = None
        for obj, old in reversed(seg.rebinds):
            if obj.v.__class__ is Value and obj.v.seg is None and obj.v.buf.__class__ is Poison:
                obj.v = old
        raise error

    def _interpret(
        self,
        seg: Segment,
        vals: list[Value],
        ext: list[Value],
        bufs: dict[int, Any],
    ) -> BurnError | None:
        """Execute the program one operation at a time; return the first error."""
        runner = self.inner.runner
        steps = decode([v.op for v in vals])
        first: BurnError | None = None
        for step in steps:
            outs = range(step.slot, step.slot + step.outputs)
            broken = next((bufs[s] for s in step.reads() if bufs[s].__class__ is Poison), None)
            if broken is not None:
                bufs.update(dict.fromkeys(outs, broken))
                continue
            try:
                bind_kernels(
                    [step], self.inner, lambda s: (vals[s] if s >= 0 else ext[-1 - s]).dtype
                )
                args = [
                    None if i is None else [bufs[s] for s in i] if isinstance(i, tuple) else bufs[i]
                    for i in step.inputs
                ]
                call = (step.kernel, *args, *step.static, *seg.rt.get(step.slot, ()))
                out = call[0](*call[1:]) if runner is None else runner.run(*call)
                results = list(out) if step.entry.multi else [out]
                bufs.update(zip(outs, map(self._ready, results), strict=True))
            except Exception as cause:  # noqa: BLE001 - kept as the error of the values
                error = _typed(step.entry.name, cause)
                first = first or error
                bufs.update(dict.fromkeys(outs, Poison(error)))
        return first

    def _ready(self, result: Any) -> Any:
        ready = self.inner.ready
        return result if ready is None or result.__class__ is ready else self.inner.wrap(result)


def _typed(op: str, cause: Exception) -> BurnError:
    if isinstance(cause, BurnError):
        return cause.with_traceback(None)
    error = ExecutionError(
        op, "failed when the recorded operations ran", got=f"{type(cause).__name__}: {cause}"
    )
    error.__cause__ = cause
    return error


class _Shield:
    """Holds back Ctrl-C while a sealed segment runs, so that it is finished first.

    Only the main thread gets signals.
    """

    __slots__ = ("caught", "old")

    def __enter__(self) -> None:
        self.old: Any = None
        self.caught: list[Any] = []
        if threading.get_ident() == _MAIN:
            old = signal.getsignal(signal.SIGINT)
            if callable(old):
                self.old = old
                signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self.caught.append((number, frame))

    def __exit__(self, *exc: object) -> None:
        if self.old is not None:
            signal.signal(signal.SIGINT, self.old)
            if self.caught:
                self.old(*self.caught[0])


_MAIN = threading.main_thread().ident
