"""Files whose tensors are plain ranges of bytes behind a header: checks and reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from burn_std import StoreError
from burn_store.elements import NATIVE, Array, Spec, byte_count, native_dtype, normalised
from burn_store.files import FileBytes
from burn_store.format import Reading


class Span(NamedTuple):
    """A tensor in a file.

    Attributes:
        spec: shape and dtype name.
        start: first byte, from the begin of the data section.
        end: byte after the last.
    """

    spec: Spec
    start: int
    end: int


def checked_spans(spans: Mapping[str, Span], begin: int, file: FileBytes, dense: bool) -> None:
    """Refuse ranges that lie outside the file, overlap, or do not hold what their shape says.

    Args:
        spans: the tensors.
        begin: where the data section begins in the file.
        file: the file.
        dense: the ranges must follow each other without gaps up to the end of the file.

    Raises:
        StoreError: a rule is broken; the tensor is named.
    """
    room = file.size - begin
    for name, (spec, start, end) in spans.items():
        if not 0 <= start <= end <= room:
            raise StoreError(
                "store.open",
                f"the bytes of {name} must lie inside the file",
                got=f"{file.path.name}: bytes {start} to {end} of {max(room, 0)}",
            )
        dtype = NATIVE.get(spec.dtype)
        if dtype is not None and byte_count(spec.shape, dtype.itemsize) != end - start:
            raise StoreError(
                "store.open",
                f"the bytes of {name} must be as many as its shape and dtype need",
                got=f"{file.path.name}: {end - start} bytes for {spec.dtype}{list(spec.shape)}",
            )
    before, at = "", 0
    for name, span in sorted(spans.items(), key=lambda item: (item[1].start, item[1].end)):
        if span.start < at and span.end > span.start:
            raise StoreError(
                "store.open",
                "no two tensors share bytes",
                got=f"{file.path.name}: {before} and {name}",
            )
        if dense and span.start != at:
            raise StoreError(
                "store.open",
                "the tensors leave no bytes unused",
                got=f"{file.path.name}: a gap before {name}",
            )
        if span.end > at:
            before, at = name, span.end
    if dense and at != room:
        raise StoreError(
            "store.open",
            "the file ends with its last tensor",
            got=f"{file.path.name}: {room - at} bytes more",
        )


class SpanReading(Reading):
    """An open file of byte ranges, which were checked before."""

    def __init__(
        self, file: FileBytes, begin: int, spans: Mapping[str, Span], metadata: Mapping[str, str]
    ) -> None:
        self._file = file
        self._begin = begin
        self._spans = spans
        self.metadata = metadata

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name without reading the elements."""
        return self._spans[name].spec

    def read(self, name: str, into: Array | None = None) -> Array:
        """Return a tensor's elements in an array of their own."""
        spec, start, _ = self._spans[name]
        array = np.empty(spec.shape, native_dtype(spec.dtype, name)) if into is None else into
        if array.size:
            # Little-endian on disk; every machine numpy runs on today is too, others swap.
            self._file.into(self._begin + start, array.reshape(-1).view(np.uint8).data)
        return normalised(array if np.little_endian else array.byteswap())

    def __contains__(self, name: object) -> bool:
        return name in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()
