"""Kernels run by the interpreter of burn-cube: slow, and every wild access or race is an error.

It is a device like any other, in host memory: the tests of this package run on it, and so can a
program whose kernels are to be watched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_cube import Kernel
from burn_cube.interpreter import interpret
from burn_cube.runtime.interface import (
    Buffer,
    Device,
    DeviceArray,
    Dims,
    Loaded,
    Properties,
    host_dtype,
)
from burn_std import dtypes as d

Array = np.ndarray[Any, Any]


class _Now:
    """An event of a device that does everything at once."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass

    def since(self, earlier: Any) -> float:
        return 0.0


_NOW = _Now()


class InterpretedDevice(Device):
    """Host memory and the interpreter."""

    def __init__(self, index: int) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        properties = Properties(
            name="burn-cube interpreter", vendor="burn", driver="numpy", arch="numpy",
            memory=memory, units=1, plane_dims=(32,), max_cube_size=1024,
            max_cube_dim=(1024, 1024, 64), max_cubes=(2**31 - 1, 65535, 65535),
            shared_memory=1 << 16, alignment=16, dtypes=frozenset(d.PLAIN),
            features=frozenset({"atomic_64", "atomic_float", "planes"}),
        )  # fmt: skip
        super().__init__(f"interp:{index}", properties)

    def load(self, kernel: Kernel) -> Loaded:
        """Return the kernel as it is."""
        return Loaded(kernel, None, [], str(kernel.name), False)

    def _launch(self, loaded: Loaded, cubes: Dims, args: Sequence[Any]) -> None:
        interpret(loaded.kernel, cubes, tuple(self._argument(a) for a in args))

    def _argument(self, arg: Any) -> Any:
        if not isinstance(arg, DeviceArray):
            return arg
        size = arg.dtype.itemsize
        raw = arg.buffer.handle[arg.offset * size : (arg.offset + arg.length) * size]
        return raw.view(host_dtype(arg.dtype))

    def write(self, buffer: Buffer, offset: int, host: Array) -> None:
        """Copy bytes to a buffer."""
        buffer.handle[offset : offset + host.size] = host

    def read(self, buffer: Buffer, offset: int, host: Array) -> _Now:
        """Copy bytes from a buffer."""
        host[...] = buffer.handle[offset : offset + host.size]
        return _NOW

    def copy(self, source: Buffer, at: int, target: Buffer, to: int, nbytes: int) -> None:
        """Copy bytes between buffers."""
        target.handle[to : to + nbytes] = source.handle[at : at + nbytes]

    def record(self) -> _Now:
        """Return an event that has passed."""
        return _NOW

    def sync(self) -> None:
        """Return: everything is done at once."""

    def _allocate(self, nbytes: int) -> Array:
        return np.empty(nbytes, np.uint8)

    def _release(self, handle: Array) -> None:
        pass

    def _part(self, handle: Array, offset: int, nbytes: int) -> Array:
        return handle[offset : offset + nbytes]
