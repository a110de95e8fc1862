"""CUDA devices, through cupy: its driver calls, its NVRTC, its streams; memory is our own pool's.

A launch writes its arguments into one block of memory to which the driver's pointers were made
when the kernel was loaded, and makes one driver call. Everything of a device runs in one stream,
`CudaRuntime.stream`, which other libraries may use as well.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from os import getpid
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_cube.emit.c_like import Source, emit
from burn_cube.emit.cuda import Architecture, Cuda
from burn_cube.emit.cuda_groups import GROUPS_OF, has_groups
from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, walk
from burn_cube.runtime.arguments import (
    Entry,
    aligned,
    code_of,
    describe,
    flattener,
    packer,
    vectors_of,
    wrapped,
)
from burn_cube.runtime.base import API_VERSION, Grid, Program, Properties
from burn_cube.runtime.cuda_calls import CudaCall, CudaCalls
from burn_cube.runtime.cuda_events import CudaEvent, PinnedRead
from burn_cube.runtime.queued import QueuedRuntime
from burn_cube.types import Memory
from burn_std import BackendLoadError, DeviceLostError
from burn_std.dtypes import PLAIN, float32, float64, int32, int64, uint32, uint64

if TYPE_CHECKING:
    from burn_cube.runtime.cuda_graph import CudaGraph

REMEDY = (
    "Install it: uv sync --inexact --package burn-cube --extra cuda13 (or cuda12). "
    "It drives NVIDIA's GPUs"
)
# What is larger goes straight to or from the caller's memory: pinning so much costs more. Of what
# is smaller than STAGED the driver takes a copy itself.
PINNED, STAGED = 16 << 20, 64 << 10
# Copies to the device that may be on their way.
WAYS = 8
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
# Launches that an error of the device names: one of them is to blame.
SUSPECTS = 8


class _Failing:
    """Turns an error of the device into one that names the launches before it."""

    __slots__ = ("_op", "_runtime")

    def __init__(self, runtime: CudaRuntime, op: str) -> None:
        self._runtime = runtime
        self._op = op

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._runtime.errors):
            raise self._runtime.lost(self._op, error) from error


class CudaProgram(Program):
    """A loaded kernel with its block of arguments.

    Attributes:
        kernel: what was compiled.
        source: the text that was compiled, and what belongs to it.
        function: the driver's handle.
        params: address of the driver's array of pointers into the block.
    """

    def __init__(self, runtime: CudaRuntime, source: Source, function: int) -> None:
        self.kernel = source.kernel
        self.source = source
        self.function = function
        self._runtime = runtime
        self._flatten = flattener(source.kernel, source.entries)
        self._faults = any(entry.kind == "fault" for entry in source.entries)
        # Eight bytes an argument, so that each one is aligned.
        self._struct = struct.Struct("<" + "".join(map(_slot, source.entries)))
        count = len(source.entries)
        self._block = ctypes.create_string_buffer(max(8 * count, 8))
        start = ctypes.addressof(self._block)
        self._pointers = (ctypes.c_void_p * max(count, 1))(*range(start, start + 8 * count, 8))
        self.params = ctypes.addressof(self._pointers)
        self._write = packer(source.kernel, source.entries, self._struct.pack_into, self._block)
        self._vectors = vectors_of(source.kernel)
        # What follows the grid in every launch.
        self._start = partial(runtime.driver_api.launchKernel, function)
        self._rest = (
            *source.kernel.cube_dim, source.shared, runtime.stream.ptr, self.params, 0,
        )  # fmt: skip

    def pack(self, args: Sequence[Any]) -> None:
        """Write the arguments of a launch into the block; the runtime's lock is held."""
        number, record = 0, 0
        if self._faults:
            number, record = self._runtime.register(self.source, args)
        try:
            self._write(args, number, record)
        except (struct.error, OverflowError):
            # A float for an integer, or a number beyond its dtype.
            values = self._flatten(args, _pointer, number, record)
            values = wrapped(self.source.entries, values)
            self._struct.pack_into(self._block, 0, *values)

    def launch(self, cubes: Grid, args: Sequence[Any]) -> None:
        """Put the kernel into the stream."""
        runtime = self._runtime
        # The tests of `alive` and `use` and the work of `pack`, without their calls.
        if getpid() != runtime.process:
            runtime.alive()
        if self._vectors:
            aligned(self.kernel, self._vectors, args)
        with runtime.lock:
            if runtime.several or not runtime.thread.ready:
                runtime.use()
            if self._faults:
                self.pack(args)
            else:
                try:
                    self._write(args)
                except (struct.error, OverflowError):
                    self.pack(args)
            runtime.recent.append((self, cubes))
            try:
                self._start(*cubes, *self._rest)
            except (*runtime.errors, OverflowError) as error:
                raise self._refused(cubes, error) from error

    def prepared(self, cubes: Grid, args: Sequence[Any]) -> CudaCall:
        """Return a launch for a list of them."""
        with self._runtime.lock:
            self.pack(args)
            words = self._block.raw[: self._struct.size]
            number = self._runtime.launches if self._faults else 0
        return CudaCall(
            self.function, words, cubes, self.source.shared, self,
            describe(self.kernel, args) if self._faults else "", number,
        )  # fmt: skip

    @property
    def prints(self) -> bool:
        """Whether a launch may write to the terminal."""
        return any(op.name == "print" for op in walk(self.kernel.body))

    @property
    def places(self) -> list[int]:
        """The word of each parameter that is its address, or the number."""
        return [
            at for at, entry in enumerate(self.source.entries)
            if entry.kind in ("pointer", "scalar")
        ]  # fmt: skip

    @property
    def dtypes(self) -> list[Any]:
        """The dtype of each parameter that is a number, None for memory."""
        return [None if isinstance(p.type, Memory) else p.type for p in self.kernel.params]

    def _refused(self, cubes: Grid, error: Exception) -> Exception:
        """Return the error of a launch that the driver refused at once."""
        name, limits = self.kernel.name, self._runtime.max_cubes
        if any(n > limit for n, limit in zip(cubes, limits, strict=True)):
            rule = f"a launch on CUDA has at most {limits} cubes along x, y and z"
            return LaunchError(name, rule, got=cubes)
        if "ILLEGAL" in str(error) or "LAUNCH_FAILED" in str(error):
            # An earlier kernel failed; the driver tells whoever calls next.
            return self._runtime.lost(name, error)
        return LaunchError(name, f"{self._runtime.name} takes the launch", got=f"{error}, {cubes}")


