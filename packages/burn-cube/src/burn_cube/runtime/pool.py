"""The memory pool of a device: size classes, parts of pages, reuse in the order of launches.

Small requests are parts of pages where the device can name a part; such a part keeps its handle
for life, so that OpenCL makes each sub-buffer once. Larger requests own their memory. Freed memory
is kept by size class, last in first out, which is warm; where graphs hold addresses the lowest one
comes first, so that a loop gets the same addresses in each round. Work of one device happens in
order, so memory is free for the next launch as soon as it is freed.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from burn_cube.errors import OutOfMemoryError
from burn_cube.runtime.base import Runtime

# Requests up to this size are parts of a page.
PARTED = 1 << 20
PAGE = 8 << 20
# Classes are at least this far apart.
GRAIN = 256
# After so many requests, what lay unused for that long goes back to the device.
PERIOD = 4096


class MemoryReport(NamedTuple):
    """What a pool holds, in bytes.

    Attributes:
        in_use: blocks that arrays hold.
        cached: free blocks kept for reuse.
        peak: the most that was ever in use.
        blocks: number of blocks.
        reuses: requests that found a free block.
        allocations: requests in all.
        reserved: what the device gave.
    """

    in_use: int
    cached: int
    peak: int
    blocks: int
    reuses: int
    allocations: int
    reserved: int = 0

    def __str__(self) -> str:
        share = self.reuses / self.allocations if self.allocations else 0.0
        return (
            f"in use {words(self.in_use)}, cached {words(self.cached)}, peak {words(self.peak)}, "
            f"reserved {words(self.reserved)}, {self.blocks} blocks, {share:.0%} reused"
        )


def words(size: int) -> str:
    """Return a number of bytes as a person reads it.

    Example:
        >>> words(512), words(3 << 20)
        ('512 B', '3.0 MiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    value = float(size)
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}" if units[0] != "B" else f"{size} B"


