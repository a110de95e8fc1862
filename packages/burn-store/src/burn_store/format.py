"""What a file format is: an object named by an entry point of `burn.store_formats`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from burn_std import BackendLoadError, PluginGroup, StoreError, unwritten
from burn_store.elements import Array, Spec
from burn_store.files import FileBytes

log = logging.getLogger("burn")
API_VERSION = 2
FORMATS = PluginGroup("burn.store_formats", API_VERSION)

# Enough for every format's mark; also holds the first member name of a zip archive.
HEAD = 512


class Reading(Mapping[str, Array]):
    """An open file: names to numpy arrays, read one at a time when asked for.

    A format subclasses it. Whatever can be wrong with names, ranges and shapes is found when the
    file is opened; after `verify` reading a tensor fails only when the disk does.

    Attributes:
        metadata: text by key, as the file holds it.
        aliases: names of tied tensors, each with the name that stands for the same tensor.
        extra: what the file holds besides tensors, by path; numbers, text and None only.
        param_ids: 64 bits that identify parameters for life, by name, where the file has them.
    """

    metadata: Mapping[str, str] = {}
    aliases: Mapping[str, str] = {}
    extra: Mapping[str, Any] = {}
    param_ids: Mapping[str, int] = {}

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name without reading the elements."""
        raise unwritten(self, "spec")

    def read(self, name: str, into: Array | None = None) -> Array:
        """Return a tensor's elements in an array of their own.

        Args:
            name: of a stored tensor.
            into: an array of the tensor's shape and dtype, in row-major order, that a format may
                fill and return instead of a new one.

        Raises:
            StoreError: the framework has no such dtype, or the disk refuses.
        """
        raise unwritten(self, "read")

    def verify(self, everything: bool = False) -> None:
        """Read what could still turn out corrupt, which is what is compressed.

        Args:
            everything: compare every checksum that the file holds, at the cost of reading it all.

        Raises:
            StoreError: something is corrupt.
        """

    def close(self) -> None:
        """Let the file go."""

    def __getitem__(self, name: str) -> Array:
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        # Mapping would look by reading the tensor.
        return any(name == own for own in self)

    def __iter__(self) -> Iterator[str]:
        raise unwritten(self, "__iter__")

    def __len__(self) -> int:
        raise unwritten(self, "__len__")


class Source(NamedTuple):
    """A tensor to be written: its facts now, its elements when the writer comes to them.

    Attributes:
        spec: shape and dtype name.
        read: returns the elements, contiguous or not.
        param_id: 64 bits that identify a parameter for life, for formats that hold them.
    """

    spec: Spec
    read: Callable[[], Array]
    param_id: int | None = None

    def contiguous(self) -> Array:
        """Return the elements in row-major order, as the spec says they are."""
        # ascontiguousarray alone would turn rank 0 into rank 1.
        return np.ascontiguousarray(self.read()).reshape(self.spec.shape)


class Format(Protocol):
    """A reader and writer of one kind of file.

    Attributes:
        name: what the user passes as `format=`.
        suffixes: file name endings.
        api_version: `burn_store.API_VERSION` it was written for.
        layout: `torch` or `burn`: whose names and weight layouts files of this kind hold.
        options: names of keyword arguments of `open` and `load` that it understands.
    """

    name: str
    suffixes: tuple[str, ...]
    api_version: int
    layout: str
    options: tuple[str, ...]

    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes (512 at most) is of this kind."""
        ...

    def open(self, path: Path, options: Mapping[str, Any]) -> Reading:
        """Return the open file; StoreError when it is corrupt.

        For bytes in memory `path` is an object whose `data` they are and whose `name` says so.
        """
        ...

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Write a whole file, one tensor at a time."""
        ...


def _formats() -> Iterator[Format]:
    """Yield the formats that load; a broken one of a third party hides no other."""
    for name in FORMATS.names():
        try:
            found: Format = FORMATS.load(name)
        except BackendLoadError as error:
            log.info("format %s left out: %s", name, error)
            continue
        yield found


def _choice() -> str:
    """Return the remedy where no format fits: those there are, and those that are broken."""
    working = [found.name for found in _formats()]
    broken = [info.name for info in FORMATS.infos() if info.status.startswith("failed")]
    text = f"Pass format=, one of {', '.join(working)}."
    if broken:
        text += f" Installed, but do not load: {', '.join(dict.fromkeys(broken))}."
    return text


def _by_suffix(path: Path) -> list[Format]:
    fitting = [f for f in _formats() if path.name.endswith(f.suffixes)]
    # The longest ending is the most telling: `.safetensors.index.json` before `.json`.
    return sorted(fitting, key=lambda f: -max(len(s) for s in f.suffixes if path.name.endswith(s)))


def format_to_write(path: Path, name: str | None) -> Format:
    """Return the format of a name, or of the file's ending.

    Raises:
        StoreError: no installed format writes files of that ending.
    """
    if name is not None:
        found: Format = FORMATS.load(name)
        return found
    fitting = _by_suffix(path)
    if not fitting:
        raise StoreError(
            "store.save",
            "no installed format has this file name ending",
            got=path.name,
            remedy=_choice(),
        )
    return fitting[0]


def format_to_read(path: Path, name: str | None) -> Format:
    """Return the format to read a file with: what its first bytes say, else its ending.

    Raises:
        StoreError: no installed format fits, or the named one does not and another does.
    """
    file = FileBytes(path)
    try:
        head = file.read(0, min(HEAD, file.size))
    finally:
        file.close()
    if name is not None:
        named: Format = FORMATS.load(name)
        if not named.recognises(head):
            fitting = [f.name for f in _formats() if f.recognises(head)]
            if fitting:
                raise StoreError(
                    "store.open",
                    f"the file is not of format {name}",
                    got=path.name,
                    remedy=f"Pass format={fitting[0]!r}.",
                )
        return named
    by_name = _by_suffix(path)
    for candidate in by_name:
        if candidate.recognises(head):
            return candidate
    for candidate in _formats():
        if candidate.recognises(head):
            return candidate
    # A damaged file of a known ending: its own format says best what is wrong with it.
    if by_name:
        return by_name[0]
    raise StoreError(
        "store.open",
        "no installed format knows this file by its first bytes or its ending",
        got=path.name,
        remedy=_choice(),
    )


def checked_options(kind: Format, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a format.

    Raises:
        StoreError: the format has no such option.
    """
    for option in options:
        if option not in kind.options:
            known = ", ".join(kind.options) or "none"
            raise StoreError(
                "store.open",
                f"format {kind.name} has no option {option!r}",
                got=f"{option}=",
                remedy=f"Its options: {known}.",
            )
    return options