def _slot(entry: Entry) -> str:
    code = "Q" if entry.dtype is None else code_of(entry.dtype)
    pad = 8 - struct.calcsize("<" + code)
    return code + (f"{pad}x" if pad else "")


def _pointer(array: Any) -> int:
    return int(array.pointer)


class _Thread(threading.local):
    """Whether the device is the current one of a thread."""

    ready = False


class CudaRuntime(QueuedRuntime):
    """One CUDA device.

    Attributes:
        api: cupy's calls of the CUDA runtime.
        driver_api: cupy's calls of the CUDA driver.
        stream: the cupy stream in which everything runs.
        errors: what cupy raises when a call fails.
        events: events that can be recorded again.
        several: there are more devices than this one.
        thread: whether the device is the current one of the running thread.
        recent: the last launches, for errors that come later.
        max_cubes: cubes of a launch along x, y and z at most.
    """

    def __init__(self, index: int) -> None:
        import cupy  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from cupy.cuda import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            driver,
            nvrtc,
            runtime,
        )

        self._cupy = cupy
        self._nvrtc = nvrtc
        self.api = runtime
        self.driver_api = driver
        self.errors = (runtime.CUDARuntimeError, driver.CUDADriverError)
        self.index = index
        self.several = runtime.getDeviceCount() > 1
        self.thread = _Thread()
        runtime.setDevice(index)
        runtime.free(0)  # makes the context
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.events: list[int] = []
        self.recent: deque[tuple[Program, Grid]] = deque(maxlen=SUSPECTS)
        self._shared: list[Any] = []
        self._ways: deque[tuple[CudaEvent, Any]] = deque()
        facts = runtime.getDeviceProperties(index)
        self.capability = int(facts["major"]) * 10 + int(facts["minor"])
        optin = runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin
        shared = int(runtime.deviceGetAttribute(optin, index))
        grid = facts["maxGridSize"]
        self.max_cubes: Grid = (int(grid[0]), int(grid[1]), int(grid[2]))
        super().__init__("cuda" if index == 0 else f"cuda:{index}", properties_of(facts, shared))
        self._dialect = Cuda(Architecture(self.capability, shared))
        known = [int(arch) for arch in nvrtc.getSupportedArchs()]
        fitting = [arch for arch in known if arch <= self.capability]
        self._target = max(fitting) if fitting else min(known)

    @property
    def driver(self) -> str:
        """Versions of the driver and the compiler, and the architecture."""
        major, minor = self._nvrtc.getVersion()
        version = self.api.driverGetVersion()
        return f"{version} nvrtc {major}.{minor} sm_{self.capability}"

    def use(self) -> None:
        """Make the device the current one of this thread; the first time where it is alone."""
        if self.several or not self.thread.ready:
            self.api.setDevice(self.index)
            self.thread.ready = True

    def failing(self, op: str) -> _Failing:
        """Return a context in which an error of the device names the launches before it."""
        return _Failing(self, op)

    def lost(self, op: str, error: BaseException) -> DeviceLostError:
        """Return the error of a device that failed; it names the last launches, latest first."""
        texts = [
            f"{program.kernel.name} on cubes {cubes}" for program, cubes in reversed(self.recent)
        ]
        self.gone = DeviceLostError(
            op, f"{self.name} works", got=f"{error} behind {', '.join(texts) or 'no launch'}",
            remedy="Start a new process; values on the device are gone. "
            "Launches with bounds='validated' find wild accesses",
        )  # fmt: skip
        return self.gone

    # --- kernels ---------------------------------------------------------------------------

    def load(self, kernel: Kernel) -> Program:
        """Compile a kernel, or take it from a cache."""
        self.alive()
        options = ["--std=c++17", "--use_fast_math" if kernel.fast_math else "--fmad=false"]
        return self.find(kernel, options, lambda: emit(kernel, self._dialect))

    def _compile(self, source: Source, options: Sequence[str]) -> tuple[Program, bytes]:
        nvrtc = self._nvrtc
        # Code for this very chip, or PTX where the chip is newer than the compiler.
        exact = self._target == self.capability
        arch = f"--gpu-architecture={'sm' if exact else 'compute'}_{self._target}"
        if self.capability == GROUPS_OF and has_groups(source.kernel):
            # What only this architecture has, and none after it.
            arch += "a"
        program = nvrtc.createProgram(source.text, f"{source.entry}.cu", [], [])
        try:
            nvrtc.compileProgram(program, (arch, *options))
            image = nvrtc.getCUBIN(program) if exact else nvrtc.getPTX(program) + b"\0"
        except nvrtc.NVRTCError as error:
            raise LaunchError(
                source.kernel.name, f"{self.name} compiles the kernel",
                got=f"{error}\n{nvrtc.getProgramLog(program)}\n{source.text}",
            ) from error  # fmt: skip
        finally:
            nvrtc.destroyProgram(program)
        return self._linked(source, image), image

    def _restore(self, source: Source, options: Sequence[str], image: bytes) -> Program | None:
        try:
            return self._linked(source, image)
        except self.errors:
            return None

    def _linked(self, source: Source, image: bytes) -> CudaProgram:
        self.use()
        # Never unloaded: a kernel lives as long as its device.
        module = self.driver_api.moduleLoadData(image)
        function = self.driver_api.moduleGetFunction(module, source.entry)
        if source.shared:
            self.driver_api.funcSetAttribute(function, MAX_DYNAMIC_SHARED, source.shared)
        return CudaProgram(self, source, function)

    def graph(self, launches: Sequence[tuple[Program, Grid, Sequence[Any]]]) -> CudaGraph:
        """Return launches as one graph."""
        from burn_cube.runtime.cuda_graph import CudaGraph

        return CudaGraph(self, launches)

    def sequence(
        self, calls: Sequence[CudaCall], before: Sequence[Sequence[int]] | None = None
    ) -> CudaCalls:  # fmt: skip
        """Return launches that are made together.

        Args:
            calls: the launches.
            before: of each one those that it has to wait for; None if that is all before it.
        """
        return CudaCalls(self, calls, before)

    # --- memory ----------------------------------------------------------------------------

    def alloc(self, size: int) -> int:
        """Return the address of new memory."""
        self.alive()
        self.use()
        try:
            return int(self.api.malloc(size))
        except self.errors as error:
            if getattr(error, "status", None) == OUT_OF_MEMORY:
                raise MemoryError(str(error)) from error
            raise

    def free(self, handle: Any) -> None:
        """Give memory back."""
        self.use()
        self.api.free(handle)

    def part(self, handle: Any, offset: int, size: int) -> int:
        """Return the address of a part."""
        return int(handle) + offset

    def address(self, handle: Any) -> int:
        """Return the address: the handle is one."""
        return int(handle)

    def pinned(self, size: int) -> Any:
        """Return memory of the host that the device copies to without a detour."""
        return self._cupy.cuda.alloc_pinned_memory(size)

    def shared(self, size: int) -> tuple[int, memoryview]:
        """Return pinned memory of the host, which the device finds at the same address."""
        self.alive()
        self.use()
        pinned = self.pinned(size)
        self._shared.append(pinned)
        view = memoryview((ctypes.c_char * size).from_address(pinned.ptr)).cast("B")
        view[:] = bytes(size)
        return int(pinned.ptr), view

    def write(self, handle: Any, offset: int, data: memoryview) -> None:
        """Copy bytes from the host."""
        self.alive()
        self.use()
        host = np.frombuffer(data, np.uint8)
        # Nobody else may note what is put into the stream just now.
        with self.lock, self.failing("write"):
            if STAGED < host.nbytes <= PINNED:
                self._staged(handle + offset, host)
                return
            # The driver has taken pageable memory when the call returns.
            self.api.memcpyAsync(
                handle + offset, host.ctypes.data, host.nbytes, TO_DEVICE, self.stream.ptr
            )

    def _staged(self, target: int, host: np.ndarray[Any, Any]) -> None:
        """Copy through pinned memory: the host goes on while the device is still busy before it."""
        ways = self._ways
        while ways and (len(ways) == WAYS or ways[0][0].done()):
            ways.popleft()[0].wait()
        pinned = self.pinned(host.nbytes)
        ctypes.memmove(pinned.ptr, host.ctypes.data, host.nbytes)
        self.api.memcpyAsync(target, pinned.ptr, host.nbytes, TO_DEVICE, self.stream.ptr)
        # The memory must not serve another copy while this one is under way.
        ways.append((CudaEvent(self), pinned))

    def read(self, handle: Any, offset: int, out: memoryview) -> None:
        """Copy bytes to the host, after everything before."""
        if out.nbytes <= PINNED:
            self.read_async(handle, offset, out).wait()
            return
        self.alive()
        self.use()
        host = np.frombuffer(out, np.uint8)
        with self.failing("read"):
            self.api.memcpyAsync(
                host.ctypes.data, handle + offset, host.nbytes, TO_HOST, self.stream.ptr
            )
            self.api.streamSynchronize(self.stream.ptr)

    def read_async(self, handle: Any, offset: int, out: memoryview) -> PinnedRead:
        """Start a copy to the host."""
        self.alive()
        self.use()
        with self.failing("read"):
            return PinnedRead(self, handle + offset, out)

    def copy(self, target: Any, at: int, source: Any, start: int, size: int) -> None:
        """Copy bytes on the device."""
        self.alive()
        self.use()
        with self.failing("copy"):
            self.api.memcpyAsync(target + at, source + start, size, ON_DEVICE, self.stream.ptr)

    # --- order -----------------------------------------------------------------------------

    def event(self) -> CudaEvent:
        """Return an event behind what is in the stream."""
        self.use()
        with self.failing("event"):
            return CudaEvent(self)

    def sync(self) -> None:
        """Wait for everything before; raises what a kernel did wrong."""
        self.alive()
        self.use()
        with self.failing("sync"):
            self.api.streamSynchronize(self.stream.ptr)
        self.check_faults()
        self.recent.clear()


