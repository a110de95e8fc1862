"""The safetensors format, by the library of that name; it checks header, offsets and overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - registers bfloat16 with numpy by name
import numpy as np
from burn_std import StoreError
from burn_store.format import API_VERSION

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip


class SafetensorsReading(Mapping[str, np.ndarray[Any, Any]]):
    """An open safetensors file; tensors are mapped from disk, one at a time."""

    def __init__(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        self.path = path
        try:
            self._file = safe_open(path, framework="numpy")
            self._names = list(self._file.keys())
            self.metadata: dict[str, str] = dict(self._file.metadata() or {})
        except FileNotFoundError:
            raise StoreError("store.open", "no such file", got=str(path)) from None
        except (SafetensorError, OSError, ValueError) as cause:
            raise StoreError(
                "store.open", "the safetensors file is corrupt or truncated", got=f"{path.name}: {cause}"
            ) from cause

    def spec(self, name: str) -> tuple[tuple[int, ...], str]:
        """Return (shape, dtype name) without reading the elements."""
        part = self._file.get_slice(name)
        kind = str(part.get_dtype())
        if kind not in _DTYPES:
            raise StoreError("store.open", f"the dtype of {name} is not supported", got=kind)
        return tuple(part.get_shape()), _DTYPES[kind]

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._names:
            raise KeyError(name)
        self.spec(name)
        array: np.ndarray[Any, Any] = self._file.get_tensor(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Let the file go."""
        self._file = None


class SafetensorsFormat:
    """Entry point `safetensors` of `burn.store_formats`."""

    name = "safetensors"
    suffixes = (".safetensors",)
    api_version = API_VERSION

    def open(self, path: Path) -> SafetensorsReading:
        """Return the open file."""
        return SafetensorsReading(path)

    def write(self, path: Path, tensors: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> None:
        """Write the arrays."""
        from safetensors.numpy import save_file

        save_file({k: np.asarray(v, order="C") for k, v in tensors.items()}, path, metadata=dict(metadata) or None)


format = SafetensorsFormat()
