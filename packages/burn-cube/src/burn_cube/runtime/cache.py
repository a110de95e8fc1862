"""Compiled kernels on disk: one SQLite file, safe with several processes, bounded.

A missing, damaged or locked file only means that kernels are compiled again. Entries carry a
digest; one that does not match is dropped. The folder is `BURN_CACHE_DIR`, else `burn` in the
user's cache folder; `BURN_CACHE_DIR=off` keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import sqlite3

LIMIT = 256 << 20
# A hit notes its time at most once in so many seconds, so that most hits write nothing.
STALE = 86400.0
FILE = "kernels.sqlite"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS kernels (key BLOB PRIMARY KEY, digest BLOB NOT NULL, "
    "data BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)"
)
_COLUMNS = ["key", "digest", "data", "size", "used"]
# Sums of sizes and what to evict are read from it: in the table they stand behind the code, so
# that every write would read all that is kept.
_INDEX = "CREATE INDEX IF NOT EXISTS kernels_by_use ON kernels (used, size)"
T = TypeVar("T")


def cache_folder() -> Path | None:
    """Return the folder of the caches, or None where they are off."""
    named = os.environ.get("BURN_CACHE_DIR")
    if named == "off":
        return None
    if named:
        return Path(named)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        root = str(Path.home() / "Library" / "Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "burn"


def digest_of(*parts: str | bytes) -> bytes:
    """Return the key of what a kernel is compiled from.

    Example:
        >>> digest_of("a", "bc") == digest_of("ab", "c")
        False
    """
    digest = hashlib.blake2b(digest_size=24)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


@cache
def emitter_version() -> str:
    """Return what changes when the sources of this package do, so that old code is not reused."""
    root = Path(__file__).parent.parent
    facts = [
        f"{path.name}:{info.st_size}:{info.st_mtime_ns}"
        for folder in (root, root / "emit", root / "lowering", root / "runtime")
        for path in sorted(folder.glob("*.py"))
        for info in (path.stat(),)
    ]
    return digest_of(*facts).hex()


class DiskCache:
    """A bounded table of bytes by key.

    Args:
        path: the file; None keeps nothing.
        limit: bytes at most; the entries that were used longest ago go first.

    Attributes:
        hits: entries found so far.
        misses: entries not found so far.

    Example:
        >>> kept = DiskCache(None)
        >>> kept.put(b"key", b"code")
        >>> print(kept.get(b"key"))
        None
    """

    def __init__(self, path: Path | None, limit: int = LIMIT) -> None:
        self.path = path
        self.limit = limit
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        self._process = 0
        self._broken = path is None

    def get(self, key: bytes) -> bytes | None:
        """Return what is kept under a key, or None."""
        found = self._guarded(lambda db: self._read(db, key))
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, key: bytes, data: bytes) -> None:
        """Keep bytes under a key; whatever fails is no error."""
        if len(data) <= self.limit:
            self._guarded(lambda db: self._write(db, key, data))

    def clear(self) -> None:
        """Forget everything."""
        self._guarded(lambda db: db.execute("DELETE FROM kernels"))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._open is not None and self._process == os.getpid():
            self._open.close()
        self._open = None

    def _guarded(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run an action on the file; a failure is nothing found."""
        if self._broken:
            return None
        import sqlite3

        with self._lock:
            for last in (False, True):
                try:
                    return action(self._connection())
                except sqlite3.OperationalError as error:
                    # Locked for long, disk full: go on without this entry. What cannot be
                    # opened or written at all is not tried again.
                    words = str(error)
                    self._broken = "readonly" in words or "unable to open" in words
                    self._close()
                    return None
                except sqlite3.DatabaseError:
                    # No database, or a damaged one: start over, once.
                    self._broken = last or not self._put_aside()
                except OSError:
                    self._broken = True
                if self._broken:
                    return None
        return None

    def _connection(self) -> sqlite3.Connection:
        # A connection does not survive a fork.
        if self._open is not None and self._process == os.getpid():
            return self._open
        import sqlite3

        if self.path is None:
            raise OSError("no file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        made = sqlite3.connect(
            self.path, timeout=2.0, isolation_level=None, check_same_thread=False
        )
        self._open, self._process = made, os.getpid()
        made.execute("PRAGMA journal_mode=WAL")
        # A power cut may lose entries or damage the file; both are misses.
        made.execute("PRAGMA synchronous=OFF")
        made.execute(_SCHEMA)
        columns = [row[1] for row in made.execute("PRAGMA table_info(kernels)")]
        if columns != _COLUMNS:
            # Of an older version. Nothing would ever be found in it, and everything put there.
            raise sqlite3.DatabaseError("a table of another form")
        made.execute(_INDEX)
        return made

    def _put_aside(self) -> bool:
        """Remove a damaged file; return whether that worked."""
        self._close()
        try:
            for end in ("", "-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _read(self, db: sqlite3.Connection, key: bytes) -> bytes | None:
        row = db.execute("SELECT digest, data, used FROM kernels WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        digest, data, used = row
        if not isinstance(data, bytes) or digest_of(data) != digest:
            db.execute("DELETE FROM kernels WHERE key = ?", (key,))
            return None
        now = time.time()
        if abs(now - used) > STALE:
            db.execute("UPDATE kernels SET used = ? WHERE key = ?", (now, key))
        return data

    def _write(self, db: sqlite3.Connection, key: bytes, data: bytes) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute(
                "INSERT OR REPLACE INTO kernels VALUES (?, ?, ?, ?, ?)",
                (key, digest_of(data), data, len(data), time.time()),
            )
            (total,) = db.execute("SELECT SUM(size) FROM kernels").fetchone()
            if total > self.limit:
                self._evict(db, total - self.limit * 3 // 4, key)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _evict(self, db: sqlite3.Connection, excess: int, newest: bytes) -> None:
        gone = []
        rows = db.execute(
            "SELECT key, size FROM kernels WHERE key != ? ORDER BY used, rowid", (newest,)
        )
        for key, size in rows:
            if excess <= 0:
                break
            gone.append((key,))
            excess -= size
        db.executemany("DELETE FROM kernels WHERE key = ?", gone)


@cache
def kernel_cache() -> DiskCache:
    """Return the cache of compiled kernels of this process."""
    folder = cache_folder()
    return DiskCache(folder / FILE if folder else None)
