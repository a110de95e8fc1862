"""Files as bytes at offsets: exact reads, and writes that replace a file at once.

Reads go through `pread`, not through a memory map: a file that another process cuts short while it
is being read is then a short read, which is an error, and not a signal that ends the process. It
is also faster for whole tensors, because the bytes go straight into the array that keeps them.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO

from burn_std import StoreError

# One system call moves at most about 2 GiB on Linux.
_CHUNK = 1 << 30
_NUMBERS = count()


class Memory:
    """Bytes that stand where the path of a file does.

    Args:
        data: the whole file; it must not change while it is read.

    Attributes:
        name: what messages call it.
        data: the bytes.
    """

    name = "bytes in memory"

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.data = memoryview(data).cast("B")

    def __str__(self) -> str:
        return self.name

    @property
    def parent(self) -> Path:
        """Raise: there is no folder.

        Raises:
            StoreError: always.
        """
        raise StoreError("store.open", "bytes in memory have no files beside them")


class FileBytes:
    """A file open for reading at offsets; reads from several threads do not disturb each other.

    Args:
        path: an existing regular file, or bytes in its place.

    Raises:
        StoreError: there is no such file, or it is not a regular file.

    Attributes:
        path: where it is.
        size: bytes when it was opened.
    """

    def __init__(self, path: Path | Memory) -> None:
        self.path = path
        self._fd = -1
        self._memory = path.data if isinstance(path, Memory) else None
        if isinstance(path, Memory):
            self.size = len(path.data)
            return
        try:
            # Without O_NONBLOCK the open of a pipe would wait for a writer forever.
            self._fd = os.open(
                path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
            )
            status = os.fstat(self._fd)
        except FileNotFoundError:
            raise StoreError("store.open", "no such file", got=str(path)) from None
        except (OSError, ValueError) as cause:
            raise StoreError(
                "store.open", "the file does not open", got=f"{path}: {cause}"
            ) from cause
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise StoreError("store.open", "a file of tensors is a regular file", got=str(path))
        self.size = status.st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return exactly `size` bytes from `offset`.

        Raises:
            StoreError: the file does not have them.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self._short(offset, size)
        buffer = bytearray(size)
        self.into(offset, memoryview(buffer))
        return bytes(buffer)

    def into(self, offset: int, view: memoryview) -> None:
        """Fill a writable buffer with the bytes from `offset`.

        Raises:
            StoreError: the file does not have them, or the disk refuses.
        """
        size = len(view)
        if offset < 0 or offset + size > self.size:
            raise self._short(offset, size)
        if self._memory is not None:
            view[:] = self._memory[offset : offset + size]
            return
        done = 0
        while done < size:
            try:
                got = os.preadv(self._fd, [view[done : done + _CHUNK]], offset + done)
            except OSError as cause:
                raise StoreError(
                    "store.read", "the disk refuses to read", got=f"{self.path}: {cause}"
                ) from cause
            if got == 0:
                raise StoreError(
                    "store.read", "the file became shorter while it was read", got=str(self.path)
                )
            done += got

    def _short(self, offset: int, size: int) -> StoreError:
        return StoreError(
            "store.open",
            "the file is truncated or corrupt",
            got=f"{self.path.name}: {self.size} bytes, bytes {offset} to {offset + size} wanted",
        )

    def close(self) -> None:
        """Let the file go; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Give a handle whose bytes become the file `target` at the end, all of them or none.

    The bytes go to a temporary file beside it, reach the disk, and only then take the name. When
    anything fails the temporary file goes and an older file stays as it was.

    Raises:
        StoreError: the disk refuses.
    """
    temporary = target.with_name(
        f".{target.name}.{os.getpid()}-{threading.get_ident()}-{next(_NUMBERS)}.tmp"
    )
    try:
        with temporary.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as cause:
        raise StoreError(
            "store.save",
            "the file could not be written",
            got=f"{target}: {cause.strerror or cause}",
            remedy="Free space on the disk."
            if cause.errno in (errno.ENOSPC, errno.EDQUOT)
            else None,
        ) from cause
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power loss, where the system can do that."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        # Some network file systems have no sync of folders; the file itself was synced.
        pass
    finally:
        os.close(fd)
