"""Faults of running kernels: noted on the device, raised at the next sync.

A kernel that can fault gets its launch number and a record of eight int32 words: site, launch,
index (two words), length (two words), spare. The first fault writes, later ones are dropped. Site
0 means that nothing happened; site n is operation n - 1 of `Loaded.sites`.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_cube.errors import KernelFaultError

if TYPE_CHECKING:
    from burn_cube.ir import Op
    from burn_cube.runtime.interface import Buffer, Device, Loaded

BYTES = 32
# Launches whose arguments are remembered; an older one is reported without them.
REMEMBERED = 1024


class Faults:
    """The fault record of one device and the launches that may write it.

    Attributes:
        pending: whether such a launch came since the last check.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffer: Buffer | None = None
        self._known: OrderedDict[int, tuple[Loaded, str]] = OrderedDict()
        self._next = 1
        self.pending = False

    def register(self, loaded: Loaded, args: Sequence[Any]) -> tuple[int, Buffer]:
        """Return the number of a launch that can fault, and the record."""
        from burn_cube.runtime.arguments import describe

        number = self._next
        self._next = number % 0x7FFFFFFF + 1
        self._known[number] = (loaded, describe(loaded.kernel, args))
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self.pending = True
        return number, self.record()

    def record(self) -> Buffer:
        """Return the record on the device, cleared when it is made."""
        if self._buffer is None:
            self._buffer = self._device.alloc(BYTES, "fault record")
            self._clear(self._buffer)
        return self._buffer

    def _clear(self, buffer: Buffer) -> None:
        import numpy as np

        self._device.write(buffer, 0, np.zeros(BYTES, np.uint8))

    def check(self) -> None:
        """Raise what a kernel noted, once.

        Raises:
            KernelFaultError: names kernel, place, index and arguments.
        """
        if not self.pending or self._buffer is None:
            return
        import numpy as np

        self.pending = False
        raw = np.empty(BYTES, np.uint8)
        self._device.read(self._buffer, 0, raw).wait()
        site, number, index, length = struct.unpack("<iiqq", raw[:24].tobytes())
        if site == 0:
            return
        self._clear(self._buffer)
        found = self._known.get(number)
        if found is None:
            raise KernelFaultError("launch", "a kernel broke a rule", got=f"launch {number}")
        loaded, words = found
        raise fault_of(loaded.kernel.name, loaded.sites[site - 1], index, length, words)


def fault_of(kernel: str, site: Op, index: int, length: int, words: str) -> KernelFaultError:
    """Return the error of one operation that broke a rule."""
    if site.name == "assert":
        got = f"a unit where it is false, in {kernel}({words})"
        return KernelFaultError(kernel, site.attrs["message"], got=got, where=site.where)
    memory = site.args[0]
    name = memory.attrs.get("name", f"{memory.type.space} memory")
    return KernelFaultError(
        kernel, f"an index is inside its memory, {name}",
        got=f"index {index} of {length} in {kernel}({words})", where=site.where,
    )  # fmt: skip
