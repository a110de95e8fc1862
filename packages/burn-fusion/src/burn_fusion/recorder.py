"""The recorder of one resource: cutting, sealing, flushing, and what follows a failure.

Flushing happens at reads, at content-defined points before large operations once there are many
operations or many recorded bytes, at a hard cap, and when the segment alone keeps many bytes of
externals; never because of memory pressure, so the same program is always cut at the same places.
"""

from __future__ import annotations

import signal
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from math import prod
from sys import getrefcount
from time import perf_counter
from typing import Any

from burn_backend import Backend, Memo, TensorBase, native_mode
from burn_fusion.churn import Churn
from burn_fusion.plan import Plan, can_fail
from burn_fusion.recovery import let_go, recover
from burn_fusion.segment import (
    PINNED,
    Holder,
    Local,
    Poison,
    Segment,
    Value,
    axis_classes,
    live_slots,
    opened,
    undo,
)
from burn_fusion.step import PlanRun
from burn_fusion.straight import as_before, rebound, running, scalars, taking
from burn_fusion.unread import Unread
from burn_ir import CATALOG
from burn_std import OF_A_LOCAL, BurnError, DeviceLostError, ExecutionError

# A whole training step of a small model stays one segment: its optimizer ends it.
SOFT = 256
CAP = 1024
# Bits of results after which a segment is cut at the next place that its content allows: 4 GiB.
# After twice as many it is cut before any large operation.
BUDGET = 8 << 32
# After so many runs of a plan its operations are worth native code.
OFTEN = 8
# Elements of an external from which on its memory counts.
FEW = 1024
# Seconds after which a flush begins to compile nothing more: a part of the time since the last one
# that did, within bounds.
AT_LEAST, AT_MOST, SHARE = 0.002, 0.02, 0.25
# Operations over all remembered plans; a key costs about as much as its program.
REMEMBERED = 2**18


class Known(dict[Any, Plan]):
    """The plans of one program, by what is live and what may be overwritten.

    Attributes:
        codes, specs: the program; `dtypes` are a part of the specs.
        follower: the program that was run after it the last time. A loop runs the same programs in
            the same order, and comparing with one costs half of looking it up.
        plan: the one that served last; `shapes` are those of the inputs that it was found for.
    """

    __slots__ = ("codes", "dtypes", "follower", "plan", "shapes", "specs")

    def __init__(self, codes: tuple[Any, ...], specs: tuple[Any, ...]) -> None:
        super().__init__()
        self.codes = codes
        self.specs = specs
        self.dtypes = tuple([dtype for dtype, _ in specs])
        self.follower: Known | None = None
        self.plan: Plan | None = None
        self.shapes: tuple[Any, ...] = ()


