"""PyTorch's `.pt` and `.pth`, read without executing anything of them.

Zip (since 1.6): `<prefix>/data.pkl` with the values, `<prefix>/data/<key>` with each storage.
Legacy: three small pickles (magic number, protocol, system), the values, the list of storage keys,
then per key a 64-bit count of elements and the elements.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from burn_std import StoreError
from burn_store.archive import Archive
from burn_store.elements import Array, Spec, byte_count, native_dtype, normalised, shortened
from burn_store.files import FileBytes
from burn_store.format import API_VERSION, Reading, Source
from burn_store.pickle_machine import MAX_ITEMS, Cursor, Machine
from burn_store.pickled import ITEMSIZE, StorageRef, TensorRef
from burn_store.torch_tree import Tree, part

_MAX_PICKLE = 128 << 20
_MAGIC = 0x1950A86A20F9469CFC6C
_MAGIC_BYTES = b"\x8a\x0a" + _MAGIC.to_bytes(10, "little")
_LEGACY_PROTOCOL = 1001
# A tensor expanded from fewer stored elements may grow to this much.
_MAX_EXPANDED = 256 << 20


class TorchReading(Reading):
    """An open PyTorch file.

    Attributes:
        skipped: names of objects beside the tensors that were not needed, with their class.
    """

    def __init__(
        self,
        tree: Tree,
        read: Callable[[StorageRef, int, memoryview], None],
        little: bool,
        verify: Callable[[bool], None],
        close: Callable[[], None],
    ) -> None:
        self._tensors = tree.tensors
        self._read = read
        self._little = little
        self._verify = verify
        self._close = close
        self.extra = tree.values
        self.skipped: Mapping[str, str] = tree.skipped
        first: dict[tuple[object, ...], str] = {}
        self.aliases = {
            name: kept for name, ref in self._tensors.items()
            if (kept := first.setdefault(ref.place(), name)) != name and byte_count(ref.shape, 1)
        }  # fmt: skip

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name without reading the elements."""
        ref = self._tensors[name]
        return Spec(ref.shape, ref.dtype)

    def read(self, name: str, into: Array | None = None) -> Array:
        """Return a tensor's elements in an array of their own."""
        ref = self._tensors[name]
        dtype = native_dtype(ref.dtype, name)
        if not byte_count(ref.shape, 1):
            return np.empty(ref.shape, dtype)
        span = 1 + sum((n - 1) * s for n, s in zip(ref.shape, ref.strides, strict=True))
        native = self._little == (sys.byteorder == "little")
        if into is not None and native and _dense(ref):
            self._read(
                ref.storage, ref.offset * dtype.itemsize, into.reshape(-1).view(np.uint8).data
            )
            return normalised(into)
        flat = np.empty(span, dtype)
        self._read(ref.storage, ref.offset * dtype.itemsize, flat.view(np.uint8).data)
        if not native:
            flat = flat.byteswap()
        flat = normalised(flat)
        if _dense(ref):
            return flat.reshape(ref.shape)
        strides = tuple(s * dtype.itemsize for s in ref.strides)
        window: Array = np.lib.stride_tricks.as_strided(flat, ref.shape, strides, writeable=False)
        # A copy: neighbours that the window leaves out must not stay in memory with it.
        return np.array(window, order="C", copy=True)

    def verify(self, everything: bool = False) -> None:
        """Unpack what is compressed, or compare all checksums; legacy files have none."""
        self._verify(everything)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def close(self) -> None:
        """Let the file go."""
        self._close()


