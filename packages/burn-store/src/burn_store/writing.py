"""Writing: what no file holds is refused, then one file or several are written whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from burn_std import StoreError, parse_dtype
from burn_store.elements import NATIVE, Array, Spec, byte_count
from burn_store.files import replacing
from burn_store.format import Format, Source, format_to_write
from burn_store.quantized import divided
from burn_tensor import Tensor


def host_array(tensor: Tensor) -> Array:
    """Return the elements of a tensor, brought to the host."""
    array: Array = tensor.b.to_numpy(tensor)
    return array


def source_of_tensor(tensor: Tensor, id: str | None) -> Source:
    """Return a tensor to be written; an id as `Parameter.id` shows it."""
    spec = Spec(tuple(tensor.shape), tensor.dtype.name)
    return Source(spec, lambda: host_array(tensor), None if id is None else int(id, 32))


def write_file(
    path: Path,
    sources: Mapping[str, Source],
    metadata: Mapping[str, str] | None,
    format: str | None,
    shard_size: int | None,
    overwrite: bool,
) -> None:
    """Write a file, or several and an index, each whole or not there.

    Raises:
        StoreError: what is given has no place in a file, or the disk refuses.
    """
    kind = format_to_write(path, format)
    sources, text = whole_or_divided(kind, sources, metadata or {})
    check_writable(sources, text)
    if not overwrite and path.exists():
        raise StoreError(
            "store.save",
            "the file is there already",
            got=str(path),
            remedy="Pass overwrite=True to replace it.",
        )
    shards = _shards(sources, shard_size)
    if len(shards) <= 1:
        with replacing(path) as handle:
            kind.write(handle, sources, text)
        return
    _write_shards(path, kind, sources, shards, text)


def check_writable(sources: Mapping[str, Source], metadata: Mapping[str, str]) -> None:
    """Raise StoreError for names, dtypes and metadata that no file holds."""
    for key, value in metadata.items():
        if type(key) is not str or type(value) is not str:
            raise StoreError(
                "store.save",
                "metadata is text by key",
                got=f"{key!r}: {value!r}",
                remedy="Use json.dumps for more.",
            )
    for name, source in sources.items():
        if type(name) is not str or name == "":
            raise StoreError("store.save", "a tensor has a name", got=repr(name))
        if source.spec.dtype not in NATIVE:
            raise StoreError(
                "store.save",
                f"the dtype of {name} has no place in a file",
                got=parse_dtype(source.spec.dtype),
                remedy="Save as .safetensors, call .dequantize() first, or leave it out with "
                "exclude=.",
            )


def whole_or_divided(
    kind: Format, sources: Mapping[str, Source], metadata: Mapping[str, str]
) -> tuple[dict[str, Source], dict[str, str]]:
    """Return sources and metadata as a format holds them: quantised tensors in their parts.

    Rust's Burn has quantised tensors of its own in its files; ours would not be those.

    Args:
        kind: the format.
        sources: tensors to be written.
        metadata: of the file.

    Raises:
        StoreError: a part has the name of another tensor.
    """
    if kind.layout != "torch":
        return dict(sources), dict(metadata)
    return divided(sources, metadata)


def _bytes(source: Source) -> int:
    return byte_count(source.spec.shape, NATIVE[source.spec.dtype].itemsize)


def _shards(sources: Mapping[str, Source], shard_size: int | None) -> list[list[str]]:
    """Return the names of each file, in order; a tensor above the limit has its own file."""
    if shard_size is None:
        return [list(sources)]
    if shard_size < 1:
        raise StoreError("store.save", "shard_size is a positive number of bytes", got=shard_size)
    shards: list[list[str]] = []
    room = 0
    for name, source in sources.items():
        size = _bytes(source)
        if not shards or size > room:
            shards.append([])
            room = shard_size
        shards[-1].append(name)
        room -= size
    return shards


def _write_shards(
    path: Path,
    kind: Format,
    sources: Mapping[str, Source],
    shards: list[list[str]],
    metadata: dict[str, str],
) -> None:
    index_path = path.with_name(f"{path.name}.index.json")
    # Without its index a half-replaced set of files is absent; with the old one it would be mixed.
    try:
        index_path.unlink(missing_ok=True)
    except OSError as cause:
        raise StoreError(
            "store.save", "the old index could not be removed", got=f"{index_path}: {cause}"
        ) from cause
    where: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        shard = f"{path.stem}-{number:05d}-of-{len(shards):05d}{path.suffix}"
        with replacing(path.with_name(shard)) as handle:
            kind.write(handle, {n: sources[n] for n in names}, metadata)
        where |= dict.fromkeys(names, shard)
    total = sum(_bytes(s) for s in sources.values())
    with replacing(index_path) as handle:
        index = {"metadata": {"total_size": total, **metadata}, "weight_map": where}
        handle.write(json.dumps(index, indent=2, sort_keys=True).encode())
