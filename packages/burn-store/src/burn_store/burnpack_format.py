"""Burnpack (`.bpk`), the format of Rust's Burn: head, CBOR metadata, aligned tensors.

    magic 0x4255524E, version 1 (16 bits), metadata bytes (32 bits), all little-endian
    {"tensors": {name: {"dtype", "shape", "data_offsets": [start, end], "param_id"?}},
     "metadata"?: {text: text}, "scalars"?: {name: {"Int" | "UInt" | "Float" | "Bool": value}}}
    padding to a multiple of 256, then the tensors, each from a multiple of 256

Facts from the crate burn-pack (`base.rs`, `writer.rs`, `reader.rs`). Files of the same version from
before the alignment was introduced have their data right behind the metadata; they are told apart
by their size, which is exact in both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from burn_std import StoreError
from burn_store.cbor import decoded, encoded
from burn_store.elements import Spec, byte_count, checked_shape, native_dtype, shortened
from burn_store.files import FileBytes
from burn_store.format import API_VERSION, Source
from burn_store.spans import Span, SpanReading, checked_spans
from burn_store.tied import tied_in_metadata

MAGIC = 0x4255524E
VERSION = 1
_HEAD = struct.Struct("<IHI")
_ALIGN = 256
_MAX_METADATA = 25_000_000
_MAX_TENSORS = 100_000

NAMES = {
    "F64": "float64", "F32": "float32", "Flex32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "Bool": "bool",
}  # fmt: skip
CODES = {name: code for code, name in NAMES.items() if code != "Flex32"}


def _aligned(at: int) -> int:
    return -(-at // _ALIGN) * _ALIGN


class BurnpackFormat:
    """Entry point `burnpack` of `burn.store_formats`."""

    name = "burnpack"
    suffixes = (".bpk",)
    api_version = API_VERSION
    layout = "burn"
    options: tuple[str, ...] = ()

    def recognises(self, head: bytes) -> bool:
        """Return whether the bytes begin with the magic number."""
        return head[:4] == MAGIC.to_bytes(4, "little")

    def open(self, path: Path, options: Mapping[str, Any]) -> SpanReading:
        """Return the open file.

        Raises:
            StoreError: head, metadata or ranges break the format's rules.
        """
        file = FileBytes(path)
        try:
            return _opened(file)
        except BaseException:
            file.close()
            raise

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Write a whole file, one tensor at a time.

        Raises:
            StoreError: a dtype has no place in the format.
        """
        described: dict[str, Any] = {}
        starts: dict[str, int] = {}
        at = 0
        for name, source in tensors.items():
            spec = source.spec
            start = _aligned(at)
            at = start + byte_count(spec.shape, native_dtype(spec.dtype, name).itemsize)
            starts[name] = start
            described[name] = {
                # Rust's enum of dtypes has the storage of a bool inside.
                "dtype": {"Bool": "Native"} if spec.dtype == "bool" else CODES[spec.dtype],
                "shape": list(spec.shape), "data_offsets": [start, at],
            }  # fmt: skip
            if source.param_id is not None:
                described[name]["param_id"] = source.param_id
        head: dict[str, Any] = {"tensors": dict(sorted(described.items()))}
        if metadata:
            head["metadata"] = dict(sorted(metadata.items()))
        text = encoded(head)
        handle.write(_HEAD.pack(MAGIC, VERSION, len(text)))
        handle.write(text)
        begin = _aligned(_HEAD.size + len(text))
        place = _HEAD.size + len(text)
        for name, source in tensors.items():
            handle.write(bytes(begin + starts[name] - place))
            array = source.contiguous()
            handle.write(array.reshape(-1).view(np.uint8).data)
            place = begin + starts[name] + array.nbytes
        if not tensors:
            handle.write(bytes(begin - place))


