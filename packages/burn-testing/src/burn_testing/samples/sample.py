"""What a sample is: inputs to draw and attributes to pass, independent of backend and dtype."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from burn_ir import CATALOG, Entry
from burn_std import FLOATS, INTS, PLAIN, BurnError, DType, parse_dtype

Array = np.ndarray[Any, Any]


class Draw(NamedTuple):
    """A tensor to be made.

    Attributes:
        shape: extents.
        low: smallest value.
        high: largest value.
        dtype: short name of its dtype; None takes the dtype of the run.
        values: the elements themselves, nested; `extremes` for the ends of an integer dtype; None
            draws them.
        fixed: no gradient is asked for it.
    """

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None
    values: Any = None
    fixed: bool = False


class Sample(NamedTuple):
    """One call worth making.

    Attributes:
        entry: name of the operation.
        name: what is special about it.
        inputs: a `Draw`, a number, None or a list of `Draw` per input.
        attrs: every attribute, in declared order.
        dtypes: short names of the dtypes to run in.
        grad: its gradients exist and have no kink nearby.
        length: elements one result reads, for the tolerance.
    """

    entry: str
    name: str
    inputs: tuple[Any, ...]
    attrs: tuple[Any, ...]
    dtypes: tuple[str, ...]
    grad: bool
    length: int


class ErrorSample(NamedTuple):
    """One call that must be refused.

    Attributes:
        entry: name of the operation.
        name: what is wrong with it.
        inputs: as in `Sample`; anything else is passed as it is.
        attrs: every attribute.
        error: the class that must be raised; its `op` must be one of `ops`.
        dtype: short name of the dtype to run in.
        ops: names under which the operation may speak.
    """

    entry: str
    name: str
    inputs: tuple[Any, ...]
    attrs: tuple[Any, ...]
    error: type[BurnError]
    dtype: str
    ops: tuple[str, ...]


SAMPLES: dict[str, list[Sample]] = {}
ERRORS: dict[str, list[ErrorSample]] = {}

FLOAT_NAMES = tuple(d.short for d in FLOATS)
INT_NAMES = tuple(d.short for d in INTS)
ALL_NAMES = tuple(d.short for d in PLAIN)
NUMERIC_NAMES = INT_NAMES + FLOAT_NAMES


def t(
    *shape: int, low: float = -2.0, high: float = 2.0, dtype: str | None = None, fixed: bool = False
) -> Draw:
    """Return a tensor of a shape whose elements are drawn from [low, high]."""
    return Draw(shape, low, high, dtype, fixed=fixed)


def v(values: Any, dtype: str | None = None) -> Draw:
    """Return a tensor of given elements."""
    return Draw(np.shape(values), dtype=dtype, values=values)


def ints(values: Any) -> Draw:
    """Return an int64 tensor of given elements, an index as a rule."""
    return v(values, "i64")


def dtypes_of(entry: Entry) -> tuple[str, ...]:
    """Return the dtypes an entry takes, integers of a lifting entry included."""
    names = {
        "any": ALL_NAMES, "all": ALL_NAMES, "numeric": NUMERIC_NAMES, "float": FLOAT_NAMES,
        "int": INT_NAMES, "bits": ("bool", *INT_NAMES), "bool": ("bool",), "quant": ("f32",),
    }[entry.accepts]  # fmt: skip
    return ("bool", "u8", "i32", "i64", *names) if entry.lift else names


def sample(
    entry: str,
    *inputs: Any,
    attrs: Iterable[Any] = (),
    name: str | None = None,
    dtypes: Iterable[str] | None = None,
    grad: bool = True,
    length: int = 1,
) -> None:
    """Add a sample of an operation; its name is made from the shapes unless given."""
    e = CATALOG[entry]
    kinds = tuple(dtypes) if dtypes is not None else dtypes_of(e)
    found = SAMPLES.setdefault(entry, [])
    attrs = tuple(attrs)
    label = name or "_".join(_word(i) for i in inputs) or "plain"
    label = f"{label}_{sum(s.name.startswith(label) for s in found)}"
    found.append(Sample(entry, label, inputs, attrs, kinds, grad and e.differentiable, length))


def error(
    entry: str,
    name: str,
    kind: type[BurnError],
    *inputs: Any,
    attrs: Iterable[Any] = (),
    dtype: str = "f32",
    ops: Iterable[str] = (),
) -> None:
    """Add a call that must be refused with an error of this class."""
    sample_ = ErrorSample(entry, name, inputs, tuple(attrs), kind, dtype, (entry, *ops))
    ERRORS.setdefault(entry, []).append(sample_)


def _word(value: Any) -> str:
    if isinstance(value, Draw):
        return "x".join(map(str, value.shape)) or "scalar"
    if isinstance(value, list):
        return f"list{len(value)}"
    return str(value).replace(".", "p").replace("-", "m")


def draw(d: Draw, dtype: str, seed: int) -> Array:
    """Return the elements of a `Draw` as an array; bfloat16 comes as float32, already rounded.

    Floats are distinct where the range allows it and keep away from multiples of one half, where
    kinks and ties of many functions lie.
    """
    name = d.dtype or dtype
    kind: Any = np.dtype(
        {"bf16": "f4"}.get(name, parse_dtype(name).name if name != "bf16" else "f4")
    )
    if isinstance(d.values, str):
        return _extremes(kind).reshape(d.shape)
    if d.values is not None:
        with np.errstate(all="ignore"):
            return _held(np.array(d.values).astype(kind), name)
    flat: Any
    rng = np.random.default_rng(seed)
    count = int(np.prod(d.shape))
    if kind.kind == "b":
        flat = rng.random(count) < 0.5
    elif kind.kind in "iu":
        low, high = int(np.ceil(d.low)), int(np.floor(d.high))
        low = max(low, 0) if kind.kind == "u" else low
        flat = rng.integers(low, max(high, low) + 1, count)
    else:
        # Not symmetric about 0, so that absolute values differ as well.
        flat = d.low + (d.high - d.low) * (np.arange(count) + 0.37) / max(count, 1)
        near = np.abs(flat - np.round(flat * 2) / 2) < 0.04
        flat = rng.permutation(np.where(near, flat + 0.07, flat))
    return _held(flat.reshape(d.shape).astype(kind), name)


def _extremes(kind: Any) -> Array:
    """Return the ends of an integer dtype and what lies beside them and beside 0."""
    ends = np.iinfo(kind)
    near = [ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1, 2]
    if ends.min:
        near[3] = -1
    return np.array(near, kind)


def _held(values: Array, name: str) -> Array:
    return as_bfloat16(values) if name == "bf16" else values


def as_bfloat16(values: Array) -> Array:
    """Return float32 values as bfloat16 holds them: the upper half of the bits, half to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    kept = np.where(np.isfinite(values), rounded, bits).astype(np.uint32)
    return kept.view(np.float32).reshape(values.shape)


def arrays(s: Sample | ErrorSample, dtype: str) -> list[Any]:
    """Return the inputs of a sample as arrays (lists of arrays, numbers, None)."""
    base = zlib.crc32(f"{s.entry}/{s.name}".encode())

    def made(value: Any, seed: int) -> Any:
        if isinstance(value, Draw):
            return draw(value, dtype, seed)
        if isinstance(value, (list, tuple)):
            return type(value)(made(e, seed + 1000 * i) for i, e in enumerate(value))
        return value

    return [made(value, base + 7 * i) for i, value in enumerate(s.inputs)]


def dtype_of(d: Draw, dtype: str) -> DType:
    """Return the dtype of a `Draw` in a run of `dtype`."""
    return parse_dtype(d.dtype or dtype)
