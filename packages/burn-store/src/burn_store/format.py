"""What a file format is: an object named by an entry point of `burn.store_formats`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from burn_std import PluginGroup, StoreError

API_VERSION = 1
FORMATS = PluginGroup("burn.store_formats", API_VERSION)


class Reading(Mapping[str, Any]):
    """An open file: names to numpy arrays, read one at a time when asked for.

    Attributes:
        metadata: text by key, as the file holds it.
    """

    metadata: dict[str, str]

    def spec(self, name: str) -> tuple[tuple[int, ...], str]:
        """Return (shape, dtype name) without reading the elements."""
        ...

    def close(self) -> None:
        """Let the file go."""
        ...


class Format(Protocol):
    """A reader and writer of one kind of file.

    Attributes:
        name: what the user passes as `format=`.
        suffixes: file name endings.
        api_version: `burn_store.API_VERSION` it was written for.
    """

    name: str
    suffixes: tuple[str, ...]
    api_version: int

    def open(self, path: Path) -> Reading:
        """Return the open file; StoreError when it is corrupt."""
        ...

    def write(self, path: Path, tensors: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> None:
        """Write the arrays to a file of that name."""
        ...


def find_format(path: Path, name: str | None) -> Format:
    """Return the format of a name, or of the file's ending.

    Raises:
        StoreError: no installed format reads files of that ending.
    """
    if name is not None:
        found: Format = FORMATS.load(name)
        return found
    for candidate in FORMATS.names():
        found = FORMATS.load(candidate)
        if path.name.endswith(found.suffixes):
            return found
    raise StoreError(
        "store", "no installed format has this file name ending", got=path.name,
        remedy=f"Pass format=, one of {', '.join(FORMATS.names())}.",
    )  # fmt: skip
