"""The memory pool of a device: size classes, slices of pages, reuse in the order of the queue.

Small requests are slices of pages; a slice keeps its handle for life, so that OpenCL makes each
sub-buffer once. Larger requests own their memory. Freed memory is kept by size class, last in
first out, so that a loop gets the same addresses in each round. One queue runs everything in
order, so memory can be handed out again as soon as it is given back.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_cube.errors import OutOfMemoryError

if TYPE_CHECKING:
    from burn_cube.runtime.interface import Device

# Requests up to this size are slices of a page.
SLICED = 1 << 20
PAGE = 8 << 20
# Classes are at least this far apart, which keeps every slice aligned for any device.
GRAIN = 512
# Trimming: after so many takes, what lay unused for that long goes back to the driver.
PERIOD = 4096


class Block:
    """Memory of one size class: a slice of a page, or an allocation of its own.

    Attributes:
        pool: where it goes back to.
        handle: what the device knows it by.
        nbytes: size of its class.
        page: the page it is cut from; None for one with memory of its own.
        label: who holds it.
        asked: bytes that were asked for.
        used: the pool's clock when it was given back.
        persistent: whether it was taken in a persistent scope.
    """

    __slots__ = ("asked", "handle", "label", "nbytes", "page", "persistent", "pool", "used")

    def __init__(self, pool: Pool, handle: Any, nbytes: int, page: Page | None) -> None:
        self.pool = pool
        self.handle = handle
        self.nbytes = nbytes
        self.page = page
        self.label = ""
        self.asked = 0
        self.used = 0
        self.persistent = False


class Page:
    """Memory that slices of one class are cut from.

    Attributes:
        handle: the whole page.
        nbytes: its size.
        blocks: all of its slices.
        free: how many of them nobody holds.
    """

    __slots__ = ("blocks", "free", "handle", "nbytes")

    def __init__(self, handle: Any, nbytes: int) -> None:
        self.handle = handle
        self.nbytes = nbytes
        self.blocks: list[Block] = []
        self.free = 0


class Usage(NamedTuple):
    """Bytes of a pool.

    Attributes:
        held: in blocks that somebody holds, rounded up to their classes.
        asked: the same as asked for.
        cached: in blocks that nobody holds.
        reserved: taken from the driver.
        peak: the most that was ever held.
        allocations: calls of the driver so far.
    """

    held: int
    asked: int
    cached: int
    reserved: int
    peak: int
    allocations: int


def size_class(nbytes: int) -> int:
    """Return the size of the class of a request: eight classes to each power of two.

    Example:
        >>> size_class(1), size_class(513), size_class(9000), size_class(1 << 20)
        (512, 1024, 9216, 1048576)
    """
    if nbytes <= 8 * GRAIN:
        return max(1, -(-nbytes // GRAIN)) * GRAIN
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return -(-nbytes // step) * step


class Pool:
    """The memory of one device.

    Args:
        device: where allocations come from.
        limit: bytes that may be reserved at most, or None for what the device has.
        page: bytes of a page of slices.

    Attributes:
        limit: see above; may be changed at any time.
        period: takes after which unused memory goes back; 0 for never.
    """

    def __init__(self, device: Device, limit: int | None = None, page: int = PAGE) -> None:
        self._device = device
        self._lock = threading.RLock()
        self._free: dict[int, list[Block]] = {}
        self._pages: list[Page] = []
        self._held: set[Block] = set()
        # Filled by finalizers, which may run at any place: no lock is taken there.
        self._returned: deque[Block] = deque()
        self._reserved = 0
        self._held_bytes = 0
        self._peak = 0
        self._allocations = 0
        self._clock = 0
        self._persistent = 0
        self._page_size = page
        self.limit = limit
        self.period = PERIOD

    # --- taking and giving back ------------------------------------------------------------

    def take(self, nbytes: int, label: str = "") -> Block:
        """Return a block of at least `nbytes`.

        Raises:
            OutOfMemoryError: there is none, even after emptying the cache.
        """
        size = size_class(nbytes)
        with self._lock:
            self._drain()
            self._clock += 1
            if self.period and self._clock % self.period == 0:
                self._age()
            free = self._free.get(size)
            if free:
                block = free.pop()
                if block.page is not None:
                    block.page.free -= 1
            else:
                block = self._new(size, nbytes, label)
            block.label = label
            block.asked = nbytes
            block.persistent = self._persistent > 0
            self._held.add(block)
            self._held_bytes += size
            self._peak = max(self._peak, self._held_bytes)
            return block

    def give_back(self, block: Block) -> None:
        """Take a block back; it is handed out again behind what is queued.

        Safe in a finalizer: the block is only noted, the next `take` files it.
        """
        self._returned.append(block)

    def _drain(self) -> None:
        while self._returned:
            try:
                block = self._returned.popleft()
            except IndexError:  # a thread without the lock took the last one
                return
            self._held.discard(block)
            self._held_bytes -= block.nbytes
            block.used = self._clock
            if block.page is not None:
                block.page.free += 1
            self._free.setdefault(block.nbytes, []).append(block)

    # --- the driver ------------------------------------------------------------------------

    def _new(self, size: int, nbytes: int, label: str) -> Block:
        if size > SLICED:
            return Block(self, self._reserve(size, nbytes, label), size, None)
        count = max(1, min(self._page_size // size, 64))
        handle = self._reserve(size * count, nbytes, label)
        page = Page(handle, size * count)
        self._pages.append(page)
        for number in range(count):
            part = self._device._part(handle, number * size, size)
            page.blocks.append(Block(self, part, size, page))
        first, *rest = page.blocks
        page.free = len(rest)
        for block in rest:
            block.used = self._clock
        self._free.setdefault(size, []).extend(reversed(rest))
        return first

    def _reserve(self, size: int, nbytes: int, label: str) -> Any:
        for attempt in range(2):
            if self.limit is None or self._reserved + size <= self.limit:
                try:
                    handle = self._device._allocate(size)
                except MemoryError:
                    pass
                else:
                    self._reserved += size
                    self._allocations += 1
                    return handle
            if attempt == 0:
                # Queued kernels may still use what nobody holds: wait before it goes.
                self._device._settle()
                self.trim()
        raise self._out_of_memory(nbytes, label)

    def _out_of_memory(self, nbytes: int, label: str) -> OutOfMemoryError:
        usage = self.usage()
        total = self._device.properties.memory if self.limit is None else self.limit
        got = (
            f"{words(nbytes)}{f' for {label}' if label else ''} with {words(usage.held)} held of "
            f"{words(total)}\n{self.report()}"
        )
        return OutOfMemoryError(
            "alloc", f"{self._device.name} has memory left", got=got,
            remedy="Free arrays, use a smaller batch, or raise the pool's limit",
        )  # fmt: skip

    def trim(self) -> int:
        """Give all memory that nobody holds back to the driver; return its bytes."""
        with self._lock:
            self._drain()
            return self._trim(lambda block: True)

    def _age(self) -> None:
        # What waited for a whole period without use goes; blocks of scopes stay.
        oldest = self._clock - self.period
        if any(self._free.values()):
            self._device._settle()
            self._trim(lambda block: block.used < oldest and not block.persistent)

    def _trim(self, unwanted: Any) -> int:
        before = self._reserved
        for page in list(self._pages):
            if page.free == len(page.blocks) and all(map(unwanted, page.blocks)):
                gone = set(page.blocks)
                size = page.blocks[0].nbytes
                self._free[size] = [b for b in self._free[size] if b not in gone]
                self._pages.remove(page)
                self._drop(page.handle, page.nbytes)
        for size, free in self._free.items():
            if size <= SLICED:
                continue
            kept = []
            for block in free:
                if unwanted(block):
                    self._drop(block.handle, size)
                else:
                    kept.append(block)
            self._free[size] = kept
        return before - self._reserved

    def _drop(self, handle: Any, nbytes: int) -> None:
        self._device._release(handle)
        self._reserved -= nbytes

    # --- scopes and reports ----------------------------------------------------------------

    @contextmanager
    def persistent(self) -> Iterator[None]:
        """Keep what is taken inside for good: it stays cached when unused memory is trimmed.

        For memory whose address a graph or a foreign library knows.
        """
        with self._lock:
            self._persistent += 1
        try:
            yield
        finally:
            with self._lock:
                self._persistent -= 1

    def usage(self) -> Usage:
        """Return the bytes held, cached and reserved."""
        with self._lock:
            self._drain()
            cached = sum(size * len(free) for size, free in self._free.items())
            asked = sum(block.asked for block in self._held)
            return Usage(
                self._held_bytes, asked, cached, self._reserved, self._peak, self._allocations
            )

    def report(self, top: int = 8) -> str:
        """Return who holds the memory, largest first, as a table."""
        with self._lock:
            self._drain()
            groups: dict[tuple[str, int], int] = {}
            for block in self._held:
                key = (block.label or "unnamed", block.asked)
                groups[key] = groups.get(key, 0) + 1
            usage = self.usage()
        lines = [
            f"{self._device.name}: held {words(usage.held)} (asked {words(usage.asked)}), cached "
            f"{words(usage.cached)}, reserved {words(usage.reserved)}, peak {words(usage.peak)}"
        ]
        order = sorted(groups.items(), key=lambda item: -item[0][1] * item[1])
        for (label, asked), count in order[:top]:
            lines.append(f"  {words(asked * count):>10}  {count:6} x {words(asked):<10}  {label}")
        if len(order) > top:
            rest = sum(asked * count for (_, asked), count in order[top:])
            lines.append(f"  {words(rest):>10}  in {len(order) - top} more sizes")
        return "\n".join(lines)


def words(nbytes: int) -> str:
    """Return a number of bytes as a person reads it.

    Example:
        >>> words(512), words(3 << 20)
        ('512 B', '3.0 MiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    value = float(nbytes)
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}" if units[0] != "B" else f"{nbytes} B"
