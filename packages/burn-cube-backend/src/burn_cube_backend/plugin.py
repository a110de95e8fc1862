"""The backend and its plugins, one for each runtime of burn-cube."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

import numpy as np

from burn_backend import API_VERSION, Backend, QuantizedArray, Watcher
from burn_cube import Client, client
from burn_cube.spi import API_VERSION as RUNTIMES
from burn_cube_backend.dtypes import host_dtype
from burn_cube_backend.engine import Engine
from burn_cube_backend.fuser import CubeFuser
from burn_cube_backend.kernels import cudnn
from burn_cube_backend.kernels.create import wrapped
from burn_cube_backend.payload import CubeTensor, LateTensor, number
from burn_cube_backend.quant import QuantTensor, packed, unpacked
from burn_cube_backend.replay import Replayed
from burn_cube_backend.table import table_of
from burn_cube_backend.watching import watched
from burn_std import BackendLoadError, DeviceError, DType, PluginGroup, dtypes as d, parse_dtype

PLUGINS = PluginGroup("burn.cube_runtimes", RUNTIMES)


class CubeBackend(Backend):
    """Kernels of burn-cube on one device, queued one by one.

    Attributes:
        engine: the device and its kernels.
    """

    ready = CubeTensor
    clocked = True

    def __init__(self, name: str, index: int, device: Client) -> None:
        self.name = name
        self.index = index
        self.engine = Engine(device)
        self.engine.keeps_last = cudnn.wanted(device.runtime)
        known = device.properties.dtypes
        super().__init__(table_of(self.engine), {t: t for t in d.PLAIN if t in known})
        self.fuser = CubeFuser(self.engine, self.supports_dtype)

    def from_numpy(self, array: Any, copy: bool) -> CubeTensor | QuantTensor:
        """Return a payload with a copy of the elements."""
        if isinstance(array, QuantizedArray):
            zero = None if array.zero is None else self._sent(array.zero)
            values = np.asarray(array.values)
            values = packed(values) if array.dtype.bits == 4 else values
            parts = self._sent(values), self._sent(array.scale), zero
            return QuantTensor(*parts, array.dtype, array.shape)
        return self._sent(array)

    def _sent(self, array: Any) -> CubeTensor:
        return self.engine.from_numpy(array, parse_dtype(array.dtype.name))

    def to_numpy(self, payload: CubeTensor | QuantTensor) -> Any:
        """Return the elements, read-only; waits for the device."""
        if isinstance(payload, QuantTensor):
            zero = None if payload.zero is None else self.to_numpy(payload.zero)
            values, scale = self.to_numpy(payload.values), self.to_numpy(payload.scale)
            if payload.dtype.bits == 4:
                values = read_only(unpacked(values, payload.shape))
            return QuantizedArray(values, scale, zero, payload.dtype)
        if payload.value is not None:
            out = np.array(payload.value, host_dtype(payload.dtype))
        else:
            out = self.engine.to_numpy(payload)
        return read_only(out)

    def read_async(self, payloads: Sequence[Any]) -> Callable[[], list[Any]]:
        """Start copies to the host behind what is queued; they are waited for together."""
        ahead = [
            self.engine.reading(p) if p.__class__ is CubeTensor and p.value is None else None
            for p in payloads
        ]

        def wait() -> list[Any]:
            found = [
                self.to_numpy(p) if r is None else read_only(r.result())
                for p, r in zip(payloads, ahead, strict=True)
            ]
            self.engine.check()
            return found

        return wait

    def scalar(self, value: Any, dtype: DType) -> CubeTensor:
        """Return a rank-0 payload that has no memory yet."""
        return number(wrapped(value, dtype), dtype)

    def allow_tf32(self) -> None:
        """Let the libraries of a GPU use its tensor cores for float32."""
        self.engine.tf32 = True

    def supports_dtype(self, dtype: DType) -> bool:
        """Return whether the device computes in a dtype; quantised ones are stored as bytes."""
        return dtype in self.native or dtype.is_quantized

    def sync(self) -> None:
        """Wait for the device and raise what went wrong on it."""
        self.engine.sync()

    def memory_cleanup(self) -> None:
        """Give cached memory back to the driver."""
        self.engine.cleanup()

    def memory_report(self) -> dict[str, int]:
        """Return the bytes of the pool."""
        return dict(self.engine.client.memory_report()._asdict())

    def memory_of(self, payload: Any) -> list[tuple[Any, int]]:
        """Return the blocks of the pool; a number that the host knows has none."""
        if isinstance(payload, QuantTensor):
            parts = [payload.values, payload.scale, payload.zero]
            return [m for part in parts if part is not None for m in self.memory_of(part)]
        pending = isinstance(payload, LateTensor) and payload.is_pending
        if pending or payload.value is not None or payload.buf is None:
            return []
        storage = payload.buf.storage
        return [(storage, storage.bytes)]

    def memory_held(self, known: Sequence[Any]) -> list[tuple[str, int]]:
        """Return blocks of the pool that nobody named, by who asked for them."""
        return self.engine.client.memory_held(known)

    def watched(self, watcher: Watcher) -> AbstractContextManager[None]:
        """Tell a watcher of every launch, by the clock of the device."""
        return watched(self.engine.client, watcher)

    def same_objects(self, containers: Sequence[Any]) -> Callable[[], bool]:
        """Return what tells whether containers are as they were, native where there is one."""
        frames = self._frames()
        if frames is None or not frames.serves:
            return super().same_objects(containers)
        found: Callable[[], bool] = frames.same_objects(containers)
        return found

    def compiled(
        self, function: Callable[..., Any], restarts: bool = True, classes: Sequence[type] = ()
    ) -> Any:
        """Return a function in native code where the runtime makes some, else itself."""
        frames = self._frames()
        return function if frames is None else frames.frame(function, restarts, classes)

    def uncompiled(self) -> str | None:
        """Return why the runtime makes no native code of functions, None where it does."""
        frames = self._frames()
        if frames is None:
            name = self.engine.client.runtime.name
            return f"the runtime {name} has no compiler for functions (llvmlite)"
        refused: str | None = frames.refused
        return refused

    def _frames(self) -> Any:
        made = getattr(self.engine.client.runtime, "frames", None)
        return None if made is None else made()

    def bound(self, run: Any, scalars: Sequence[tuple[int, int]]) -> Any:
        """Return a plan's function as one native call, where the device makes such calls."""
        if hasattr(self.engine.client.runtime, "sequence"):
            return Replayed(self.engine, run, scalars)
        return run

    def bound_step(self, run: Any, scalars: Sequence[tuple[int, int]], rematerialise: bool) -> Any:
        """Return a captured step's function as one native call, where there are such calls."""
        if hasattr(self.engine.client.runtime, "sequence"):
            return Replayed(self.engine, run, scalars, whole=True, rematerialise=rematerialise)
        return run


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array, which nobody writes any more."""
    array.flags.writeable = False
    return array


class InterpretedPlugin:
    """Entry point `interp`: kernels run by the interpreter, watched for races and bounds."""

    name = "interp"
    api_version = API_VERSION
    about = "burn-cube kernels in the interpreter, every access watched"

    def device_count(self) -> int:
        """Return how many devices there are."""
        return 1

    def create(self, index: int) -> CubeBackend:
        """Return the backend of one device."""
        from burn_cube_backend.interpreted import InterpretedRuntime

        return CubeBackend(self.name, index, Client(InterpretedRuntime()))


class RuntimePlugin:
    """A backend on a runtime of burn-cube.

    Attributes:
        name: what the user types.
        runtime: the runtime's entry point in `burn.cube_runtimes`.
        library: the module that reaches the driver; an extra of this package brings it.
        about: one line.
        extra: the extra of this package that brings the library.
        shared: every index is the one device.
        behind: what stands in front unless a name says `eager-`: kernels gain by being fused.
    """

    api_version = API_VERSION
    behind = ("fusion",)

    def __init__(
        self, name: str, runtime: str, library: str, about: str, shared: bool = False
    ) -> None:
        self.name = name
        self.runtime = runtime
        self.library = library
        self.about = about
        self.shared = shared
        self.extra = "cuda13 (or cuda12)" if runtime == "cuda" else runtime

    def device_count(self) -> int:
        """Return how many devices there are; none where the extra was not asked for."""
        return 0 if self.lacks() else int(PLUGINS.load(self.runtime).count())

    def lacks(self) -> str | None:
        """Return the library without which no device is found; None where it is here."""
        if not PLUGINS.installed(self.runtime):
            return f"the runtime {self.runtime} of burn-cube"
        found = find_spec(self.library)
        # A folder that happens to have the library's name is a package without an origin.
        return self.library if found is None or found.origin is None else None

    def gpu_count(self) -> int:
        """Return how many of them are GPUs; they have the first numbers."""
        return 0

    def create(self, index: int) -> CubeBackend:
        """Return the backend of one device.

        Raises:
            BackendLoadError: the library or the driver is missing; says which.
            DeviceError: there is no device of that number.
        """
        lacks = self.lacks()
        if lacks:
            raise BackendLoadError(
                self.name, f"the device needs {lacks}", got="it is not installed",
                remedy=f"Install it: uv sync --inexact --package burn-cube-backend "
                f"--extra {self.extra}.",
            )  # fmt: skip
        # The processor is one device; as on flex there are as many names for it as one asks for.
        number = 0 if self.shared else index
        count = int(PLUGINS.load(self.runtime).count())
        if number >= count:
            raise DeviceError(
                self.name, f"the runtime finds {count} devices", got=f"number {number}",
                remedy="See `python -m burn doctor`.",
            )  # fmt: skip
        return CubeBackend(self.name, index, client(self.runtime, number))


class CudaPlugin(RuntimePlugin):
    """Every device is a GPU."""

    def gpu_count(self) -> int:
        """Return the number of devices."""
        return self.device_count()


class OpenClPlugin(RuntimePlugin):
    """GPUs, accelerators and processors of all drivers."""

    def gpu_count(self) -> int:
        """Return the number of GPUs; opens none of them."""
        if not self.device_count():
            return 0
        import pyopencl as cl

        found = 0
        for platform in cl.get_platforms():
            try:
                found += len(platform.get_devices(cl.device_type.GPU))
            except cl.Error:  # a driver without one
                continue
        return found


interp = InterpretedPlugin()
cpu = RuntimePlugin(
    "cpu", "cpu", "llvmlite", "compiled kernels on the processor, by LLVM", shared=True
)
opencl = OpenClPlugin("opencl", "opencl", "pyopencl", "compiled kernels on OpenCL devices")
cuda = CudaPlugin("cuda", "cuda", "cupy", "compiled kernels on NVIDIA GPUs")
