"""Launches as `burn.profile` sees them: by events of the device, on the clock of the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from burn_backend import Watcher
from burn_cube import Client, Profile, profile


class Launches(Profile):
    """Keeps the launches of one device with their events."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.noted: list[tuple[str, int, Any, Any]] = []
        client.sync()
        self.zero = client.runtime.event()
        self.zero.wait()
        self.at = perf_counter()

    def note(self, device: str, kernel: str, nbytes: int, start: Any, end: Any) -> None:
        """Note one launch; those of other devices have watchers of their own."""
        if device == self.client.name:
            self.noted.append((kernel, nbytes, start, end))

    def tell(self, watcher: Watcher) -> None:
        """Wait for the launches, and tell of them."""
        for kernel, nbytes, start, end in self.noted:
            end.wait()
            began = self.at + start.seconds_since(self.zero)
            ended = self.at + end.seconds_since(self.zero)
            facts = {"bytes of arguments": nbytes}
            watcher.span("kernels", kernel, began, ended, facts, self.client.name)


@contextmanager
def watched(client: Client, watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of the launches of a device, unless another resource of it does."""
    if not watcher.claims(client):
        yield
        return
    launches = Launches(client)
    with profile(launches):
        yield
    launches.tell(watcher)
