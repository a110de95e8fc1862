"""The client: one device as a program uses it. Arrays, launches, memory, completion."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, walk
from burn_cube.parameters import flat
from burn_cube.runtime.arguments import acceptor
from burn_cube.runtime.base import API_VERSION, Event, Log, Program, Properties, Runtime
from burn_cube.runtime.pool import MemoryReport, Pool, Storage
from burn_cube.runtime.profiling import profiles
from burn_cube.runtime.record import Record
from burn_cube.types import Memory, scalar_of
from burn_std import PluginGroup
from burn_std.dtypes import DType, parse_dtype

if TYPE_CHECKING:
    from burn_cube.kernel import CubeFunction

Grid = tuple[int, int, int]
_STEP = (1,)
_PLUGINS = PluginGroup("burn.cube_runtimes", API_VERSION)
_CLIENTS: dict[tuple[str, int], Client] = {}
_LOCK = threading.RLock()


class DeviceArray:
    """An array in the memory of a device.

    Attributes:
        client: the device.
        storage: the memory behind it.
        offset: bytes from the start of the memory.
        shape: extents.
        strides: distance of neighbours along each dim, in elements.
        dtype: element type.
        dense: whether the strides are those of an array without gaps, last dim fastest.
        length: elements that a kernel may index.
        pointer: address of the first element, on devices that have addresses.
    """

    __slots__ = (
        "client", "dense", "dtype", "length", "offset", "pointer", "shape", "storage", "strides",
    )  # fmt: skip

    def __init__(
        self,
        client: Client,
        storage: Storage,
        shape: tuple[int, ...],
        dtype: DType,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None:
        self.client = client
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.offset = offset
        self.pointer = storage.address + offset
        plain = contiguous(shape)
        if strides is None or strides == plain:
            self.strides, self.dense = plain, True
            self.length = math.prod(shape)
        else:
            self.strides, self.dense = strides, False
            span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            self.length = 0 if 0 in shape else span + 1

    @classmethod
    def flat(cls, client: Client, storage: Storage, count: int, dtype: DType) -> DeviceArray:
        """Return an array of one dim at the start of memory: what `__init__` makes, sooner."""
        made = cls.__new__(cls)
        made.client = client
        made.storage = storage
        made.shape = (count,)
        made.dtype = dtype
        made.strides = _STEP
        made.dense = True
        made.offset = 0
        made.pointer = storage.address
        made.length = count
        return made

    def __repr__(self) -> str:
        return f"DeviceArray({self.client.name}, {self.dtype.name}{list(self.shape)})"

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def numpy(self) -> Any:
        """Return a copy on the host, after every launch before."""
        return self.client.to_numpy(self)

    def view(
        self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> DeviceArray:
        """Return another array of the same memory; the offset counts elements from here."""
        start = self.offset + offset * self.dtype.itemsize
        return DeviceArray(self.client, self.storage, shape, self.dtype, strides, start)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array whose last dim runs fastest.

    Example:
        >>> contiguous((2, 3, 4))
        (12, 4, 1)
    """
    if len(shape) == 1:
        return (1,)
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Reading:
    """An array on its way to the host."""

    __slots__ = ("_array", "_event", "_raw")

    def __init__(self, array: DeviceArray) -> None:
        self._array = array
        self._raw = np.empty(max(array.length, 1), _native(array.dtype))
        self._event: Event | None = None
        if array.length:
            out = self._raw.view(np.uint8).data[: array.length * array.dtype.itemsize]
            runtime = array.client.runtime
            self._event = runtime.read_async(array.storage.handle, array.offset, out)

    def done(self) -> bool:
        """Return whether the bytes are here."""
        return self._event is None or self._event.done()

    def result(self) -> Any:
        """Wait for the bytes and return the numpy array."""
        array = self._array
        if self._event is not None:
            self._event.wait()
        if 0 in array.shape:
            return np.empty(array.shape, self._raw.dtype)
        steps = tuple(s * array.dtype.itemsize for s in array.strides)
        view = np.lib.stride_tricks.as_strided(self._raw, array.shape, steps)
        return view if array.dense else view.copy()


