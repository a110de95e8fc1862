"""Zip archives of tensors (`.pt`, `.npz`): members at byte offsets, every header checked.

The standard library's reader is not used: it trusts the directory until a member is read, gives no
offset of a member's bytes (needed to read part of one straight into an array), and accepts members
that overlap. Format: PKWARE APPNOTE 6.3, sections 4.3 and 4.4.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from burn_std import StoreError
from burn_store.elements import shortened
from burn_store.files import FileBytes

_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_LATER = 0x1, 0x8
_MAX_MEMBERS = 100_000
_MAX_DIRECTORY = 32_000_000
_END = 22
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_ABSENT = 0xFFFFFFFF
# What the members may unpack to in all: this much, or this many times the file.
_FREE_EXPANSION = 128 << 20
_MAX_EXPANSION = 100
_PIECE = 1 << 18


class Member(NamedTuple):
    """A file in the archive.

    Attributes:
        method: 0 stored, 8 deflated.
        packed: bytes in the archive.
        size: bytes when unpacked.
        crc: CRC-32 of the unpacked bytes.
        start: where its bytes begin in the archive.
    """

    method: int
    packed: int
    size: int
    crc: int
    start: int


class Archive:
    """An open zip archive whose directory, headers and extents are right.

    Args:
        file: the file; the archive closes it.
        expansion: how many times larger than the file the unpacked members may be.

    Raises:
        StoreError: the archive breaks the format's rules.

    Attributes:
        members: by name.
    """

    def __init__(self, file: FileBytes, expansion: float = _MAX_EXPANSION) -> None:
        self.file = file
        begin, size, number = self._end()
        directory = file.read(begin, size)
        self.members: dict[str, Member] = {}
        extents: list[tuple[int, int, str]] = []
        at = 0
        for _ in range(number):
            at, name, member, offset = self._central(directory, at)
            if name in self.members:
                raise self._bad("no two members have one name", shortened(name))
            start = self._local(offset, name, member)
            self.members[name] = member._replace(start=start)
            extents.append((offset, start + member.packed, name))
        if at != size:
            raise self._bad(
                "the directory holds as many members as it says", f"{size - at} bytes more"
            )
        self._check_extents(sorted(extents), begin)
        total = sum(m.size for m in self.members.values())
        if total > max(_FREE_EXPANSION, expansion * file.size):
            raise StoreError(
                "store.open",
                "the members unpack to too much",
                got=f"{file.path.name}: {total} bytes from {file.size}",
                remedy="Pass expansion=, the ratio you allow, if you know the file's origin.",
            )

    def _bad(self, rule: str, got: str) -> StoreError:
        return StoreError(
            "store.open", f"the zip archive is corrupt: {rule}", got=f"{self.file.path.name}: {got}"
        )

    # ---- the directory ------------------------------------------------------------------------

    def _end(self) -> tuple[int, int, int]:
        """Return (begin, bytes, members) of the directory."""
        size = self.file.size
        tail_at = max(0, size - _END - 0xFFFF)
        tail = self.file.read(tail_at, size - tail_at)
        found = tail.rfind(b"PK\5\6")
        # Text of the comment may hold the mark; the true one has a comment up to the end.
        while found >= 0:
            if (
                len(tail) - found >= _END
                and len(tail) - found - _END == struct.unpack_from("<H", tail, found + 20)[0]
            ):
                break
            found = tail.rfind(b"PK\5\6", 0, found)
        if found < 0:
            raise self._bad("it ends with a directory", f"{size} bytes, truncated or no archive")
        disk, first, here, number, length, begin, _ = struct.unpack_from("<4H2IH", tail, found + 4)
        end = tail_at + found
        if end >= 20 and self.file.read(end - 20, 4) == b"PK\6\7":
            disk, first, here, number, length, begin, end = self._end64(end - 20)
        if disk or first or here != number:
            raise self._bad("it is one file", "an archive in several parts")
        if number > _MAX_MEMBERS or length > _MAX_DIRECTORY:
            raise self._bad("the directory has a sane size", f"{number} members, {length} bytes")
        if begin + length != end:
            raise self._bad(
                "the directory stands at the end",
                f"bytes {begin} to {begin + length}, end at {end}",
            )
        return begin, length, number

    def _end64(self, locator: int) -> tuple[int, int, int, int, int, int, int]:
        _, at, disks = struct.unpack("<IQI", self.file.read(locator + 4, 16))
        if at + 56 != locator or disks > 1:
            raise self._bad(
                "the 64-bit end of the directory stands before its locator", f"byte {at}"
            )
        record = self.file.read(at, 56)
        if record[:4] != b"PK\6\6":
            raise self._bad("the 64-bit end of the directory has its mark", shortened(record[:4]))
        disk, first, here, number, length, begin = struct.unpack_from("<2I4Q", record, 16)
        return disk, first, here, number, length, begin, at

    def _central(self, directory: bytes, at: int) -> tuple[int, str, Member, int]:
        """Return (next position, name, member without its start, offset of the local header)."""
        if at + _CENTRAL.size > len(directory):
            raise self._bad("the directory holds as many members as it says", "too few bytes")
        (
            mark,
            _,
            _,
            flags,
            method,
            _,
            _,
            crc,
            packed,
            size,
            n_name,
            n_extra,
            n_comment,
            disk,
            _,
            _,
            offset,
        ) = _CENTRAL.unpack_from(directory, at)
        name_at = at + _CENTRAL.size
        extra_at = name_at + n_name
        end = extra_at + n_extra + n_comment
        if mark != b"PK\1\2" or end > len(directory) or disk not in (0, 0xFFFF):
            raise self._bad("a member of the directory has its form", f"at byte {at}")
        raw = directory[name_at:extra_at]
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self._bad("names are UTF-8", shortened(raw)) from None
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            raise self._bad(
                "members are stored or deflated, not encrypted",
                f"{shortened(name)}, method {method}",
            )
        if _ABSENT in (packed, size, offset):
            packed, size, offset = self._wide(
                directory[extra_at : extra_at + n_extra], packed, size, offset
            )
        if method == _STORED and packed != size:
            raise self._bad(
                "a stored member has one size", f"{shortened(name)}: {packed} and {size}"
            )
        # Deflate cannot do better than 1 to 1032; more is a lie about the size.
        if method == _DEFLATED and size > 1040 * packed + 64:
            raise self._bad(
                "a member has a size that it can unpack to",
                f"{shortened(name)}: {size} from {packed}",
            )
        return end, name, Member(method, packed, size, crc, 0), offset

    def _wide(self, extra: bytes, packed: int, size: int, offset: int) -> tuple[int, int, int]:
        at = 0
        while at + 4 <= len(extra):
            tag, length = struct.unpack_from("<2H", extra, at)
            if tag == 1:
                field, taken = extra[at + 4 : at + 4 + length], 0
                values = []
                for value in (size, packed, offset):
                    if value == _ABSENT:
                        if taken + 8 > len(field):
                            raise self._bad(
                                "64-bit sizes are there where they are said to be", "too few bytes"
                            )
                        (value,) = struct.unpack_from("<Q", field, taken)
                        taken += 8
                    values.append(value)
                return values[1], values[0], values[2]
            at += 4 + length
        return packed, size, offset

    def _local(self, offset: int, name: str, member: Member) -> int:
        """Check a member's own header against the directory; return where its bytes begin."""
        head = self.file.read(offset, _LOCAL.size)
        mark, _, flags, method, _, _, _, packed, size, n_name, n_extra = _LOCAL.unpack(head)
        if mark != b"PK\3\4":
            raise self._bad(
                "a member begins with its header", f"{shortened(name)} at byte {offset}"
            )
        if self.file.read(offset + _LOCAL.size, n_name) != name.encode() or method != member.method:
            raise self._bad("header and directory agree", shortened(name))
        if (
            not flags & _SIZES_LATER
            and _ABSENT not in (packed, size)
            and (packed, size) != (member.packed, member.size)
        ):
            raise self._bad("header and directory agree", f"{shortened(name)}: sizes differ")
        start: int = offset + _LOCAL.size + n_name + n_extra
        return start

    def _check_extents(self, extents: list[tuple[int, int, str]], limit: int) -> None:
        at, before = 0, ""
        for start, end, name in extents:
            if start < at:
                raise self._bad(
                    "members do not overlap", f"{shortened(before)} and {shortened(name)}"
                )
            at, before = end, name
        if at > limit:
            raise self._bad("members lie before the directory", shortened(before))

    # ---- members ------------------------------------------------------------------------------

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a member's unpacked bytes in order; the checksum is compared at the end.

        Raises:
            StoreError: the packed bytes are corrupt, or the checksum differs.
        """
        member = self.members[name]
        crc, made = 0, 0
        for piece in self._unpacked(name, member):
            crc = zlib.crc32(piece, crc)
            made += len(piece)
            if made > member.size:
                break
            yield piece
        if made != member.size or crc != member.crc:
            raise self._bad("the checksum of a member agrees", shortened(name))

    def _unpacked(self, name: str, member: Member) -> Iterator[bytes]:
        unpack = None if member.method == _STORED else zlib.decompressobj(-15)
        for at in range(0, member.packed, _PIECE):
            piece = self.file.read(member.start + at, min(_PIECE, member.packed - at))
            if unpack is None:
                yield piece
                continue
            try:
                while piece and not unpack.eof:
                    # Bounded pieces: a block that unpacks a thousandfold is never in memory whole.
                    yield unpack.decompress(piece, _PIECE)
                    piece = unpack.unconsumed_tail
            except zlib.error as cause:
                raise self._bad("a member unpacks", f"{shortened(name)}: {cause}") from None
        if unpack is not None and not unpack.eof:
            rest = unpack.flush()
            if rest:
                yield rest

    def read(self, name: str, limit: int) -> bytes:
        """Return a small member whole, its checksum compared.

        Raises:
            StoreError: it is larger than `limit`, or corrupt.
        """
        member = self.members[name]
        if member.size > limit:
            raise self._bad(
                f"this member has at most {limit} bytes", f"{shortened(name)}: {member.size}"
            )
        return b"".join(self.pieces(name))

    def into(self, name: str, offset: int, view: memoryview) -> None:
        """Fill a buffer with a member's unpacked bytes from `offset`.

        Stored members are read at the place; deflated ones are unpacked from their begin.

        Raises:
            StoreError: the member does not have them, or is corrupt.
        """
        member = self.members[name]
        if offset < 0 or offset + len(view) > member.size:
            raise self._bad(
                "the bytes lie inside the member",
                f"{shortened(name)}: {offset} and {len(view)} more",
            )
        if member.method == _STORED:
            self.file.into(member.start + offset, view)
            return
        at, end = 0, offset + len(view)
        for piece in self.pieces(name):
            first, last = max(offset, at), min(end, at + len(piece))
            if first < last:
                view[first - offset : last - offset] = piece[first - at : last - at]
            at += len(piece)

    def verify(self, names: Iterable[str], everything: bool) -> None:
        """Unpack members and compare their checksums: the deflated ones, or all.

        Raises:
            StoreError: one is corrupt.
        """
        for name in names:
            if everything or self.members[name].method == _DEFLATED:
                for _ in self.pieces(name):
                    pass

    def close(self) -> None:
        """Let the file go."""
        self.file.close()
