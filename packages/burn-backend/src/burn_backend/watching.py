"""Who hears of what a backend does while `burn.profile` is open."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol


class Watcher(Protocol):
    """A listener; all times are those of `time.perf_counter`."""

    def span(
        self, lane: str, name: str, start: float, end: float, facts: Mapping[str, Any],
        device: str | None = None,
    ) -> None:  # fmt: skip
        """Hear of something that took time.

        Args:
            lane: of things of one kind, which follow or enclose each other: `plans`, `flushes`,
                `kernels`.
            name: what it was.
            start: when it began.
            end: when it ended.
            facts: more of it, as JSON can hold it.
            device: what did it, if that is not the watched device itself.
        """
        ...

    def holds(self, payloads: Iterable[Any]) -> None:
        """Hear of results that came to be, and look how much memory is in use."""
        ...

    def claims(self, what: Hashable) -> bool:
        """Return whether nobody else of this profile tells of something; then the caller does.

        Two devices of the program may share one device of the machine.
        """
        ...