class Recorder:
    """Segments, plans and counts of one resource.

    Attributes:
        inner: the backend that executes.
        repeated: what is told of a plan that ran often.
        tls: per thread, `tls.h.seg` is the open segment.
        classes: shape to axis classes, remembered.
        sizes: shape to number of elements, remembered; `large` is 0 for few.
        programs: plans by program; `newest` is the one that ran last, of any thread.
        plans_made, flushes: counts for reports and tests.
        lost: the fault of the device, after which nothing on it has a value.
        often: after so many runs of a plan its straight paths are taken and compiled.
        native: straight paths were put in the place of methods.
        watched: `function_of` is another one, which measures.
        logs: how many threads write down a step.
        waiting: what is to be compiled, some at each flush.
    """

    # What is asked at every flush, and a place for the rest.
    __slots__ = (
        "__dict__", "__weakref__", "flushes", "logs", "lost", "newest", "ran", "waiting", "watched",
    )  # fmt: skip

    flushes: int
    logs: int
    lost: DeviceLostError | None
    newest: Known | None
    ran: Callable[[Segment], bool] | None
    waiting: deque[Callable[[], object]]
    watched: bool

    def __init__(self, inner: Backend, repeated: Callable[[Plan], None] | None = None) -> None:
        self.inner = inner
        self.repeated = repeated
        self.lock = threading.RLock()
        self.holders: list[weakref.ref[Holder]] = []
        self.tls = Local(self._register)
        self.classes = Memo(axis_classes)
        self.sizes: Memo = Memo(prod)
        self.large: Memo = Memo(_large)
        self.programs: dict[Any, Known] = {}
        self.newest = None
        # Most backends give every result memory of its own and overwrite nothing.
        self.overwrites = type(inner).owned is not Backend.owned
        self.remembered = 0
        self.churn = Churn()
        self.plans_made = 0
        self.flushes = 0
        self.lost = None
        self.watched = False
        self.logs = 0
        self.writing: set[Any] = set()
        self.waiting = deque()
        self.worked = perf_counter()
        self.often = 1 if native_mode() == "always" else OFTEN
        self.native = False
        self.taken = taking(self)
        self.opened = opened
        self.scalar = scalars(self)
        self.rebound = rebound
        # In Python the loops of it take longer than what they are in the place of.
        self.ran = None

    def natively(self, compiled: Callable[..., Any]) -> list[Callable[[], object]]:
        """Return what puts straight paths that a backend compiles in the place of methods, once.

        Args:
            compiled: see `Backend.compiled`.
        """
        if self.native:
            return []
        self.native = True
        own = (Recorder,)

        def taken() -> None:
            self.taken = compiled(taking(self), True, own)

        def opening() -> None:
            self.opened = compiled(opened, False)

        def scalar() -> None:
            self.scalar = compiled(scalars(self), False, own)

        def rebinding() -> None:
            self.rebound = compiled(rebound, False, (TensorBase,))

        def ran() -> None:
            run = running(self, compiled(as_before, False))
            made = compiled(run, False, (Known, Plan, *own))
            self.ran = None if made is run else made

        return [taken, opening, scalar, rebinding, ran]

    def count(self, log: Any, opened: bool) -> None:
        """Count a thread that writes down a step; twice counts once, as when a signal came."""
        with self.lock:
            (self.writing.add if opened else self.writing.discard)(log)
            self.logs = len(self.writing)

    def work(self) -> None:
        """Do some of what waits: a run takes a little longer for a while, and none much longer."""
        start = perf_counter()
        end = start + min(AT_MOST, max(AT_LEAST, SHARE * (start - self.worked)))
        while self.waiting and perf_counter() < end:
            try:
                task = self.waiting.popleft()
            except IndexError:  # another thread took the last
                break
            task()
        self.worked = perf_counter()

    def _register(self, holder: Holder) -> None:
        with self.lock:
            self.holders = [h for h in self.holders if h() is not None]
            self.holders.append(weakref.ref(holder))

    # ---- called by generated functions ----------------------------------------------------

    def cut(self, holder: Holder) -> None:
        """Flush the thread's segment at the start of an operation."""
        self.tls.cut = True
        try:
            self.flush(holder.seg)
        finally:
            self.tls.cut = False

    def content_cut(self, vals: list[Value]) -> bool:
        """Return whether to cut here, by a test of the last operations.

        So a loop is cut at the same places of its body, whatever its length.
        """
        return hash(tuple([v.op[0] for v in vals[-16:]])) & 3 == 0

    def take(self, value: Value) -> int:
        """Take a value from outside into the open segment, when an operation meets it there first.

        Cuts when the segment alone keeps too many bytes alive. Then, and when another thread sealed
        the segment meanwhile, the slot does not count: the operation that asked sees that its
        segment is not open any more and records itself again.
        """
        if value.seg is not None or value.buf.__class__ is Poison or self.lost is not None:
            self.buffer(value)  # runs the segment that makes it, raises what went wrong there
        seg = self.tls.h.seg
        seg.bits = bits = seg.bits + self.large[value.shape] * value.dtype.bits
        if bits > seg.limit and self._kept_too_much(seg):
            self.flush(seg)
            return 0
        # In this order: a Ctrl-C between the two leaves an external that nothing reads. The other
        # way round the next one would get the slot of this one.
        ext = seg.ext
        ext.append(value)
        seg.slots[value] = slot = -len(ext)
        return slot

    def _kept_too_much(self, seg: Segment) -> bool:
        """Return whether the open segment alone keeps more than it may; else look again later."""
        # references: the segment's list and slots, and the loop
        held = sum(_bits(v) for v in seg.ext if getrefcount(v) == 2 + OF_A_LOCAL)
        if held > PINNED and self.tls.h.seg is seg:
            return True
        seg.limit = seg.bits + PINNED // 2
        return False

    def buffer(self, value: Value) -> Any:
        """Return the payload of a value, running its segment if need be."""
        if self.lost is not None:
            raise self.lost.with_traceback(None)
        seg = value.seg
        if seg is not None:
            self.flush(seg)
            if value.seg is not None:
                raise ExecutionError("read", "the value's segment did not run", got=value.shape)
        buf = value.buf
        if buf.__class__ is Poison:
            raise buf.error.with_traceback(None)  # the frames of an earlier read are none of it
        return buf

    # ---- flushing ---------------------------------------------------------------------------

    def flush_open(self) -> None:
        """Flush this thread's segment."""
        self.flush(self.tls.h.seg)

    def flush_all(self) -> None:
        """Flush the segments of all threads."""
        for known in self.holders:
            holder = known()
            if holder is not None and holder.seg.vals:
                self.flush(holder.seg)

    def seal(self, seg: Segment) -> None:
        """Take a segment from its thread; later operations go to a new one."""
        with self.lock:
            for known in self.holders:
                holder = known()
                if holder is not None and holder.seg is seg:
                    holder.seg = self.opened()

    def flush(self, seg: Segment) -> None:
        """Seal and run a segment; safe from any thread."""
        h = self.tls.h
        if h.seg is seg:
            if not seg.vals:
                return
            h.seg = self.opened()
        else:
            self.seal(seg)
        with seg.lock:
            if seg.done:
                return
            try:
                ran = self.ran
                if ran is None or not ran(seg):
                    self._run(seg)
            except KeyboardInterrupt:
                # A sealed segment is finished first; `_run` goes on where it was. What failed
                # there is told to whoever reads it.
                with Shield(), suppress(BurnError):
                    self._run(seg)
                raise
        if self.waiting:
            self.work()

    def _run(self, seg: Segment) -> None:
        if seg.done:
            return
        if seg.outcome is None:
            self.execute(seg)
        error = seg.error
        self._hand_out(seg)
        self._close(seg)
        if error is not None:
            raise error

    def _hand_out(self, seg: Segment) -> None:
        """Give the values of a segment that ran what it made."""
        assert seg.outcome is not None  # noqa: S101 - set by `execute`
        vals = seg.vals
        for slot, buf in zip(*seg.outcome, strict=True):
            v = vals[slot]
            v.buf = buf
            v.seg = None
        if seg.error is not None:
            for note in reversed(seg.rebinds):
                undo(note, vals)

    def _close(self, seg: Segment) -> None:
        seg.done = True
        self.flushes += 1
        if seg.error is not None:
            # Frames that the errors passed know the values, and the errors stand in the values: a
            # circle that would keep their memory until the collector comes. The list itself is also
            # known to the operation that led here.
            made = seg.outcome[1] if seg.outcome is not None else ()
            for error in {id(p.error): p.error for p in made if p.__class__ is Poison}.values():
                let_go(error, seg.cause)
            let_go(seg.error, seg.cause)
            seg.vals.clear()
        seg.vals = []
        seg.ext = []
        seg.slots.clear()
        seg.rt = {}
        seg.rebinds = []
        seg.outcome = seg.error = seg.cause = None

    def execute(self, seg: Segment) -> None:
        """Run the segment's plan and note what it returned."""
        # The owner of a segment that another thread sealed may still append to it, an operation
        # that it will record again elsewhere. Its externals come before it, so the count of the
        # values is read first and what comes later is left out.
        vals = seg.vals
        count = seg.count = len(vals)
        ext = seg.ext[:]
        live = live_slots(vals, count)
        # What is written down runs again on the same inputs.
        may = self.overwrites and self.tls.log is None
        donate = self._donated(ext) if may else _NOTHING
        plan = self._plan(vals, count, ext, live, donate)
        if plan.donate or getattr(plan.run, "overwrites", False):
            # Overwritten inputs cannot be run again, so an interrupt waits.
            with Shield():
                self.launch(seg, plan, ext)
        else:
            self.launch(seg, plan, ext)
        plan.runs += 1
        if plan.runs == self.often and self.repeated is not None:
            self.repeated(plan)

    def function_of(self, plan: Plan) -> Any:
        """Return what runs a plan; profiles put a function that measures in its place."""
        return plan.run

    def launch(self, seg: Segment, plan: Plan, ext: list[Value]) -> None:
        """Run a plan and note what it returned."""
        run = self.function_of(plan)
        log = self.tls.log
        if log is not None:
            log.let_go()
        payloads = [v.buf for v in ext]
        runner = self.inner.runner
        try:
            if hasattr(run, "overwrites"):
                again = log is not None and log.keeps
                free = None if again else Unread(seg, ext, plan.live)
                seg.outcome = (plan.live, run(payloads, seg.rt, free))
            elif runner is None:
                seg.outcome = (plan.live, run(payloads, seg.rt))
            else:
                seg.outcome = (plan.live, runner.run(run, payloads, seg.rt))
            if log is not None:
                log.add(PlanRun(self, plan, seg.vals, ext, seg.rt))
        except Warning:
            raise  # who makes errors of warnings gets them before anything ran, and may read again
        except Exception as cause:  # noqa: BLE001 - becomes the error of the values
            seg.cause = cause
            vals = seg.vals[: seg.count]
            bufs, seg.error = recover(self.inner, plan, vals, ext, seg.rt, cause)
            seg.outcome = (range(seg.count), bufs)
            if isinstance(cause, DeviceLostError):
                self.lost = cause

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
        known = self._known(vals, count, ext)
        key = (live, donate)
        plan = known.get(key)
        if plan is not None:
            known.shapes = tuple([v.shape for v in ext])  # first: another thread may look
            known.plan = plan
            return plan
        codes = known.codes
        if donate and any(can_fail(CATALOG.by_code[c[0]]) for c in codes if c[0] != -1):
            donate = frozenset()
        wanted = set(live)
        for plan in known.values():
            if wanted <= set(plan.live) and plan.donate <= donate:
                break
        else:
            plan = self.new_plan(vals[:count], ext, live, donate)
            program = (codes, known.specs)
            # The parts of one long program are alike, and no rounds of a loop.
            if not self.tls.cut:
                self.churn.made(program, live, self.flushes)
            self._remember(count)
            known = self.programs.setdefault(program, known)
        known[key] = plan
        return plan

    def _known(self, vals: list[Value], count: int, ext: list[Value]) -> Known:
        """Return what is known of a program."""
        classes = self.classes
        codes = tuple([v.op for v in (vals if len(vals) == count else islice(vals, count))])
        specs = tuple([(v.dtype, classes[v.shape]) for v in ext])
        newest = self.newest
        if newest is not None:
            known = newest.follower
            if known is not None and known.codes == codes and known.specs == specs:
                self.newest = known
                return known
        program = (codes, specs)
        known = self.programs.get(program)
        if known is None:
            known = self.programs.setdefault(program, Known(codes, specs))
        if newest is not None:
            newest.follower = known
        self.newest = known
        return known

    def new_plan(
        self, vals: list[Value], ext: list[Value], live: tuple[int, ...], donate: frozenset[int]
    ) -> Plan:
        """Return a plan that nobody had made yet."""
        self.plans_made += 1
        return Plan(vals, ext, live, donate, self.inner)

    def _remember(self, operations: int) -> None:
        """Count a new plan; when there are too many, all older ones are forgotten."""
        self.remembered += operations
        if self.remembered > REMEMBERED:
            for plan in self.plans():
                plan.forget()
            for known in self.programs.values():
                known.follower = None
            self.programs.clear()
            self.newest = None
            self.remembered = operations

    def plans(self) -> list[Plan]:
        """Return the plans that are remembered, each once."""
        found = [plan for known in self.programs.values() for plan in known.values()]
        return list(dict.fromkeys(found))


_NOTHING: frozenset[int] = frozenset()


def _large(shape: tuple[int, ...]) -> int:
    """Return how many elements there are, 0 where there are few."""
    count = prod(shape)
    return count if count >= FEW else 0


def _bits(value: Value) -> int:
    return prod(value.shape) * value.dtype.bits


class Shield:
    """Holds back Ctrl-C while a sealed segment runs, so that it is finished first.

    Only the main thread gets signals.
    """

    __slots__ = ("caught", "old")

    def __enter__(self) -> None:
        self.old: Any = None
        self.caught: list[Any] = []
        if threading.get_ident() == _MAIN:
            old = _HANDLER(signal.SIGINT)
            if callable(old):
                self.old = old
                _HANDLE(signal.SIGINT, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self.caught.append((number, frame))

    def __exit__(self, *exc: object) -> None:
        if self.old is not None:
            _HANDLE(signal.SIGINT, self.old)
            if self.caught:
                self.old(*self.caught[0])


_MAIN = threading.main_thread().ident
# Without the wrappers that make enumerations of what they are given.
_HANDLER: Any = getattr(signal.getsignal, "__wrapped__", signal.getsignal)
_HANDLE: Any = getattr(signal.signal, "__wrapped__", signal.signal)
