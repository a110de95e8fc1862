"""Launches of the cuda runtime put together beforehand, and made as one CUDA graph.

The words of all launches stand in one array, eight bytes for each argument, as on the cpu runtime.
Whoever runs the list again writes other addresses and numbers into the words first; a run replaces
the arguments of the launches whose words differ from those that its graph has. A list keeps a few
graphs, because memory of results takes turns: each run takes the graph that is nearest. Where a
compiler for the host is installed, a run whose words some graph has is one native call.

Whoever makes the list says which launches wait for which; the others run side by side.

Calls of a library (a product of cuBLAS) are captured one by one into graphs that are nodes of the
large one, since only the library knows what it launches. Those that run side by side each use a
lane: working memory of their own.

Source: CUDA driver API, graph management and stream management.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn_cube.runtime.base import Grid
from burn_cube.runtime.cuda_graph import NodeParams, check, driver_library
from burn_cube.runtime.cuda_launcher import facts_of, graph_launcher, self_of
from burn_cube.runtime.native_calls import Addressed

if TYPE_CHECKING:
    from burn_cube.runtime.cuda import CudaRuntime

# Fewer launches than this are made one by one: a graph has a price of its own.
WORTH = 3
# Graphs of a list at most; each has its own addresses.
GRAPHS = 4
# A new graph is made while there may be more, when more than this share of the nodes would change,
# or when nodes were changed this often.
SHARE, OFTEN = 0.25, 16
# Calls of one library that may run side by side.
LANES = 2
# What other threads do with the driver is no part of a capture.
_RELAXED = 2


class CudaCall(NamedTuple):
    """One launch, or one call of a library.

    Attributes:
        function: the driver's handle of a kernel; of a library, what tells its calls apart.
        words: its arguments, eight bytes each.
        parts: cubes.
        grain: bytes of shared memory.
        program: of a kernel, None for a library.
        about: arguments in words, if the kernel can fault.
        number: by which a fault names the launch, 0 if it cannot.
        issue: calls the library with the words; None for a kernel.
        inner: there are no further words.
        lanes: what gives calls of a library working memory, by `lanes.take(number)`; calls that do
            may only run side by side in lanes of their own.
    """

    function: Any
    words: bytes
    parts: Grid = (1, 1, 1)
    grain: int = 0
    program: Any = None
    about: str = ""
    number: int = 0
    issue: Callable[..., None] | None = None
    inner: bytes = b""
    lanes: Any = None


class _Instance:
    """An executable graph, and the words that it has.

    Attributes:
        words: of all its launches.
    """

    def __init__(self, calls: CudaCalls) -> None:
        self._runtime = calls.runtime
        self.words = calls.words.copy()
        self._graph = ctypes.c_void_p()
        self._exec = ctypes.c_void_p()
        self._nodes: list[int] = []
        driver = driver_library()
        check(driver.cuGraphCreate(ctypes.byref(self._graph), 0), "a new graph")
        for k in range(len(calls)):
            self._add(calls, k)
        made = driver.cuGraphInstantiateWithFlags(ctypes.byref(self._exec), self._graph, 0)
        check(made, "the graph")

    def _add(self, calls: CudaCalls, k: int) -> None:
        driver = driver_library()
        node = ctypes.c_void_p()
        nodes = [self._nodes[j] for j in calls.before[k]]
        before = (ctypes.c_void_p * max(len(nodes), 1))(*nodes)
        place = ctypes.byref(node), self._graph, before, len(nodes)
        params = calls.params[k]
        if params is not None:
            status = driver.cuGraphAddKernelNode_v2(*place, ctypes.byref(params))
            check(status, "a launch")
        else:
            child = calls.captured(k)
            try:
                check(driver.cuGraphAddChildGraphNode(*place, child), "a call of a library")
            finally:
                driver.cuGraphDestroy(child)
        self._nodes.append(node.value or 0)

    def patch(self, calls: CudaCalls, k: int) -> bool:
        """Give a node the words of its call; False where the library now launches otherwise."""
        driver = driver_library()
        params = calls.params[k]
        if params is not None:
            status = driver.cuGraphExecKernelNodeSetParams_v2(
                self._exec, self._nodes[k], ctypes.byref(params)
            )
            check(status, "new arguments")
            return True
        child = calls.captured(k)
        try:
            status = driver.cuGraphExecChildGraphNodeSetParams(self._exec, self._nodes[k], child)
        finally:
            driver.cuGraphDestroy(child)
        return not status

    @property
    def row(self) -> tuple[int, int]:
        """What the native call asks of it: the graph, and the address of its words."""
        return self._exec.value or 0, self.words.ctypes.data

    def launch(self) -> None:
        """Put the launches into the stream."""
        status = driver_library().cuGraphLaunch(self._exec, self._runtime.stream.ptr)
        check(status, "a graph")

    def __del__(self) -> None:
        # A forked child must not touch the parent's device, and when Python ends names are gone.
        if not sys.is_finalizing() and self._runtime.is_owner():
            if self._exec.value is not None:
                driver_library().cuGraphExecDestroy(self._exec)
            if self._graph.value is not None:
                driver_library().cuGraphDestroy(self._graph)


class CudaCalls(Addressed):
    """Launches in order.

    Args:
        runtime: the device.
        calls: the launches.
        before: of each launch those that it has to wait for; None if that is all before it.

    Attributes:
        runtime: the device.
        words: the arguments of all of them.
        params: of each kernel as a graph takes it, None for calls of a library.
        before: of each launch those that it waits for.
    """

    note: Callable[[], object]

    def __init__(
        self, runtime: CudaRuntime, calls: Sequence[CudaCall],
        before: Sequence[Sequence[int]] | None = None,
    ) -> None:  # fmt: skip
        self.runtime = runtime
        self.guard = runtime.lock
        if before is None:
            before = [[k - 1] if k else [] for k in range(len(calls))]
        self.before, self._lanes = in_lanes(calls, before)
        self.words = np.frombuffer(bytearray(b"".join(c.words for c in calls)), np.int64)
        self._calls = [c._replace(words=b"") for c in calls]
        counts = [len(c.words) // 8 for c in calls]
        self._starts = np.cumsum([0, *counts]).tolist()
        self._call_of = np.repeat(np.arange(len(calls)), counts)
        self._instances: list[_Instance] = []
        self._runs = self._changed = 0
        # What the native call reads: a row for each graph.
        self._table = np.zeros((GRAPHS, 2), np.int64)
        self._arrays: list[Any] = []
        self.params = [self._params(k) for k in range(len(calls))]
        self._faulting = [c for c in calls if c.number]
        # An error that comes later names them.
        self._recent = [(c.program, c.parts) for c in calls if c.program is not None][-1:]
        self.note = partial(runtime.recent.extend, self._recent)

    def __len__(self) -> int:
        return len(self._calls)

    def _params(self, k: int) -> NodeParams | None:
        call = self._calls[k]
        if call.issue is not None:
            return None
        first = self.words.ctypes.data + 8 * self._starts[k]
        count = self._starts[k + 1] - self._starts[k]
        array = (ctypes.c_void_p * max(count, 1))(*range(first, first + 8 * count, 8))
        self._arrays.append(array)
        unsigned = ctypes.c_uint * 3
        return NodeParams(
            call.function, unsigned(*call.parts), unsigned(*call.program.kernel.cube_dim),
            call.grain, ctypes.addressof(array), None, None, None,
        )  # fmt: skip

    def run(self) -> None:
        """Put the launches into the stream; returns at once."""
        runtime = self.runtime
        runtime.alive()
        with runtime.lock:
            runtime.use()
            for call in self._faulting:
                runtime.remember(call.number, call.program.source, call.about)
            self.note()
            self._runs += 1
            if self._runs == 1 or len(self._calls) < WORTH:
                for k in range(len(self._calls)):
                    self._issue(k)
            else:
                self._nearest().launch()

    def _issue(self, k: int) -> None:
        call, params = self._calls[k], self.params[k]
        if params is None:
            assert call.issue is not None  # noqa: S101 - else there were params
            call.issue(*self.words[self._starts[k] : self._starts[k + 1]].tolist())
            return
        runtime = self.runtime
        with runtime.failing(call.program.kernel.name):
            runtime.driver_api.launchKernel(
                call.function, *call.parts, *call.program.kernel.cube_dim, call.grain,
                runtime.stream.ptr, params.params, 0,
            )  # fmt: skip

    def captured(self, k: int) -> ctypes.c_void_p:
        """Return what a call of a library puts into the stream, as a graph; the lock is held."""
        driver, stream = driver_library(), self.runtime.stream.ptr
        lanes, lane = self._calls[k].lanes, self._lanes[k]
        if lane:
            lanes.take(lane)
        try:
            check(driver.cuStreamBeginCapture_v2(stream, _RELAXED), "a capture")
            graph = ctypes.c_void_p()
            try:
                self._issue(k)
            finally:
                status = driver.cuStreamEndCapture(stream, ctypes.byref(graph))
            check(status, "the end of a capture")
        finally:
            if lane:
                lanes.take(0)
        return graph

    def _nearest(self) -> _Instance:
        """Return a graph that has the words."""
        words, best, changed = self.words, None, []
        for instance in self._instances:
            differs = np.flatnonzero(instance.words != words)
            nodes = sorted(set(self._call_of[differs].tolist()))
            if best is None or len(nodes) < len(changed):
                best, changed = instance, nodes
            if not nodes:
                return instance
        room = len(self._instances) < GRAPHS
        self._changed += 1
        much = len(changed) > SHARE * len(self._calls) or self._changed % OFTEN == 0
        if best is None or (room and much):
            return self._new()
        # A graph of which some nodes were changed has neither these words nor its own.
        self._instances.remove(best)
        self._listed()
        if not all(best.patch(self, k) for k in changed):
            return self._new()
        np.copyto(best.words, words)
        self._instances.append(best)
        self._listed()
        return best

    def _new(self) -> _Instance:
        """Return a graph that was not there."""
        made = _Instance(self)
        self._instances.append(made)
        self._listed()
        return made

    def _listed(self) -> None:
        """Tell the native call of the graphs that there are."""
        self._table[:] = 0
        for row, instance in zip(self._table, self._instances, strict=False):
            row[:] = instance.row

    # ---- the native call ------------------------------------------------------------------------

    def placed(
        self, words: Sequence[int], rows: Sequence[int], deltas: Sequence[int]
    ) -> Callable[..., int] | None:
        """Return a builtin that takes base addresses, writes addresses and launches a graph.

        It returns how many launches were made: all of them, or 0 where no graph has the words, or
        the driver refused; `faulted` makes them then. None without a compiler for the host. What
        it reads belongs to this object, which has to live as long; one thread calls it at a time.

        Args:
            words: where addresses stand.
            rows: which base each of them counts from.
            deltas: bytes from there.
        """
        # A launch that can fault is remembered at every run, in Python.
        if len(self._calls) < WORTH or self._faulting:
            return None
        builtin = graph_launcher()
        if builtin is None:
            return None
        self._patches = np.array([words, rows, deltas], np.int64).T.copy()
        self._facts = facts_of(self.words, GRAPHS, self.runtime.stream.ptr)
        launch = ctypes.cast(driver_library().cuGraphLaunch, ctypes.c_void_p).value or 0
        count = len(self._calls)
        return builtin.over(
            self_of(self._table, count, self._facts, launch, self.words, self._patches)
        )

    def faulted(self, reached: int) -> None:
        """Make the launches where the native call did not."""
        self.run()


def in_lanes(
    calls: Sequence[CudaCall], before: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[int]]:
    """Return what each launch waits for and which lane it uses, so that no two share a lane.

    Args:
        calls: the launches.
        before: of each launch those that it has to wait for anyway.
    """
    behind: list[int] = []  # of each launch all that are done before it, one bit each
    waits: list[list[int]] = []
    lanes = [0] * len(calls)
    last: dict[int, list[int]] = {}  # of each library, the last call in each lane
    for k, call in enumerate(calls):
        mine = list(before[k])
        known = 0
        for j in mine:
            known |= behind[j] | 1 << j
        if call.lanes is not None:
            used = last.setdefault(id(call.lanes), [])
            free = [n for n, j in enumerate(used) if known >> j & 1]
            if free:
                lane = max(free, key=used.__getitem__)
                used[lane] = k
            elif len(used) < LANES:
                lane = len(used)
                used.append(k)
            else:
                lane = min(range(LANES), key=used.__getitem__)
                mine.append(used[lane])
                known |= behind[used[lane]] | 1 << used[lane]
                used[lane] = k
            lanes[k] = lane
        behind.append(known)
        waits.append(mine)
    return waits, lanes
