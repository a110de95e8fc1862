"""The front over all formats: `save`, `load` and `open`; whole files or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from burn_core import Module, ModuleRecord
from burn_dispatch import Device
from burn_std import DTypeError, StoreError
from burn_store.adapters import Adapter, adapter_for
from burn_store.elements import Array, Spec
from burn_store.files import Memory
from burn_store.format import (
    Format,
    Reading,
    Source,
    checked_options,
    format_to_read,
    format_to_write,
)
from burn_store.leaves import Leaf, leaves, param_id
from burn_store.loading import DTypePolicy, Fitting, check_has_value, pieces_to_save
from burn_store.mapping import Mapper, Mappers, MapperTable, check_plain, mapped
from burn_store.quantized import with_quantized
from burn_store.report import LoadReport
from burn_store.selection import Rename, Select, renamed_names, renames, selects
from burn_store.tensor_file import TensorFile
from burn_store.tied import with_tied
from burn_store.writing import (
    check_writable,
    host_array,
    source_of_tensor,
    whole_or_divided,
    write_file,
)
from burn_tensor import Tensor

PathLike = str | os.PathLike[str]
Bytes = bytes | bytearray | memoryview


def save_tensors(
    tensors: Mapping[str, Tensor],
    path: PathLike,
    *,
    metadata: Mapping[str, str] | None = None,
    format: str | None = None,
    shard_size: int | None = None,
    overwrite: bool = True,
) -> None:
    """Write tensors by name; the file is whole or not there.

    Tensors are brought to the host one at a time. A view is written as the tensor it shows.

    Args:
        tensors: tensors by name, on any device.
        path: the file; its ending says the format unless `format` does.
        metadata: text by key.
        format: name of an installed format.
        shard_size: bytes a file holds at most; beyond it several files and an index are written.
        overwrite: False refuses to replace a file.

    Raises:
        StoreError: no format fits, a dtype has no place in it, or the disk refuses; an older file
            stays intact.

    Example:
        >>> import tempfile, burn_tensor as bt
        >>> with tempfile.TemporaryDirectory() as d:
        ...     save_tensors({"a": bt.ones(2)}, f"{d}/t.safetensors")
        ...     list(open(f"{d}/t.safetensors"))
        ['a']
    """
    ids = tensors.ids if isinstance(tensors, ModuleRecord) else {}
    sources = {name: source_of_tensor(t, ids.get(name)) for name, t in tensors.items()}
    write_file(Path(path), sources, metadata, format, shard_size, overwrite)


def _need_module(op: str, model: object, remedy: str) -> None:
    if not isinstance(model, Module):
        raise DTypeError(op, "takes a module, then a path", got=type(model).__name__, remedy=remedy)


def save(
    model: Module,
    path: PathLike,
    *,
    metadata: Mapping[str, str] | None = None,
    format: str | None = None,
    include: Select | None = None,
    exclude: Select | None = None,
    rename: Rename | None = None,
    adapter: Adapter | None = None,
    mappers: Mappers | None = None,
    shard_size: int | None = None,
    overwrite: bool = True,
) -> None:
    """Write the state of a model: parameters and persistent buffers by path.

    Tied parameters are written once; their other paths stand in the metadata and `load` fills them.
    Quantised ones are written as integers, scales and zero points, in formats of PyTorch's layout.

    Args:
        model: the module.
        path: the file; its ending says the format unless `format` does.
        metadata: text by key.
        format: name of an installed format.
        include: only paths that this chooses: a regular expression, a predicate, or several.
        exclude: no paths that this chooses.
        rename: paths to names in the file: a function, a mapping, or pairs of a regular
            expression and its replacement.
        adapter: names, layouts and precision of the file; the format's own if None.
        mappers: change values on their way to the file: paths and functions of numpy arrays, or
            pairs of a filter like `include` and a function. Shape and dtype of the file are those
            of the result.
        shard_size: bytes a file holds at most; beyond it several files and an index are written.
        overwrite: False refuses to replace a file.

    Raises:
        DTypeError: the first argument is no module.
        StoreError: no format fits, names collide, or the disk refuses; an older file stays intact.

    Example:
        >>> import tempfile, burn_tensor as bt
        >>> from burn_core import Module, Parameter
        >>> class Scale(Module):
        ...     def __init__(self): self.factor = Parameter(bt.ones(3))
        >>> with tempfile.TemporaryDirectory() as d:
        ...     save(Scale(), f"{d}/m.bpk", rename=[("^", "model.")], metadata={"epoch": "3"})
        ...     with open(f"{d}/m.bpk") as file:
        ...         list(file), file.metadata
        (['model.factor'], {'epoch': '3'})
    """
    sources, text = _state(model, format_to_write(Path(path), format), metadata, include, exclude,
                           rename, adapter, mappers)  # fmt: skip
    write_file(Path(path), sources, text, format, shard_size, overwrite)


def to_bytes(
    model: Module,
    format: str = "safetensors",
    *,
    metadata: Mapping[str, str] | None = None,
    include: Select | None = None,
    exclude: Select | None = None,
    rename: Rename | None = None,
    adapter: Adapter | None = None,
    mappers: Mappers | None = None,
) -> bytes:
    """Return the state of a model as the bytes of a file; `load` and `open` take them.

    Args:
        model: the module.
        format: name of an installed format.
        metadata: text by key.
        include: as for `save`.
        exclude: as for `save`.
        rename: as for `save`.
        adapter: as for `save`.
        mappers: as for `save`.

    Raises:
        DTypeError: the first argument is no module.
        StoreError: names collide, or a dtype has no place in a file.

    Example:
        >>> import burn_tensor as bt
        >>> from burn_core import Module, Parameter
        >>> class Scale(Module):
        ...     def __init__(self): self.factor = Parameter(bt.ones(2))
        >>> whole = to_bytes(Scale(), "burnpack")
        >>> load(Scale(), whole).applied
        ['factor']
    """
    kind = format_to_write(Path(), format)
    sources, text = _state(model, kind, metadata, include, exclude, rename, adapter, mappers)
    sources, text = whole_or_divided(kind, sources, text)
    check_writable(sources, text)
    handle = BytesIO()
    kind.write(handle, sources, text)
    return handle.getvalue()


def _state(
    model: Module,
    kind: Format,
    metadata: Mapping[str, str] | None,
    include: Select | None,
    exclude: Select | None,
    rename: Rename | None,
    adapter: Adapter | None,
    mappers: Mappers | None,
) -> tuple[dict[str, Source], Mapping[str, str]]:
    """Return what a file of a model holds: tensors by name, and metadata."""
    _need_module(
        "store.save", model, "Write tensors by name with store.save_tensors(tensors, path)."
    )
    how = adapter_for(kind.layout, adapter)
    chosen, dropped = (
        selects(include),
        selects(exclude) if exclude is not None else lambda path: False,
    )
    sources: dict[str, Source] = {}
    aliases: dict[str, str] = {}
    new_name = renames(rename)
    table = MapperTable(mappers)
    for leaf in leaves(model):
        if not chosen(leaf.path) or dropped(leaf.path):
            continue
        mapper = table.of(leaf.path)
        read, spec = _reading(leaf, mapper)
        pieces = pieces_to_save(leaf, how, spec)
        for name, spec, make in pieces:
            if name in sources:
                raise StoreError("store.save", "every tensor has a name of its own", got=name)
            # A tensor that the file holds in pieces has no one identity there.
            own = param_id(leaf) if len(pieces) == 1 else None
            sources[name] = Source(spec, lambda read=read, make=make: make(read()), own)  # type: ignore[misc]
        for alias in leaf.aliases:
            other = pieces_to_save(leaf.at(alias), how, spec)
            aliases |= {new_name(a[0]): new_name(p[0]) for a, p in zip(other, pieces, strict=True)}
    table.check_used()
    renamed = {new: sources[old] for new, old in renamed_names(sources, rename).items()}
    return renamed, with_tied(metadata or {}, aliases)


def _reading(leaf: Leaf, mapper: Mapper | None) -> tuple[Callable[[], Array], Spec]:
    """Return what reads a tensor of the model as it is saved, and its facts."""
    check_has_value(leaf)
    snapshot = leaf.value.detach()
    if mapper is None:
        return lambda: host_array(snapshot), Spec(leaf.shape, leaf.dtype)
    check_plain(leaf.path, leaf.dtype)
    # Facts stand before values in files, so it is made here.
    made = mapped(mapper, host_array(snapshot), leaf.path)
    return lambda: made, Spec(made.shape, made.dtype.name)


def open(
    path: PathLike | Bytes,
    *,
    device: Device | None = None,
    format: str | None = None,
    **options: Any,
) -> TensorFile:
    """Return a file of tensors as a lazy mapping.

    The file's first bytes say its format, then its ending. Names, shapes and ranges are checked
    here; a tensor is read when asked for.

    Args:
        path: the file, or its bytes.
        device: where tensors are made; the default device if None.
        format: name of an installed format; found out if None.
        options: of the format; for PyTorch files `key`, `unknown`, `max_items`, `expansion`.

    Raises:
        StoreError: no such file, no format fits, the file is corrupt, or it names what is not on
            the list of PyTorch's tensors.

    Example:
        >>> import tempfile, burn_tensor as bt
        >>> with tempfile.TemporaryDirectory() as d:
        ...     save_tensors({"w": bt.arange(6).reshape(2, 3)}, f"{d}/t.npz")
        ...     with open(f"{d}/t.npz") as file:
        ...         file.shape("w"), file["w"].tolist()
        ((2, 3), [[0, 1, 2], [3, 4, 5]])
    """
    target = _place(path)
    return TensorFile(_opened(target, format_to_read(target, format), options), device)


def load(
    model: Module,
    path: PathLike | Bytes,
    *,
    strict: bool = True,
    allow_missing: bool = False,
    allow_unused: bool = False,
    include: Select | None = None,
    exclude: Select | None = None,
    rename: Rename | None = None,
    adapter: Adapter | None = None,
    mappers: Mappers | None = None,
    dtype: DTypePolicy = "model",
    verify: bool = False,
    format: str | None = None,
    **options: Any,
) -> LoadReport:
    r"""Load a model's state from a file and say what happened.

    Names, shapes and dtypes are compared before anything is read; then one tensor at a time is read
    and takes the place of the old one, so that the peak of memory is the model and one tensor.

    Args:
        model: the module; its device stays.
        path: the file, or its bytes.
        strict: every name of both sides must fit; False loads what fits.
        allow_missing: names that the file lacks keep their values, also when strict.
        allow_unused: names that the model lacks are passed over, also when strict.
        include: only paths of the model that this chooses: a regular expression, a predicate, or
            several. What is left out is neither missing nor unused.
        exclude: no paths that this chooses.
        rename: names in the file to paths of the model: a function, a mapping, or pairs of a
            regular expression and its replacement.
        adapter: names, layouts and precision of the file; the format's own if None.
        mappers: change values on their way from the file: paths of the model and functions of numpy
            arrays, or pairs of a filter like `include` and a function. What they return must fit.
        dtype: `"model"` casts to the model's dtypes; `"file"` gives floats of the model the file's;
            a float dtype gives it to all of them. Integers are never cast to floats or back;
            quantised values become floats where the model has those.
        verify: compare the checksums of the file first, where it has any.
        format: name of an installed format; found out if None.
        options: of the format; for PyTorch files `key`, `unknown`, `max_items`, `expansion`.

    Raises:
        DTypeError: the first argument is no module.
        StoreError: the file is corrupt, or (strict) names, shapes or dtypes do not fit; nothing is
            changed then. When the disk itself fails half-way the message says how far it came.

    Example:
        >>> import tempfile, burn_tensor as bt
        >>> from burn_core import Module, Parameter
        >>> class Scale(Module):
        ...     def __init__(self): self.factor = Parameter(bt.zeros(2))
        >>> model = Scale()
        >>> with tempfile.TemporaryDirectory() as d:
        ...     save_tensors({"module.factor": bt.ones(2)}, f"{d}/m.safetensors")
        ...     load(model, f"{d}/m.safetensors", rename=[(r"^module\.", "")]).applied
        ['factor']
        >>> model.factor.tolist()
        [1.0, 1.0]
    """
    _need_module("store.load", model, "Read tensors by name with store.open(path).")
    target = _place(path)
    kind = format_to_read(target, format)
    reading = _opened(target, kind, options)
    try:
        chosen, dropped = (
            selects(include),
            selects(exclude) if exclude is not None else lambda path: False,
        )
        fitting = Fitting(
            model,
            reading,
            adapter_for(kind.layout, adapter),
            lambda path: chosen(path) and not dropped(path),
            rename,
            dtype,
            mappers,
        )
        report = fitting.report
        missing = report.missing and not allow_missing
        unused = report.unused and not allow_unused
        if strict and (missing or unused or report.mismatched):
            shown = LoadReport(
                [],
                report.missing if missing else [],
                report.unused if unused else [],
                report.mismatched,
            )
            remedy = _remedy(report, kind)
            raise StoreError(
                "store.load",
                "file and model must fit",
                # Where one prefix explains all, a few names show it.
                got=shown.problems(most=3) if remedy else shown.problems(),
                remedy=remedy or "Pass strict=False to load what fits, or rename= to map names.",
            )
        reading.verify(everything=verify)
        fitting.apply()
    finally:
        reading.close()
    return report


def _opened(target: Path, kind: Format, options: Mapping[str, Any]) -> Reading:
    reading = kind.open(target, checked_options(kind, options))
    try:
        return with_quantized(reading)
    except BaseException:
        reading.close()
        raise


def _place(path: PathLike | Bytes) -> Path:
    """Return a path, or bytes in its place, which formats only read through `FileBytes`."""
    whole = isinstance(path, (bytes, bytearray, memoryview))
    given: Any = Memory(path) if whole else Path(path)  # type: ignore[arg-type]
    place: Path = given
    return place


def _remedy(report: LoadReport, kind: Format) -> str | None:
    hint = report.hint()
    if hint is not None and "key" in kind.options and report.missing:
        tops = {name.partition(".")[0] for name in report.unused}
        for top in sorted(tops):
            if all(f"{top}.{name}" in report.unused for name in report.missing):
                return f"The model's names stand under {top!r}: pass key={top!r}."
    return hint
