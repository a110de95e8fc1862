"""Straight paths of the recorder as functions of their own, which a backend may compile.

They use little of the language (see `Backend.compiled`), and leave what is rare to the recorder's
methods before they have changed anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

from burn_fusion.segment import Poison, Segment, Value
from burn_ir import CATALOG
from burn_std import DType

if TYPE_CHECKING:
    from burn_fusion.recorder import Recorder


def taking(recorder: Recorder) -> Callable[[Value], int]:
    """Return what takes a value from outside into the open segment; see `Recorder.take`."""
    tls, large, slow = recorder.tls, recorder.large, recorder.take

    def take(value: Value) -> int:
        if value.seg is not None or value.buf.__class__ is Poison or recorder.lost is not None:
            return slow(value)
        seg = tls.h.seg
        size = large[value.shape]
        if size:
            bits = seg.bits + size * value.dtype.bits
            if bits > seg.limit:
                return slow(value)
            seg.bits = bits
        ext = seg.ext
        ext.append(value)
        slot = -len(ext)
        seg.slots[value] = slot
        return slot

    return take


def rebound(objects: Sequence[Any], payloads: Sequence[Any]) -> list[Any]:
    """Note of objects that each is about to get a payload; see `Rebinding`.

    Returns:
        Pairs of object and payload that have no segment, for whom there is another way.
    """
    left: list[Any] = []
    for obj, payload in zip(objects, payloads):  # noqa: B905 - as many
        seg: Any = None
        if payload.__class__ is Value:
            seg = payload.seg  # once: another thread may run it meanwhile
        if seg is None:
            left.append((obj, payload))
            continue
        old: Any = obj.v
        if old.__class__ is Value and old.seg is seg:
            old = old.slot
        seg.rebinds.append((ref(obj), old, obj.b, obj.node))
    return left


def scalars(recorder: Recorder) -> Callable[[Any, DType], Value]:
    """Return what records a rank-0 `full` of a number."""
    tls, code = recorder.tls, CATALOG["full"].code

    def scalar(value: Any, dtype: DType) -> Value:
        while True:
            h = tls.h
            seg = h.seg
            vals = seg.vals
            k = len(vals)
            r = Value()
            r.shape = ()
            r.dtype = dtype
            r.seg = seg
            r.op = (code, dtype, ())
            r.slot = k
            seg.rt[k] = ((), value)
            vals.append(r)
            if h.seg is seg:
                return r

    return scalar


Counted = Callable[[Sequence[Value], Sequence[bool], int], bool]


def as_before(vals: Sequence[Value], held: Sequence[bool], least: int) -> bool:
    """Return whether those values are held from outside that were when a plan was made.

    Args:
        vals: of the segment.
        held: for each of them.
        least: the references of one that is not; see `least_count`.
    """
    for v, wanted in zip(vals, held):  # noqa: B905, SIM110 - as many; a loop can be compiled
        if (getrefcount(v) > least) is not wanted:
            return False
    return True


def least_count(counted: Counted) -> int:
    """Return what a function counts of a value that only its list holds; -1 if that is not clear.

    Compiled code holds another number of references than Python does.
    """
    vals = [Value(), Value()]
    kept = vals[1]
    for least in range(1, 9):
        if counted(vals, (False, True), least) and kept is vals[1]:
            return least
    return -1


def running(recorder: Recorder, counted: Counted) -> Callable[[Segment], bool]:
    """Return what runs a sealed segment that does what the program after the last one did before.

    It returns whether it did; if not, nothing has happened.

    Args:
        recorder: of the segment.
        counted: `as_before`, which may be compiled.
    """
    tls, classes, often = recorder.tls, recorder.classes, recorder.often
    least = least_count(counted)

    def ran(seg: Segment) -> bool:
        newest = recorder.newest
        if newest is None or recorder.watched or recorder.lost is not None:
            return False
        if recorder.logs != 0 and tls.log is not None:
            return False
        known = newest.follower
        if known is None or seg.outcome is not None or least < 0:
            return False
        plan = known.plan
        vals, ext = seg.vals, seg.ext
        if plan is None or len(vals) != len(known.codes) or len(ext) != len(known.specs):
            return False
        if plan.runs < often or not plan.replays:
            return False
        quick = plan.run.quick
        if quick is None:
            return False
        v: Any
        for v, code in zip(vals, known.codes):  # noqa: B905 - as many
            if v.op != code:
                return False
        payloads: list[Any] = []
        alike = True
        for v, dtype, shape in zip(ext, known.dtypes, known.shapes):  # noqa: B905 - as many
            if v.dtype is not dtype:
                return False
            if v.shape is not shape:  # equal ones are mostly one object
                alike = False
            payloads.append(v.buf)
        if alike is False:
            for v, spec in zip(ext, known.specs):  # noqa: B905 - as many
                if classes[v.shape] != spec[1]:
                    return False
        v = seg  # a count of values is next
        if not counted(vals, plan.held, least):
            return False
        try:
            outs = quick(payloads, seg.rt, None)
        except Exception:  # noqa: BLE001 - it overwrote nothing: what went wrong comes again
            return False
        if outs is None:
            return False
        # From here on it is done, whatever interrupts.
        seg.outcome = (plan.live, outs)
        recorder.newest = known
        plan.runs = plan.runs + 1
        for slot, buf in zip(plan.live, outs):  # noqa: B905 - as many
            v = vals[slot]
            v.buf = buf
            v.seg = None
        seg.done = True
        recorder.flushes = recorder.flushes + 1
        seg.vals = []
        seg.ext = []
        seg.slots.clear()
        if len(seg.rt) > 0:
            seg.rt = {}
        if len(seg.rebinds) > 0:
            seg.rebinds = []
        seg.outcome = None
        return True

    return ran
