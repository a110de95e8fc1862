"""Compiled kernels on disk: one SQLite file that several processes share.

An entry is found by everything that its bytes depend on. The file is bounded: what was used
longest ago goes first. A damaged entry, a damaged file, a full disk or a locked file is a miss and
never an error. `BURN_CACHE_DIR` moves the file; `BURN_CACHE=off` keeps everything in memory.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

# Part of each key: raised when what is stored changes its form.
FORM = 1
LIMIT = 512 << 20
# Uses are noted at most this often, so that a hit costs no write.
STALE = 86400.0
FILE = "kernels.sqlite"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS kernels (key TEXT PRIMARY KEY, code BLOB NOT NULL, "
    "digest BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)"
)


def cache_folder() -> Path | None:
    """Return the folder of the cache, or None where it is off.

    Example:
        >>> os.environ["BURN_CACHE"] = "off"
        >>> print(cache_folder())
        None
        >>> del os.environ["BURN_CACHE"]
    """
    if os.environ.get("BURN_CACHE", "").lower() in ("off", "0", "no"):
        return None
    given = os.environ.get("BURN_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        root = str(Path.home() / "Library" / "Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root or ".") / "burn"


def key_of(*parts: str) -> str:
    """Return the key of everything that compiled bytes depend on.

    Args:
        parts: source, options, device, driver, versions; the order matters.

    Example:
        >>> key_of("a", "b") == key_of("ab", "")
        False
    """
    digest = hashlib.blake2b(digest_size=20)
    for part in (str(FORM), *parts):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


class DiskCache:
    """Bytes by key in one file.

    Args:
        folder: where the file is; made when it is missing. None keeps nothing.
        limit: bytes of code that are kept at most.

    Attributes:
        hits: entries found so far.
        misses: entries not found so far.

    Example:
        >>> cache = DiskCache(None)
        >>> cache.put("key", b"code")
        >>> print(cache.get("key"))
        None
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        self._process = 0
        self._broken = folder is None
        self.hits = 0
        self.misses = 0

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key, or None."""
        found = self._guard(self._read, key)
        if isinstance(found, bytes):
            self.hits += 1
            return found
        self.misses += 1
        return None

    def put(self, key: str, code: bytes) -> None:
        """Keep the bytes of a key."""
        if len(code) <= self._limit:
            self._guard(self._write, key, code)

    def clear(self) -> None:
        """Forget everything."""
        self._guard(self._erase)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def _guard(self, action: object, *args: object) -> object:
        """Run an action on the file; a failure counts as nothing found."""
        import sqlite3

        if self._broken or not callable(action):
            return None
        with self._lock:
            for attempt in range(2):
                try:
                    return action(self._connection(), *args)
                except sqlite3.OperationalError as error:
                    # Locked for too long, read-only, disk full: go on without this entry.
                    if "malformed" not in str(error):
                        self._broken = "readonly" in str(error) or "unable to open" in str(error)
                        return None
                    self._start_over()
                except sqlite3.DatabaseError:
                    if attempt:
                        self._broken = True
                        return None
                    self._start_over()
                except OSError:
                    self._broken = True
                    return None
        return None

    def _connection(self) -> sqlite3.Connection:
        import sqlite3

        # A connection does not survive a fork.
        if self._open is not None and self._process == os.getpid():
            return self._open
        if self._folder is None:
            raise OSError("no folder")
        self._folder.mkdir(parents=True, exist_ok=True)
        made = sqlite3.connect(
            self._folder / FILE, timeout=5.0, isolation_level=None, check_same_thread=False
        )
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("PRAGMA synchronous=NORMAL")
        made.execute(_SCHEMA)
        self._open, self._process = made, os.getpid()
        return made

    def _start_over(self) -> None:
        """Throw a damaged file away."""
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._folder is not None:
            for suffix in ("", "-wal", "-shm"):
                (self._folder / (FILE + suffix)).unlink(missing_ok=True)

    def _read(self, db: sqlite3.Connection, key: str) -> bytes | None:
        row = db.execute("SELECT code, digest, used FROM kernels WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        code, digest, used = row
        if not isinstance(code, bytes) or _digest(code) != digest:
            db.execute("DELETE FROM kernels WHERE key = ?", (key,))
            return None
        now = time.time()
        if abs(now - used) > STALE:
            db.execute("UPDATE kernels SET used = ? WHERE key = ?", (now, key))
        return code

    def _write(self, db: sqlite3.Connection, key: str, code: bytes) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute(
                "INSERT OR REPLACE INTO kernels VALUES (?, ?, ?, ?, ?)",
                (key, code, _digest(code), len(code), time.time()),
            )
            (total,) = db.execute("SELECT SUM(size) FROM kernels").fetchone()
            if total > self._limit:
                self._evict(db, total - self._limit + self._limit // 10)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _evict(self, db: sqlite3.Connection, wanted: int) -> None:
        gone = []
        for key, size in db.execute("SELECT key, size FROM kernels ORDER BY used, rowid"):
            if wanted <= 0:
                break
            gone.append((key,))
            wanted -= size
        db.executemany("DELETE FROM kernels WHERE key = ?", gone)

    def _erase(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM kernels")


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=16).digest()


_SHARED: dict[Path | None, DiskCache] = {}
_LOCK = threading.Lock()


def disk_cache() -> DiskCache:
    """Return the cache of this process for the folder that is set now."""
    folder = cache_folder()
    with _LOCK:
        made = _SHARED.get(folder)
        if made is None:
            made = _SHARED[folder] = DiskCache(folder)
        return made