def size_class(size: int, grain: int = GRAIN) -> int:
    """Return the size of the block that serves a request: eight classes a power of two.

    Args:
        size: bytes asked for.
        grain: what every class is a multiple of.

    Example:
        >>> size_class(1), size_class(1000), size_class(9000)
        (256, 1024, 9216)
    """
    if size <= 8 * grain:
        return max(1, -(-size // grain)) * grain
    step = 1 << ((size - 1).bit_length() - 4)
    return -(-size // step) * step


class Block:
    """Memory of one size class: a part of a page, or memory of its own.

    Attributes:
        handle: what the device knows it by.
        size: size of its class.
        address: its address, 0 where the device has none.
        page: the page it is a part of, or None.
        label: who holds it.
        asked: bytes that were asked for.
        used: the pool's clock when it was freed.
        persistent: whether it was taken in a persistent scope.
    """

    __slots__ = ("address", "asked", "handle", "label", "page", "persistent", "size", "used")

    def __init__(self, handle: Any, size: int, address: int, page: Page | None) -> None:
        self.handle = handle
        self.size = size
        self.address = address
        self.page = page
        self.label = ""
        self.asked = 0
        self.used = 0
        self.persistent = False


class Page:
    """Memory whose parts are blocks of one class."""

    __slots__ = ("blocks", "free", "handle", "size")

    def __init__(self, handle: Any, size: int) -> None:
        self.handle = handle
        self.size = size
        self.blocks: list[Block] = []
        self.free = 0


class Storage:
    """A block of device memory, given back when the last array lets go of it.

    Attributes:
        handle: what the device knows it by.
        bytes: size of the block.
        address: its address, 0 where the device has none.
        keep: what must live as long, for memory that is not of the pool.
    """

    __slots__ = ("__weakref__", "_block", "_freed", "address", "bytes", "handle", "keep")

    def __init__(
        self,
        handle: Any,
        size: int,
        address: int,
        freed: deque[Block] | None = None,
        block: Block | None = None,
        keep: Any = None,
    ) -> None:
        # First, for an interrupt may leave the rest unset.
        self._freed = freed
        self._block = block
        self.handle = handle
        self.bytes = size
        self.address = address
        self.keep = keep

    def __del__(self) -> None:
        # The collector may run us while the pool holds its lock: only a list is touched here.
        if self._freed is not None and self._block is not None:
            self._freed.append(self._block)


def _falling(block: Block) -> int:
    return -block.address


class Pool:
    """The memory of one device.

    Args:
        runtime: where memory comes from.
        limit: bytes that may be reserved at most, or None for what the device has.

    Attributes:
        limit: see above; may be changed at any time.
        period: requests after which unused memory goes back to the device; 0 for never.
        page: bytes of a page.
    """

    def __init__(self, runtime: Runtime, limit: int | None = None) -> None:
        self.runtime = runtime
        self.limit = limit
        self.period = PERIOD
        self.page = PAGE
        # Drivers ask for 128 to 512 bytes between parts; a power of two, as is ours.
        self._grain = max(GRAIN, runtime.properties.alignment)
        # Last in, first out moves a loop's blocks round from one role to another, often in long
        # cycles. The lowest free address depends on what is free alone.
        self._lowest = "graphs" in runtime.properties.capabilities
        self._lock = threading.RLock()
        # By size; the next one to be given stands last.
        self._free: dict[int, list[Block]] = {}
        self._pages: list[Page] = []
        self._held: set[Block] = set()
        self._freed: deque[Block] = deque()
        self._reserved = self._in_use = self._peak = 0
        self._reuses = self._clock = self._persistent = self._blocks = 0

    # --- taking and giving back ------------------------------------------------------------

    def alloc(self, size: int, label: str = "") -> Storage:
        """Return a block of at least `size` bytes.

        Args:
            size: bytes.
            label: who asks, for reports.

        Raises:
            OutOfMemoryError: the device has none left after the caches were emptied.
        """
        grain = self._grain
        # The smallest class by itself: most requests of a small program are of it.
        wanted = grain if size <= grain else size_class(size, grain)
        with self._lock:
            if self._freed:
                self._drain()
            self._clock = clock = self._clock + 1
            if self.period and clock % self.period == 0:
                self._age()
            free = self._free.get(wanted)
            if free:
                block = free.pop()
                self._reuses += 1
                if block.page is not None:
                    block.page.free -= 1
            else:
                block = self._new(wanted, size, label)
            block.label = label
            block.asked = size
            block.persistent = self._persistent > 0
            self._held.add(block)
            self._in_use = used = self._in_use + wanted
            if used > self._peak:
                self._peak = used
        return Storage(block.handle, wanted, block.address, self._freed, block)

    def _drain(self) -> None:
        freed, classes = self._freed, self._free
        while freed:
            block = freed.popleft()
            size = block.size
            self._held.discard(block)
            self._in_use -= size
            block.used = self._clock
            if block.page is not None:
                block.page.free += 1
            free = classes.get(size)
            if free is None:
                classes[size] = [block]
            elif self._lowest:
                insort(free, block, key=_falling)
            else:
                free.append(block)

    # --- the device ------------------------------------------------------------------------

    def _new(self, size: int, asked: int, label: str) -> Block:
        runtime = self.runtime
        # Whether the device can name a part of memory is seen before a page is asked for.
        parted = size <= PARTED and type(runtime).part is not Runtime.part
        count = max(1, min(self.page // size, 64)) if parted else 1
        if count > 1:
            whole = self._reserve(size * count, asked, label)
            first = self._cut(whole, size, count)
            if first is not None:
                return first
            self._drop(whole, size * count)
        handle = self._reserve(size, asked, label)
        self._blocks += 1
        return Block(handle, size, runtime.address(handle), None)

    def _cut(self, handle: Any, size: int, count: int) -> Block | None:
        """Return a block of a new page and keep its other ones; None where nothing is cut."""
        runtime = self.runtime
        page = Page(handle, size * count)
        for number in range(count):
            part = runtime.part(handle, number * size, size)
            if part is None:
                return None
            page.blocks.append(Block(part, size, runtime.address(part), page))
        first, *rest = page.blocks
        page.free = len(rest)
        for block in rest:
            block.used = self._clock
        self._free.setdefault(size, []).extend(reversed(rest))
        self._pages.append(page)
        self._blocks += count
        return first

    def _reserve(self, size: int, asked: int, label: str) -> Any:
        cause: MemoryError | None = None
        for last in (False, True):
            if self.limit is None or self._reserved + size <= self.limit:
                try:
                    handle = self.runtime.alloc(size)
                except MemoryError as error:
                    cause = error
                else:
                    self._reserved += size
                    return handle
            if not last:
                # Work in flight may still use what is freed now: wait, then try once more.
                self.runtime.event().wait()
                self._drain()
                self._trim(lambda block: True)
        total = self.runtime.properties.memory if self.limit is None else self.limit
        purpose = f" for {label}" if label else ""
        raise OutOfMemoryError(
            self.runtime.name, f"the device has {words(asked)} left{purpose}",
            got=f"{words(total)} in all, {self.table()}",
            remedy="Let go of arrays, use smaller batches, or raise the limit of the pool",
        ) from cause  # fmt: skip

    def trim(self) -> int:
        """Give all free memory back to the device; return its bytes."""
        with self._lock:
            self.runtime.event().wait()
            self._drain()
            return self._trim(lambda block: True)

    def _age(self) -> None:
        oldest = self._clock - self.period
        if any(block.used < oldest for blocks in self._free.values() for block in blocks):
            self.runtime.event().wait()
            self._trim(lambda block: block.used < oldest and not block.persistent)

    def _trim(self, unwanted: Callable[[Block], bool]) -> int:
        before = self._reserved
        for page in list(self._pages):
            if page.free == len(page.blocks) and all(map(unwanted, page.blocks)):
                size, gone = page.blocks[0].size, set(page.blocks)
                self._free[size] = [b for b in self._free[size] if b not in gone]
                self._pages.remove(page)
                self._blocks -= len(gone)
                for block in page.blocks:
                    # A part must not outlive its page.
                    block.handle = None
                self._drop(page.handle, page.size)
        for size, blocks in self._free.items():
            kept = []
            for block in blocks:
                if block.page is None and unwanted(block):
                    self._blocks -= 1
                    self._drop(block.handle, size)
                else:
                    kept.append(block)
            self._free[size] = kept
        return before - self._reserved

    def _drop(self, handle: Any, size: int) -> None:
        self.runtime.free(handle)
        self._reserved -= size

    # --- scopes and reports ----------------------------------------------------------------

    @contextmanager
    def persistent(self) -> Iterator[None]:
        """Keep what is taken inside: it stays cached when unused memory goes back by age.

        For memory whose address a graph or a foreign library knows.
        """
        with self._lock:
            self._persistent += 1
        try:
            yield
        finally:
            with self._lock:
                self._persistent -= 1

    def report(self) -> MemoryReport:
        """Return what the pool holds."""
        with self._lock:
            self._drain()
            cached = sum(size * len(blocks) for size, blocks in self._free.items())
            return MemoryReport(
                self._in_use, cached, self._peak, self._blocks, self._reuses, self._clock,
                self._reserved,
            )  # fmt: skip

    def forget_peak(self) -> None:
        """Count the peak anew, from what is in use now."""
        with self._lock:
            self._drain()
            self._peak = self._in_use

    def held(self, known: Sequence[Storage] = ()) -> list[tuple[str, int]]:
        """Return label and size of every block that is held.

        Args:
            known: what is left out.
        """
        with self._lock:
            self._drain()
            left = self._held - {s._block for s in known if s._block is not None}
            return [(block.label or "unnamed", block.size) for block in left]

    def table(self, top: int = 8) -> str:
        """Return what the pool holds and who holds most, as text.

        Args:
            top: lines of holders at most; each is a label and a size.
        """
        with self._lock:
            lines = [str(self.report())]
            groups: dict[tuple[str, int], int] = {}
            for block in self._held:
                key = (block.label or "unnamed", block.asked)
                groups[key] = groups.get(key, 0) + 1
        order = sorted(groups.items(), key=lambda item: -item[0][1] * item[1])
        for (label, size), count in order[:top]:
            lines.append(f"  {words(size * count):>10}  {count:6} x {words(size):<10}  {label}")
        if len(order) > top:
            rest = sum(size * count for (_, size), count in order[top:])
            lines.append(f"  {words(rest):>10}  in {len(order) - top} more sizes")
        return "\n".join(lines)
