"""numpy's `.npz`: a zip archive with one `.npy` per array; no pickle and no `eval` of headers."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from burn_std import StoreError
from burn_store.archive import Archive
from burn_store.elements import (
    NATIVE,
    Array,
    Spec,
    byte_count,
    checked_shape,
    native_dtype,
    normalised,
    shortened,
)
from burn_store.files import FileBytes
from burn_store.format import API_VERSION, Reading, Source
from burn_store.json_text import parsed
from burn_store.tied import tied_in_metadata

# What numpy has no name for is kept beside the arrays: metadata, and which of them are bfloat16.
_EXTRA = "__metadata__"
_MAX_EXTRA = 16_000_000
_MAX_HEADER = 1 << 16
_HEADER = re.compile(
    rb"\{'descr': '(?P<descr>[<>|=][a-zA-Z]\d{1,3})', 'fortran_order': (?P<fortran>True|False),"
    rb" 'shape': \((?P<shape>[\d, ]{0,1400})\), \} *\n"
)
_KINDS = {
    "f8": "float64", "f4": "float32", "f2": "float16", "b1": "bool", "i8": "int64", "i4": "int32",
    "i2": "int16", "i1": "int8", "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8",
    # numpy writes ml_dtypes' bfloat16 as two raw bytes, and no other tensor looks like that.
    "V2": "bfloat16",
}  # fmt: skip


class _Stored(NamedTuple):
    member: str
    spec: Spec
    start: int
    fortran: bool
    swapped: bool


class NpzReading(Reading):
    """An open `.npz` file."""

    def __init__(self, archive: Archive, stored: Mapping[str, _Stored]) -> None:
        self._archive = archive
        self._stored = stored

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name without reading the elements."""
        return self._stored[name].spec

    def read(self, name: str, into: Array | None = None) -> Array:
        """Return an array of its own."""
        found = self._stored[name]
        shape = found.spec.shape[::-1] if found.fortran else found.spec.shape
        # A transposed or swapped array is copied once more, so there is nothing to save.
        if into is None or found.fortran or found.swapped:
            into = np.empty(shape, native_dtype(found.spec.dtype, name))
        array = into
        if array.size:
            self._archive.into(found.member, found.start, array.reshape(-1).view(np.uint8).data)
        array = normalised(array.byteswap() if found.swapped else array)
        return np.ascontiguousarray(array.T) if found.fortran and array.ndim > 1 else array

    def verify(self, everything: bool = False) -> None:
        """Unpack what is compressed, or compare the checksum of every array."""
        self._archive.verify((found.member for found in self._stored.values()), everything)

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def close(self) -> None:
        """Let the file go."""
        self._archive.close()


class NpzFormat:
    """Entry point `npz` of `burn.store_formats`.

    Options of `open` and `load`:
        expansion: how many times larger than the file its unpacked arrays may be.
    """

    name = "npz"
    suffixes = (".npz",)
    api_version = API_VERSION
    layout = "torch"
    options: tuple[str, ...] = ("expansion",)

    def recognises(self, head: bytes) -> bool:
        """Return whether the bytes begin an archive whose first member is an array."""
        return head[:4] == b"PK\3\4" and head[
            30 : 30 + int.from_bytes(head[26:28], "little")
        ].endswith(b".npy")

    def open(self, path: Path, options: Mapping[str, Any]) -> NpzReading:
        """Return the open file.

        Raises:
            StoreError: the archive or an array's header is corrupt.
        """
        file = FileBytes(path)
        try:
            archive = Archive(file, float(options.get("expansion", 100)))
            extra: dict[str, Any] = {}
            stored: dict[str, _Stored] = {}
            for member in archive.members:
                name = member.removesuffix(".npy")
                if name == member:
                    raise StoreError(
                        "store.open",
                        "a .npz file holds arrays only",
                        got=f"{path.name}: {shortened(member)}",
                    )
                found = _array(archive, member, name)
                if name == _EXTRA:
                    extra = _extra(archive, found)
                else:
                    stored[name] = found
        except BaseException:
            file.close()
            raise
        reading = NpzReading(archive, stored)
        reading.metadata = extra
        reading.aliases = tied_in_metadata(extra, stored)
        return reading

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Write a whole file, one array at a time.

        Raises:
            StoreError: a name or a dtype has no place in the format.
        """
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
            if metadata:
                raw = np.frombuffer(json.dumps(dict(metadata)).encode(), np.uint8)
                _write_array(archive, _EXTRA, raw, "|u1")
            for name, source in tensors.items():
                if name == _EXTRA or "\\" in name or "\0" in name:
                    raise StoreError(
                        "store.save", "a .npz file has no place for this name", got=name
                    )
                dtype = native_dtype(source.spec.dtype, name)
                descr = "|V2" if source.spec.dtype == "bfloat16" else dtype.newbyteorder("<").str
                _write_array(archive, name, source.contiguous(), descr)


def _write_array(archive: zipfile.ZipFile, name: str, array: Array, descr: str) -> None:
    shape = f"({', '.join(map(str, array.shape))}{',' if array.ndim == 1 else ''})"
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    # numpy pads so that the elements begin at a multiple of 64.
    text += " " * (-(len(text) + 11) % 64) + "\n"
    # A fixed date: equal tensors make equal files.
    info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode("latin1"))
        member.write(array.reshape(-1).view(np.uint8).data)


def _array(archive: Archive, member: str, name: str) -> _Stored:
    size = archive.members[member].size

    def bad(rule: str, got: object) -> StoreError:
        return StoreError(
            "store.open", f"the array {shortened(name)} is corrupt: {rule}", got=shortened(got)
        )

    head = bytearray(min(size, 12))
    archive.into(member, 0, memoryview(head))
    if head[:6] != b"\x93NUMPY" or len(head) < 12 or head[6] not in (1, 2, 3):
        raise bad("it begins with numpy's mark", bytes(head))
    start, length = (
        (10, int.from_bytes(head[8:10], "little"))
        if head[6] == 1
        else (12, int.from_bytes(head[8:12], "little"))
    )
    if length > _MAX_HEADER or start + length > size:
        raise bad("its header lies inside it", length)
    text = bytearray(length)
    archive.into(member, start, memoryview(text))
    match = _HEADER.fullmatch(text)
    if match is None:
        raise bad("its header has dtype, order and shape", bytes(text))
    descr = match["descr"].decode()
    dtype = _KINDS.get(descr[1:], descr)
    extents = [n for n in match["shape"].decode().replace(" ", "").split(",") if n]
    if any(len(n) > 19 for n in extents):
        raise bad("its extents fit into 64 bits", extents)
    shape = checked_shape([int(n) for n in extents], name)
    if dtype in NATIVE and start + length + byte_count(shape, NATIVE[dtype].itemsize) != size:
        raise bad("it has as many bytes as its shape needs", list(shape))
    swapped = descr[0] == (">" if np.little_endian else "<") and not descr.endswith("1")
    return _Stored(member, Spec(shape, dtype), start + length, match["fortran"] == b"True", swapped)


def _extra(archive: Archive, found: _Stored) -> dict[str, str]:
    if found.spec.dtype != "uint8":
        raise StoreError(
            "store.open", f"{_EXTRA} of a .npz file is JSON as bytes", got=found.spec.dtype
        )
    made = parsed(archive.read(found.member, _MAX_EXTRA)[found.start :], f"{_EXTRA} of a .npz file")
    if not all(isinstance(v, str) for v in made.values()):
        raise StoreError("store.open", f"{_EXTRA} of a .npz file is text by key")
    return made


format = NpzFormat()
