"""Fitting a file to a model: which stored tensors make which parameter, and putting them there.

Two passes. The first works on names, shapes and dtypes alone and decides everything that can be
refused; the second reads one tensor at a time and rebinds the parameter, so that old values go as
new ones come and the peak of memory is the model and one tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burn_backend import QuantizedArray
from burn_core import Module, Parameter, id_text
from burn_std import DType, StoreError, parse_dtype
from burn_store.adapters import Adapter, Piece
from burn_store.elements import NATIVE, Array, Spec, castable, native_dtype
from burn_store.format import Reading
from burn_store.leaves import Leaf, leaves
from burn_store.mapping import Mapper, Mappers, MapperTable, check_plain, mapped
from burn_store.quantized import dequantized
from burn_store.report import LoadReport
from burn_store.selection import Rename, renamed_names

DTypePolicy = str | DType


class _Plan(NamedTuple):
    leaf: Leaf
    pieces: tuple[Piece, ...]
    stored: tuple[str, ...]
    dtype: str
    made: Array | None = None  # by a mapper; else it is read when its turn comes


class Fitting:
    """A file fitted to a model; nothing is read and nothing changed by making one.

    Args:
        model: the module.
        reading: the open file.
        adapter: how the file holds the model's tensors.
        chosen: predicate over paths of the model.
        rename: names of the file to names of the model.
        dtype: `"model"`, `"file"`, or a float dtype that the model's floats take.
        mappers: change values of single tensors; those are read by making one.

    Attributes:
        report: what will happen.
    """

    def __init__(
        self,
        model: Module,
        reading: Reading,
        adapter: Adapter,
        chosen: Callable[[str], bool],
        rename: Rename | None,
        dtype: DTypePolicy,
        mappers: Mappers | None = None,
    ) -> None:
        if isinstance(dtype, str) and dtype not in ("model", "file"):
            raise StoreError("store.load", "dtype is 'model', 'file' or a dtype", got=repr(dtype))
        if isinstance(dtype, DType) and not dtype.is_float:
            raise StoreError(
                "store.load", "only a float dtype is a policy for a whole model", got=dtype
            )
        self._reading = reading
        self._dtype = dtype
        names = renamed_names([*reading, *(a for a in reading.aliases if a not in reading)], rename)
        # A tied name that the file does not store stands for the one it does.
        self._stored = {
            new: old if old in reading else reading.aliases[old] for new, old in names.items()
        }
        self._used: set[str] = set()
        self.report = LoadReport([], [], [], {})
        self._plans: list[_Plan] = []
        self._mappers = MapperTable(mappers)
        for leaf in leaves(model):
            self._fit(leaf, adapter, chosen)
        self._mappers.check_used()
        optional = {new for new, old in names.items() if old not in reading}
        self.report.unused = [n for n in names if n not in self._used and n not in optional]

    # ---- the first pass -----------------------------------------------------------------------

    def _fit(self, leaf: Leaf, adapter: Adapter, chosen: Callable[[str], bool]) -> None:
        views = [leaf, *(leaf.at(path) for path in leaf.aliases)]
        options = [adapter.adapt(view, (Piece(view.path),)) for view in views]
        for pieces in options:
            self._used.update(p.name for p in pieces)
        if not chosen(leaf.path) or not options[0]:
            self.report.skipped.append(leaf.path)
            return
        there = [pieces for pieces in options if all(p.name in self._stored for p in pieces)]
        if not there:
            lacking = [p.name for p in options[0] if p.name not in self._stored]
            # A tensor that the file holds in pieces lacks a piece; else the model's name says more.
            self.report.missing += lacking if len(options[0]) > 1 else [leaf.path]
            return
        problem, dtype, made = None, leaf.dtype, None
        mapper = self._mappers.of(leaf.path)
        for pieces in there:
            if mapper is None:
                problem, dtype = self._compare(leaf, pieces)
            elif made is None:
                problem, dtype, made = self._map(leaf, pieces, mapper)
            if problem:
                break
        if problem is None and len(there) > 1 and not self._equal(there):
            needs, has = (
                f"one tensor ({' = '.join([leaf.path, *leaf.aliases])})",
                "different tensors under these names",
            )
            problem = (needs, has)
        if problem:
            self.report.mismatched[leaf.path] = problem
            return
        self.report.applied.append(leaf.path)
        self._plans.append(
            _Plan(leaf, there[0], tuple(self._stored[p.name] for p in there[0]), dtype, made)
        )

    def _compare(self, leaf: Leaf, pieces: tuple[Piece, ...]) -> tuple[tuple[str, str] | None, str]:
        """Return (what is needed and what is there, or None) and the dtype that results."""
        dtype = leaf.dtype
        for piece in pieces:
            spec = self._reading.spec(self._stored[piece.name])
            needs = _stored_shape(leaf.shape, piece) if leaf.has_value else spec.shape
            if spec.shape != needs:
                return (f"{leaf.dtype}{list(needs)}", f"{spec.dtype}{list(spec.shape)}"), dtype
            if not castable(spec.dtype, leaf.dtype):
                return (
                    f"{leaf.dtype}{list(needs)}",
                    f"{spec.dtype}{list(spec.shape)}, which is not cast",
                ), dtype
            dtype = self._resulting(leaf, spec.dtype)
        return None, dtype

    def _resulting(self, leaf: Leaf, stored: str) -> str:
        """Return the dtype that a tensor takes from a file of another."""
        if not leaf.value.dtype.is_float or self._dtype == "model":
            return leaf.dtype
        if not isinstance(self._dtype, str):
            return self._dtype.name
        return stored if stored in NATIVE else leaf.dtype

    def _map(
        self, leaf: Leaf, pieces: tuple[Piece, ...], mapper: Mapper
    ) -> tuple[tuple[str, str] | None, str, Array | None]:
        """Return what `_compare` returns of the result of a mapper, and the result."""
        for piece in pieces:
            check_plain(leaf.path, self._reading.spec(self._stored[piece.name]).dtype)
        check_plain(leaf.path, leaf.dtype)
        if len(pieces) > 1:  # they make one tensor of the model's shape
            problem, _ = self._compare(leaf, pieces)
            if problem:
                return problem, leaf.dtype, None
        plan = _Plan(leaf, pieces, tuple(self._stored[p.name] for p in pieces), leaf.dtype)
        array = self._joined(plan) if len(pieces) > 1 else self._single(plan, None)
        made = mapped(mapper, array, leaf.path)
        name = made.dtype.name
        needs = leaf.shape if leaf.has_value else made.shape
        if made.shape != needs or not castable(name, leaf.dtype):
            found = f"{name}{list(made.shape)} as its mapper returns it"
            return (f"{leaf.dtype}{list(needs)}", found), leaf.dtype, None
        return None, self._resulting(leaf, name), made

    def _equal(self, options: list[tuple[Piece, ...]]) -> bool:
        """Return whether all names of a tied tensor hold the same; read only where needed."""
        first = [self._stored[p.name] for p in options[0]]
        for pieces in options[1:]:
            for a, b in zip(first, (self._stored[p.name] for p in pieces), strict=True):
                aliases = self._reading.aliases
                if a == b or aliases.get(a, a) == aliases.get(b, b):
                    continue
                if self._reading.spec(a) != self._reading.spec(b) or _bytes(
                    self._reading[a]
                ) != _bytes(self._reading[b]):
                    return False
        return True

    # ---- the second pass ----------------------------------------------------------------------

    def apply(self) -> None:
        """Read the tensors and rebind the model's.

        Raises:
            StoreError: the disk refuses; the message says how far it came.
        """
        spare: Array | None = None
        for number, plan in enumerate(self._plans):
            try:
                array = self._read(plan, spare)
            except StoreError as cause:
                if number == 0:
                    raise
                raise StoreError(
                    "store.load",
                    f"the file failed after {number} of {len(self._plans)} tensors were loaded",
                    got=str(cause),
                    remedy="Load again from a good file before using the model.",
                ) from cause
            # Before the next is read nothing but the model may hold memory.
            spare = None
            spare = _rebind(plan.leaf.value, array, parse_dtype(plan.dtype))
            own = self._reading.param_ids.get(plan.stored[0]) if len(plan.stored) == 1 else None
            if own is not None and isinstance(plan.leaf.value, Parameter):
                plan.leaf.value.take_id(id_text(own))

    def _read(self, plan: _Plan, spare: Array | None) -> Array:
        if plan.dtype not in NATIVE:  # quantised, and in the file likewise
            return self._reading.read(plan.stored[0])
        target = native_dtype(plan.dtype, plan.leaf.path)
        if plan.made is None and len(plan.pieces) > 1:
            return self._joined(plan)
        array = self._single(plan, spare) if plan.made is None else plan.made
        return array if array.dtype == target else _cast(array, target)

    def _single(self, plan: _Plan, spare: Array | None) -> Array:
        """Return a tensor that the file holds in one piece, in the file's dtype."""
        spec = self._reading.spec(plan.stored[0])
        if spare is not None and (spare.shape, spare.dtype) != (spec.shape, NATIVE.get(spec.dtype)):
            spare = None
        array: Any = self._reading.read(plan.stored[0], spare)
        if isinstance(array, QuantizedArray):
            array = dequantized(array)
        return np.ascontiguousarray(array.T) if plan.pieces[0].transposed else array

    def _joined(self, plan: _Plan) -> Array:
        """Return a tensor that the file holds in several pieces, in the dtype it takes."""
        made = np.empty(plan.leaf.shape, native_dtype(plan.dtype, plan.leaf.path))
        for piece, name in zip(plan.pieces, plan.stored, strict=True):
            part: Any = self._reading[name]
            if isinstance(part, QuantizedArray):
                part = dequantized(part)
            first, last = piece.rows or (0, plan.leaf.shape[0])
            made[first:last] = part.T if piece.transposed else part
        return made


