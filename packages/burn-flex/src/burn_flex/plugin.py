"""The flex backend: numpy arrays as payloads, computed at once; the plain meaning of everything."""

from __future__ import annotations

import contextvars
import threading
from sys import getrefcount
from typing import Any

import numpy as np

from burn_backend import API_VERSION, Backend, QuantizedArray
from burn_flex.table import DTYPE, KERNELS, NATIVE
from burn_std import OF_A_LOCAL, DType

# Bytes; the most at which glibc's allocator still learns from what is freed (32 MiB on 64 bits).
_KEPT = (32 << 20) - (64 << 10)


def keep_freed_memory() -> None:
    """Let the C library keep freed arrays for the next ones, as pools of other frameworks do.

    glibc maps memory of more than 128 KiB anew each time, and the kernel clears every page of it,
    until an array of such a size was freed: then it takes that much from its heap. Training a
    perceptron whose weights have 600 KB faulted 300 pages in at each step, a quarter of its time.
    One array of the largest size that counts, never touched, teaches it at once. Where the C
    library is another one this does nothing.
    """
    np.empty(_KEPT, np.uint8)


class Quiet(threading.local):
    """Per thread: a context in which numpy shows no floating-point warning.

    numpy keeps its error state in a context variable, so running a kernel inside a context of its
    own neither shows warnings nor changes the user's state, and costs half a microsecond, a third
    of `with numpy.errstate`.
    """

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


class FlexBackend(Backend):
    """Eager numpy."""

    name = "flex"
    runner = Quiet()
    ready = np.ndarray

    def __init__(self, index: int) -> None:
        import burn_flex.kernels  # noqa: F401 - fills KERNELS

        super().__init__(KERNELS, NATIVE)
        self.index = index
        keep_freed_memory()

    def from_numpy(self, array: np.ndarray[Any, Any], copy: bool) -> Any:
        """Return the array itself, or a copy in C order."""
        if isinstance(array, QuantizedArray):
            return array
        # Payload dtypes are compared by identity; a foreign array brings an object of its own.
        native = NATIVE[DTYPE[array.dtype]]
        if array.dtype is not native:
            array = array.view(native)
        if copy:
            return np.array(array, order="C")
        return array

    def to_numpy(self, payload: Any) -> Any:
        """Return a read-only view of an array; a quantised payload as it is."""
        if payload.__class__ is not np.ndarray:
            return payload
        view = payload.view()
        view.flags.writeable = False
        return view

    def scalar(self, value: Any, dtype: DType) -> np.ndarray[Any, Any]:
        """Return an array of rank 0."""
        if dtype.is_int and isinstance(value, int):
            bits = dtype.bits
            value &= (1 << bits) - 1
            if dtype.kind == "int" and value >> (bits - 1):
                value -= 1 << bits
        if dtype.bits == 16 and dtype.is_float:
            # Beyond the largest is inf; bfloat16 is made of no unsigned integer.
            with np.errstate(over="ignore"):
                return np.array(float(value), NATIVE[dtype])
        return np.array(value, NATIVE[dtype])

    def wrap(self, result: Any) -> Any:
        """Return numpy scalars as arrays."""
        return result if isinstance(result, QuantizedArray) else np.asarray(result)

    def owned(self, holder: Any) -> bool:
        """Return whether the array owns its memory and only the holder has it."""
        array = holder.buf
        # references: the holder and this frame
        return (
            array.__class__ is np.ndarray
            and getrefcount(array) == 1 + OF_A_LOCAL
            and array.base is None
            and bool(array.flags.writeable)
        )

    def memory_of(self, payload: Any) -> list[tuple[Any, int]]:
        """Return the arrays that own the memory; a view's are those that it looks at."""
        if isinstance(payload, QuantizedArray):
            parts = [payload.values, payload.scale, payload.zero]
            return [m for part in parts if part is not None for m in self.memory_of(part)]
        owner = payload
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return [(owner, owner.nbytes)]

    def supports_dtype(self, dtype: DType) -> bool:
        """Return whether numpy and ml_dtypes have it; quantised schemes all count."""
        return dtype in DTYPE.values() or dtype.is_quantized


class FlexPlugin:
    """Entry point `flex` of `burn.backends`; there are as many flex devices as one asks for."""

    name = "flex"
    api_version = API_VERSION
    about = "eager CPU backend on numpy"

    def device_count(self) -> int:
        """Return 1: the processor is always there."""
        return 1

    def create(self, index: int) -> FlexBackend:
        """Return the backend under an index."""
        return FlexBackend(index)


plugin = FlexPlugin()
