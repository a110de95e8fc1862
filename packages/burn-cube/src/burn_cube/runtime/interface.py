"""What a runtime is: the one small interface between kernels and a kind of device.

A `Runtime` (entry point group `burn.cube_runtimes`) lists and opens devices. A `Device` owns
memory through its pool, makes code of kernels and runs it in one order: a launch returns at once,
what it writes is there for everything that comes after it. A class of devices implements the
hooks at the end of `Device`; the rest is shared.
"""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, Op
from burn_std.dtypes import DType, bool_, parse_dtype

if TYPE_CHECKING:
    import numpy as np

    from burn_cube.runtime.fault import Faults
    from burn_cube.runtime.pool import Block, Pool
    from burn_cube.runtime.profile import Profile

API_VERSION = 1
Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a device.

    Attributes:
        name: as the driver calls it.
        vendor: who made it.
        driver: version of the driver and, where that matters, of the compiler.
        arch: what code is made for: `sm_90`, `znver3`.
        memory: bytes of memory.
        units: multiprocessors or cores.
        plane_dims: sizes a plane can have; the first is the usual one.
        max_cube_size: units of a cube at most.
        max_cube_dim: the same along x, y and z.
        max_cubes: cubes of a launch along x, y and z.
        shared_memory: bytes of shared memory of a cube.
        alignment: bytes that a piece of memory is aligned to.
        dtypes: what values can be computed in; others are stored and computed wider.
        features: `atomic_64`, `atomic_float`, `planes`, `tiles`, `async_copy`, `graphs`, ...
    """

    name: str
    vendor: str
    driver: str
    arch: str
    memory: int
    units: int
    plane_dims: tuple[int, ...]
    max_cube_size: int
    max_cube_dim: Dims
    max_cubes: Dims
    shared_memory: int
    alignment: int
    dtypes: frozenset[DType]
    features: frozenset[str]


class Buffer:
    """A piece of device memory; it goes back to its pool when nobody holds it.

    Attributes:
        device: where it is.
        handle: what the device knows it by: an address, or an object of the driver.
        nbytes: bytes asked for.
        label: who asked, for reports.
    """

    __slots__ = ("__weakref__", "_block", "device", "handle", "label", "nbytes")

    def __init__(self, device: Device, block: Block, nbytes: int, label: str) -> None:
        self.device = device
        self._block: Block | None = block
        self.handle: Any = block.handle
        self.nbytes = nbytes
        self.label = label

    def free(self) -> None:
        """Give the memory back now; the buffer must not be used after."""
        block, self._block = self._block, None
        if block is not None:
            block.pool.give_back(block)

    def __del__(self) -> None:
        if getattr(self, "_block", None) is not None:
            self.free()

    def __repr__(self) -> str:
        return f"<Buffer {self.nbytes} bytes on {self.device.name}>"


class DeviceArray:
    """A typed view of a buffer: what a launch takes for an `Array` or a `Tensor`.

    Attributes:
        buffer: the memory.
        dtype: element type.
        shape: extents.
        strides: distances, in elements.
        offset: place of the first element, in elements.
        length: elements from the first to the last one that the view reaches.
    """

    __slots__ = ("buffer", "dtype", "length", "offset", "shape", "strides")

    def __init__(
        self,
        buffer: Buffer,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None:
        self.buffer = buffer
        self.dtype = dtype
        self.shape = shape
        self.strides = contiguous(shape) if strides is None else strides
        self.offset = offset
        reach = sum((n - 1) * s for n, s in zip(shape, self.strides, strict=True))
        self.length = 0 if 0 in shape else reach + 1
        end = (offset + self.length) * dtype.itemsize
        if offset < 0 or end > buffer.nbytes or any(s < 0 for s in self.strides):
            raise LaunchError(
                "DeviceArray", f"lies inside its buffer of {buffer.nbytes} bytes",
                got=f"{dtype.name}{list(shape)}, strides {self.strides}, offset {offset}",
            )  # fmt: skip

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self.buffer.device

    @property
    def nbytes(self) -> int:
        """Bytes from the first to the last element."""
        return self.length * self.dtype.itemsize

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy on the host; waits for what is queued."""
        return self.device.read_async([self])[0].result()

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}{list(self.shape)} on {self.device.name}>"


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense array, last dimension fastest.

    Example:
        >>> contiguous((2, 3, 4))
        (12, 4, 1)
    """
    strides = list(itertools.accumulate(reversed(shape), lambda a, b: a * b, initial=1))
    return tuple(reversed(strides[:-1])) if shape else ()


class Loaded:
    """A kernel as one device runs it.

    Attributes:
        kernel: what it was made of.
        code: what the device knows it by.
        sites: operations that can fault, in the order of their numbers in the code.
        source: text that was compiled.
        cached: whether the compiled form came from the disk.
    """

    __slots__ = ("cached", "code", "kernel", "sites", "source")

    def __init__(
        self, kernel: Kernel, code: Any, sites: list[Op], source: str, cached: bool
    ) -> None:
        self.kernel = kernel
        self.code = code
        self.sites = sites
        self.source = source
        self.cached = cached


class Event(Protocol):
    """A point in the order of a device."""

    def done(self) -> bool:
        """Return whether the device passed it."""
        ...

    def wait(self) -> None:
        """Wait until the device passed it."""
        ...

    def since(self, earlier: Any) -> float:
        """Return the seconds between two passed events."""
        ...


class Reading(Protocol):
    """A read-back under way."""

    def done(self) -> bool:
        """Return whether the bytes are here."""
        ...

    def result(self) -> np.ndarray[Any, Any]:
        """Wait for the array and return it."""
        ...


class Graph(Protocol):
    """Launches that are replayed together, cheaper than one by one."""

    def patch(self, node: int, cubes: Dims, args: Sequence[Any]) -> None:
        """Replace grid and arguments of one launch."""
        ...

    def replay(self) -> None:
        """Run all launches in order; returns at once."""
        ...


class Device(ABC):
    """One device with its memory and its queue.

    Attributes:
        name: `cpu`, `cuda:0`, `opencl:0`.
        properties: what is known of it.
        pool: its memory.
        profile: where launches are timed at present, or None.
        lock: held while the queue is touched.
    """

    name: str
    properties: Properties
    pool: Pool
    faults: Faults
    profile: Profile | None

    def __init__(self, name: str, properties: Properties) -> None:
        from burn_cube.runtime.fault import Faults
        from burn_cube.runtime.pool import Pool

        self.name = name
        self.properties = properties
        self.lock = threading.RLock()
        self.profile = None
        self.pool = Pool(self)
        self.faults = Faults(self)

    # --- memory ----------------------------------------------------------------------------

    def alloc(self, nbytes: int, label: str = "") -> Buffer:
        """Return a new piece of memory with undefined content.

        Raises:
            OutOfMemoryError: there is none left, even after freeing caches.
        """
        return Buffer(self, self.pool.take(nbytes, label), nbytes, label)

    def empty(self, shape: tuple[int, ...], dtype: DType, label: str = "") -> DeviceArray:
        """Return a new array with undefined content."""
        count = 1
        for extent in shape:
            count *= extent
        return DeviceArray(self.alloc(count * dtype.itemsize, label), dtype, shape)

    def array(self, host: np.ndarray[Any, Any], label: str = "") -> DeviceArray:
        """Return a new array with the content of a numpy array."""
        import numpy as np

        host = np.ascontiguousarray(host).reshape(host.shape)
        made = self.empty(host.shape, parse_dtype(host.dtype.name), label)
        if host.size:
            self.write(made.buffer, 0, host.reshape(-1).view(np.uint8))
        return made

    def read_async(self, arrays: Sequence[DeviceArray]) -> list[Reading]:
        """Start reading arrays back, all behind what is queued; wait with `result`."""
        from burn_cube.runtime.reading import start

        return start(self, arrays)

    # --- kernels ---------------------------------------------------------------------------

    def launch(self, loaded: Loaded, cubes: Dims, args: Sequence[Any]) -> None:
        """Queue a kernel; returns at once.

        Args:
            loaded: the kernel.
            cubes: number of cubes along x, y and z; with a 0 nothing is launched.
            args: a `DeviceArray` or a number for each parameter.

        Raises:
            LaunchError: the arguments or the grid do not fit.
        """
        if 0 in cubes:
            return
        if self.profile is not None:
            self.profile.launch(self, loaded, cubes, args)
        else:
            self._launch(loaded, cubes, args)

    def graph(self, launches: Sequence[tuple[Loaded, Dims, Sequence[Any]]]) -> Graph | None:
        """Return the launches as a graph, or None where the device has no graphs."""
        return None

    # --- hooks of one kind of device -------------------------------------------------------

    @abstractmethod
    def load(self, kernel: Kernel) -> Loaded:
        """Compile a kernel; a kernel that was loaded before is found again.

        Raises:
            LaunchError: the device cannot run it; the message names what is missing.
        """

    @abstractmethod
    def _launch(self, loaded: Loaded, cubes: Dims, args: Sequence[Any]) -> None:
        """Queue a kernel with at least one cube."""

    @abstractmethod
    def write(self, buffer: Buffer, offset: int, host: np.ndarray[Any, Any]) -> None:
        """Copy the bytes of a uint8 array to a buffer; the array is free on return."""

    @abstractmethod
    def read(self, buffer: Buffer, offset: int, host: np.ndarray[Any, Any]) -> Event:
        """Queue a copy of bytes of a buffer into a uint8 array that the caller keeps alive."""

    @abstractmethod
    def copy(self, source: Buffer, at: int, target: Buffer, to: int, nbytes: int) -> None:
        """Queue a copy between two buffers of this device."""

    @abstractmethod
    def record(self) -> Event:
        """Return an event behind what is queued."""

    @abstractmethod
    def sync(self) -> None:
        """Wait for everything that is queued.

        Raises:
            KernelFaultError: a kernel broke a rule since the last sync; it names the launch.
            DeviceLostError: the device failed.
        """

    def _settle(self) -> None:
        """Wait until the queue is empty, without raising faults; memory is freed behind it."""
        self.record().wait()

    @abstractmethod
    def _allocate(self, nbytes: int) -> Any:
        """Return the handle of new memory from the driver.

        Raises:
            MemoryError: the driver has none.
        """

    @abstractmethod
    def _release(self, handle: Any) -> None:
        """Give memory back to the driver."""

    @abstractmethod
    def _part(self, handle: Any, offset: int, nbytes: int) -> Any:
        """Return the handle of a part of allocated memory; the offset is aligned."""


class Runtime(Protocol):
    """A kind of device, as the entry points of `burn.cube_runtimes` name it.

    Attributes:
        name: `cpu`, `cuda`, `opencl`.
        api_version: `API_VERSION` that it was written for.
    """

    name: str
    api_version: int

    def devices(self) -> list[str]:
        """Return the devices in words, in the order of their numbers; none without a driver.

        Raises:
            BackendLoadError: the library that reaches the driver is missing; says which.
        """
        ...

    def open(self, number: int = 0) -> Device:
        """Return a device; the same one each time.

        Raises:
            BackendLoadError: library or driver is missing.
            DeviceError: there is no such number.
        """
        ...


def as_bytes(dtype: DType, nbytes: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a new host array of a dtype and the same bytes as uint8."""
    import numpy as np

    raw = np.empty(nbytes, np.uint8)
    return raw.view(host_dtype(dtype)), raw


def host_dtype(dtype: DType) -> np.dtype[Any]:
    """Return what numpy calls a dtype; bfloat16 needs ml_dtypes, else it is read as uint16."""
    import numpy as np

    if dtype is bool_:
        return np.dtype(np.bool_)
    if dtype.name != "bfloat16":
        return np.dtype(dtype.name)
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return made