def _bytes(array: Any) -> list[bytes]:
    parts = [array]
    if isinstance(array, QuantizedArray):
        parts = [array.values, array.scale, *([] if array.zero is None else [array.zero])]
    return [part.tobytes() for part in parts]


def _cast(array: Array, target: np.dtype[Any]) -> Array:
    # A value too large for the narrower dtype becomes infinite, as it does in every cast.
    with np.errstate(over="ignore"):
        return array.astype(target)


def _stored_shape(shape: tuple[int, ...], piece: Piece) -> tuple[int, ...]:
    """Return the shape that a piece of a tensor has in the file."""
    if piece.rows is not None:
        shape = (piece.rows[1] - piece.rows[0], *shape[1:])
    return shape[::-1] if piece.transposed else shape


def _references(value: object) -> int:
    return sys.getrefcount(value)


def _alone() -> int:
    """Return what `_references` says of an object that only one variable holds."""
    probe = object()
    return _references(probe)


_ALONE = _alone()


def _rebind(value: Any, array: Array, dtype: DType) -> Array | None:
    """Give a parameter or buffer its new value; return the old array if nobody else can see it.

    Memory of an array that was just let go is mapped already: reading the next tensor into it saves
    the page faults of a new one, which cost more than the reading.
    """
    tensor = value.b.resource.plain_context().tensor_from_numpy(array, copy=False)
    if value.dtype is not dtype:
        # Rebinding keeps the dtype, so another one is taken on first.
        if isinstance(value, Parameter):
            value.cast(dtype)
        else:
            value.v = value.detach().to(dtype).v
    old: Any = value.v
    value.set(tensor)
    if type(old) is not np.ndarray or old.base is not None or not old.flags.c_contiguous:
        return None
    usable = old.flags.owndata and old.flags.writeable and _references(old) == _ALONE
    return old if usable else None


