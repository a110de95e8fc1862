"""Makes the calls of samples on a device, in every layout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burn_backend import TensorBase
from burn_ir import CATALOG
from burn_std import DType, parse_dtype
from burn_testing.layouts import in_layout
from burn_testing.samples import Draw, ErrorSample, Sample, arrays, dtype_of

Array = np.ndarray[Any, Any]


class Output(NamedTuple):
    """One result, read back.

    Attributes:
        dtype: short name; of a quantised tensor, its scheme's.
        shape: extents.
        values: elements; a quantised tensor comes dequantised.
    """

    dtype: str
    shape: tuple[int, ...]
    values: Array


def tensor(context: Any, values: Array, dtype: Any, layout: str | None = None) -> TensorBase:
    """Return a tensor of these elements; bfloat16 comes in float32 and is cast."""
    cast = dtype if dtype.name == "bfloat16" else None
    if layout is not None:
        x = in_layout(context, values, layout, cast)
        if x is not None:
            return x
    made: TensorBase = context.tensor_from_numpy(values)
    return made if cast is None else context.cast(made, cast)


def inputs(
    context: Any, s: Sample | ErrorSample, dtype: str, layout: str | None = None
) -> list[Any]:
    """Return the inputs of a sample on a device."""

    def made(given: Any, values: Any) -> Any:
        if isinstance(given, Draw):
            return tensor(context, values, dtype_of(given, dtype), layout)
        if isinstance(given, list):
            return [made(g, v) for g, v in zip(given, values, strict=True)]
        if isinstance(given, tuple):  # ("quantized", draw, scheme)
            plain = tensor(context, values[1], parse_dtype("f32"))
            return context.quantize(plain, None, None, given[2])
        return given

    return [made(g, v) for g, v in zip(s.inputs, arrays(s, dtype), strict=True)]


def call(context: Any, s: Sample | ErrorSample, given: list[Any]) -> list[TensorBase]:
    """Return the tensors that the operation gives."""
    out = getattr(context, s.entry)(*given, *s.attrs)
    return [out] if isinstance(out, TensorBase) else list(out)


def read(x: TensorBase) -> Output:
    """Return a result as numpy knows it."""
    if x.dtype.is_quantized:
        plain = x.b.dequantize(x, parse_dtype("f32"))
        return Output(x.dtype.short, tuple(x.shape), np.asarray(x.b.to_numpy(plain)))
    return Output(x.dtype.short, tuple(x.shape), np.asarray(x.b.to_numpy(x)))


def flat(given: list[Any]) -> list[TensorBase]:
    """Return the tensors among the inputs of a call."""
    out: list[TensorBase] = []
    for x in given:
        if isinstance(x, TensorBase):
            out.append(x)
        elif isinstance(x, (list, tuple)):
            out += [e for e in x if isinstance(e, TensorBase)]
    return out


# Dtypes that decompositions round to, whatever the dtype of the run.
_WITHIN = {"muon_step": ("bf16",)}


def supported(device: Any, s: Sample | ErrorSample, dtype: str) -> bool:
    """Return whether a device has every dtype of a run: inputs, attributes, what lies between."""
    names = {dtype} | {d.dtype for d in s.inputs if isinstance(d, Draw) and d.dtype}
    if s.entry not in device.resource.backend.table:
        names |= {*_WITHIN.get(s.entry, ())}
    asked = [parse_dtype(n) for n in names] + [a for a in s.attrs if isinstance(a, DType)]
    return all(device.supports_dtype(d) for d in asked)


def declared_unsupported(device: Any, name: str) -> bool:
    """Return whether the backend lacks an optional primitive, as it may."""
    return CATALOG[name].grade == "optional" and name not in device.resource.backend.table
