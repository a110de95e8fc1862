"""Time per kernel: what ran, how often, how long, on which device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_OPEN: list[Profile] = []


class Profile:
    """The launches of a scope.

    Attributes:
        rows: for each (device, kernel) the number of launches and the seconds in all.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[float]] = {}

    def add(self, device: str, kernel: str, seconds: float) -> None:
        """Note one launch."""
        row = self.rows.setdefault((device, kernel), [0, 0.0])
        row[0] += 1
        row[1] += seconds

    def __str__(self) -> str:
        lines = [f"{'device':10} {'kernel':32} {'launches':>8} {'total ms':>10} {'mean us':>10}"]
        for (device, kernel), (count, seconds) in sorted(
            self.rows.items(), key=lambda item: -item[1][1]
        ):
            lines.append(
                f"{device:10} {kernel[:32]:32} {count:8.0f} {seconds * 1e3:10.3f} "
                f"{seconds / count * 1e6:10.2f}"
            )
        return "\n".join(lines)


@contextmanager
def profile() -> Iterator[Profile]:
    """Measure every launch in the block; each one is waited for, so the whole runs slower.

    Example:
        >>> with profile() as table:
        ...     pass
        >>> print(table)
        device     kernel                           launches   total ms    mean us
    """
    made = Profile()
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
