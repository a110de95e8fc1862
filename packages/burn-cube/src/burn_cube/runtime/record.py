"""Words of a device in which kernels note what went wrong, for the host to look at."""

from __future__ import annotations

from typing import Any

from burn_cube.runtime.base import Runtime


class Record:
    """Some bytes that kernels write and the host reads, zeros at first.

    Attributes:
        handle: what the device knows the memory by.
        is_seen: the host sees the memory itself; else it reads a copy, after all that is queued.
    """

    def __init__(self, runtime: Runtime, size: int) -> None:
        self._runtime = runtime
        shared = runtime.shared(size)
        self._view = None if shared is None else shared[1]
        self.is_seen = shared is not None
        self.handle: Any = runtime.alloc(size) if shared is None else shared[0]
        self._zeros = bytes(size)
        self.clear()

    def read(self) -> bytes:
        """Return the bytes; what is seen is complete once the device was waited for."""
        if self._view is not None:
            return bytes(self._view)
        out = bytearray(len(self._zeros))
        self._runtime.read(self.handle, 0, memoryview(out))
        return bytes(out)

    def clear(self) -> None:
        """Make the bytes zero."""
        if self._view is not None:
            self._view[:] = self._zeros
        else:
            self._runtime.write(self.handle, 0, memoryview(self._zeros))
