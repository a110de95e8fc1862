"""Kernels run by the interpreter of burn-cube: slow, and every wild access or race is an error.

It is a runtime like any other, in host memory: the tests of this package run on it, and so can a
program whose kernels are to be watched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_cube import DeviceArray, Kernel
from burn_cube.spi import Program, Properties, Runtime, interpret
from burn_cube_backend.dtypes import host_dtype
from burn_std import dtypes as d

Array = np.ndarray[Any, Any]


class _Moment:
    """An event: what came before is done when it is made."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        return

    def seconds_since(self, other: Any) -> float:
        return float(self.at - other.at)


class _Interpreted(Program):
    """A kernel as it is."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def launch(self, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Run it and return when it is done."""
        params = self.kernel.params
        given = (_argument(a, p.type) for a, p in zip(args, params, strict=True))
        interpret(self.kernel, cubes, tuple(given))


def _argument(arg: Any, kind: Any) -> Any:
    if isinstance(arg, DeviceArray):
        end = arg.offset + arg.length * arg.dtype.itemsize
        flat = arg.storage.handle[arg.offset : end].view(host_dtype(arg.dtype))
        if arg.dense:
            return flat.reshape(arg.shape)
        steps = tuple(s * arg.dtype.itemsize for s in arg.strides)
        return np.lib.stride_tricks.as_strided(flat, arg.shape, steps)
    if kind is d.bfloat16:  # the interpreter holds it as its bits
        return np.array(arg, host_dtype(kind)).view(np.uint16)
    return arg


class InterpretedRuntime(Runtime):
    """Host memory and the interpreter."""

    def __init__(self) -> None:
        self.name = "interp"
        self.properties = Properties(
            name="burn-cube interpreter", kind="cpu", units=1,
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), max_cube=1024,
            shared_bytes=1 << 16, alignment=16, dtypes=frozenset(d.PLAIN),
            atomics=frozenset(t for t in d.PLAIN if t.bits >= 32),
            capabilities=frozenset({"fp64"}),
        )  # fmt: skip

    def alloc(self, size: int) -> Array:
        """Return new memory."""
        return np.empty(size, np.uint8)

    def free(self, handle: Any) -> None:
        """Let go of memory: the collector has it."""

    def address(self, handle: Any) -> int:
        """Return 0: kernels get arrays."""
        return 0

    def write(self, handle: Array, offset: int, data: memoryview) -> None:
        """Copy bytes into memory."""
        host = np.frombuffer(data, np.uint8)
        handle[offset : offset + host.size] = host

    def read(self, handle: Array, offset: int, out: memoryview) -> None:
        """Copy bytes out of memory."""
        host = np.frombuffer(out, np.uint8)
        host[...] = handle[offset : offset + host.size]

    def copy(self, target: Array, at: int, source: Array, start: int, size: int) -> None:
        """Copy bytes inside memory."""
        target[at : at + size] = source[start : start + size]

    def load(self, kernel: Kernel) -> Program:
        """Return the kernel as it is."""
        return _Interpreted(kernel)

    def event(self) -> _Moment:
        """Return this moment."""
        return _Moment()

    def sync(self) -> None:
        """Return: everything is done at once."""
