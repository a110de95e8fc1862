"""The cpu runtime: kernels compiled by LLVM, one native call a launch, one native thread pool.

A launch packs its arguments into a row of words and calls the pool, which releases the GIL and
comes back when every cube is done. So everything is in order without a queue, and a fault is known
at once; it is kept for the next `sync`, as on the other runtimes.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import platform
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_cube.errors import KernelFaultError
from burn_cube.ir import Kernel, Op, walk
from burn_cube.operations import MATH
from burn_cube.runtime.arguments import describe
from burn_cube.runtime.base import API_VERSION, Program, Properties, Runtime
from burn_cube.runtime.cache import digest_of, emitter_version, kernel_cache
from burn_cube.runtime.faults import recorded_fault
from burn_cube.runtime.native_calls import NativeCall, NativeCalls, Runner, text as calls_text
from burn_cube.runtime.words import Packer
from burn_cube.types import Memory, Vector
from burn_std import BackendLoadError
from burn_std.dtypes import PLAIN

if TYPE_CHECKING:
    from burn_cube.runtime.frames import Frames

HUGE = 2 << 20
# Costs count operations of about a sixth of a nanosecond. So much work a chunk should hold, and
# below so much one thread does it all.
CHUNK = 60_000.0
ALONE = 120_000.0
# Lines of a module from which on one that is written in vectors is taken as it is: to look for more
# took up to half of the time to compile a convolution.
LARGE = 2000
# Cost of one operation of one unit: in a map, where LLVM fills vectors, and else.
IN_MAP, IN_LOOP = 1 / 16, 2.0


class _Block:
    """Memory of the host: pages of its own when large, with huge pages where there are some."""

    __slots__ = ("address", "data")

    def __init__(self, size: int) -> None:
        if size < HUGE or sys.platform != "linux":
            self.data: Any = np.empty(size + 64, np.uint8)
            self.address = -(-self.data.ctypes.data // 64) * 64
            return
        try:
            # Without flags it would be shared memory: a forked child would write into ours, and
            # there are no huge pages for it.
            self.data = mmap.mmap(-1, size + HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, ValueError) as error:
            raise MemoryError(str(error)) from error
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.data))
        self.address = -(-start // HUGE) * HUGE
        if hasattr(self.data, "madvise"):
            try:
                self.data.madvise(mmap.MADV_HUGEPAGE)
            except (OSError, ValueError, AttributeError):
                return  # a kernel without huge pages serves small ones


class HostEvent:
    """A moment: work of the cpu is done when its launch returns."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def done(self) -> bool:
        """Return True: it is reached."""
        return True

    def wait(self) -> None:
        """Return at once: it is reached."""

    def seconds_since(self, other: HostEvent) -> float:
        """Return the time between two events."""
        return self.at - other.at


