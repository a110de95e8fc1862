"""Reading back: many arrays behind one point of the queue, each a future."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn_cube.runtime.interface import Device, DeviceArray, Event, Reading, as_bytes

if TYPE_CHECKING:
    import numpy as np


class Pending:
    """One array on its way to the host."""

    __slots__ = ("_array", "_event", "_flat")

    def __init__(self, array: DeviceArray, flat: np.ndarray[Any, Any], event: Event | None) -> None:
        self._array: DeviceArray | None = array
        self._flat = flat
        self._event = event

    def done(self) -> bool:
        """Return whether the bytes are here."""
        return self._event is None or self._event.done()

    def result(self) -> np.ndarray[Any, Any]:
        """Wait for the array and return it; faults of earlier kernels are raised here."""
        import numpy as np

        array, self._array = self._array, None
        if array is None:
            return self._flat
        if self._event is not None:
            self._event.wait()
            array.device.faults.check()
        strides = [stride * array.dtype.itemsize for stride in array.strides]
        view = np.lib.stride_tricks.as_strided(self._flat, array.shape, strides)
        self._flat = view if view.flags.c_contiguous else view.copy()
        return self._flat


def start(device: Device, arrays: Sequence[DeviceArray]) -> list[Reading]:
    """Queue the copies of several arrays."""
    made: list[Reading] = []
    for array in arrays:
        flat, raw = as_bytes(array.dtype, array.nbytes)
        at = array.offset * array.dtype.itemsize
        event = device.read(array.buffer, at, raw) if array.nbytes else None
        made.append(Pending(array, flat, event))
    return made
