"""OpenCL devices of any vendor, through pyopencl; PoCL makes one of the processor.

One in-order queue a device. Arguments are set again only where they changed; parts of memory are
sub-buffers, and an array that starts elsewhere brings its offset as an argument.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_cube.emit.c_like import Source, emit
from burn_cube.emit.opencl import Capabilities, OpenCl
from burn_cube.errors import LaunchError, OutOfMemoryError
from burn_cube.ir import Kernel, walk
from burn_cube.runtime.arguments import (
    aligned,
    code_of,
    describe,
    flattener,
    vectors_of,
    wrapped,
)
from burn_cube.runtime.base import API_VERSION, Program, Properties
from burn_cube.runtime.opencl_calls import OpenClCall, OpenClCalls
from burn_cube.runtime.queued import QueuedRuntime
from burn_cube.types import Memory
from burn_std import BackendLoadError, DeviceLostError
from burn_std.dtypes import PLAIN, float32, float64, int32, int64, uint32, uint64

REMEDY = (
    "Install it: uv sync --inexact --package burn-cube --extra opencl. "
    "A device also needs a driver (ICD), for example PoCL"
)


class OpenClEvent:
    """A point of the queue."""

    __slots__ = ("_event", "_runtime")

    def __init__(self, event: Any, runtime: OpenClRuntime) -> None:
        self._event = event
        self._runtime = runtime

    def done(self) -> bool:
        """Return whether the device passed it."""
        return bool(self._event.command_execution_status <= 0)

    def wait(self) -> None:
        """Wait until the device passed it."""
        try:
            self._event.wait()
        except self._runtime.cl.Error as error:
            raise self._runtime.lost("wait", error) from error

    def seconds_since(self, other: OpenClEvent) -> float:
        """Return the time of the device between two events."""
        return float(self._event.profile.end - other._event.profile.end) * 1e-9


class OpenClProgram(Program):
    """A kernel object of the driver, with the arguments that are set on it now.

    Attributes:
        kernel: what was compiled.
        source: the text that was compiled, and what belongs to it.
    """

    def __init__(self, runtime: OpenClRuntime, source: Source, raw: Any) -> None:
        self.kernel = source.kernel
        self.source = source
        self.raw = raw
        self._runtime = runtime
        self._flatten = flattener(source.kernel, source.entries)
        self._faults = any(entry.kind == "fault" for entry in source.entries)
        self._packers = [
            None if entry.dtype is None else struct.Struct("<" + code_of(entry.dtype))
            for entry in source.entries
        ]
        self._last: list[Any] = [None] * len(source.entries)
        self.prints = any(op.name == "print" for op in walk(source.kernel.body))
        self._vectors = vectors_of(source.kernel)

    def launch(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Put the kernel into the queue."""
        runtime = self._runtime
        runtime.alive()
        if self._vectors:
            aligned(self.kernel, self._vectors, args)
        with runtime.lock:
            number, fault = 0, None
            if self._faults:
                number, record = runtime.register(self.source, args)
                fault = (record, 0)
            self._set(self._flatten(args, _place, number, fault))
            local = self.kernel.cube_dim
            size = (cubes[0] * local[0], cubes[1] * local[1], cubes[2] * local[2])
            try:
                runtime.cl.enqueue_nd_range_kernel(runtime.queue, self.raw, size, local)
            except runtime.cl.Error as error:
                raise self.refused(cubes, str(error)) from error

    # --- lists of launches -----------------------------------------------------------------

    def prepared(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> OpenClCall:
        """Return a launch for a list of them."""
        runtime = self._runtime
        number, fault, about = 0, None, ""
        if self._faults:
            about = describe(self.kernel, args)
            with runtime.lock:
                number, record = runtime.register(self.source, args)
            fault = (record, 0)
        words = bytearray()
        sizes: list[int] = []
        items: dict[int, int] = {}
        values = self._flatten(args, _place, number, fault)
        for value, packer, entry in zip(values, self._packers, self.source.entries, strict=True):
            if packer is None:
                handle, offset = value
                item = args[entry.param].dtype.itemsize if entry.param >= 0 else 1
                items[len(sizes)] = item
                words += struct.pack("<qq", handle.int_ptr, offset)
                sizes += [8, 8]
            else:
                try:
                    data = packer.pack(value)
                except (struct.error, OverflowError):
                    value = wrapped([entry], [value])[0]
                    data = packer.pack(value)
                words += data.ljust(8, b"\0")
                sizes.append(len(data))
        return OpenClCall(self, bytes(words), cubes, 0, items, sizes, about, number)

    @property
    def places(self) -> list[int]:
        """The first word of each parameter."""
        found: dict[int, int] = {}
        at = 0
        for entry in self.source.entries:
            if entry.kind in ("pointer", "scalar"):
                found[entry.param] = at
            at += 2 if entry.dtype is None else 1
        return [found[k] for k in range(len(self.kernel.params))]

    @property
    def dtypes(self) -> list[Any]:
        """The dtype of each parameter that is a number, None for memory."""
        types = [p.type for p in self.kernel.params]
        return [None if isinstance(t, Memory) else t for t in types]

    def copied(self) -> Any:
        """Return a kernel object of the driver with arguments of its own."""
        cl = self._runtime.cl
        return cl.Kernel(self.raw.get_info(cl.kernel_info.PROGRAM), self.source.entry)

    def _set(self, values: list[Any]) -> None:
        raw, last = self.raw, self._last
        slot = 0
        for number, (value, packer) in enumerate(zip(values, self._packers, strict=True)):
            old = last[number]
            if packer is None:
                handle, offset = value
                if old is None or old[0] is not handle:
                    raw.set_arg(slot, handle)
                if old is None or old[1] != offset:
                    raw.set_arg(slot + 1, offset.to_bytes(8, "little"))
                slot += 2
            else:
                # -0.0 equals 0.0, so floats are set each time.
                if old is None or old != value or type(value) is float:
                    try:
                        data = packer.pack(value)
                    except (struct.error, OverflowError):
                        value = wrapped(self.source.entries, values)[number]
                        data = packer.pack(value)
                    raw.set_arg(slot, data)
                slot += 1
            last[number] = value

    def refused(self, cubes: tuple[int, int, int], words: str) -> Exception:
        """Return the error of a launch that the driver does not take; it says why in words."""
        if "ALLOCATION" in words or "OUT_OF" in words:
            rule = f"{self._runtime.name} has memory for the launch"
            return OutOfMemoryError(self.kernel.name, rule, got=words)
        got = f"{words} for cubes {cubes} of {self.kernel.cube_dim}"
        return LaunchError(self.kernel.name, f"{self._runtime.name} takes the launch", got=got)


def _place(array: Any) -> tuple[Any, int]:
    return array.storage.handle, array.offset // array.dtype.itemsize


class OpenClRuntime(QueuedRuntime):
    """One OpenCL device.

    Attributes:
        cl: the module pyopencl.
        context: its context.
        queue: its queue; other code may enqueue on it as well.
        released: how many buffers were given back.
    """

    def __init__(self, name: str, raw: Any) -> None:
        import pyopencl as cl

        self.cl = cl
        self._raw = raw
        self.released = 0
        self.context = cl.Context([raw])
        self.queue = cl.CommandQueue(
            self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        super().__init__(name, properties_of(raw))
        extensions = raw.extensions.split()
        self._dialect = OpenCl(
            Capabilities(
                fp64="fp64" in self.properties.capabilities,
                atomics_64="cl_khr_int64_base_atomics" in extensions,
                atomics_64_extended="cl_khr_int64_extended_atomics" in extensions,
                shared_memory=self.properties.shared_bytes,
                max_cube_size=self.properties.max_cube,
                processor=self.properties.kind == "cpu",
            )
        )
        exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        self._options = ["-cl-std=CL1.2"]
        if raw.single_fp_config & exact:
            self._options.append("-cl-fp32-correctly-rounded-divide-sqrt")

    @property
    def driver(self) -> str:
        """Versions of the driver and of OpenCL."""
        return f"{self._raw.driver_version} {self._raw.version} {self._raw.platform.version}"

    # --- kernels ---------------------------------------------------------------------------

    def load(self, kernel: Kernel) -> Program:
        """Compile a kernel, or take it from a cache."""
        self.alive()
        options = [*self._options, *(["-cl-fast-relaxed-math"] if kernel.fast_math else [])]
        return self.find(kernel, options, lambda: emit(kernel, self._dialect))

    def _compile(self, source: Source, options: Sequence[str]) -> tuple[Program, bytes]:
        cl = self.cl
        try:
            built = self._built(cl.Program(self.context, source.text), options)
        except cl.Error as error:
            raise LaunchError(
                source.kernel.name, f"{self.name} compiles the kernel",
                got=f"{error}\n{source.text}",
            ) from error  # fmt: skip
        (image,) = built.get_info(cl.program_info.BINARIES)
        return OpenClProgram(self, source, cl.Kernel(built, source.entry)), bytes(image)

    def _built(self, program: Any, options: Sequence[str]) -> Any:
        with warnings.catch_warnings():
            # Remarks of the driver's compiler on good code are of no use to anybody.
            warnings.simplefilter("ignore", self.cl.CompilerWarning)
            # pyopencl's own cache knows neither bounds nor damaged entries.
            return program.build(list(options), cache_dir=False)

    def _restore(self, source: Source, options: Sequence[str], image: bytes) -> Program | None:
        cl = self.cl
        try:
            built = self._built(cl.Program(self.context, [self._raw], [image]), options)
            return OpenClProgram(self, source, cl.Kernel(built, source.entry))
        except cl.Error:
            return None

    def sequence(self, calls: Sequence[OpenClCall]) -> OpenClCalls:
        """Return launches that are put together beforehand."""
        return OpenClCalls(self, calls)

    # --- memory ----------------------------------------------------------------------------

    def alloc(self, size: int) -> Any:
        """Return a buffer; drivers allocate at first use, so it is used here."""
        cl = self.cl
        self.alive()
        try:
            made = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)
            flags = cl.mem_migration_flags.CONTENT_UNDEFINED
            cl.enqueue_migrate_mem_objects(self.queue, [made], flags=flags)
        except cl.Error as error:
            raise MemoryError(str(error)) from error
        return made

    def free(self, handle: Any) -> None:
        """Give a buffer back."""
        self.released += 1
        handle.release()

    def part(self, handle: Any, offset: int, size: int) -> Any:
        """Return a sub-buffer; the offset is a multiple of the alignment."""
        return handle.get_sub_region(offset, size)

    def address(self, handle: Any) -> int:
        """Return 0: OpenCL has no addresses."""
        return 0

    def write(self, handle: Any, offset: int, data: memoryview) -> None:
        """Copy bytes from the host."""
        self.alive()
        host = np.frombuffer(data, np.uint8)
        self.cl.enqueue_copy(self.queue, handle, host, dst_offset=offset, is_blocking=True)

    def read(self, handle: Any, offset: int, out: memoryview) -> None:
        """Copy bytes to the host, after everything before."""
        self.read_async(handle, offset, out).wait()

    def read_async(self, handle: Any, offset: int, out: memoryview) -> OpenClEvent:
        """Put a copy to the host into the queue."""
        self.alive()
        host = np.frombuffer(out, np.uint8)
        event = self.cl.enqueue_copy(self.queue, host, handle, src_offset=offset, is_blocking=False)
        self.queue.flush()
        return OpenClEvent(event, self)

    def copy(self, target: Any, at: int, source: Any, start: int, size: int) -> None:
        """Copy bytes on the device."""
        self.alive()
        self.cl.enqueue_copy(
            self.queue, target, source, src_offset=start, dst_offset=at, byte_count=size
        )

    # --- order -----------------------------------------------------------------------------

    def event(self) -> OpenClEvent:
        """Return an event behind what is in the queue."""
        return OpenClEvent(self.cl.enqueue_marker(self.queue), self)

    def sync(self) -> None:
        """Wait for everything before; raises what a kernel did wrong."""
        self.alive()
        try:
            self.queue.finish()
        except self.cl.Error as error:
            raise self.lost("sync", error) from error
        self.check_faults()

    def lost(self, op: str, error: Exception) -> DeviceLostError:
        """Return the error of a device that failed."""
        self.gone = DeviceLostError(
            op, f"{self.name} works", got=str(error),
            remedy="Start a new process; values on the device are gone",
        )  # fmt: skip
        return self.gone


def properties_of(raw: Any) -> Properties:
    """Return what a pyopencl device says of itself."""
    import pyopencl as cl

    extensions = raw.extensions.split()
    fp64 = "cl_khr_fp64" in extensions or bool(getattr(raw, "double_fp_config", 0))
    atomics = {int32, uint32, float32}
    if "cl_khr_int64_base_atomics" in extensions:
        atomics |= {int64, uint64, *([float64] if fp64 else [])}
    gpu = bool(raw.type & cl.device_type.GPU)
    return Properties(
        name=f"{raw.name.strip()} ({raw.platform.name.strip()})",
        kind="gpu" if gpu else "cpu",
        units=int(raw.max_compute_units),
        memory=int(raw.global_mem_size),
        max_cube=int(raw.max_work_group_size),
        shared_bytes=int(raw.local_mem_size),
        alignment=max(int(raw.mem_base_addr_align) // 8, 1),
        plane_dim=32,
        dtypes=frozenset(PLAIN) - (frozenset() if fp64 else {float64}),
        atomics=frozenset(atomics),
        index=int32,
        capabilities=frozenset({"print", "float_atomics", *(["fp64"] if fp64 else [])}),
    )


class OpenClPlugin:
    """The entry point `opencl`: all devices of all drivers, GPUs, then accelerators, then CPUs."""

    api_version = API_VERSION

    def _devices(self) -> list[Any]:
        try:
            import pyopencl as cl
        except ImportError as error:
            raise BackendLoadError(
                "opencl", "the opencl runtime needs pyopencl", got=str(error), remedy=REMEDY
            ) from error
        try:
            platforms = cl.get_platforms()
        except cl.Error:  # the loader finds no driver
            return []
        found = []
        for platform in platforms:
            try:
                found += platform.get_devices()
            except cl.Error:  # a driver without a device
                continue
        kinds = cl.device_type
        rank = {kinds.GPU: 0, kinds.ACCELERATOR: 1}
        return sorted(found, key=lambda raw: rank.get(raw.type & ~kinds.DEFAULT, 2))

    def count(self) -> int:
        """Return the number of devices."""
        return len(self._devices())

    def create(self, index: int) -> OpenClRuntime:
        """Return a device."""
        found = self._devices()
        if index >= len(found):
            rule = "an OpenCL driver finds the device"
            raise BackendLoadError("opencl", rule, got=f"{len(found)} devices", remedy=REMEDY)
        return OpenClRuntime("opencl" if index == 0 else f"opencl:{index}", found[index])


plugin = OpenClPlugin()