class CpuProgram(Program):
    """A compiled kernel of the cpu.

    Attributes:
        kernel: what was compiled.
    """

    def __init__(self, runtime: CpuRuntime, kernel: Kernel, address: int) -> None:
        self.kernel = kernel
        self.runtime = runtime
        self.address = address
        self._packer = Packer(kernel, pointers=True)
        self._pack = self._packer.pack_into
        self._size = self._packer.struct.size
        # Of a cube; a caller that knows better may set it.
        self.cost = cost_of(kernel) * kernel.cube_size
        self._local = threading.local()
        names = {op.name for op in walk(kernel.body)}
        self._prints = "print" in names

    def launch(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Run the kernel and return when it is done."""
        local = self._local
        try:
            buffer, place = local.words
        except AttributeError:
            buffer = ctypes.create_string_buffer(self._size)
            place = ctypes.addressof(buffer)
            local.words = (buffer, place)
        runtime = self.runtime
        x, y, z = cubes
        self._pack(buffer, args, x, y, z, runtime.fault_address)
        total = x * y * z
        runtime.call(self.address, place, total, self.grain(total))
        if runtime.fault[0]:
            runtime.note_fault(self.kernel, describe(self.kernel, args))
        if self._prints:
            runtime.flush()

    def grain(self, total: int) -> int:
        """Return how many of all cubes a thread takes at a time."""
        cost, threads = self.cost, self.runtime.threads
        if total * cost < ALONE or threads < 2:
            return total
        # No chunk so small that taking it shows; of long work eight for each thread, so that all
        # end together.
        grain = max(1, int(CHUNK / cost), total // (threads * 64))
        return min(grain, max(1, total // (threads * 8)))

    def prepared(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> NativeCall:
        """Return a launch for a list of them."""
        words = bytearray(self._size)
        self._pack(words, args, *cubes, self.runtime.fault_address)
        total = math.prod(cubes)
        about = describe(self.kernel, args)
        return NativeCall(self.address, bytes(words), total, self.grain(total), self.kernel, about)

    @property
    def prints(self) -> bool:
        """Whether a launch may write to the terminal."""
        return self._prints

    @property
    def places(self) -> list[int]:
        """The first word of each parameter."""
        return self._packer.places

    @property
    def dtypes(self) -> list[Any]:
        """The dtype of each parameter that is a number, None for memory."""
        types = [p.type for p in self.kernel.params]
        return [None if isinstance(t, Memory) else t for t in types]

    def packed(self, cubes: int, args: Sequence[Any]) -> bytes:
        """Return the words of a launch, for native code that calls `address` itself."""
        out = bytearray(self._size)
        self._pack(out, args, cubes, 1, 1, self.runtime.fault_address)
        return bytes(out)


class CpuRuntime(Runtime):
    """This machine's processor.

    Attributes:
        threads: threads that run cubes, the launching one included.
        fault: the record that kernels write their first fault into.
    """

    def __init__(self) -> None:
        from burn_cube.runtime.llvm_jit import jit

        self.name = "cpu"
        self._jit = jit()
        self._blocks: dict[int, _Block] = {}
        self.fault = (ctypes.c_int64 * 8)()
        self.fault_address = ctypes.addressof(self.fault)
        self._faulted: list[KernelFaultError] = []
        wanted = os.environ.get("BURN_NUM_THREADS")
        self.threads = max(1, int(wanted)) if wanted else _processors()
        whole = PLAIN
        self.properties = Properties(
            name=platform.processor() or platform.machine(), kind="cpu", units=self.threads,
            memory=_memory(), max_cube=1024, shared_bytes=256 << 10, alignment=64, plane_dim=32,
            dtypes=frozenset(whole),
            atomics=frozenset(d for d in whole if d.bits >= 32),
            capabilities=frozenset({"fp64", "float_atomics", "print"}),
            vector_bytes=self._jit.vector_bytes,
        )  # fmt: skip
        self._start_pool()

    def _start_pool(self) -> None:
        from burn_cube.runtime.llvm_pool import FUTEX, pool_text

        machine = platform.machine()
        if sys.platform != "linux" or machine not in FUTEX:
            self.threads = 1
        text = pool_text(machine)
        image = self._image("pool", text)
        names = ("burn_pool_start", "burn_pool_run", "burn_pool_forget")
        start, run, forget = self._jit.link(image, *names)
        self.pool_address = run
        self._calls_runner: Runner | None = None
        self._frames: Frames | None = None
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._start = ctypes.CFUNCTYPE(None, number)(start)
        self._forget = ctypes.CFUNCTYPE(None)(forget)
        self.call = ctypes.CFUNCTYPE(None, pointer, pointer, number, number)(run)
        self._start(self.threads - 1)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """The child has no workers: forget them and start new ones."""
        self._forget()
        self._start(self.threads - 1)

    def _image(self, kind: str, text: str, key: bytes | None = None) -> bytes:
        key = key or digest_of(kind, text, self._jit.machine)
        cache = kernel_cache()
        image = cache.get(key)
        if image is None:
            image = self._jit.compile(text)
            cache.put(key, image)
        return image

    # --- memory ----------------------------------------------------------------------------

    def alloc(self, size: int) -> int:
        """Return the address of new memory."""
        block = _Block(size)
        self._blocks[block.address] = block
        return block.address

    def free(self, handle: Any) -> None:
        """Give memory back to the system."""
        del self._blocks[handle]

    def part(self, handle: Any, offset: int, size: int) -> int:
        """Return the address of a part of memory."""
        return int(handle) + offset

    def address(self, handle: Any) -> int:
        """Return the address: the handle is one."""
        return int(handle)

    def shared(self, size: int) -> tuple[int, memoryview]:
        """Return zeros, which are memory of the host here as all memory is."""
        made = np.zeros(size, np.uint8)
        return made.ctypes.data, made.data

    def write(self, handle: Any, offset: int, data: memoryview) -> None:
        """Copy bytes into memory."""
        source = np.frombuffer(data, np.uint8)
        ctypes.memmove(handle + offset, source.ctypes.data, source.nbytes)

    def read(self, handle: Any, offset: int, out: memoryview) -> None:
        """Copy bytes out of memory."""
        target = np.frombuffer(out, np.uint8)
        ctypes.memmove(target.ctypes.data, handle + offset, target.nbytes)

    def copy(self, target: Any, at: int, source: Any, start: int, size: int) -> None:
        """Copy bytes inside memory."""
        ctypes.memmove(target + at, source + start, size)

    # --- kernels ---------------------------------------------------------------------------

    def load(self, kernel: Kernel) -> CpuProgram:
        """Compile a kernel, or take its object from the cache on disk."""
        # The text of the IR says all, so a warm start skips lowering and emission too.
        key = digest_of("cpu", str(kernel), self._jit.machine, emitter_version())
        cache = kernel_cache()
        image = cache.get(key)
        if image is None:
            from burn_cube.emit.llvm import emit_llvm
            from burn_cube.lowering import lower

            text = emit_llvm(lower(kernel, planes=True, math=True), "burn_kernel")
            large = text.count("\n") > LARGE
            image = self._jit.compile(text, large and is_written_in_vectors(kernel))
            cache.put(key, image)
        (address,) = self._jit.link(image, "burn_kernel")
        return CpuProgram(self, kernel, address)

    def calls_runner(self) -> Runner:
        """Return the native function that makes a list of launches."""
        if self._calls_runner is None:
            self._calls_runner = Runner(self._jit, self._image("calls", calls_text()))
        return self._calls_runner

    def frames(self) -> Frames:
        """Return what makes builtins of Python functions."""
        if self._frames is None:
            from burn_cube.runtime.frames import Frames  # most programs are over before

            self._frames = Frames(self._jit)
        return self._frames

    def sequence(self, calls: Sequence[NativeCall]) -> NativeCalls:
        """Return launches that one native call makes."""
        return NativeCalls(self, calls)

    def event(self) -> HostEvent:
        """Return this moment."""
        return HostEvent()

    def note_fault(self, kernel: Kernel, words: str) -> None:
        """Keep what a kernel did wrong, and with which arguments, for the next `sync`."""
        code, index, length = self.fault[:3]
        self.fault[0] = 0
        made = recorded_fault(kernel, code, index, length, words, planes=True, math=True)
        self._faulted.append(made)

    def sync(self) -> None:
        """Raise the first fault since the last `sync`."""
        if self._faulted:
            error, self._faulted = self._faulted[0], []
            raise error

    @staticmethod
    def flush() -> None:
        """Bring out what kernels printed."""
        ctypes.CDLL(None).fflush(None)


def cost_of(kernel: Kernel) -> float:
    """Return the rough cost of one unit; a loop counts as eight rounds."""

    def region_cost(ops: list[Op]) -> int:
        total = 0
        for op in ops:
            inner = sum(region_cost(region.ops) for region in op.regions)
            weight = 15 if op.name in MATH or op.name in ("pow", "div", "mod", "floordiv") else 1
            total += (8 * inner if op.name in ("for", "while") else inner) + weight
        return total

    names = {op.name for op in walk(kernel.body)}
    slow = names & {"for", "while", "atomic", "atomic_cas", "barrier", "plane", "print"}
    return max(1, region_cost(kernel.body.ops)) * (IN_LOOP if slow else IN_MAP)


def is_written_in_vectors(kernel: Kernel) -> bool:
    """Return whether units are whole tasks that read vectors: nothing is left to fill them with."""
    return kernel.cube_size == 1 and any(
        op.name == "load" and isinstance(op.type, Vector) for op in walk(kernel.body)
    )


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


class CpuPlugin:
    """The entry point `cpu` of `burn.cube_runtimes`."""

    api_version = API_VERSION

    def count(self) -> int:
        """Return 1: there is one processor."""
        return 1

    def create(self, index: int) -> CpuRuntime:
        """Return the runtime of the processor.

        Raises:
            BackendLoadError: llvmlite is not installed or does not load.
        """
        try:
            return CpuRuntime()
        except (ImportError, OSError) as cause:
            raise BackendLoadError(
                "cpu", "the cpu runtime compiles with llvmlite", got=str(cause),
                remedy="Install it: uv sync --inexact --package burn-cube --extra cpu.",
            ) from cause  # fmt: skip


plugin = CpuPlugin()
