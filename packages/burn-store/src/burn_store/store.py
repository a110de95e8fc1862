"""Saving and loading: whole files or none, names checked before anything changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from burn_core import Module
from burn_dispatch import Device
from burn_std import StoreError
from burn_store.format import Reading, find_format
from burn_store.report import LoadReport
from burn_tensor import Tensor, tensor

PathLike = str | os.PathLike[str]


def save_tensors(tensors: Mapping[str, Tensor], path: PathLike, *, metadata: Mapping[str, str] | None = None, format: str | None = None) -> None:
    """Write tensors by name; the file is whole or not there.

    Args:
        tensors: tensors by name, on any device.
        path: the file; its ending says the format unless `format` does.
        metadata: text by key.
        format: name of an installed format.

    Raises:
        StoreError: no format fits, or the disk refuses; an older file stays intact.

    Example:
        >>> import tempfile, burn_tensor as bt
        >>> with tempfile.TemporaryDirectory() as d:
        ...     save_tensors({"a": bt.ones(2)}, f"{d}/t.safetensors")
        ...     list(open(f"{d}/t.safetensors"))
        ['a']
    """
    target = Path(path)
    kind = find_format(target, format)
    arrays = {name: t.b.to_numpy(t) for name, t in tensors.items()}
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        kind.write(temporary, arrays, metadata or {})
        with open_file(temporary) as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    except OSError as cause:
        raise StoreError("store.save", "the file could not be written", got=f"{target}: {cause}") from cause
    finally:
        temporary.unlink(missing_ok=True)


def open_file(path: Path) -> Any:
    """Return a binary handle of a file for syncing."""
    return path.open("rb")


def save(model: Module, path: PathLike, *, metadata: Mapping[str, str] | None = None, format: str | None = None) -> None:
    """Write the state of a model: parameters and persistent buffers by path.

    Args:
        model: the module.
        path: the file; its ending says the format unless `format` does.
        metadata: text by key.
        format: name of an installed format.

    Raises:
        StoreError: no format fits, or the disk refuses; an older file stays intact.
    """
    save_tensors(model.state_dict(), path, metadata=metadata, format=format)


class TensorFile(Mapping[str, Tensor]):
    """An open file as a lazy mapping: a tensor is read when asked for.

    Attributes:
        metadata: text by key.
    """

    def __init__(self, reading: Reading, device: Device | None) -> None:
        self._reading = reading
        self._device = device
        self.metadata = reading.metadata

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape without reading it."""
        return self._reading.spec(name)[0]

    def __getitem__(self, name: str) -> Tensor:
        return tensor(self._reading[name], device=self._device)

    def __contains__(self, name: object) -> bool:
        return name in self._reading

    def __iter__(self) -> Iterator[str]:
        return iter(self._reading)

    def __len__(self) -> int:
        return len(self._reading)

    def close(self) -> None:
        """Let the file go."""
        self._reading.close()

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open(path: PathLike, *, device: Device | None = None, format: str | None = None) -> TensorFile:
    """Return a file of tensors as a lazy mapping.

    Args:
        path: the file.
        device: where tensors are made; the default device if None.
        format: name of an installed format; by the file's ending if None.

    Raises:
        StoreError: no such file, no format fits, or the file is corrupt.
    """
    target = Path(path)
    return TensorFile(find_format(target, format).open(target), device)


def load(
    model: Module, path: PathLike, *, strict: bool = True, rename: Callable[[str], str] | None = None,
    format: str | None = None,
) -> LoadReport:  # fmt: skip
    """Load a model's state from a file and say what happened.

    Args:
        model: the module; dtype and device of its own tensors stay.
        path: the file.
        strict: every name must fit; else what fits is loaded.
        rename: name in the file to name in the model.
        format: name of an installed format; by the file's ending if None.

    Raises:
        StoreError: the file is corrupt, or (strict) names or shapes do not fit; nothing is
            changed then.
    """
    with open(path, device=_device(model), format=format) as file:
        names = {(rename(n) if rename else n): n for n in file}
        own = model.state_dict()
        mismatched = {
            n: (own[n].shape, file.shape(f)) for n, f in names.items()
            if n in own and file.shape(f) != own[n].shape
        }  # fmt: skip
        fitting = [n for n in own if n in names and n not in mismatched]
        report = LoadReport(
            fitting, [n for n in own if n not in names], [n for n in names if n not in own], mismatched
        )
        if strict and not report.complete:
            raise StoreError(
                "store.load", "file and model must fit", got=report.problems(),
                remedy="Pass strict=False to load what fits, or rename= to map names.",
            )  # fmt: skip
        values = {n: file[names[n]] for n in fitting}
    model.load_state_dict(values, strict=False)
    return report


def _device(model: Module) -> Device | None:
    for leaf in (*model.parameters(), *(b for _, b in model.named_buffers())):
        device: Device = leaf.b.device
        return device.without_autodiff()
    return None
