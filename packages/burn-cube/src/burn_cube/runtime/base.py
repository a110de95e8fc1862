"""The interface of a runtime. A plugin of `burn.cube_runtimes` gives objects of these kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from burn_cube.ir import Kernel
from burn_std.dtypes import DType, int64

Grid = tuple[int, int, int]

# The version of this interface, which a plugin states as `api_version`.
API_VERSION = 1


@dataclass(frozen=True)
class Properties:
    """What a device is and can do.

    Attributes:
        name: the device in words.
        kind: `cpu` or `gpu`.
        units: processors.
        memory: bytes of memory, 0 where unknown.
        max_cube: units of a cube at most.
        shared_bytes: shared memory of a cube, in bytes.
        alignment: bytes to which buffers are aligned.
        plane_dim: units of a plane.
        dtypes: dtypes that arithmetic and memory take.
        atomics: dtypes that atomics take.
        capabilities: further names, such as `fp64`.
        vector_bytes: of a register for vectors that kernels fill themselves, 0 where units do.
    """

    name: str
    kind: str
    units: int
    memory: int
    max_cube: int
    shared_bytes: int
    alignment: int = 64
    plane_dim: int = 32
    dtypes: frozenset[DType] = frozenset()
    atomics: frozenset[DType] = frozenset()
    index: DType = int64
    capabilities: frozenset[str] = field(default=frozenset())
    vector_bytes: int = 0


class Program(ABC):
    """A compiled kernel on one device.

    Attributes:
        kernel: what was compiled.
    """

    kernel: Kernel

    @abstractmethod
    def launch(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Start the kernel; arguments are device arrays and numbers, in order, and fit."""


class Runtime(ABC):
    """One device: memory, copies, compilation, completion.

    Memory is named by a handle of the runtime's choosing. Copies and launches happen in the
    order of the calls; only `read` and `sync` wait.
    """

    name: str
    properties: Properties

    @abstractmethod
    def alloc(self, size: int) -> Any:
        """Return memory of `size` bytes; raises MemoryError where there is none."""

    @abstractmethod
    def free(self, handle: Any) -> None:
        """Give memory back to the device."""

    @abstractmethod
    def address(self, handle: Any) -> int:
        """Return the address of memory, 0 where the device has no addresses."""

    @abstractmethod
    def write(self, handle: Any, offset: int, data: memoryview) -> None:
        """Copy bytes from the host; the host may change them afterwards."""

    @abstractmethod
    def read(self, handle: Any, offset: int, out: memoryview) -> None:
        """Copy bytes to the host, after everything before."""

    @abstractmethod
    def copy(self, target: Any, at: int, source: Any, start: int, size: int) -> None:
        """Copy bytes on the device."""

    def part(self, handle: Any, offset: int, size: int) -> Any | None:
        """Return the handle of a part of memory at an aligned offset; None where there is none."""
        return None

    def shared(self, size: int) -> tuple[Any, memoryview] | None:
        """Return zeros that both the device and the host see; None where there are none such.

        The host sees what the device wrote once it has waited for the device.
        """
        return None

    def read_async(self, handle: Any, offset: int, out: memoryview) -> Event:
        """Start a copy to the host, after everything before; `out` must live until it is done."""
        self.read(handle, offset, out)
        return self.event()

    def graph(self, launches: Sequence[tuple[Program, Grid, Sequence[Any]]]) -> Graph | None:
        """Return launches as one graph, cheaper to replay; None where the device has none."""
        return None

    @abstractmethod
    def load(self, kernel: Kernel) -> Program:
        """Compile a kernel, or take it from a cache."""

    @abstractmethod
    def event(self) -> Event:
        """Return an event that is reached when everything before is done."""

    @abstractmethod
    def sync(self) -> None:
        """Wait for everything before; raises what a kernel did wrong."""


class Event(Protocol):
    """A point in the work of a device."""

    def done(self) -> bool:
        """Return whether it is reached."""

    def wait(self) -> None:
        """Wait until it is reached."""

    def seconds_since(self, other: Any) -> float:
        """Return the device time from another event to this one, in seconds."""


class Graph(Protocol):
    """Launches that are replayed together."""

    def patch(self, node: int, cubes: Grid, args: Sequence[Any]) -> None:
        """Replace grid and arguments of one launch."""

    def replay(self) -> None:
        """Run all launches in order; returns at once."""


class Log(Protocol):
    """Whoever writes down what a client does, to do it again.

    Attributes:
        thread: the thread that it listens to.
        broken: why what was done cannot be done again, None while it can.
    """

    thread: int
    broken: str | None

    def taken(self, array: Any) -> None:
        """Note memory that was taken."""

    def launch(self, program: Program, cubes: Grid, args: Sequence[Any]) -> None:
        """Make a launch and note it."""


class Plugin(Protocol):
    """What an entry point of `burn.cube_runtimes` names.

    Attributes:
        api_version: `API_VERSION` of the interface it was written for.
    """

    api_version: int

    def count(self) -> int:
        """Return the number of devices, 0 where the driver finds none."""

    def create(self, index: int) -> Runtime:
        """Return a device."""
