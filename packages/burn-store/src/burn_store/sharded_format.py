"""Sharded checkpoints: a JSON index that says in which file beside it each tensor lies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from burn_std import StoreError
from burn_store.elements import Array, Spec, shortened
from burn_store.files import FileBytes
from burn_store.format import API_VERSION, Reading, Source, format_to_read
from burn_store.json_text import parsed
from burn_store.tied import tied_in_metadata

_MAX_INDEX = 16_000_000
_MAX_SHARDS = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


class ShardedReading(Reading):
    """An open sharded checkpoint: one reading per shard.

    Every shard is opened, and so checked, before a tensor can be read.
    """

    def __init__(
        self, shards: Mapping[str, Reading], where: Mapping[str, str], metadata: Mapping[str, str]
    ) -> None:
        self._shards = shards
        self._where = where
        self.metadata = metadata
        self.aliases = tied_in_metadata(metadata, where)
        self.param_ids = {k: v for shard in shards.values() for k, v in shard.param_ids.items()}
        for shard in shards.values():
            self.aliases |= {alias: kept for alias, kept in shard.aliases.items() if kept in where}

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name without reading the elements."""
        return self._shards[self._where[name]].spec(name)

    def read(self, name: str, into: Array | None = None) -> Array:
        """Return a tensor's elements in an array of their own."""
        return self._shards[self._where[name]].read(name, into)

    def verify(self, everything: bool = False) -> None:
        """Check every shard."""
        for shard in self._shards.values():
            shard.verify(everything)

    def __contains__(self, name: object) -> bool:
        return name in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def close(self) -> None:
        """Let the files go."""
        for shard in self._shards.values():
            shard.close()


class ShardedFormat:
    """Entry point `sharded` of `burn.store_formats`, for `model.safetensors.index.json`."""

    name = "sharded"
    suffixes = (".index.json",)
    api_version = API_VERSION
    layout = "torch"
    options: tuple[str, ...] = ()

    def recognises(self, head: bytes) -> bool:
        """Return whether the bytes begin a JSON object with one of the index's two keys first."""
        return re.match(rb'\s*\{\s*"(metadata|weight_map)"\s*:', head) is not None

    def open(self, path: Path, options: Mapping[str, Any]) -> ShardedReading:
        """Return the open checkpoint.

        Raises:
            StoreError: the index is corrupt, names a file elsewhere, or a shard is corrupt or
                lacks a tensor.
        """
        where, metadata = _index(path)
        shards: dict[str, Reading] = {}
        try:
            for shard in sorted(set(where.values())):
                shards[shard] = format_to_read(path.parent / shard, None).open(
                    path.parent / shard, {}
                )
            for name, shard in where.items():
                if name not in shards[shard]:
                    raise StoreError(
                        "store.open",
                        "a tensor is in the file that the index says",
                        got=f"{shortened(name)} in {shard}",
                    )
        except BaseException:
            for opened in shards.values():
                opened.close()
            raise
        return ShardedReading(shards, where, metadata)

    def write(
        self, handle: BinaryIO, tensors: Mapping[str, Source], metadata: Mapping[str, str]
    ) -> None:
        """Raise: an index alone holds no tensors.

        Raises:
            StoreError: always.
        """
        raise StoreError(
            "store.save",
            "an index is written together with its shards",
            got="format sharded",
            remedy="Pass shard_size= and a name ending in .safetensors.",
        )


def _index(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    file = FileBytes(path)
    try:
        if file.size > _MAX_INDEX:
            raise StoreError(
                "store.open",
                f"an index has at most {_MAX_INDEX} bytes",
                got=f"{path.name}: {file.size}",
            )
        raw = file.read(0, file.size)
    finally:
        file.close()
    index = parsed(raw, f"the index {path.name}")
    where = index.get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(v, str) for v in where.values()):
        raise StoreError(
            "store.open", "the weight_map of an index says the file of each tensor", got=path.name
        )
    shards = set(where.values())
    if len(shards) > _MAX_SHARDS:
        raise StoreError(
            "store.open",
            f"a checkpoint has at most {_MAX_SHARDS} files",
            got=f"{path.name}: {len(shards)}",
        )
    for shard in shards:
        # A plain name beside the index: no path leads out of the folder, no index to another.
        if not _NAME.fullmatch(shard) or shard.endswith(".json"):
            raise StoreError(
                "store.open",
                "the files of an index lie beside it and are no indices",
                got=shortened(shard),
            )
    metadata = index.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise StoreError("store.open", "the metadata of an index is a JSON object", got=path.name)
    return where, {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}


format = ShardedFormat()
