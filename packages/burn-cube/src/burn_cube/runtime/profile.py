"""Timing every launch: `with burn_cube.profile() as table: ...`, then print the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from burn_cube.runtime.interface import Device, Dims, Loaded


class Row(NamedTuple):
    """The launches of one kernel.

    Attributes:
        kernel: its name.
        device: where it ran.
        launches: how often.
        seconds: time on the device, all launches together.
        least: the shortest one.
        nbytes: bytes of its buffer arguments, all launches together.
    """

    kernel: str
    device: str
    launches: int
    seconds: float
    least: float
    nbytes: int


class Profile:
    """Times of launches, kernel by kernel; printed as a table."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, int, Any, Any]] = []
        self._rows: dict[tuple[str, str], Row] = {}

    def launch(self, device: Device, loaded: Loaded, cubes: Dims, args: Sequence[Any]) -> None:
        """Launch a kernel between two events."""
        with device.lock:
            start = device.record()
            device._launch(loaded, cubes, args)
            end = device.record()
        nbytes = sum(getattr(arg, "nbytes", 0) for arg in args)
        self._waiting.append((loaded.kernel.name, device.name, nbytes, start, end))

    def rows(self) -> list[Row]:
        """Return one row for each kernel and device, most time first; waits for all launches."""
        waiting, self._waiting = self._waiting, []
        for kernel, device, nbytes, start, end in waiting:
            end.wait()
            seconds = end.since(start)
            old = self._rows.get((kernel, device), Row(kernel, device, 0, 0.0, seconds, 0))
            self._rows[kernel, device] = Row(
                kernel, device, old.launches + 1, old.seconds + seconds,
                min(old.least, seconds), old.nbytes + nbytes,
            )  # fmt: skip
        return sorted(self._rows.values(), key=lambda row: -row.seconds)

    def __str__(self) -> str:
        rows = self.rows()
        total = sum(row.seconds for row in rows) or 1.0
        width = max([len(row.kernel) for row in rows] + [6])
        head = (
            f"{'kernel':{width}}  {'device':10} {'launches':>8} {'total ms':>10} {'mean us':>10} "
            f"{'least us':>10} {'GB/s':>8} {'share':>6}"
        )
        lines = [head]
        for row in rows:
            mean = row.seconds / row.launches
            rate = row.nbytes / row.seconds / 1e9 if row.seconds else 0.0
            lines.append(
                f"{row.kernel:{width}}  {row.device:10} {row.launches:8} {row.seconds * 1e3:10.3f} "
                f"{mean * 1e6:10.2f} {row.least * 1e6:10.2f} {rate:8.1f} "
                f"{row.seconds / total:6.1%}"
            )
        return "\n".join(lines)


@contextmanager
def profile(*devices: Device) -> Iterator[Profile]:
    """Time each launch on devices until the block ends; launches queue as before.

    Args:
        devices: where to time.

    Example:
        >>> with profile() as table:
        ...     pass
        >>> table.rows()
        []
    """
    table = Profile()
    before = [device.profile for device in devices]
    for device in devices:
        device.profile = table
    try:
        yield table
    finally:
        for device, old in zip(devices, before, strict=True):
            device.profile = old
