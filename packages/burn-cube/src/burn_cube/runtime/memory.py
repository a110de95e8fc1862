"""Memory pools: size classes, reuse in the order of launches, a report, out of memory handled.

A freed block is free at once for the next launch: work of one device happens in order. Sizes are
rounded to eight classes a power of two, so that at most an eighth is wasted and shapes that change
a little find the same blocks.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, NamedTuple

from burn_cube.errors import OutOfMemoryError
from burn_cube.runtime.base import Runtime

SMALLEST = 256
# Above this, blocks are exact to the page of the class and are trimmed first.
LARGE = 64 << 20


class MemoryReport(NamedTuple):
    """What a pool holds, in bytes.

    Attributes:
        in_use: blocks that arrays hold.
        cached: free blocks kept for reuse.
        peak: the most that was ever in use.
        blocks: number of blocks of the device.
        reuses: allocations that found a free block.
        allocations: allocations in all.
    """

    in_use: int
    cached: int
    peak: int
    blocks: int
    reuses: int
    allocations: int

    def __str__(self) -> str:
        share = self.reuses / self.allocations if self.allocations else 0.0
        return (
            f"in use {self.in_use / 2**20:.1f} MiB, cached {self.cached / 2**20:.1f} MiB, "
            f"peak {self.peak / 2**20:.1f} MiB, {self.blocks} blocks, {share:.0%} reused"
        )


def size_class(size: int) -> int:
    """Return the size of the block that serves a request.

    Example:
        >>> size_class(1), size_class(1000), size_class(1025)
        (256, 1024, 1152)
    """
    if size <= SMALLEST:
        return SMALLEST
    step = 1 << max((size - 1).bit_length() - 4, 0)
    return -(-size // step) * step


class Storage:
    """A block of device memory, given back when the last array lets go of it."""

    __slots__ = ("__weakref__", "address", "bytes", "freed", "handle", "keep")

    def __init__(
        self, handle: Any, size: int, address: int, freed: deque[Any] | None, keep: Any = None
    ) -> None:
        self.handle = handle
        self.bytes = size
        self.address = address
        self.freed = freed
        self.keep = keep

    def __del__(self) -> None:
        # The collector may run us while the pool holds its lock: only a list is touched here.
        if self.freed is not None:
            self.freed.append((self.bytes, self.handle, self.address))


class Pool:
    """The memory of one device.

    Args:
        runtime: where blocks come from.
        limit: bytes that may be in use and cached together, or None.
    """

    def __init__(self, runtime: Runtime, limit: int | None = None) -> None:
        self.runtime = runtime
        self.limit = limit
        self._lock = threading.Lock()
        self._free: dict[int, list[tuple[Any, int]]] = {}
        self._freed: deque[Any] = deque()
        self._in_use = self._cached = self._peak = self._blocks = 0
        self._reuses = self._allocations = 0

    def alloc(self, size: int) -> Storage:
        """Return a block of at least `size` bytes.

        Raises:
            OutOfMemoryError: the device has none left after the caches were emptied.
        """
        wanted = size_class(size)
        with self._lock:
            self._drain()
            self._allocations += 1
            free = self._free.get(wanted)
            if free:
                handle, address = free.pop()
                self._cached -= wanted
                self._reuses += 1
            else:
                handle = self._obtain(wanted)
                address = self.runtime.address(handle)
                self._blocks += 1
            self._in_use += wanted
            self._peak = max(self._peak, self._in_use)
        return Storage(handle, wanted, address, self._freed)

    def _obtain(self, size: int) -> Any:
        over = self.limit is not None and self._in_use + self._cached + size > self.limit
        if not over:
            try:
                return self.runtime.alloc(size)
            except MemoryError:
                pass
        # Work in flight may still hold what is freed now, so wait, then try once more.
        self.runtime.sync()
        self._trim()
        try:
            if self.limit is not None and self._in_use + size > self.limit:
                raise MemoryError
            return self.runtime.alloc(size)
        except MemoryError as cause:
            raise OutOfMemoryError(
                self.runtime.name, f"the device has {size} bytes left", got=self._report(),
                remedy="Let go of arrays, use smaller batches, or raise the limit of the pool.",
            ) from cause  # fmt: skip

    def _drain(self) -> None:
        while self._freed:
            size, handle, address = self._freed.popleft()
            self._in_use -= size
            self._cached += size
            self._free.setdefault(size, []).append((handle, address))

    def trim(self) -> None:
        """Give all free blocks back to the device."""
        with self._lock:
            self._drain()
            self.runtime.sync()
            self._trim()

    def _trim(self) -> None:
        self._drain()
        for size, blocks in self._free.items():
            for handle, _ in blocks:
                self.runtime.free(handle)
                self._cached -= size
                self._blocks -= 1
        self._free.clear()

    def report(self) -> MemoryReport:
        """Return what the pool holds."""
        with self._lock:
            self._drain()
            return self._report()

    def _report(self) -> MemoryReport:
        return MemoryReport(
            self._in_use, self._cached, self._peak, self._blocks, self._reuses, self._allocations
        )
