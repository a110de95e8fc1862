"""OpenCL devices of any vendor, through pyopencl.

One in-order queue a device. Arguments are set again only where they changed; slices of the pool
are sub-buffers that are made once.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_cube.emit.c_like import Source, emit
from burn_cube.emit.opencl import Capabilities, OpenCl
from burn_cube.errors import LaunchError, OutOfMemoryError
from burn_cube.ir import Kernel
from burn_cube.runtime.arguments import Entry, checker, flattener
from burn_cube.runtime.cache import disk_cache, key_of
from burn_cube.runtime.interface import (
    API_VERSION,
    Buffer,
    Device,
    DeviceArray,
    Dims,
    Event,
    Loaded,
    Properties,
)
from burn_std import BackendLoadError, DeviceError, DeviceLostError
from burn_std.dtypes import PLAIN, bfloat16, bool_, float16, float64

if TYPE_CHECKING:
    import numpy as np

REMEDY = "Install burn-cube[opencl] and a driver (an ICD) of the device, for example PoCL"


class OpenClEvent:
    """A point of the queue."""

    __slots__ = ("_event",)

    def __init__(self, event: Any) -> None:
        self._event = event

    def done(self) -> bool:
        """Return whether the device passed it."""
        return bool(self._event.command_execution_status <= 0)

    def wait(self) -> None:
        """Wait until the device passed it."""
        self._event.wait()

    def since(self, earlier: OpenClEvent) -> float:
        """Return the seconds between two passed events."""
        return float(self._event.profile.end - earlier._event.profile.end) * 1e-9


class _Code:
    """A kernel object of the driver, with the arguments that are set on it now."""

    __slots__ = ("check", "faults", "flatten", "kernel", "last", "local", "packers")

    def __init__(self, kernel: Any, made: Source, device: OpenClDevice) -> None:
        self.kernel = kernel
        self.check = checker(made.kernel, device)
        self.flatten = flattener(made.kernel, made.entries)
        self.faults = any(entry.kind == "fault" for entry in made.entries)
        self.local = made.kernel.cube_dim
        self.packers = [packer(entry) for entry in made.entries]
        self.last: list[Any] = [None] * len(made.entries)


def packer(entry: Entry) -> struct.Struct | None:
    """Return what packs a scalar entry into bytes; None for a pointer."""
    if entry.dtype is None:
        return None
    dtype = entry.dtype
    if dtype is float16:
        return struct.Struct("<e")
    if dtype is bfloat16:
        return struct.Struct("<H")
    if dtype.is_float:
        return struct.Struct("<d" if dtype.bits == 64 else "<f")
    if dtype is bool_:
        return struct.Struct("<?")
    code = {8: "b", 16: "h", 32: "i", 64: "q"}[dtype.bits]
    return struct.Struct("<" + (code if dtype.is_signed else code.upper()))


class OpenClDevice(Device):
    """One OpenCL device.

    Attributes:
        context: the pyopencl context.
        queue: the pyopencl queue; other code may enqueue on it as well.
    """

    def __init__(self, name: str, raw: Any) -> None:
        import pyopencl as cl

        self._cl = cl
        self._raw = raw
        self.context = cl.Context([raw])
        self.queue = cl.CommandQueue(
            self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        properties = properties_of(raw)
        super().__init__(name, properties)
        self._made: dict[str, Loaded] = {}
        extensions = raw.extensions.split()
        self._dialect = OpenCl(
            Capabilities(
                fp64=float64 in properties.dtypes,
                atomics_64="cl_khr_int64_base_atomics" in extensions,
                atomics_64_extended="cl_khr_int64_extended_atomics" in extensions,
                shared_memory=properties.shared_memory,
                max_cube_size=properties.max_cube_size,
            )
        )
        config = raw.single_fp_config
        exact = bool(config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)
        self._options = ["-cl-std=CL1.2"]
        self._options += ["-cl-fp32-correctly-rounded-divide-sqrt"] if exact else []

    # --- kernels ---------------------------------------------------------------------------

    def load(self, kernel: Kernel) -> Loaded:
        """Compile a kernel, or find it in memory or on disk."""
        made = emit(kernel, self._dialect)
        options = [*self._options, *(["-cl-fast-relaxed-math"] if kernel.fast_math else [])]
        key = key_of(made.text, " ".join(options), self.properties.name, self.properties.driver)
        with self.lock:
            found = self._made.get(key)
            if found is None:
                program, cached = self._program(made, options, key)
                code = _Code(getattr(program, made.entry), made, self)
                found = Loaded(made.kernel, code, made.sites, made.text, cached)
                self._made[key] = found
            return found

    def _program(self, made: Source, options: list[str], key: str) -> tuple[Any, bool]:
        cl, disk = self._cl, disk_cache()
        binary = disk.get(key)
        if binary is not None:
            try:
                program = cl.Program(self.context, [self._raw], [binary])
                return program.build(options, cache_dir=False), True
            except cl.Error:
                pass  # made by another driver build: compile again and replace it
        try:
            program = cl.Program(self.context, made.text).build(options, cache_dir=False)
        except cl.Error as error:
            raise LaunchError(
                made.kernel.name, f"{self.name} compiles the kernel", got=f"{error}\n{made.text}"
            ) from error
        binaries = program.get_info(cl.program_info.BINARIES)
        if binaries and binaries[0]:
            disk.put(key, bytes(binaries[0]))
        return program, False

    def _launch(self, loaded: Loaded, cubes: Dims, args: Sequence[Any]) -> None:
        code: _Code = loaded.code
        code.check(args)
        with self.lock:
            number, fault = 0, 0
            if code.faults:
                number, record = self.faults.register(loaded, args)
                fault = (record.handle, 0)  # type: ignore[assignment]  # a memory object
            values = code.flatten(args, _place, number, fault)
            self._set(code, values, loaded)
            (x, y, z), (a, b, c) = cubes, code.local
            try:
                self._cl.enqueue_nd_range_kernel(
                    self.queue, code.kernel, (x * a, y * b, z * c), (a, b, c)
                )
            except self._cl.Error as error:
                raise self._refused(loaded, cubes, error) from error

    def _set(self, code: _Code, values: list[Any], loaded: Loaded) -> None:
        kernel, last = code.kernel, code.last
        slot = 0
        for number, (value, packer) in enumerate(zip(values, code.packers, strict=True)):
            old = last[number]
            if packer is None:
                handle, offset = value
                if old is None or old[0] is not handle:
                    kernel.set_arg(slot, handle)
                if old is None or old[1] != offset:
                    kernel.set_arg(slot + 1, offset.to_bytes(8, "little"))
                slot += 2
            else:
                # -0.0 equals 0.0 and 1 equals True: floats are set each time.
                if old is None or old != value or type(value) is float:
                    try:
                        kernel.set_arg(slot, packer.pack(value))
                    except (struct.error, OverflowError) as error:
                        raise LaunchError(loaded.kernel.name, f"argument fits: {error}") from error
                slot += 1
            last[number] = value

    def _refused(self, loaded: Loaded, cubes: Dims, error: Any) -> Exception:
        name = loaded.kernel.name
        words = str(error)
        if "ALLOCATION" in words or "OUT_OF" in words:
            got = f"{words}\n{self.pool.report()}"
            return OutOfMemoryError(name, f"{self.name} has memory for the launch", got=got)
        got = f"{words} for cubes {cubes} of {loaded.kernel.cube_dim}"
        return LaunchError(name, f"{self.name} takes the launch", got=got)

    # --- memory and order ------------------------------------------------------------------

    def write(self, buffer: Buffer, offset: int, host: np.ndarray[Any, Any]) -> None:
        """Copy bytes to a buffer."""
        self._cl.enqueue_copy(self.queue, buffer.handle, host, dst_offset=offset, is_blocking=True)

    def read(self, buffer: Buffer, offset: int, host: np.ndarray[Any, Any]) -> Event:
        """Queue a copy of bytes to the host."""
        event = self._cl.enqueue_copy(
            self.queue, host, buffer.handle, src_offset=offset, is_blocking=False
        )
        self.queue.flush()
        return OpenClEvent(event)

    def copy(self, source: Buffer, at: int, target: Buffer, to: int, nbytes: int) -> None:
        """Queue a copy on the device."""
        self._cl.enqueue_copy(
            self.queue, target.handle, source.handle, src_offset=at, dst_offset=to,
            byte_count=nbytes,
        )  # fmt: skip

    def record(self) -> Event:
        """Return an event behind what is queued."""
        return OpenClEvent(self._cl.enqueue_marker(self.queue))

    def sync(self) -> None:
        """Wait for everything that is queued."""
        try:
            self.queue.finish()
        except self._cl.Error as error:
            raise DeviceLostError(
                "sync", f"{self.name} works", got=str(error),
                remedy="Start a new process; values on the device are gone",
            ) from error  # fmt: skip
        self.faults.check()

    def _settle(self) -> None:
        self.queue.finish()

    def _allocate(self, nbytes: int) -> Any:
        cl = self._cl
        try:
            made = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
            # Drivers allocate at first use; here is where a refusal can be answered.
            flags = cl.mem_migration_flags.CONTENT_UNDEFINED
            cl.enqueue_migrate_mem_objects(self.queue, [made], flags=flags)
        except cl.Error as error:
            raise MemoryError(str(error)) from error
        return made

    def _release(self, handle: Any) -> None:
        handle.release()

    def _part(self, handle: Any, offset: int, nbytes: int) -> Any:
        return handle.get_sub_region(offset, nbytes)


def _place(array: DeviceArray) -> tuple[Any, int]:
    return array.buffer.handle, array.offset


def properties_of(raw: Any) -> Properties:
    """Return what a pyopencl device says of itself."""
    extensions = raw.extensions.split()
    lacking = set() if "cl_khr_fp64" in extensions else {float64}
    # Computed in float32; in memory every device has them.
    lacking |= {float16, bfloat16}
    features = {"planes"}
    if "cl_khr_int64_base_atomics" in extensions:
        features.add("atomic_64")
    features.add("atomic_float")
    limits = tuple(int(n) for n in raw.max_work_item_sizes[:3])
    return Properties(
        name=raw.name.strip(),
        vendor=raw.vendor.strip(),
        driver=f"{raw.driver_version.strip()} {raw.version.strip()}",
        arch=raw.opencl_c_version.strip(),
        memory=int(raw.global_mem_size),
        units=int(raw.max_compute_units),
        plane_dims=(32, 16, 8, 4),
        max_cube_size=int(raw.max_work_group_size),
        max_cube_dim=(limits[0], limits[1], limits[2]),
        max_cubes=(2**31 - 1, 2**31 - 1, 2**31 - 1),
        shared_memory=int(raw.local_mem_size),
        alignment=max(int(raw.mem_base_addr_align) // 8, 1),
        dtypes=frozenset(PLAIN) - lacking,
        features=frozenset(features),
    )


class OpenClRuntime:
    """The devices of all OpenCL platforms: GPUs, then accelerators, then CPUs.

    Attributes:
        name: `opencl`.
        api_version: version of the interface.
    """

    name = "opencl"
    api_version = API_VERSION

    def __init__(self) -> None:
        self._open: dict[int, OpenClDevice] = {}
        self._lock = threading.Lock()

    def _found(self) -> list[Any]:
        try:
            import pyopencl as cl
        except ImportError as error:
            raise BackendLoadError(
                "opencl", "pyopencl is installed", got=str(error), remedy=REMEDY
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

    def devices(self) -> list[str]:
        """Return the devices in words."""
        return [f"{raw.name.strip()} ({raw.platform.name.strip()})" for raw in self._found()]

    def open(self, number: int = 0) -> OpenClDevice:
        """Return a device; the same one each time."""
        with self._lock:
            made = self._open.get(number)
            if made is None:
                found = self._found()
                if not found:
                    rule = "an OpenCL driver is installed"
                    raise BackendLoadError("opencl", rule, got="none", remedy=REMEDY)
                if not 0 <= number < len(found):
                    rule = f"there are {len(found)} OpenCL devices, counted from 0"
                    raise DeviceError("opencl", rule, got=number)
                made = self._open[number] = OpenClDevice(f"opencl:{number}", found[number])
            return made


plugin = OpenClRuntime()
