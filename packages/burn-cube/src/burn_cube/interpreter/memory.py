"""Memory under watch: bounds, and which unit touched what since the last barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn_cube.errors import KernelFaultError
from burn_cube.ir import Op

Array = Any
NOBODY = -1
SEVERAL = -2


class Watched:
    """One buffer, or the shared or local memory of all cubes.

    Args:
        name: how faults call it.
        data: elements; a second axis holds the lanes of vector elements.
        size: elements that one owner may index.
        base: first element of each lane's owner.
        watch: whether accesses are recorded, to find races.
    """

    def __init__(self, name: str, data: Array, size: int, base: Array, watch: bool) -> None:
        self.name = name
        self.data = data
        self.size = size
        self.base = base
        self.watch = watch
        if watch:
            # Per element: who wrote and read it last, and in which interval between barriers.
            self.writer = np.full(len(data), NOBODY)
            self.written = np.full(len(data), -1)
            self.reader = np.full(len(data), NOBODY)
            self.was_read = np.full(len(data), -1)


class Watcher:
    """Checks accesses of lanes against bounds and against each other."""

    def __init__(
        self, kernel: str, cube_of: Array, raises: bool, name_of: Callable[[int], str]
    ) -> None:
        self.kernel = kernel
        self.cube_of = cube_of
        self.raises = raises
        self.name_of = name_of
        self.interval = 0

    def inside(self, op: Op, memory: Watched, index: Array, width: int, live: Array) -> Array:
        """Return which live lanes are inside; in the strict modes raise for one that is not."""
        good = (index >= 0) & (index <= memory.size - width)
        bad = np.flatnonzero(live & ~good)
        if len(bad) and self.raises:
            lane = int(bad[0])
            last = f" to {int(index[lane]) + width - 1}" if width > 1 else ""
            raise KernelFaultError(
                f"kernel {self.kernel}", f"{op.name}: the index is inside of {memory.name}, "
                f"which has {memory.size} elements",
                got=f"{int(index[lane])}{last} in {self.name_of(lane)}"
                + (f" and {len(bad) - 1} more units" if len(bad) > 1 else ""),
                remedy="Guard it: if i < len(x).", where=op.where,
            )  # fmt: skip
        return live & good

    def reads(self, op: Op, memory: Watched, places: Array, lanes: Array) -> None:
        """Record reads; raise where another unit wrote the element without a barrier between."""
        if not memory.watch:
            return
        writer = memory.writer[places]
        clash = (writer != NOBODY) & (writer != lanes) & self._near(memory.written, places, writer,
                                                                    lanes)  # fmt: skip
        self._report(op, memory, places, lanes, writer, clash, "read", "wrote")
        other = (memory.was_read[places] == self.interval) & (memory.reader[places] != lanes)
        memory.reader[places] = np.where(other, SEVERAL, lanes)
        memory.was_read[places] = self.interval

    def writes(self, op: Op, memory: Watched, places: Array, lanes: Array, values: Array) -> None:
        """Record writes; raise where another unit touched the element without a barrier between."""
        if not memory.watch:
            return
        order = np.argsort(places, kind="stable")
        one, two = order[:-1], order[1:]
        twice = (places[one] == places[two]) & (lanes[one] != lanes[two])
        flat = np.ascontiguousarray(values).reshape(len(places), -1)
        differ = (flat[one] != flat[two]).any(axis=1) & twice
        if differ.any():
            at = int(np.flatnonzero(differ)[0])
            self._race(op, memory, places[two[at]], lanes[two[at]], lanes[one[at]], "wrote")
        writer = memory.writer[places]
        clash = (writer != NOBODY) & (writer != lanes)
        clash &= self._near(memory.written, places, writer, lanes)
        old = memory.data[places].reshape(len(places), -1)
        clash &= (old != flat).any(axis=1)
        self._report(op, memory, places, lanes, writer, clash, "write", "wrote")
        reader = memory.reader[places]
        clash = (reader != NOBODY) & (reader != lanes)
        clash &= self._near(memory.was_read, places, reader, lanes)
        self._report(op, memory, places, lanes, reader, clash, "write", "read")
        memory.writer[places] = lanes
        memory.written[places] = self.interval

    def _near(self, times: Array, places: Array, others: Array, lanes: Array) -> Array:
        """Return where no barrier orders two accesses: same interval, or different cubes."""
        several = others == SEVERAL
        other_cube = self.cube_of[np.where(several, lanes, others)] != self.cube_of[lanes]
        return (times[places] == self.interval) | other_cube

    def _report(
        self, op: Op, memory: Watched, places: Array, lanes: Array, others: Array, clash: Array,
        word: str, before: str,
    ) -> None:  # fmt: skip
        if clash.any():
            at = int(np.flatnonzero(clash)[0])
            self._race(op, memory, places[at], lanes[at], others[at], before)

    def _race(
        self, op: Op, memory: Watched, place: Any, lane: Any, other: Any, before: str
    ) -> None:
        who = self.name_of(int(other)) if other >= 0 else "several units"
        word = "read" if op.name == "load" else "write"
        raise KernelFaultError(
            f"kernel {self.kernel}", f"{op.name}: no two units race for one element of "
            f"{memory.name}",
            got=f"element {int(place) % max(memory.size, 1)}: {self.name_of(int(lane))} has a "
            f"{word} where {who} {before} it, with no barrier between",
            remedy="Put sync_cube() between them, or use an atomic.", where=op.where,
        )  # fmt: skip
