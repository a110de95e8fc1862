"""The null backend: shapes, dtypes and refusals of everything, and no mathematics.

Every kernel is the entry's own rule, so it knows each operation the moment it is registered. It
answers how large a model's tensors get, measures what the framework itself costs, and shows that
the contract of a backend needs nothing beyond the catalogue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_backend import API_VERSION, Backend, Kernel
from burn_ir import CATALOG, Entry, Spec
from burn_std import FLOATS, PLAIN, DType, parse_dtype


class Nothing:
    """A payload without elements.

    Attributes:
        shape: extents.
        dtype: element type.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"<nothing {self.dtype.short}{list(self.shape)}>"


def _spec(value: Any) -> Any:
    if isinstance(value, Nothing):
        return Spec(value.shape, value.dtype)
    return tuple(_spec(e) for e in value) if isinstance(value, (list, tuple)) else value


def rule_kernel(entry: Entry) -> Kernel:
    """Return the kernel that answers with what the entry's rule says."""
    count = len(entry.inputs)
    shaped = [i for i, a in enumerate(entry.attrs) if a.kind != "scalar"]

    def run(*args: Any) -> Any:
        attrs = args[count:]
        out = entry.infer(*(_spec(a) for a in args[:count]), *(attrs[i] for i in shaped))
        if isinstance(out, Spec):
            return Nothing(out.shape, out.dtype)
        return [Nothing(s.shape, s.dtype) for s in out]

    return Kernel(lambda key: run, checked=True, quiet=True)


class _Table(dict[str, Kernel]):
    """Kernels of all entries, those registered later as well."""

    def __missing__(self, name: str) -> Kernel:
        made = self[name] = rule_kernel(CATALOG[name])
        return made

    def __contains__(self, name: object) -> bool:
        return name in CATALOG


class NullBackend(Backend):
    """Shapes and dtypes alone; reading a tensor gives zeros.

    Attributes:
        computes: False: values mean nothing here.
    """

    name = "null"
    computes = False

    def __init__(self, index: int) -> None:
        super().__init__(_Table({e.name: rule_kernel(e) for e in CATALOG}), {d: d for d in PLAIN})
        self.index = index

    def from_numpy(self, array: np.ndarray[Any, Any], copy: bool) -> Nothing:
        """Keep the shape and dtype of an array."""
        return Nothing(array.shape, parse_dtype(array.dtype.name))

    def to_numpy(self, payload: Nothing) -> np.ndarray[Any, Any]:
        """Return zeros; bfloat16, which numpy lacks, as float32."""
        known = payload.dtype in PLAIN and payload.dtype is not FLOATS[1]
        zeros = np.zeros(payload.shape, payload.dtype.name if known else "float32")
        zeros.flags.writeable = False
        return zeros

    def scalar(self, value: Any, dtype: DType) -> Nothing:
        """Return a rank-0 payload."""
        return Nothing((), dtype)

    def supports_dtype(self, dtype: DType) -> bool:
        """Return True: nothing is computed in it."""
        return True


class NullPlugin:
    """Entry point `null` of `burn.backends`."""

    name = "null"
    api_version = API_VERSION
    about = "shapes and dtypes only, for tests and measurements"

    def device_count(self) -> int:
        """Return how many null devices `Device.enumerate` lists."""
        return 1

    def create(self, index: int) -> NullBackend:
        """Return the backend of one device."""
        return NullBackend(index)


plugin = NullPlugin()