def _dense(ref: TensorRef) -> bool:
    expected = 1
    for extent, stride in zip(reversed(ref.shape), reversed(ref.strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


class TorchFormat:
    """Entry point `torch` of `burn.store_formats`.

    Options of `open` and `load`:
        key: dotted path of the part of the file that holds the tensors, `"state_dict"`.
        unknown: `"refuse"` (default) a file that names other classes than PyTorch's tensors, or
            keep them `"inert"`: nothing is imported, only the tensors below them are found.
        max_items: opcodes of the pickle at most.
        expansion: how many times larger than the file its unpacked members may be.
    """

    name = "torch"
    suffixes = (".pt", ".pth", ".ckpt", ".bin")
    api_version = API_VERSION
    layout = "torch"
    options: tuple[str, ...] = ("key", "unknown", "max_items", "expansion")

    def recognises(self, head: bytes) -> bool:
        """Return whether the bytes begin a legacy file or an archive as PyTorch writes it."""
        if head[:4] == b"PK\3\4":
            name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
            return b"/" in name and name.rpartition(b"/")[2] in (
                b"data.pkl",
                b"version",
                b"byteorder",
                b".format_version",
            )
        return head[2:14] == _MAGIC_BYTES

    def open(self, path: Path, options: Mapping[str, Any]) -> TorchReading:
        """Return the open file.

        Raises:
            StoreError: archive or pickle are corrupt, or name what is not on the list.
        """
        unknown = options.get("unknown", "refuse")
        if unknown not in ("refuse", "inert"):
            raise StoreError("store.open", "unknown is 'refuse' or 'inert'", got=shortened(unknown))
        file = FileBytes(path)
        try:
            head = file.read(0, min(16, file.size))
            if head[:4] == b"PK\3\4":
                return _zip(file, unknown == "inert", options)
            if head[2:14] == _MAGIC_BYTES:
                return _legacy(file, unknown == "inert", options)
            raise StoreError(
                "store.open",
                "a PyTorch file is a zip archive or begins with PyTorch's magic number",
                got=f"{path.name} begins with {shortened(head[:8])}",
                remedy="It may be cut short, of another format, or a tar file of an old PyTorch.",
            )
        except BaseException:
            file.close()
            raise

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Raise: PyTorch reads safetensors too, and no pickle needs to be made.

        Raises:
            StoreError: always.
        """
        raise StoreError(
            "store.save",
            "PyTorch's own format is only read",
            got="format torch",
            remedy="Save as .safetensors; in PyTorch, safetensors.torch.load_file reads it.",
        )


def _checked(tree: Tree) -> dict[str, StorageRef]:
    """Return the storages by key; refuse what would not fit into memory."""
    storages: dict[str, StorageRef] = {}
    for name, ref in tree.tensors.items():
        stored = ref.storage
        known = storages.setdefault(stored.key, stored)
        if (known.dtype, known.whole) != (stored.dtype, stored.whole):
            raise StoreError(
                "store.open",
                "a storage has one dtype and one size",
                got=f"storage {shortened(stored.key)} of {name}",
            )
        count = byte_count(ref.shape, 1)
        if (
            count > stored.numel * ITEMSIZE[stored.dtype] // ITEMSIZE[ref.dtype]
            and count * ITEMSIZE[ref.dtype] > _MAX_EXPANDED
        ):
            raise StoreError(
                "store.open",
                f"{name} repeats stored elements into more than {_MAX_EXPANDED >> 20} MiB",
                got=f"{ref.dtype}{list(ref.shape)} from {stored.numel} elements",
            )
    return storages


def _limit(options: Mapping[str, Any]) -> int:
    limit = options.get("max_items", MAX_ITEMS)
    if type(limit) is not int or limit < 1:
        raise StoreError("store.open", "max_items is a positive integer", got=shortened(limit))
    return limit


def _zip(file: FileBytes, lenient: bool, options: Mapping[str, Any]) -> TorchReading:
    archive = Archive(file, float(options.get("expansion", 100)))
    roots = [
        n.removesuffix("data.pkl")
        for n in archive.members
        if n.endswith("/data.pkl") and n.count("/") == 1
    ]
    if len(roots) != 1:
        raise StoreError(
            "store.open",
            "a PyTorch archive has one data.pkl",
            got=f"{file.path.name}: {len(roots)}",
            remedy="An archive of arrays is read with format='npz'." if not roots else None,
        )
    prefix = roots[0]
    order = (
        archive.read(f"{prefix}byteorder", 16)
        if f"{prefix}byteorder" in archive.members
        else b"little"
    )
    if order not in (b"little", b"big"):
        raise StoreError("store.open", "the byte order is little or big", got=shortened(order))
    pickled = archive.read(f"{prefix}data.pkl", _MAX_PICKLE)
    cursor = Cursor(lambda at, size: pickled[at : at + size], 0, len(pickled))
    tree = Tree(part(Machine(cursor, lenient, _limit(options)).run(), options.get("key")))
    members: dict[str, str] = {}
    for key, stored in _checked(tree).items():
        member = members[key] = f"{prefix}data/{key}"
        need = stored.whole * ITEMSIZE[stored.dtype]
        there = archive.members[member].size if member in archive.members else -1
        if there < need:
            raise StoreError(
                "store.open",
                "a storage is in the file with all its elements",
                got=f"{file.path.name}: storage {shortened(key)}: {max(there, 0)} bytes of {need}",
            )

    unpacked: dict[str, bytes] = {}

    def read(stored: StorageRef, offset: int, view: memoryview) -> None:
        member = members[stored.key]
        if not archive.members[member].method:
            archive.into(member, offset, view)
            return
        # PyTorch never deflates; where someone else did, the last storage is kept, because many
        # tensors may lie in it and each would unpack it from its begin.
        if member not in unpacked:
            unpacked.clear()
            unpacked[member] = archive.read(member, archive.members[member].size)
        view[:] = unpacked[member][offset : offset + len(view)]

    def verify(everything: bool) -> None:
        archive.verify(members.values(), everything)

    return TorchReading(tree, read, order == b"little", verify, archive.close)


def _legacy(file: FileBytes, lenient: bool, options: Mapping[str, Any]) -> TorchReading:
    cursor = Cursor(file.read, 0, file.size)
    magic, protocol, system = (Machine(cursor, limit=1000).run() for _ in range(3))
    little = system.get("little_endian", True) if isinstance(system, dict) else None
    if magic != _MAGIC or protocol != _LEGACY_PROTOCOL or type(little) is not bool:
        raise StoreError(
            "store.open",
            "a legacy PyTorch file has its magic number and protocol 1001",
            got=f"{file.path.name}: {shortened(protocol)}",
        )
    root = Machine(cursor, lenient, _limit(options)).run()
    whole = Tree(root)
    keys = Machine(cursor, limit=_limit(options)).run()
    if (
        not isinstance(keys, list)
        or not all(type(k) is str for k in keys)
        or len(set(keys)) != len(keys)
    ):
        raise StoreError(
            "store.open", "a legacy PyTorch file lists its storages once each", got=shortened(keys)
        )
    # Storages lie one behind the other, so the size of each must be known, wanted or not.
    storages = _checked(whole)
    starts: dict[str, int] = {}
    at = cursor.position
    for key in keys:
        if key not in storages:
            raise StoreError(
                "store.open", "every listed storage belongs to a tensor", got=shortened(key)
            )
        count = int.from_bytes(file.read(at, 8), "little" if little else "big")
        stored = storages[key]
        if count != stored.whole:
            raise StoreError(
                "store.open",
                "a storage has as many elements as its tensors say",
                got=f"{shortened(key)}: {count} and {stored.whole}",
            )
        starts[key] = at + 8
        at += 8 + count * ITEMSIZE[stored.dtype]
    if at != file.size or len(keys) != len(storages):
        raise StoreError(
            "store.open",
            "the file ends with its last storage",
            got=f"{file.path.name}: {file.size} bytes of {at}, {len(keys)} of {len(storages)} keys",
        )

    def read(stored: StorageRef, offset: int, view: memoryview) -> None:
        file.into(starts[stored.key] + offset, view)

    tree = Tree(part(root, options.get("key")))
    return TorchReading(tree, read, little, lambda everything: None, file.close)


format = TorchFormat()
