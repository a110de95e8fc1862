"""What is recorded: values, and the segment of one thread that collects them.

A value made in the open segment carries its code, `(operation, input slots..., static
attributes..., axis classes)`; the tuple of codes is the program and with it the key of the plan.
Whatever changes from run to run (extents, scalars) stands apart, by slot.
"""

from __future__ import annotations

import threading
import weakref
from _thread import RLock
from collections.abc import Callable, Sequence
from itertools import islice
from sys import getrefcount
from typing import Any

from burn_std import BurnError, DType


class Value:
    """A tensor under recording.

    Attributes:
        shape: extents, known at once.
        dtype: element type.
        seg: the segment that will compute it; None once materialised.
        slot: position in that segment.
        op: its code; `(-1, k)` for further outputs of one operation.
        buf: the inner backend's payload once materialised, or a `Poison`.
    """

    __slots__ = ("buf", "dtype", "op", "seg", "shape", "slot")

    shape: tuple[int, ...]
    dtype: DType
    seg: Segment | None
    slot: int
    op: Any
    buf: Any


class Poison:
    """Stands where a value would be whose computation failed."""

    __slots__ = ("error",)

    def __init__(self, error: BurnError) -> None:
        self.error = error


# A segment that alone keeps this many bits of externals in memory is cut.
PINNED = 8 * 256 * 2**20


class Segment:
    """Operations recorded and not yet run, of one thread.

    Attributes:
        vals: values by slot.
        ext: values from outside, slot -1 - k for the k-th.
        slots: their slots; on the value itself they went wrong with two threads.
        made: bits of the results of large operations.
        bits: how many bits the externals take; `limit` is where they are next looked at.
        rt: run-time extents and scalars by slot.
        rebinds: what objects held before they were given a value of this segment, see `Rebinding`.
        lock: held while it runs; a second reader waits here.
        done: it ran, well or badly.
        count: how many values took part in the run.
        outcome: (slots, payloads) of a run whose results are not handed out yet.
        error: what went wrong in that run; `cause` what its plan raised.
    """

    __slots__ = (
        "__weakref__",
        "bits",
        "cause",
        "count",
        "done",
        "error",
        "ext",
        "limit",
        "lock",
        "made",
        "outcome",
        "rebinds",
        "rt",
        "slots",
        "vals",
    )  # fmt: skip

    vals: list[Value]
    ext: list[Value]
    slots: dict[Value, int]
    made: int
    bits: int
    limit: int
    rt: dict[int, tuple[Any, ...]]
    rebinds: list[Rebinding]
    lock: Any
    done: bool
    count: int
    outcome: tuple[Sequence[int], Sequence[Any]] | None
    error: BurnError | None
    cause: Exception | None


def opened() -> Segment:
    """Return an empty segment; recorders may have this function compiled."""
    seg = Segment()
    seg.vals = []
    seg.ext = []
    seg.slots = {}
    seg.bits = 0
    seg.made = 0
    seg.limit = PINNED
    seg.rt = {}
    seg.rebinds = []
    seg.lock = RLock()
    seg.done = False
    seg.count = 0
    seg.outcome = None
    seg.error = None
    seg.cause = None
    return seg


# What an object held before it was given a value that is still to be computed: a weak reference to
# the tensor object, its value, or the slot of its value, and the context and node that it carried.
# An old value of the same segment is noted by its slot, so that the note does not keep it alive
# through the run; one from outside is held, so that its memory is not given away.
Rebinding = tuple[weakref.ref[Any], Any, Any, Any]


def undo(note: Rebinding, vals: Sequence[Value]) -> None:
    """Give an object its old value back if it still holds a poisoned one."""
    ref, old, context, node = note
    obj = ref()
    if obj is None or obj.v.__class__ is not Value:
        return
    if obj.v.seg is None and obj.v.buf.__class__ is Poison:
        obj.v = vals[old] if isinstance(old, int) else old
        obj.b = context
        obj.node = node


class Holder:
    """Where a thread's open segment hangs; swapping `seg` seals it."""

    __slots__ = ("__weakref__", "seg")

    def __init__(self) -> None:
        self.seg = opened()


class Local(threading.local):
    """What one thread has of a resource.

    Attributes:
        h: the holder of its segment.
        log: of a step that it captures.
        cut: a segment runs because it is long, and its program goes on.
    """

    def __init__(self, register: Callable[[Holder], None]) -> None:
        self.h = Holder()
        self.log: Any = None
        self.cut = False
        register(self.h)


def _calibrate() -> int | None:
    """Return the reference count of a value that only its list holds.

    None when this interpreter's counts cannot be trusted; then everything counts as live.
    """
    vals = [object.__new__(Value), object.__new__(Value)]
    kept = vals[1]
    counts = list(map(getrefcount, vals))
    good = counts[1] == counts[0] + 1 and kept is vals[1]
    return counts[0] if good else None


BASE = _calibrate()


def live_slots(vals: list[Value], count: int) -> tuple[int, ...]:
    """Return the slots below `count` whose values something outside their list still holds."""
    if BASE is None:
        return tuple(range(count))
    base = BASE
    counts = islice(map(getrefcount, vals), count)
    return tuple([i for i, c in enumerate(counts) if c > base])


def axis_classes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return 0, 1 or 2 (many) per axis: all that a program knows of extents."""
    return tuple([n if n < 2 else 2 for n in shape])
