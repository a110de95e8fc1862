"""What is read off the run itself: speed, rate, memory; on the metrics' thread."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from burn_std import unwritten


class Gauge:
    """Base of gauges: numbers of the run rather than of the predictions.

    Attributes:
        name: column of the table.
        unit: of the value.
    """

    name: str = ""
    unit: str = ""

    def read(self, run: Any) -> float:
        """Return the value now; NaN where the machine does not tell.

        Args:
            run: has `steps` (made in all), `seconds` (of training so far), `rates` (by group)
                and `devices`.
        """
        raise unwritten(self, "read")


class IterationSpeed(Gauge):
    """Steps per second since the last reading at another step."""

    name = "speed"
    unit = "steps/s"

    def __init__(self) -> None:
        self._last: tuple[int, float] | None = None
        self._speed = float("nan")

    def read(self, run: Any) -> float:
        """Return the speed."""
        now = (run.steps, time.perf_counter())
        if self._last is not None and now[0] == self._last[0]:
            return self._speed  # the end of an epoch reads what a view has just read
        last, self._last = self._last, now
        if last is None or now[1] <= last[1]:
            self._speed = float(run.steps / run.seconds) if run.seconds else float("nan")
        else:
            self._speed = float((now[0] - last[0]) / (now[1] - last[1]))
        return self._speed


class LearningRate(Gauge):
    """The learning rate of the last step.

    Args:
        group: name of a group of parameters; the base if empty.
    """

    name = "lr"

    def __init__(self, group: str = "") -> None:
        self.group = group
        self.name = f"lr {group}".strip()

    def read(self, run: Any) -> float:
        """Return the rate."""
        return float(run.rates.get(self.group, float("nan")))


class CpuMemory(Gauge):
    """Resident memory of this process, in GB."""

    name = "memory"
    unit = "GB"

    def read(self, run: Any) -> float:
        """Return the memory."""
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return float("nan")
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


class CpuUse(Gauge):
    """Share of all cores that this process used since the last reading, in percent."""

    name = "cpu"
    unit = "%"

    def __init__(self) -> None:
        self._last = (time.process_time(), time.perf_counter())

    def read(self, run: Any) -> float:
        """Return the share."""
        now = (time.process_time(), time.perf_counter())
        used, passed = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return 100 * used / passed / (os.cpu_count() or 1) if passed > 0 else float("nan")


class CpuTemperature(Gauge):
    """The hottest zone that the system reports, in degrees Celsius."""

    name = "temperature"
    unit = "°C"

    def read(self, run: Any) -> float:
        """Return the temperature."""
        found = []
        for zone in Path("/sys/class/thermal").glob("thermal_zone*/temp"):
            try:
                found.append(int(zone.read_text()) / 1000)
            except (OSError, ValueError):
                continue
        return max(found, default=float("nan"))


class DeviceMemory(Gauge):
    """Memory in use on the first device, in GB."""

    name = "device memory"
    unit = "GB"

    def read(self, run: Any) -> float:
        """Return the memory."""
        report = run.devices[0].memory_report() if run.devices else {}
        used = report.get("in_use", report.get("bytes_in_use"))
        return float("nan") if used is None else used / 1e9
