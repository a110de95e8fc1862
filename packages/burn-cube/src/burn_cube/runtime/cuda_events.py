"""Points of a CUDA stream, and copies to the host that end at one."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from burn_cube.runtime.cuda import CudaRuntime

TO_HOST = 2


class CudaEvent:
    """A point of the stream.

    Attributes:
        ptr: the driver's handle.
    """

    __slots__ = ("_runtime", "ptr")

    def __init__(self, runtime: CudaRuntime) -> None:
        self.ptr = runtime.events.pop() if runtime.events else runtime.api.eventCreateWithFlags(0)
        self._runtime = runtime
        runtime.api.eventRecord(self.ptr, runtime.stream.ptr)

    def done(self) -> bool:
        """Return whether the device passed it."""
        return int(self._runtime.api.eventQuery(self.ptr)) == 0

    def wait(self) -> None:
        """Wait until the device passed it."""
        with self._runtime.failing("wait"):
            self._runtime.api.eventSynchronize(self.ptr)

    def seconds_since(self, other: CudaEvent) -> float:
        """Return the time of the device between two events."""
        return float(self._runtime.api.eventElapsedTime(other.ptr, self.ptr)) * 1e-3

    def __del__(self) -> None:
        # Nobody waits for it any more, so it may mean another point of the stream.
        runtime = getattr(self, "_runtime", None)
        if runtime is not None:
            runtime.events.append(self.ptr)


class PinnedRead:
    """A copy to the host on its way through pinned memory.

    Args:
        runtime: the device.
        source: address on the device.
        out: where the bytes go in the end.
    """

    __slots__ = ("_event", "_out", "_pinned")

    def __init__(self, runtime: CudaRuntime, source: int, out: memoryview) -> None:
        self._out: memoryview | None = None
        self._pinned = runtime.pinned(out.nbytes)
        stream = runtime.stream.ptr
        runtime.api.memcpyAsync(self._pinned.ptr, source, out.nbytes, TO_HOST, stream)
        self._event = CudaEvent(runtime)
        self._out = out

    def done(self) -> bool:
        """Return whether the bytes are on the host."""
        return self._out is None or self._event.done()

    def wait(self) -> None:
        """Wait for the bytes and put them where they belong."""
        out, self._out = self._out, None
        if out is not None:
            self._event.wait()
            host = np.frombuffer(out, np.uint8)
            ctypes.memmove(host.ctypes.data, self._pinned.ptr, host.nbytes)

    def seconds_since(self, other: Any) -> float:
        """Return the time of the device since an event."""
        return self._event.seconds_since(other)

    def __del__(self) -> None:
        # The pinned memory must not serve another copy while this one is under way.
        if getattr(self, "_out", None) is not None:
            self._event.wait()