def properties_of(facts: dict[str, Any], shared: int) -> Properties:
    """Return the properties of a device by what CUDA says of it."""
    name = facts["name"]
    return Properties(
        name=name.decode() if isinstance(name, bytes) else str(name),
        kind="gpu",
        units=int(facts["multiProcessorCount"]),
        memory=int(facts["totalGlobalMem"]),
        max_cube=int(facts["maxThreadsPerBlock"]),
        shared_bytes=shared,
        alignment=256,
        plane_dim=32,
        dtypes=frozenset(PLAIN),
        atomics=frozenset({int32, uint32, int64, uint64, float32, float64}),
        index=int32,
        capabilities=frozenset(
            {"fp64", "print", "float_atomics", "planes", "graphs"}
            | ({"tensor_cores"} if int(facts["major"]) >= 8 else set())
            | ({"groups"} if int(facts["major"]) * 10 + int(facts["minor"]) == GROUPS_OF else set())
        ),
    )


class CudaPlugin:
    """The entry point `cuda` of `burn.cube_runtimes`."""

    api_version = API_VERSION

    def count(self) -> int:
        """Return the number of devices, 0 without a driver."""
        try:
            from cupy.cuda import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
                runtime,
            )
        except ImportError as error:
            raise BackendLoadError(
                "cuda", "the cuda runtime needs cupy", got=str(error), remedy=REMEDY
            ) from error
        try:
            return int(runtime.getDeviceCount())
        except runtime.CUDARuntimeError:  # no driver, or one older than the library
            return 0

    def create(self, index: int) -> CudaRuntime:
        """Return a device."""
        count = self.count()
        if index >= count:
            rule = "NVIDIA's driver finds the device"
            raise BackendLoadError("cuda", rule, got=f"{count} devices", remedy=REMEDY)
        return CudaRuntime(index)


plugin = CudaPlugin()
