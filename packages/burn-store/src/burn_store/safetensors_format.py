"""The safetensors format: 8 bytes of header length, a JSON header, then the bytes of the tensors.

Read and written here and not by the library of that name, because a file is written one tensor at
a time from a device, read without a memory map, and refused with the name of the tensor at fault.
The library stands in the tests, where each reads what the other wrote.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from burn_std import StoreError
from burn_store.elements import NATIVE, Spec, byte_count, checked_shape, native_dtype, shortened
from burn_store.files import FileBytes
from burn_store.format import API_VERSION, Source
from burn_store.json_text import parsed
from burn_store.spans import Span, SpanReading, checked_spans
from burn_store.tied import tied_in_metadata

NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
CODES = {name: code for code, name in NAMES.items()}

# The largest headers of public checkpoints are a few MB; parsing more would take seconds.
MAX_HEADER = 16_000_000
_ALIGN = 8


class SafetensorsFormat:
    """Entry point `safetensors` of `burn.store_formats`."""

    name = "safetensors"
    suffixes = (".safetensors",)
    api_version = API_VERSION
    layout = "torch"
    options: tuple[str, ...] = ()

    def recognises(self, head: bytes) -> bool:
        """Return whether the bytes begin with a plausible header length and a JSON object."""
        return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32

    def open(self, path: Path, options: Mapping[str, Any]) -> SpanReading:
        """Return the open file.

        Raises:
            StoreError: header, ranges or dtypes break the format's rules.
        """
        file = FileBytes(path)
        try:
            begin, header = _header(file)
            metadata = header.pop("__metadata__", {})
            if not isinstance(metadata, dict) or not all(
                isinstance(v, str) for v in metadata.values()
            ):
                raise StoreError(
                    "store.open", "the metadata of a safetensors file is text by key", got=path.name
                )
            spans = {name: _span(name, entry) for name, entry in header.items()}
            checked_spans(spans, begin, file, dense=True)
        except BaseException:
            file.close()
            raise
        reading = SpanReading(file, begin, spans, metadata)
        reading.aliases = tied_in_metadata(metadata, spans)
        return reading

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Write a whole file, one tensor at a time.

        Raises:
            StoreError: a name or a dtype has no place in the format.
        """
        header: dict[str, Any] = {}
        if metadata:
            header["__metadata__"] = dict(metadata)
        at = 0
        # Wide elements first, as the library does, so that each tensor is aligned to its own width.
        order = sorted(tensors, key=lambda n: (-native_dtype(tensors[n].spec.dtype, n).itemsize, n))
        for name in order:
            if name == "__metadata__":
                raise StoreError(
                    "store.save", "a safetensors file keeps this name for itself", got=name
                )
            spec = tensors[name].spec
            end = at + byte_count(spec.shape, NATIVE[spec.dtype].itemsize)
            header[name] = {
                "dtype": CODES[spec.dtype],
                "shape": list(spec.shape),
                "data_offsets": [at, end],
            }
            at = end
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % _ALIGN)
        handle.write(struct.pack("<Q", len(text)))
        handle.write(text)
        for name in order:
            array = tensors[name].contiguous()
            handle.write(array.reshape(-1).view(np.uint8).data)


def _header(file: FileBytes) -> tuple[int, dict[str, Any]]:
    (length,) = struct.unpack("<Q", file.read(0, 8))
    if length > MAX_HEADER or length + 8 > file.size:
        raise StoreError(
            "store.open",
            f"the header of a safetensors file lies inside it and has at most {MAX_HEADER} bytes",
            got=f"{file.path.name}: a header of {length} bytes in a file of {file.size}",
        )
    return 8 + length, parsed(file.read(8, length), f"the header of {file.path.name}")


def _span(name: str, entry: object) -> Span:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise StoreError(
            "store.open",
            f"the entry of {name} has dtype, shape and data_offsets",
            got=shortened(entry),
        )
    offsets = entry["data_offsets"]
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(o) is int for o in offsets)
    ):
        raise StoreError(
            "store.open", f"data_offsets of {name} are two integers", got=shortened(offsets)
        )
    code = entry["dtype"]
    if not isinstance(code, str):
        raise StoreError("store.open", f"the dtype of {name} is a name", got=shortened(code))
    return Span(
        Spec(checked_shape(entry["shape"], name), NAMES.get(code, code)), offsets[0], offsets[1]
    )


format = SafetensorsFormat()
