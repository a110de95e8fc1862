"""Reads `ops/NAME.json` and `NAME.npz`: calls, their arguments and the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from burn_std import DType, parse_dtype

Array = np.ndarray[Any, Any]


class Given(NamedTuple):
    """A tensor of a case file.

    Attributes:
        values: its elements; bf16 is held in float32, exactly.
        dtype: its dtype.
        strides: element strides when it was not contiguous, else None.
        grad: a gradient is expected for it.
    """

    values: Array
    dtype: DType
    strides: tuple[int, ...] | None = None
    grad: bool = False


class Case(NamedTuple):
    """One call.

    Attributes:
        id: `add/f32/1`.
        fn: `Tensor.add`, `functional.conv2d`, `burn.cat`.
        args: positional arguments, tensors as `Given`.
        kwargs: keyword arguments.
        single: the call returns one tensor, not a sequence.
        out: the expected tensors.
        cotangents: one per output, None where not differentiable; None without gradients.
        grads: one per input marked so, None where not reached.
    """

    id: str
    fn: str
    args: list[Any]
    kwargs: dict[str, Any]
    single: bool
    out: list[Given]
    cotangents: list[Given | None] | None
    grads: list[Given | None] | None


def names(folder: Path) -> list[str]:
    """Return the names of the case files in a folder, sorted."""
    return sorted(path.name.removesuffix(".json") for path in folder.glob("*.json"))


def load(folder: Path, name: str) -> list[Case]:
    """Return the cases of one file."""
    rows = json.loads((folder / f"{name}.json").read_text())
    with np.load(folder / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    return [_case(row, arrays) for row in rows]


def _case(row: dict[str, Any], arrays: dict[str, Array]) -> Case:
    def made(value: Any) -> Any:
        return _value(value, arrays)

    return Case(
        row["id"], row["fn"], [made(a) for a in row["args"]],
        {key: made(a) for key, a in row["kwargs"].items()}, row["single"],
        [made(a) for a in row["out"]],
        [made(a) for a in row["cotangents"]] if "cotangents" in row else None,
        [made(a) for a in row["grads"]] if "grads" in row else None,
    )  # fmt: skip


def _value(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, list):
        return [_value(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "at" in value:
        return _tensor(value, arrays)
    if "tuple" in value:
        return tuple(_value(v, arrays) for v in value["tuple"])
    if "slice" in value:
        return slice(*(_value(v, arrays) for v in value["slice"]))
    if "ellipsis" in value:
        return ...
    if "dtype" in value:
        return parse_dtype(value["dtype"])
    if "float" in value:
        return float(value["float"])
    return {key: _value(v, arrays) for key, v in value.items()}


def _tensor(value: dict[str, Any], arrays: dict[str, Array]) -> Given:
    dtype, shape, at = value["dtype"], tuple(value["shape"]), value["at"]
    flat = arrays[dtype][at : at + int(np.prod(shape))]
    if dtype == "bf16":
        flat = (flat.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    strides = tuple(value["strides"]) if "strides" in value else None
    return Given(flat.reshape(shape), parse_dtype(dtype), strides, value.get("grad", False))