def _opened(file: FileBytes) -> SpanReading:
    magic, version, length = _HEAD.unpack(file.read(0, _HEAD.size))
    name = file.path.name
    if magic != MAGIC or not 1 <= version <= VERSION:
        raise StoreError(
            "store.open",
            f"a burnpack file begins with its magic number and version {VERSION}",
            got=f"{name}: {magic:#x}, {version}",
        )
    if length > _MAX_METADATA or _HEAD.size + length > file.size:
        raise StoreError(
            "store.open",
            f"the metadata of a burnpack file lies inside it and has at most {_MAX_METADATA} bytes",
            got=f"{name}: {length} bytes in a file of {file.size}",
        )
    head = decoded(file.read(_HEAD.size, length))
    if not isinstance(head, dict) or not isinstance(head.get("tensors"), dict):
        raise StoreError(
            "store.open", "the metadata of a burnpack file describes its tensors", got=name
        )
    entries = head["tensors"]
    if len(entries) > _MAX_TENSORS:
        raise StoreError(
            "store.open",
            f"a burnpack file has at most {_MAX_TENSORS} tensors",
            got=f"{name}: {len(entries)}",
        )
    metadata = head.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise StoreError("store.open", "the metadata of a burnpack file is text by key", got=name)
    spans, ids = {}, {}
    for tensor, entry in entries.items():
        spans[tensor] = _span(tensor, entry)
        if (own := entry.get("param_id")) is not None:
            if type(own) is not int or not 0 <= own < 1 << 64:
                raise StoreError(
                    "store.open", f"the param_id of {tensor} has 64 bits", got=shortened(own)
                )
            ids[tensor] = own
    end = max((s.end for s in spans.values()), default=0)
    begin = _aligned(_HEAD.size + length)
    if file.size == _HEAD.size + length + end and file.size != begin + end:
        begin = _HEAD.size + length
    checked_spans(spans, begin, file, dense=False)
    if spans and file.size != begin + end:
        raise StoreError(
            "store.open",
            "a burnpack file ends with its last tensor",
            got=f"{name}: {file.size - begin - end} bytes more",
        )
    reading = SpanReading(file, begin, spans, metadata)
    reading.aliases = tied_in_metadata(metadata, spans)
    reading.extra = _scalars(head.get("scalars", {}))
    reading.param_ids = ids
    return reading


def _span(name: str, entry: object) -> Span:
    if not isinstance(entry, dict):
        raise StoreError("store.open", f"the entry of {name} is a map", got=shortened(entry))
    code, offsets = entry.get("dtype"), entry.get("data_offsets")
    if isinstance(code, dict) and len(code) == 1:
        # A variant with contents: the storage of a bool, or a scheme of quantisation.
        ((kind, inner),) = code.items()
        code = (
            {"Native": "Bool", "U8": "Bool", "U32": "Bool stored as U32"}.get(str(inner), kind)
            if kind == "Bool"
            else kind
        )
    if not isinstance(code, str):
        raise StoreError("store.open", f"the dtype of {name} is a name", got=shortened(code))
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(o) is int for o in offsets)
    ):
        raise StoreError(
            "store.open", f"data_offsets of {name} are two integers", got=shortened(offsets)
        )
    return Span(
        Spec(checked_shape(entry.get("shape"), name), NAMES.get(code, code)), offsets[0], offsets[1]
    )


def _scalars(found: object) -> dict[str, Any]:
    """Return the typed scalars as plain numbers; each is a variant with its value."""
    if not isinstance(found, dict):
        raise StoreError(
            "store.open", "the scalars of a burnpack file are a map", got=shortened(found)
        )
    made: dict[str, Any] = {}
    for name, variant in found.items():
        if (
            not isinstance(variant, dict)
            or len(variant) != 1
            or not isinstance(value := next(iter(variant.values())), (int, float))
        ):
            raise StoreError(
                "store.open", f"the scalar {name} is a number with its type", got=shortened(variant)
            )
        made[name] = value
    return made


format = BurnpackFormat()