def check_has_value(leaf: Leaf) -> None:
    """Raise StoreError for a lazy parameter."""
    if not leaf.has_value:
        raise StoreError(
            "store.save",
            f"{leaf.path} has no value yet",
            got="a lazy parameter",
            remedy="Run the model once, or leave it out with exclude=.",
        )


def pieces_to_save(
    leaf: Leaf, adapter: Adapter, spec: Spec
) -> list[tuple[str, Spec, Callable[[Array], Array]]]:
    """Return the tensors that a file gets for one of the model: name, facts, and how it is made.

    Args:
        leaf: of the model.
        adapter: how the file holds it.
        spec: shape and dtype of what is saved for it.

    Raises:
        StoreError: an adapter divides or transposes it, and a mapper has given it another shape.
    """
    made = []
    for piece in adapter.adapt(leaf, (Piece(leaf.path),)):
        divided = piece.rows is not None and spec.shape != leaf.shape
        if divided or (piece.transposed and len(spec.shape) != 2):
            raise StoreError(
                "store.save", f"{leaf.path} has a shape that the file's layout can hold",
                got=list(spec.shape), remedy="Pass adapter=TorchLayout(), which changes nothing.",
            )  # fmt: skip
        # An adapter speaks of the model's floats; a mapper may have made integers of them.
        fits = piece.dtype is not None and castable(spec.dtype, piece.dtype)
        dtype = piece.dtype if fits and piece.dtype else spec.dtype
        made.append(
            (piece.name, Spec(_stored_shape(spec.shape, piece), dtype), _maker(piece, dtype))
        )
    return made


def _maker(piece: Piece, dtype: str) -> Callable[[Array], Array]:
    def make(array: Array) -> Array:
        if piece.rows is not None:
            array = array[piece.rows[0] : piece.rows[1]]
        if piece.transposed:
            array = array.T
        return (
            _cast(array, NATIVE[dtype])
            if dtype in NATIVE and array.dtype != NATIVE[dtype]
            else array
        )

    return make
