"""Time per kernel: what ran, how often, how long, on which device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_OPEN: list[Profile] = []


class Profile:
    """The launches of a scope, kernel by kernel; printed as a table."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[float]] = {}
        self._nbytes: dict[tuple[str, str], int] = {}
        self._ahead: list[tuple[tuple[str, str], int, Any, Any]] = []

    def note(self, device: str, kernel: str, nbytes: int, start: Any, end: Any) -> None:
        """Note one launch between two events of the device, which may still be ahead."""
        self._ahead.append(((device, kernel), nbytes, start, end))

    @property
    def rows(self) -> dict[tuple[str, str], list[float]]:
        """For each (device, kernel) the launches, the seconds in all and those of the shortest.

        Waits for the launches that are still ahead.
        """
        ahead, self._ahead = self._ahead, []
        for key, nbytes, start, end in ahead:
            end.wait()
            seconds = end.seconds_since(start)
            row = self._rows.setdefault(key, [0, 0.0, seconds])
            row[0] += 1
            row[1] += seconds
            row[2] = min(row[2], seconds)
            self._nbytes[key] = self._nbytes.get(key, 0) + nbytes
        return self._rows

    def __str__(self) -> str:
        lines = [
            f"{'device':10} {'kernel':32} {'launches':>8} {'total ms':>10} {'mean us':>10} "
            f"{'least us':>10} {'GB/s':>8}"
        ]
        for key, (count, seconds, least) in sorted(self.rows.items(), key=lambda i: -i[1][1]):
            device, kernel = key
            # Bytes of all array arguments: what a kernel moves that touches each element once.
            rate = self._nbytes[key] / seconds * 1e-9 if seconds else 0.0
            lines.append(
                f"{device:10} {kernel[:32]:32} {count:8.0f} {seconds * 1e3:10.3f} "
                f"{seconds / count * 1e6:10.2f} {least * 1e6:10.2f} {rate:8.1f}"
            )
        return "\n".join(lines)


@contextmanager
def profile(into: Profile | None = None) -> Iterator[Profile]:
    """Measure every launch in the block by events of the device; nothing waits until it is read.

    Args:
        into: notes the launches; a new table if None.

    Example:
        >>> with profile() as table:
        ...     pass
        >>> table.rows
        {}
    """
    made = Profile() if into is None else into
    with _LOCK:
        _OPEN.append(made)
    try:
        yield made
    finally:
        with _LOCK:
            _OPEN.remove(made)


def profiles() -> list[Profile]:
    """Return the scopes that are open: empty where nothing is measured."""
    return _OPEN
