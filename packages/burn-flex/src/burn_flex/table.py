"""The kernel table of flex: `@kernel` and `@maker` fill it, the plugin hands it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from burn_backend import Kernel
from burn_std import DType, dtypes as d

F = TypeVar("F", bound=Callable[..., Any])
KERNELS: dict[str, Kernel] = {}

NATIVE: dict[DType, np.dtype[Any]] = {
    dt: np.dtype(ml_dtypes.bfloat16 if dt is d.bfloat16 else dt.name) for dt in d.PLAIN
}
DTYPE: dict[Any, DType] = {n: dt for dt, n in NATIVE.items()}


def native(dtype: DType) -> np.dtype[Any]:
    """Return numpy's dtype of a plain DType."""
    return NATIVE[dtype]


def kernel(name: str, *, checked: bool = False, quiet: bool = False) -> Callable[[F], F]:
    """Register a kernel for all dtypes.

    Args:
        name: entry of the catalogue.
        checked: numpy raises for every illegal shape, so the entry's rule need not run first.
        quiet: no floating-point warning can arise, so it runs outside the silenced context.
    """

    def register(fn: F) -> F:
        KERNELS[name] = Kernel(lambda dtype: fn, checked, quiet, fn)
        return fn

    return register


def maker(name: str, *, checked: bool = False, quiet: bool = False) -> Callable[[F], F]:
    """Register a function that makes the kernel for one dtype; options as in `kernel`."""

    def register(make: F) -> F:
        KERNELS[name] = Kernel(make, checked, quiet)
        return make

    return register