class Client:
    """One device.

    Attributes:
        runtime: what drives it.
        pool: its memory.
        log: what is done is written down there, None where nobody asked for it.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.pool = Pool(runtime)
        self.log: Log | None = None
        self._programs: dict[Kernel, Program] = {}
        self._acceptors: dict[Program, Any] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the device, `cpu` or `opencl:0`."""
        return self.runtime.name

    @property
    def properties(self) -> Properties:
        """What the device is and can do."""
        return self.runtime.properties

    def __repr__(self) -> str:
        return f"<client of {self.name}: {self.properties.name}>"

    # --- arrays ----------------------------------------------------------------------------

    def empty(self, shape: int | Sequence[int], dtype: DType, label: str = "") -> DeviceArray:
        """Return an array whose contents are not defined; reports name its label."""
        if isinstance(shape, int):
            storage = self.pool.alloc(shape * dtype.itemsize, label)
            made = DeviceArray.flat(self, storage, shape, dtype)
        else:
            single = hasattr(shape, "__index__")
            extents = (index(shape),) if single else tuple(map(index, shape))  # type: ignore[arg-type]
            size = math.prod(extents) * dtype.itemsize
            made = DeviceArray(self, self.pool.alloc(size, label), extents, dtype)
        if self.log is not None and self.log.thread == threading.get_ident():
            self.log.taken(made)
        return made

    def _unrepeatable(self, what: str) -> None:
        if self.log is not None and self.log.thread == threading.get_ident():
            self.log.broken = what

    def from_numpy(self, array: Any) -> DeviceArray:
        """Return a copy of a numpy array on the device."""
        dtype = parse_dtype(array.dtype.name)
        self._unrepeatable("data of the host are sent")
        made = self.empty(array.shape, dtype)
        if array.size:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self.runtime.write(made.storage.handle, 0, data.data)
        return made

    def zeros(self, shape: int | Sequence[int], dtype: DType) -> DeviceArray:
        """Return an array of zeros."""
        self._unrepeatable("data of the host are sent")
        made = self.empty(shape, dtype)
        size = math.prod(made.shape) * dtype.itemsize
        if size:
            self.runtime.write(made.storage.handle, 0, np.zeros(size, np.uint8).data)
        return made

    def record(self, count: int, dtype: DType) -> tuple[DeviceArray, Record]:
        """Return zeros in which kernels note something, and what the host reads them by."""
        made, size = Record(self.runtime, count * dtype.itemsize), count * dtype.itemsize
        storage = Storage(made.handle, size, self.runtime.address(made.handle), keep=made)
        return DeviceArray(self, storage, (count,), dtype), made

    def to_numpy(self, array: DeviceArray) -> Any:
        """Return a copy on the host; bfloat16 comes as ml_dtypes has it, or as uint16 bits."""
        self._unrepeatable("data are read on the host")
        return Reading(array).result()

    def read_async(self, arrays: Sequence[DeviceArray]) -> list[Reading]:
        """Start reading arrays back, all behind what was launched; `result()` waits for one."""
        self._unrepeatable("data are read on the host")
        return [Reading(array) for array in arrays]

    def copy(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy one contiguous array over another of the same dtype and size."""
        self._unrepeatable("memory is copied")
        if target.length != source.length or target.dtype is not source.dtype:
            raise LaunchError(
                "copy", "both arrays have one dtype and one size", got=f"{source!r} to {target!r}"
            )
        size = source.length * source.dtype.itemsize
        if size:
            self.runtime.copy(
                target.storage.handle, target.offset, source.storage.handle, source.offset, size
            )

    # --- kernels ---------------------------------------------------------------------------

    def load(self, kernel: Kernel) -> Program:
        """Return the compiled kernel; the same object gives the same program."""
        found = self._programs.get(kernel)
        if found is None:
            with self._lock:
                found = self._programs.get(kernel)
                if found is None:
                    self._check(kernel)
                    found = self._programs[kernel] = self.runtime.load(kernel)
        return found

    def _check(self, kernel: Kernel) -> None:
        limits = self.properties
        if kernel.cube_size > limits.max_cube:
            raise LaunchError(
                kernel.name, f"a cube on {self.name} has at most {limits.max_cube} units",
                got=kernel.cube_size, remedy="Choose a smaller cube_dim.",
            )  # fmt: skip
        for param in kernel.params:
            dtype = scalar_of(param.type.elem if isinstance(param.type, Memory) else param.type)
            if dtype not in limits.dtypes:
                raise LaunchError(
                    kernel.name, f"{self.name} computes with "
                    f"{', '.join(sorted(d.short for d in limits.dtypes))}", got=dtype.short,
                )  # fmt: skip
        sizes = [
            op.attrs["size"] * op.type.elem.itemsize
            for op in walk(kernel.body)
            if op.name == "alloc" and op.type.space == "shared"
        ]
        if sum(sizes) > limits.shared_bytes:
            raise LaunchError(
                kernel.name, f"a cube on {self.name} shares at most {limits.shared_bytes} bytes",
                got=sum(sizes), remedy="Use smaller SharedMemory.",
            )  # fmt: skip

    def launch(
        self, function: CubeFunction, cubes: Grid, args: Sequence[Any], options: dict[str, Any]
    ) -> None:
        """Launch a `@cube` function; `function.launch(client, ...)` comes here."""
        options.setdefault("plane_dim", self.properties.plane_dim)
        given = flat(args)
        if "index" not in options and self.properties.index.bits == 32:
            small = all(a.length < 2**31 for a in given if isinstance(a, DeviceArray))
            options["index"] = parse_dtype("int32" if small else "int64")
        kernel = function.ir(*args, **options)
        self.run(self.load(kernel), cubes, given)

    def run(self, program: Program, cubes: Grid, args: Sequence[Any]) -> None:
        """Launch a program after checking its arguments.

        Raises:
            LaunchError: an argument or the grid does not fit.
        """
        fits = self._acceptors.get(program)
        if fits is None:
            fits = self._acceptors[program] = acceptor(program.kernel, self)
        if not fits(args):
            self._check_arguments(program.kernel, args)
        x, y, z = cubes
        if x <= 0 or y <= 0 or z <= 0:
            if min(cubes) < 0:
                rule = "the number of cubes is not negative"
                raise LaunchError(program.kernel.name, rule, got=cubes)
            return
        if self.log is not None and self.log.thread == threading.get_ident():
            self.log.launch(program, cubes, args)
        elif profiles():
            self._measured(program, cubes, args)
        else:
            program.launch(cubes, args)

    def _check_arguments(self, kernel: Kernel, args: Sequence[Any]) -> None:
        if len(args) != len(kernel.params):
            raise LaunchError(kernel.name, f"takes {len(kernel.params)} arguments", got=len(args))
        for param, arg in zip(kernel.params, args, strict=True):
            self._fits(kernel, param.attrs["name"], param, arg)

    def _fits(self, kernel: Kernel, name: str, param: Any, arg: Any) -> None:
        if not isinstance(param.type, Memory):
            if isinstance(arg, DeviceArray):
                raise LaunchError(f"{kernel.name}, {name}", "takes a number", got=arg)
            return
        if not isinstance(arg, DeviceArray):
            raise LaunchError(
                f"{kernel.name}, {name}", f"takes an array of {self.name}",
                got=type(arg).__name__, remedy="Make one with client.from_numpy(array).",
            )  # fmt: skip
        if arg.client is not self:
            raise LaunchError(f"{kernel.name}, {name}", f"takes an array of {self.name}", got=arg)
        dtype, rank = scalar_of(param.type.elem), param.attrs.get("rank")
        if arg.dtype is not dtype or (rank is not None and rank != len(arg.shape)):
            wanted = dtype.name + (f" of rank {rank}" if rank is not None else "")
            raise LaunchError(f"{kernel.name}, {name}", f"takes {wanted}", got=arg)
        if rank is None and not arg.dense:
            raise LaunchError(
                f"{kernel.name}, {name}", "an Array is contiguous", got=f"strides {arg.strides}",
                remedy="Declare it as a Tensor.",
            )  # fmt: skip

    def _measured(self, program: Program, cubes: Grid, args: Sequence[Any]) -> None:
        arrays = [arg for arg in args if isinstance(arg, DeviceArray)]
        nbytes = sum(array.length * array.dtype.itemsize for array in arrays)
        with self.measured(program.kernel.name, nbytes):
            program.launch(cubes, args)

    @contextmanager
    def measured(self, name: str, nbytes: int = 0) -> Iterator[None]:
        """Tell the open profiles of work that is no launch of a kernel: a library's.

        Args:
            name: what it is, in the place of a kernel's name.
            nbytes: bytes of its arrays.
        """
        start = self.runtime.event()
        yield
        end = self.runtime.event()
        for profile in list(profiles()):
            profile.note(self.name, name, nbytes, start, end)

    # --- completion and memory -------------------------------------------------------------

    def sync(self) -> None:
        """Wait for every launch before.

        Raises:
            KernelFaultError: one of them broke a rule; the error says which and where.
        """
        self.runtime.sync()

    def memory_report(self) -> MemoryReport:
        """Return what the memory pool holds."""
        return self.pool.report()

    def memory_held(self, known: Sequence[Storage] = ()) -> list[tuple[str, int]]:
        """Return who holds blocks of the pool, and their bytes.

        Args:
            known: blocks that are left out.
        """
        return self.pool.held(known)

    def memory_cleanup(self) -> None:
        """Give unused memory back to the device."""
        self.pool.trim()


def _native(dtype: DType) -> Any:
    try:
        # numpy knows bfloat16 once somebody imported ml_dtypes.
        return np.dtype(dtype.name)
    except TypeError:
        return np.dtype("uint16")


def client(name: str = "cpu", index: int = 0) -> Client:
    """Return the client of a device; one object for each device of the process.

    Args:
        name: a runtime, `cpu`, `opencl` or `cuda`.
        index: which of its devices.

    Raises:
        BackendLoadError: the runtime is not installed or does not load.
        LaunchError: there is no such device.

    Example:
        >>> import numpy as np
        >>> device = client("cpu")
        >>> device.from_numpy(np.arange(3)).numpy()
        array([0, 1, 2])
    """
    with _LOCK:
        found = _CLIENTS.get((name, index))
        if found is None:
            plugin = _PLUGINS.load(name)
            count = plugin.count()
            if not 0 <= index < count:
                raise LaunchError(
                    name, f"the runtime finds {count} devices", got=index,
                    remedy="Check the driver, or choose another runtime: "
                    f"{', '.join(runtimes())}.",
                )  # fmt: skip
            found = _CLIENTS[name, index] = Client(plugin.create(index))
        return found


def runtimes() -> list[str]:
    """Return the names of the installed runtimes; loads none.

    Example:
        >>> "cpu" in runtimes()
        True
    """
    return _PLUGINS.names()
