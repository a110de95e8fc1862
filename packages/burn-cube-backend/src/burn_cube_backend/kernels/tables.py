"""Constant tables of kernels, made on the host and kept in the memory of the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from burn_cube import DeviceArray
from burn_cube_backend.dtypes import host_dtype
from burn_cube_backend.engine import Engine
from burn_std import DType

# Tables are small next to the tensors they serve; beyond this many all are let go.
_MOST = 256
_TABLES: WeakKeyDictionary[Engine, dict[Any, tuple[DeviceArray, ...]]] = WeakKeyDictionary()


def tables(
    engine: Engine, key: Any, make: Callable[[], list[tuple[np.ndarray[Any, Any], DType]]]
) -> tuple[DeviceArray, ...]:
    """Return the tables of a key, made at the first call.

    Args:
        engine: the device.
        key: everything that the tables depend on.
        make: returns arrays and the dtypes they have on the device.
    """
    kept = _TABLES.setdefault(engine, {})
    found = kept.get(key)
    if found is None:
        if len(kept) >= _MOST:
            kept.clear()
        found = kept[key] = tuple(_sent(engine, array, dtype) for array, dtype in make())
    return found


def _sent(engine: Engine, array: np.ndarray[Any, Any], dtype: DType) -> DeviceArray:
    flat = np.ascontiguousarray(array, host_dtype(dtype)).reshape(-1)
    made = engine.from_numpy(flat, dtype).buf
    assert made is not None  # noqa: S101 - from_numpy gives memory
    return made
