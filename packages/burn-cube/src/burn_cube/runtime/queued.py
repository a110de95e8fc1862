"""What runtimes with a queue share: faults that are noted on the device, code found again.

A launch returns at once, so what a kernel does wrong is known later. A kernel that can fault gets
the number of its launch and a record of eight int32 words: site, launch, index (two words), length
(two words), two spare. The first fault is written, later ones are dropped. Site 0 means that
nothing happened; site n is the n-th operation of `Source.sites`.
"""

from __future__ import annotations

import os
import struct
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_cube.emit.c_like import Source
from burn_cube.errors import KernelFaultError
from burn_cube.ir import Kernel, walk
from burn_cube.runtime.arguments import describe, may_fault
from burn_cube.runtime.base import Program, Properties, Runtime
from burn_cube.runtime.cache import digest_of, emitter_version, kernel_cache
from burn_cube.runtime.faults import fault_of
from burn_cube.runtime.record import Record
from burn_std import DeviceError, DeviceLostError

if TYPE_CHECKING:
    from burn_cube.runtime.frames import Frames

RECORD = 32
# Launches whose arguments are remembered; an older one is reported without them.
REMEMBERED = 1024


class QueuedRuntime(Runtime):
    """A device that works behind the program's back.

    Attributes:
        lock: held while the queue is touched; any thread may launch.
        process: the one that opened the device.
        gone: the error that ended the device; whatever is asked of it raises that again.
    """

    def __init__(self, name: str, properties: Properties) -> None:
        self.name = name
        self.properties = properties
        self.lock = threading.RLock()
        self._loading = threading.Lock()
        self._made: dict[bytes, Program] = {}
        self._record: Record | None = None
        self._launches: OrderedDict[int, tuple[Source, str]] = OrderedDict()
        self._number = 0
        self._pending = False
        self.process = os.getpid()
        self.gone: DeviceLostError | None = None

    # --- code ------------------------------------------------------------------------------

    def find(self, kernel: Kernel, options: Sequence[str], emit: Callable[[], Source]) -> Program:
        """Return the program of a kernel from memory, from disk or compiled now."""
        facts = self.properties
        key = digest_of(self.name.partition(":")[0], str(kernel), *options, facts.name,
                        self.driver, emitter_version())  # fmt: skip
        known = key
        if may_fault(kernel):
            # Equal kernels from two places report faults at their own lines.
            known = digest_of(key, *[str(op.where) for op in walk(kernel.body)])
        # Not the queue's lock: others launch while one thread compiles.
        with self._loading:
            found = self._made.get(known)
            if found is not None:
                return found
            disk = kernel_cache()
            source = emit()
            image = disk.get(key)
            program = None if image is None else self._restore(source, options, image)
            if program is None:
                program, image = self._compile(source, options)
                disk.put(key, image)
            self._made[known] = program
            return program

    @property
    @abstractmethod
    def driver(self) -> str:
        """Versions of driver and compiler, which compiled code depends on."""

    @abstractmethod
    def _compile(self, source: Source, options: Sequence[str]) -> tuple[Program, bytes]:
        """Return a program and the bytes from which it can be made again."""

    @abstractmethod
    def _restore(self, source: Source, options: Sequence[str], image: bytes) -> Program | None:
        """Return the program of stored bytes, or None where the driver refuses them."""

    @staticmethod
    def frames() -> Frames | None:
        """Return what makes builtins of Python functions, None without a compiler for them."""
        from burn_cube.runtime.frames import host_frames  # most programs are over before

        return host_frames()

    # --- order -----------------------------------------------------------------------------

    def is_owner(self) -> bool:
        """Return whether this process opened the device."""
        return self.process == os.getpid()

    def alive(self) -> None:
        """Check that this process may use the device.

        Raises:
            DeviceError: it was forked from the one that opened it.
            DeviceLostError: the device failed before.
        """
        if self.gone is not None:
            raise self.gone.with_traceback(None)
        if not self.is_owner():
            raise DeviceError(
                self.name, "a device belongs to the process that opened it", got="a forked one",
                remedy="Start workers with the spawn method, or open devices in the workers only",
            )  # fmt: skip

    def register(self, source: Source, args: Sequence[Any]) -> tuple[int, Any]:
        """Return the number of a launch that can fault, and the record."""
        self._number = self._number % 0x7FFFFFFF + 1
        if self._record is None:
            self._record = Record(self, RECORD)
        self.remember(self._number, source, describe(source.kernel, args))
        return self._number, self._record.handle

    @property
    def launches(self) -> int:
        """The number of the last launch that can fault."""
        return self._number

    def remember(self, number: int, source: Source, about: str) -> None:
        """Keep what a fault of a launch is reported of, and look for one at the next `sync`."""
        self._launches.pop(number, None)
        self._launches[number] = (source, about)
        while len(self._launches) > REMEMBERED:
            self._launches.popitem(last=False)
        self._pending = True

    def check_faults(self) -> None:
        """Raise what a kernel noted, once; the queue was waited for.

        Raises:
            KernelFaultError: names kernel, place, index and arguments.
        """
        if not self._pending or self._record is None:
            return
        self._pending = False
        site, number, index, length = struct.unpack("<iiqq", self._record.read()[:24])
        if site == 0:
            return
        self._record.clear()
        found = self._launches.get(number)
        if found is None:
            raise KernelFaultError(self.name, "a kernel broke a rule", got=f"launch {number}")
        source, words = found
        raise fault_of(source.kernel, source.sites[site - 1], index, length, words)
