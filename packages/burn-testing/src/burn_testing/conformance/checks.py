"""The checks themselves: each returns what is wrong with one operation on one device."""

from __future__ import annotations

from typing import Any

from burn_backend import TensorBase
from burn_ir import CATALOG
from burn_std import DeviceError, IndexRangeError, UnsupportedOpError
from burn_testing.conformance.calls import (
    Output,
    call,
    declared_unsupported,
    flat,
    inputs,
    read,
    supported,
)
from burn_testing.layouts import LAYOUTS
from burn_testing.samples import ERRORS, SAMPLES, Draw, Sample
from burn_testing.tolerance import difference, tolerance


def same_values(device: Any, reference: Any, name: str) -> list[str]:
    """Dtype, shape and values of every sample in every dtype; inputs stay as they were."""
    return _each(device, name, lambda s, dtype: _values(device, reference, s, dtype))


def same_layouts(device: Any, name: str) -> list[str]:
    """Every layout of the inputs gives what row-major inputs give."""
    return _each(device, name, lambda s, dtype: _layouts(device, s, dtype), widest=True)


def refusals(device: Any, name: str) -> list[str]:
    """Every error sample raises its class and names the operation."""
    wrong = []
    for s in ERRORS[name]:
        if not supported(device, s, s.dtype):
            continue
        if not _has_values(device) and (
            s.error is IndexRangeError and "index_checked" in CATALOG[name].edges
        ):
            continue  # the refusal depends on values
        line = _refused(device, s)
        if line and not declared_unsupported(device, name):
            wrong.append(f"{s.name}: {line}")
    return wrong


def mixed_devices(device: Any, other: Any, name: str) -> list[str]:
    """A call with its last tensor on another device raises DeviceError and names both."""
    s = next((s for s in SAMPLES[name] if len(_places(s)) > 1), None)
    if s is None or declared_unsupported(device, name):
        return []
    dtype = next((d for d in s.dtypes if supported(device, s, d)), None)
    if dtype is None:
        return []
    try:
        given, there = inputs(device.context, s, dtype), inputs(other.context, s, dtype)
    except UnsupportedOpError as error:
        # What makes an input, as a quantised tensor, may be lacking like any optional primitive.
        return [] if declared_unsupported(device, error.op) else [f"{s.name}: {error}"]
    at, inside = _places(s)[-1]
    if inside is None:
        given[at] = there[at]
    else:
        given[at] = [*given[at][:inside], there[at][inside]]
    try:
        call(device.context, s, given)
    except DeviceError as error:
        named = str(device) in str(error) and str(other) in str(error)
        return [] if named and error.op == name else [f"{s.name}: says {error}"]
    except Exception as error:  # noqa: BLE001 - reported
        return [f"{s.name}: {type(error).__name__}: {error}, expected DeviceError"]
    return [f"{s.name}: was accepted, expected DeviceError"]


def _places(s: Sample) -> list[tuple[int, int | None]]:
    """Return where the tensors of a sample stand: input, and position in a list."""
    out: list[tuple[int, int | None]] = []
    for i, x in enumerate(s.inputs):
        if isinstance(x, Draw):
            out.append((i, None))
        elif isinstance(x, list):
            out += [(i, j) for j in range(len(x))]
    return out


def _each(device: Any, name: str, check: Any, widest: bool = False) -> list[str]:
    wrong: list[str] = []
    if CATALOG[name].klass == "dynamic" and not _has_values(device):
        return wrong  # the shapes depend on values
    for s in SAMPLES[name]:
        kinds = [d for d in s.dtypes if supported(device, s, d)]
        if widest:
            kinds = [d for d in kinds if d == "f32"] or kinds[-1:]
        for dtype in kinds:
            try:
                wrong += [f"{s.name} {dtype}: {line}" for line in check(s, dtype)]
            except UnsupportedOpError as error:
                # A derived operation lacks what the optional primitive that it needs lacks.
                if not declared_unsupported(device, error.op):
                    wrong.append(f"{s.name} {dtype}: {error}")
            except Exception as error:  # noqa: BLE001 - one report of all samples
                wrong.append(f"{s.name} {dtype}: {type(error).__name__}: {error}")
    return wrong


def _values(device: Any, reference: Any, s: Sample, dtype: str) -> list[str]:
    given = inputs(device.context, s, dtype)
    before = [read(x).values.copy() for x in flat(given)]
    found = [read(x) for x in call(device.context, s, given)]
    wrong = [
        f"input {i} changed: {line}"
        for i, (x, old) in enumerate(zip(flat(given), before, strict=True))
        if (line := difference(read(x).values, old, tolerance(CATALOG["reshape"], "bool")))
    ]
    expected = reference.expected(s, dtype)
    if len(found) != len(expected):
        return [*wrong, f"{len(found)} results, expected {len(expected)}"]
    for i, (out, want) in enumerate(zip(found, expected, strict=True)):
        if (out.dtype, out.shape) != (want.dtype, want.shape):
            wrong.append(
                f"result {i}: {out.dtype}{list(out.shape)}, expected {want.dtype}{list(want.shape)}"
            )
        elif want.values is not None and _has_values(device):
            line = difference(
                out.values, want.values, tolerance(CATALOG[s.entry], out.dtype, s.length)
            )
            if line:
                wrong.append(f"result {i}: {line}")
    return wrong


def _has_values(device: Any) -> bool:
    """The null backend knows shapes and dtypes alone."""
    return getattr(device.resource.backend, "computes", True)


def _layouts(device: Any, s: Sample, dtype: str) -> list[str]:
    plain = [read(x) for x in call(device.context, s, inputs(device.context, s, dtype))]
    wrong = []
    for layout in LAYOUTS:
        found = [read(x) for x in call(device.context, s, inputs(device.context, s, dtype, layout))]
        for i, (out, want) in enumerate(zip(found, plain, strict=True)):
            line = _compared(out, want, s)
            if line and _has_values(device):
                wrong.append(f"{layout}, result {i}: {line}")
    return wrong


def _compared(out: Output, want: Output, s: Sample) -> str | None:
    if (out.dtype, out.shape) != (want.dtype, want.shape):
        return f"{out.dtype}{list(out.shape)}, expected {want.dtype}{list(want.shape)}"
    return difference(out.values, want.values, tolerance(CATALOG[s.entry], out.dtype, s.length))


def _refused(device: Any, s: Any) -> str | None:
    given = inputs(device.context, s, s.dtype)
    try:
        out = call(device.context, s, given)
        for x in out:
            if isinstance(x, TensorBase):
                read(x)
        device.sync()
    except s.error as error:
        if error.op in s.ops or _part_found_it(device, s, error):
            return None
        return f"names {error.op!r}, expected one of {s.ops}"
    except Exception as error:  # noqa: BLE001 - reported
        return f"{type(error).__name__}: {error}, expected {s.error.__name__}"
    return f"was accepted, expected {s.error.__name__}"


def _part_found_it(device: Any, s: Any, error: Any) -> bool:
    """Return whether an index outside was found by a primitive of a decomposition.

    Values are seen by kernels alone, so the operation that runs them gives the name.
    """
    decomposed = s.entry not in device.resource.backend.table
    return (
        decomposed
        and isinstance(error, IndexRangeError)
        and "index_checked" in CATALOG[s.entry].edges
        and "index_checked" in CATALOG[error.op].edges
    )
