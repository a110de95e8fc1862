"""`burn.profile`: what a part of a program does and how long that takes, as a table and a trace.

Contexts carry functions that measure while the block is open (see `scopes`), and the backends tell
a `Watcher` of plans, flushes and kernels. Outside of such blocks nothing is measured or tested.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from burn_backend import TensorBase
from burn_dispatch.scopes import current, scope
from burn_std import DType, Place, user_place

if TYPE_CHECKING:
    from burn_dispatch.resource import Resource
    from burn_ir import Entry

# What stands above what in a viewer.
_LANES = ("operations", "recording", "plans", "flushes", "launches", "kernels")


class Event(NamedTuple):
    """Something that took time.

    Attributes:
        device: name of the device, `eager-cpu`; of kernels that one on which they run, `cpu`.
        lane: `operations` on a device that computes at once; `recording`, `plans` and `flushes` on
            one that records; `kernels`, and `launches` of them where they have times of their own.
            Those of another thread than the main one name it.
        name: the operation, the kernel, or what was flushed.
        start: seconds since the block began.
        seconds: how long it took; on the lane `kernels` by the clock of the device.
        facts: more, such as the line of the program that asked for it.
    """

    device: str
    lane: str
    name: str
    start: float
    seconds: float
    facts: Mapping[str, Any]


class MemorySample(NamedTuple):
    """How much memory was in use at a moment.

    Attributes:
        device: its name.
        at: seconds since the block began.
        bytes: by what is counted: `in_use` and `reserved` of a pool; `alive`, results made inside
            the block that somebody still holds, on devices that keep no counts.
    """

    device: str
    at: float
    bytes: Mapping[str, int]


class Profile:
    """What `burn.profile` yields; complete when the block has ended.

    Attributes:
        events: in order of their ends.
        memory: samples, in order.
        seconds: how long the block took.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.memory: list[MemorySample] = []
        self.seconds = 0.0
        self._start = perf_counter()
        self._claimed: set[Hashable] = set()
        self._resources: dict[int, _ResourceWatcher] = {}
        self._stack = ExitStack()

    def of(self, resource: Resource) -> _ResourceWatcher:
        """Return the watcher of a resource, which its backend tells from now on."""
        found = self._resources.get(id(resource))
        if found is None:
            found = self._resources[id(resource)] = _ResourceWatcher(self, resource)
            self._stack.enter_context(resource.backend.watched(found))
        return found

    def close(self) -> None:
        """Stop listening, and wait for what devices have not finished."""
        try:
            self._stack.close()
        finally:
            self.seconds = perf_counter() - self._start

    def peak(self) -> dict[str, int]:
        """Return the most bytes that were seen in use, by device."""
        out: dict[str, int] = {}
        for sample in self.memory:
            most = sample.bytes.get("in_use", sample.bytes.get("alive", 0))
            out[sample.device] = max(out.get(sample.device, 0), most)
        return out

    def table(self, top: int = 20) -> str:
        """Return the events by device, lane and name, those that took most of a lane first.

        Args:
            top: lines of a lane at most.
        """
        groups: dict[tuple[str, str], dict[str, list[float]]] = {}
        for e in self.events:
            names = groups.setdefault((e.device, e.lane), {})
            names.setdefault(e.name, []).append(e.seconds)
        lines = [f"{'device':14} {'lane':14} {'name':36} {'count':>7} {'total ms':>10} {'us':>9}"]
        for device, lane in sorted(groups, key=lambda key: (key[0], _rank(key[1]))):
            rows = sorted(groups[device, lane].items(), key=lambda row: -sum(row[1]))
            for name, seconds in rows[:top]:
                lines.append(_row(device, lane, name, seconds))
            if len(rows) > top:
                rest = [s for _, some in rows[top:] for s in some]
                lines.append(_row(device, lane, f"{len(rows) - top} more names", rest))
        peak = ", ".join(f"{device} {size}" for device, size in sorted(self.peak().items()))
        return "\n".join([*lines, f"peak bytes: {peak}"] if peak else lines)

    __str__ = table

    def trace(self) -> dict[str, Any]:
        """Return the events in the trace-event format, as `json` can write them.

        Devices are processes, lanes are threads; times are microseconds.
        """
        devices = sorted({e.device for e in self.events} | {m.device for m in self.memory})
        pids = {name: k for k, name in enumerate(devices, 1)}
        lanes = sorted({(e.device, e.lane) for e in self.events}, key=lambda x: (x[0], _rank(x[1])))
        tids = {key: k for k, key in enumerate(lanes, 1)}
        out: list[dict[str, Any]] = []
        for name, pid in pids.items():
            out.append(_named("process_name", pid, 0, name=name))
        for order, ((device, lane), tid) in enumerate(tids.items()):
            out.append(_named("thread_name", pids[device], tid, name=lane))
            out.append(_named("thread_sort_index", pids[device], tid, sort_index=order))
        out += [
            {
                "ph": "X", "name": e.name, "cat": e.lane, "pid": pids[e.device],
                "tid": tids[e.device, e.lane], "ts": e.start * 1e6, "dur": e.seconds * 1e6,
                "args": dict(e.facts),
            }
            for e in self.events
        ]  # fmt: skip
        out += [
            {
                "ph": "C", "name": "memory", "pid": pids[m.device], "tid": 0, "ts": m.at * 1e6,
                "args": dict(m.bytes),
            }
            for m in self.memory
        ]  # fmt: skip
        return {"traceEvents": out, "displayTimeUnit": "ns"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace; `chrome://tracing` and `ui.perfetto.dev` open it.

        Args:
            path: the file, by custom `.json`.
        """
        import json

        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)

    def __repr__(self) -> str:
        return f"<profile of {len(self.events)} events>"


def _rank(lane: str) -> tuple[str, int]:
    kind, _, thread = lane.partition(" ")
    return thread, _LANES.index(kind) if kind in _LANES else len(_LANES)


def _row(device: str, lane: str, name: str, seconds: Sequence[float]) -> str:
    total = sum(seconds)
    return (
        f"{device[:14]:14} {lane[:14]:14} {name[:36]:36} {len(seconds):7} {total * 1e3:10.3f} "
        f"{total / len(seconds) * 1e6:9.1f}"
    )


def _named(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


class _ResourceWatcher:
    """Hears of one resource for one profile."""

    def __init__(self, profile: Profile, resource: Resource) -> None:
        self.profile = profile
        self.resource = resource
        self.device = f"{resource.name}:{resource.index}" if resource.index else resource.name
        self.records = resource.backend.records
        self._counts = bool(resource.backend.memory_report())
        self._alive: dict[int, Any] = {}
        self._bytes = 0

    def span(
        self, lane: str, name: str, start: float, end: float, facts: Mapping[str, Any],
        device: str | None = None,
    ) -> None:  # fmt: skip
        """Note an event."""
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            lane = f"{lane} {thread.name}"
        profile = self.profile
        profile.events.append(
            Event(device or self.device, lane, name, start - profile._start, end - start, facts)
        )

    def claims(self, what: Hashable) -> bool:
        """Return whether nobody tells of something yet."""
        if what in self.profile._claimed:
            return False
        self.profile._claimed.add(what)
        return True

    def holds(self, payloads: Iterable[Any]) -> None:
        """Note results, and take a sample of the memory."""
        backend = self.resource.backend
        if self._counts:
            report = backend.memory_report()
            sizes: dict[str, int] = {k: report[k] for k in ("in_use", "reserved") if k in report}
        else:
            for payload in payloads:
                for owner, size in backend.memory_of(payload):
                    self._hold(owner, size)
            sizes = {"alive": self._bytes}
        at = perf_counter() - self.profile._start
        self.profile.memory.append(MemorySample(self.device, at, sizes))

    def _hold(self, owner: Any, size: int) -> None:
        if id(owner) in self._alive:
            return
        key, alive = id(owner), self._alive

        def gone(_: Any) -> None:
            if alive.pop(key, None) is not None:
                self._bytes -= size

        alive[key] = ref(owner, gone)
        self._bytes += size

    def operation(self, entry: Entry, start: float, end: float, out: Any) -> None:
        """Note a call of an operation."""
        made = [out] if isinstance(out, TensorBase) else list(out)
        place = user_place()
        facts = {"result": ", ".join(map(_shown, made)), "line": str(place)}
        for t in made:
            _PLACES.note(t, place)
            if t.node is not None:
                _PLACES.note(t.node, place)
        lane = "recording" if self.records and not current().no_fusion else "operations"
        self.span(lane, entry.name, start, end, facts)
        if not self.records:
            self.holds([t.v for t in made])


def _shown(t: TensorBase) -> str:
    dtype: DType = t.dtype
    return f"{dtype.name}{list(t.shape)}"


class _Places:
    """Lines that made tensors and nodes of the tape, of those that still live."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Any, Place]] = {}

    def note(self, x: Any, place: Place) -> None:
        """Note a line, for as long as the object lives."""
        key, found = id(x), self.found
        found[key] = ref(x, lambda gone: found.pop(key, None)), place


_PLACES = _Places()


def place_of(x: Any) -> Place | None:
    """Return the line that made a tensor or a node of the tape, if that was inside a profile."""
    found = _PLACES.found.get(id(x))
    return found[1] if found is not None and found[0]() is x else None


class _Call(threading.local):
    inside = False


_CALL = _Call()
_INSIDE: ContextVar[tuple[Profile, ...]] = ContextVar("burn_profiles", default=())
_OPEN: list[Profile] = []
_LOCK = threading.Lock()


def watched(resource: Resource, entry: Entry, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of an operation that tells the profiles of its block."""

    def measured(*args: Any) -> Any:
        if _CALL.inside:  # what an operation calls to mend its arguments, or its parts
            return function(*args)
        _CALL.inside = True
        start = perf_counter()
        try:
            out = function(*args)
        finally:
            _CALL.inside = False
        end = perf_counter()
        for profile in _INSIDE.get():
            profile.of(resource).operation(entry, start, end, out)
        return out

    return measured


def joined(resource: Resource) -> None:
    """Let the open profiles hear of a resource that was just made."""
    with _LOCK:
        for profile in _OPEN:
            profile.of(resource)


@contextmanager
def profile(path: str | os.PathLike[str] | None = None) -> Iterator[Profile]:
    """Measure what the program does in a block, on all devices.

    Operations are those of the block's own thread or coroutine; plans, flushes and kernels those
    of all threads. Where a device has a clock, its kernels have times by it, and the end of the
    block waits for them. While the block is open a plan on the cpu calls its kernels one by one, so
    that each is seen, and not all in one native call: small programs are slower inside.

    Args:
        path: where a trace is written at the end, for `chrome://tracing` or `ui.perfetto.dev`.

    Example:
        >>> x = burn.ones(1000, device=burn.Device.cpu())
        >>> with burn.profile() as found:
        ...     total = (x * 2 + 1).sum().item()
        >>> [e.name for e in found.events if e.lane == "recording"]
        ['mul', 'add', 'sum']
        >>> sorted({e.lane for e in found.events})
        ['flushes', 'kernels', 'launches', 'plans', 'recording']
        >>> print(found.table())
        device         lane           name ...
    """
    from burn_dispatch.device import resources

    target = None if path is None else os.fspath(path)  # a number would be an open file
    made = Profile()
    with _LOCK:
        _OPEN.append(made)
        for resource in resources():
            made.of(resource)
    token = _INSIDE.set((*_INSIDE.get(), made))
    try:
        with scope(watched=True):
            yield made
    finally:
        _INSIDE.reset(token)
        with _LOCK:
            _OPEN.remove(made)
            made.close()
        if target is not None:
            made.save(target)
