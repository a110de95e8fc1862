"""Choosing the fastest of several ways to do one thing, by measuring them once per kind of input.

The first candidate always works and is what runs until a choice is made. Keys are *anchored*:
sizes are rounded up to powers of two, so that nearby sizes share one choice. Choices are kept on
disk with the names of all candidates in the key: a candidate that is added or renamed makes old
choices void. A candidate that fails is dropped with a line in the log; it is never fatal.

`BURN_AUTOTUNE` is `on` (measure), `cached` (use choices on disk, never measure) or `off`.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from burn_cube.runtime.cache import DiskCache, cache_folder, digest_of
from burn_cube.runtime.client import Client
from burn_std import ConfigError

LOG = logging.getLogger("burn_cube.autotune")
MODES = ("on", "cached", "off")
# Samples of one candidate at least and at most.
FEW, MANY = 3, 10
# A candidate this much slower than the best is measured no further.
HOPELESS = 1.5
# The best is settled once a round improves it by less than this.
SETTLED = 0.02

Key = tuple[int | str, ...]
_FROZEN: ContextVar[bool] = ContextVar("burn_autotune_frozen", default=False)


class Candidate(NamedTuple):
    """One way to do it.

    Attributes:
        name: part of the key on disk; a change of the code deserves a change of the name.
        run: does it, on the arguments it is given; returns before the device is done.
        fits: whether it takes inputs of a key; True for all without it.
        group: candidates of the lowest group that has one that fits are measured first, and
            those of a later group only where all of them failed.
    """

    name: str
    run: Callable[..., None]
    fits: Callable[[Key], bool] | None = None
    group: int = 0


def anchor(size: int, level: str = "power") -> int:
    """Return the size that stands for a size in keys.

    Args:
        size: an extent.
        level: `power` rounds up to a power of two, `half` also to one and a half of one,
            `exact` keeps it.

    Example:
        >>> anchor(100), anchor(90, "half"), anchor(0), anchor(77, "exact")
        (128, 96, 0, 77)
    """
    if level == "exact" or size <= 1:
        return size
    power = 1 << (size - 1).bit_length()
    return power * 3 // 4 if level == "half" and size <= power * 3 // 4 else power


class Tuner:
    """A set of candidates and what was chosen for each key.

    Args:
        name: what is tuned; one name for one set.
        candidates: at least one; the first always works.
        after: uses of a key before it is worth measuring.
        budget: seconds that all measuring of this tuner may take in one process.

    Example:
        >>> from burn_cube import client
        >>> done = []
        >>> tuner = Tuner("demo", [Candidate("plain", lambda x: done.append(x))])
        >>> tuner.run(client("cpu"), (anchor(100),), 7)
        >>> done
        [7]
    """

    def __init__(
        self,
        name: str,
        candidates: Sequence[Candidate],
        *,
        after: int = 8,
        budget: float = 5.0,
    ) -> None:
        names = [candidate.name for candidate in candidates]
        if not names or len(set(names)) != len(names):
            raise ConfigError("autotune", "candidates have names of their own", got=names)
        self.name = name
        self.candidates = tuple(candidates)
        self.after = after
        self.budget = budget
        self._by_name = {candidate.name: candidate for candidate in candidates}
        self._chosen: dict[tuple[str, Key], Candidate] = {}
        self._uses: dict[tuple[str, Key], int] = {}
        self._dropped: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._busy = False
        self._spent = 0.0

    def run(
        self,
        client: Client,
        key: Key,
        *args: Any,
        scratch: Callable[[], Sequence[Any]] | None = None,
    ) -> None:
        """Do it with the best candidate that is known for the key.

        Args:
            client: the device.
            key: anchored sizes, dtypes, layouts: all that the choice may depend on.
            args: what the candidate is called with.
            scratch: makes arguments to measure on, with the layout and the aliasing of the real
                ones; without it nothing is measured.
        """
        self.choose(client, key, scratch).run(*args)

    def choose(
        self, client: Client, key: Key, scratch: Callable[[], Sequence[Any]] | None = None
    ) -> Candidate:
        """Return the candidate for a key, measuring where it is time to."""
        place = (_device(client), key)
        found = self._chosen.get(place)
        if found is not None:
            return found
        mode = _mode()
        fallback = self._fitting(place)[0]
        if mode == "off" or len(self.candidates) == 1:
            return fallback
        kept = self._kept(place)
        if kept is not None:
            self._chosen[place] = kept
            return kept
        if mode == "cached" or scratch is None or _FROZEN.get():
            return fallback
        with self._lock:
            self._uses[place] = uses = self._uses.get(place, 0) + 1
            # A candidate may launch what is tuned itself: that uses the fallback.
            if uses <= self.after or self._busy or self._spent >= self.budget:
                return fallback
            self._busy = True
        try:
            best, times = self._measure(client, place, scratch)
        finally:
            self._busy = False
        self._chosen[place] = best
        _store().put(self._digest(place), _record(self.name, place, best.name, times))
        return best

    # --- measuring -------------------------------------------------------------------------

    def _fitting(self, place: tuple[str, Key]) -> list[Candidate]:
        device, key = place
        found = [
            candidate
            for candidate in self.candidates
            if (candidate.fits is None or candidate.fits(key))
            and (device, candidate.name) not in self._dropped
        ]
        return found or [self.candidates[0]]

    def _measure(
        self, client: Client, place: tuple[str, Key], scratch: Callable[[], Sequence[Any]]
    ) -> tuple[Candidate, dict[str, float]]:
        start = time.perf_counter()
        fitting = self._fitting(place)
        times: dict[str, list[float]] = {}
        for group in sorted({candidate.group for candidate in fitting}):
            members = [c for c in fitting if c.group == group]
            times = self._rounds(client, place, members, scratch, start)
            if times:
                break
        self._spent += time.perf_counter() - start
        medians = {name: statistics.median(samples) for name, samples in times.items()}
        if not medians:
            return self.candidates[0], {}
        best = min(medians, key=lambda name: medians[name])
        LOG.info("%s %s: %s", self.name, place, medians)
        return self._by_name[best], medians

    def _rounds(
        self,
        client: Client,
        place: tuple[str, Key],
        members: list[Candidate],
        scratch: Callable[[], Sequence[Any]],
        start: float,
    ) -> dict[str, list[float]]:
        args = scratch()
        times: dict[str, list[float]] = {}
        running = list(members)
        # The first run compiles and warms up; it is not counted.
        for candidate in members:
            if self._sample(client, place, candidate, args) is None:
                running.remove(candidate)
        before = float("inf")
        for number in range(MANY):
            for candidate in list(running):
                seconds = self._sample(client, place, candidate, args)
                if seconds is None:
                    running.remove(candidate)
                    times.pop(candidate.name, None)
                else:
                    times.setdefault(candidate.name, []).append(seconds)
            if not times:
                break
            best = min(min(samples) for samples in times.values())
            running = [c for c in running if min(times[c.name]) <= HOPELESS * best]
            over = self._spent + time.perf_counter() - start > self.budget
            if number + 1 >= FEW and (over or before - best < SETTLED * best):
                break
            before = min(before, best)
        return times

    def _sample(
        self, client: Client, place: tuple[str, Key], candidate: Candidate, args: Sequence[Any]
    ) -> float | None:
        """Return the seconds of one run; None drops a candidate that failed."""
        try:
            first = client.runtime.event()
            candidate.run(*args)
            last = client.runtime.event()
            last.wait()
            client.sync()
            return last.seconds_since(first)
        except Exception as error:
            if candidate is self.candidates[0]:
                raise
            LOG.warning("%s: candidate %s is dropped: %s", self.name, candidate.name, error)
            self._dropped.add((place[0], candidate.name))
            return None

    # --- choices on disk -------------------------------------------------------------------

    def _digest(self, place: tuple[str, Key]) -> bytes:
        names = " ".join(candidate.name for candidate in self.candidates)
        return digest_of("autotune", self.name, names, place[0], repr(place[1]))

    def _kept(self, place: tuple[str, Key]) -> Candidate | None:
        data = _store().get(self._digest(place))
        if data is None:
            return None
        try:
            name = json.loads(data)["best"]
        except (ValueError, KeyError, TypeError):
            return None
        found = self._by_name.get(name)
        fits = found is not None and found in self._fitting(place)
        return found if fits else None

    def export(self, path: str | Path) -> None:
        """Write the choices of this process to a file, for another machine of the same kind."""
        rows = [
            {"device": device, "key": list(key), "best": candidate.name}
            for (device, key), candidate in self._chosen.items()
        ]
        names = [candidate.name for candidate in self.candidates]
        text = json.dumps({"tuner": self.name, "candidates": names, "choices": rows}, indent=1)
        Path(path).write_text(text)

    def load(self, path: str | Path) -> int:
        """Take the choices of a file; return how many.

        Raises:
            ConfigError: the file is of another tuner or of other candidates.
        """
        try:
            read = json.loads(Path(path).read_text())
            names = [candidate.name for candidate in self.candidates]
            if read["tuner"] != self.name or read["candidates"] != names:
                raise ConfigError(
                    "autotune", f"the file holds choices of {self.name} among {names}",
                    got=f"{read['tuner']} among {read['candidates']}",
                )  # fmt: skip
            rows = [
                ((str(row["device"]), tuple(row["key"])), self._by_name[row["best"]])
                for row in read["choices"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError("autotune", "the file holds choices as JSON", got=error) from error
        self._chosen.update(rows)
        return len(rows)


@contextmanager
def frozen() -> Iterator[None]:
    """Measure nothing in the block: in a capture, a measurement would be captured as well.

    Example:
        >>> with frozen():
        ...     pass
    """
    token = _FROZEN.set(True)
    try:
        yield
    finally:
        _FROZEN.reset(token)


def _mode() -> str:
    mode = os.environ.get("BURN_AUTOTUNE", "on")
    if mode not in MODES:
        raise ConfigError("BURN_AUTOTUNE", f"is one of {', '.join(MODES)}", got=mode)
    return mode


def _device(client: Client) -> str:
    return f"{client.name.partition(':')[0]} {client.properties.name}"


def _record(tuner: str, place: tuple[str, Key], best: str, times: dict[str, float]) -> bytes:
    facts = {"tuner": tuner, "device": place[0], "key": list(place[1]), "best": best}
    return json.dumps({**facts, "seconds": times}).encode()


@cache
def _store() -> DiskCache:
    folder = cache_folder()
    return DiskCache(folder / "autotune.sqlite" if folder else None, 16 << 20)
