"""What the results are compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burn_backend import TensorBase
from burn_dispatch import BACKENDS, Resource, device
from burn_ir import CATALOG, Spec
from burn_std import DType, parse_dtype, promote_dtypes
from burn_testing.conformance.calls import Output, call, inputs, read
from burn_testing.oracle import ORACLES, map_oracle
from burn_testing.samples import Draw, Sample, arrays, as_bfloat16, dtype_of

Array = np.ndarray[Any, Any]

# Their result depends on the float's own width, so float64 is no reference for a narrower one;
# the oracle of maps knows the dtype.
_OWN_WIDTH = ("dropout", "bernoulli")


class Expected(NamedTuple):
    """What a result must be; `values` None leaves them open."""

    dtype: str
    shape: tuple[int, ...]
    values: Array | None


class FlexReference:
    """The eager numpy backend, for every other one."""

    def __init__(self) -> None:
        self.context = device("flex").context

    def expected(self, s: Sample, dtype: str) -> list[Expected]:
        """Return what flex gives."""
        found = call(self.context, s, inputs(self.context, s, dtype))
        return [Expected(*read(x)) for x in found]


class PlainReference:
    """Decompositions over flex's core primitives, scalar expressions and plain numpy."""

    def __init__(self) -> None:
        backend = BACKENDS.load("flex").create(0)
        backend.table = {
            n: k for n, k in backend.table.items() if "::" in n or CATALOG[n].grade != "derived"
        }
        self.context = Resource("flex-core", "flex-core", backend, 0).plain_context()

    def expected(self, s: Sample, dtype: str) -> list[Expected]:
        """Return the specs by the entry's rule and the values by its reference."""
        entry = CATALOG[s.entry]
        values = self._values(s, dtype)
        if entry.klass == "dynamic":
            return [
                Expected(_dynamic_dtype(s, i, dtype), () if v is None else v.shape, v)
                for i, v in enumerate(values)
            ]
        specs = self._specs(s, dtype)
        return [
            Expected(spec.dtype.short, spec.shape, None if v is None else _rounded(v, spec.dtype))
            for spec, v in zip(specs, values, strict=True)
        ]

    def _specs(self, s: Sample, dtype: str) -> list[Spec]:
        entry = CATALOG[s.entry]
        given = [_spec(x, dtype) for x in s.inputs]
        common = self._computed(s, dtype)
        given = [
            _as(x, common) if i.promoted or (n == 0 and entry.lift) else x
            for n, (i, x) in enumerate(zip(entry.inputs, given, strict=True))
        ]
        shaped = [a for a, k in zip(s.attrs, entry.attrs, strict=True) if k.kind != "scalar"]
        out = entry.infer(*given, *shaped)
        return [out] if isinstance(out, Spec) else list(out)

    def _computed(self, s: Sample, dtype: str) -> DType:
        """Return the dtype in which the promoted inputs meet."""
        entry = CATALOG[s.entry]
        found: DType | None = None
        for i, x in zip(entry.inputs, s.inputs, strict=True):
            for d in x if isinstance(x, list) else [x]:
                if isinstance(d, Draw) and (i.promoted or found is None):
                    one = dtype_of(d, dtype)
                    found = one if found is None else promote_dtypes(found, one)
        found = found or parse_dtype(dtype)
        return self.context.default_float if entry.lift and not found.is_float else found

    def _values(self, s: Sample, dtype: str) -> list[Array | None]:
        entry = CATALOG[s.entry]
        if s.entry in ORACLES:
            given = [_widened(x) for x in arrays(s, dtype)]
            with np.errstate(all="ignore"):
                out = ORACLES[s.entry](*given, *s.attrs)
            return list(out) if isinstance(out, list) else [np.asarray(out)]
        if entry.expr is not None:
            given = [_widened(x) for x in arrays(s, dtype)]
            computed = self._computed(s, dtype)
            given = [
                _met(x, computed) if i.promoted or entry.lift else x
                for i, x in zip(entry.inputs, given, strict=True)
            ]
            out = map_oracle(entry, given, s.attrs, computed)
            return [np.broadcast_to(out, self._specs(s, dtype)[0].shape)]
        if entry.decompose is not None:
            wide = "f64" if parse_dtype(dtype).is_float and s.entry not in _OWN_WIDTH else dtype
            given = inputs(self.context, s, dtype)
            if wide != dtype:
                given = [_cast(self.context, x) for x in given]
            return [read(x).values for x in call(self.context, s, given)]
        return [None] * max(1, len(entry.outputs))


def _spec(x: Any, dtype: str) -> Any:
    if isinstance(x, Draw):
        return Spec(x.shape, dtype_of(x, dtype))
    if isinstance(x, tuple):
        return Spec(x[1].shape, x[2])
    return tuple(_spec(e, dtype) for e in x) if isinstance(x, list) else x


def _as(x: Any, dtype: DType) -> Any:
    if isinstance(x, Spec):
        return Spec(x.shape, dtype)
    if isinstance(x, tuple):
        return tuple(_as(e, dtype) for e in x)
    return Spec((), dtype) if isinstance(x, (bool, int, float)) else x


def _widened(x: Any) -> Any:
    if isinstance(x, list):
        return [_widened(e) for e in x]
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        # The reference starts from the value that the narrow dtype holds.
        return x.astype(np.float64)
    return x


def _met(x: Any, dtype: DType) -> Any:
    if x is None:
        return None
    if dtype.is_float:
        return np.asarray(x, np.float64)
    return np.asarray(x).astype(dtype.name)


def _cast(context: Any, x: Any) -> Any:
    if isinstance(x, list):
        return [_cast(context, e) for e in x]
    if isinstance(x, TensorBase) and x.dtype.is_float:
        return context.cast(x, parse_dtype("f64"))
    return x


def _rounded(values: Array, dtype: DType) -> Array:
    """Return values as the result's dtype holds them, so that both overflow alike."""
    with np.errstate(all="ignore"):
        if dtype.is_quantized:
            return values.astype(np.float32)
        if dtype.name == "bfloat16":
            return as_bfloat16(np.asarray(values).astype(np.float32))
        return np.asarray(values).astype(dtype.name)


def _dynamic_dtype(s: Sample, output: int, dtype: str) -> str:
    return "i64" if s.entry == "nonzero" or output else dtype


def reference(name: str) -> FlexReference | PlainReference:
    """Return what a backend is compared with."""
    return PlainReference() if name.partition(":")[0] == "flex" else FlexReference()


__all__ = ["Expected", "FlexReference", "Output", "PlainReference", "reference"]
