"""Quantised tensors in files: integers, scales and zero points as tensors of their own.

A quantised `w` stands as `w`, its integers, `w.scale` and, for affine schemes, `w.zero_point`; the
metadata say which names these are, with scheme and shape. Values of 4 bits are packed, the first of
two in the lower half of a byte. To whoever opens the file `w` is one tensor again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from burn_backend import QuantizedArray
from burn_std import BurnError, QDType, StoreError, parse_dtype
from burn_store.elements import NATIVE, Array, Spec, checked_shape, shortened
from burn_store.format import Reading, Source
from burn_store.json_text import parsed

# One JSON object under one key: name to scheme and shape.
QUANTIZED = "burn.quantized"
SCALE, ZERO = ".scale", ".zero_point"


def scheme_of(dtype: str) -> QDType | None:
    """Return the quantised scheme of a dtype's name, or None.

    Args:
        dtype: the name.

    Example:
        >>> scheme_of("qint4_sym_block32").block, scheme_of("float32")
        (32, None)
    """
    if dtype in NATIVE:
        return None
    try:
        found = parse_dtype(dtype)
    except (BurnError, ValueError, KeyError):
        return None
    return found if isinstance(found, QDType) else None


def divided(
    sources: Mapping[str, Source], metadata: Mapping[str, str]
) -> tuple[dict[str, Source], dict[str, str]]:
    """Return sources and metadata with quantised tensors divided into their parts.

    Args:
        sources: tensors to be written.
        metadata: of the file.

    Raises:
        StoreError: a part has the name of another tensor.
    """
    made: dict[str, Source] = {}
    described: dict[str, Any] = {}
    for name, source in sources.items():
        scheme = scheme_of(source.spec.dtype)
        if scheme is None:
            made[name] = source
            continue
        described[name] = {"dtype": scheme.name, "shape": list(source.spec.shape)}
        for part in (name + SCALE, name + ZERO):
            if part in sources:
                raise StoreError(
                    "store.save", "a quantised tensor has names for its parts", got=part
                )
        whole: Any = source.read()
        for part, array in ((SCALE, whole.scale), (ZERO, whole.zero)):
            if array is not None:
                made[name + part] = _source(np.asarray(array))
        # The integers are read again when their turn comes, so that only one tensor's are here.
        shape, dtype = _stored(scheme, source.spec.shape)
        made[name] = Source(
            Spec(shape, dtype), lambda s=source, q=scheme: _packed(s.read(), q)  # type: ignore[misc]
        )  # fmt: skip
    if not described:
        return made, dict(metadata)
    return made, {**metadata, QUANTIZED: json.dumps(described)}


def _source(array: Array) -> Source:
    return Source(Spec(array.shape, array.dtype.name), lambda: array)


def _stored(scheme: QDType, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Return shape and dtype of the integers in a file."""
    return (shape, "int8") if scheme.bits == 8 else ((-(-prod(shape) // 2),), "uint8")


def _packed(whole: Any, scheme: QDType) -> Array:
    values: Array = whole.values
    if scheme.bits == 8:
        return values
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8) & 15
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    packed: Array = flat[::2] | flat[1::2] << 4
    return packed


def _unpacked(array: Array, shape: tuple[int, ...]) -> Array:
    both = np.empty((array.size, 2), np.int8)
    # The upper half is shifted down with its sign, the lower one up and down again.
    both[:, 0] = (array << 4).view(np.int8) >> 4
    both[:, 1] = array.view(np.int8) >> 4
    return np.ascontiguousarray(both.reshape(-1)[: prod(shape)]).reshape(shape)


def dequantized(q: QuantizedArray) -> Array:
    """Return the floats that a quantised array stands for, in the dtype of its scales.

    Args:
        q: the array.
    """

    def each(part: Array) -> Array:
        if not q.dtype.block or not part.ndim:
            return part
        return np.repeat(part, q.dtype.block, -1)[..., : q.shape[-1]].reshape(q.shape)

    values: Array = q.values.astype(q.scale.dtype)
    if q.zero is not None:
        values -= each(q.zero)
    values *= each(q.scale)
    return values


class QuantizedReading(Reading):
    """An open file some of whose tensors are parts of quantised ones.

    Args:
        inner: the file.
        schemes: scheme and shape by name; checked here.

    Raises:
        StoreError: a part is missing, or of another shape or dtype than the scheme needs.
    """

    def __init__(self, inner: Reading, schemes: Mapping[str, tuple[QDType, tuple[int, ...]]]):
        self._inner = inner
        self._schemes = schemes
        parts: set[str] = set()
        for name, (scheme, shape) in schemes.items():
            _check(inner, name, scheme, shape)
            parts |= {name + SCALE} if scheme.symmetric else {name + SCALE, name + ZERO}
        if parts & schemes.keys():
            raise StoreError(
                "store.open", "a part of a quantised tensor is none itself",
                got=shortened(sorted(parts & schemes.keys())),
            )  # fmt: skip
        self._parts = parts
        self.metadata = inner.metadata
        self.extra = inner.extra
        self.param_ids = inner.param_ids
        self.aliases = {a: kept for a, kept in inner.aliases.items() if kept not in parts}

    def spec(self, name: str) -> Spec:
        """Return shape and dtype name; those of the whole for a quantised tensor."""
        found = self._schemes.get(name)
        return self._inner.spec(name) if found is None else Spec(found[1], found[0].name)

    def read(self, name: str, into: Array | None = None) -> Any:
        """Return a tensor's elements; a `QuantizedArray` for a quantised tensor."""
        found = self._schemes.get(name)
        if found is None:
            return self._inner.read(name, into)
        scheme, shape = found
        values = self._inner.read(name)
        if scheme.bits == 4:
            values = _unpacked(values, shape)
        zero = None if scheme.symmetric else self._inner.read(name + ZERO)
        return QuantizedArray(values, self._inner.read(name + SCALE), zero, scheme)

    def verify(self, everything: bool = False) -> None:
        """Check the file."""
        self._inner.verify(everything)

    def __contains__(self, name: object) -> bool:
        return name in self._inner and name not in self._parts

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._inner if name not in self._parts)

    def __len__(self) -> int:
        return len(self._inner) - len(self._parts)

    def close(self) -> None:
        """Let the file go."""
        self._inner.close()


def with_quantized(reading: Reading) -> Reading:
    """Return an open file with its quantised tensors whole, if it has any.

    Args:
        reading: the file.

    Raises:
        StoreError: what it says of them is not so.
    """
    schemes: dict[str, tuple[QDType, tuple[int, ...]]] = {}
    if QUANTIZED in reading.metadata:
        text = reading.metadata[QUANTIZED].encode("utf-8", "surrogatepass")
        for name, entry in parsed(text, "the list of quantised tensors").items():
            if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
                raise StoreError(
                    "store.open", f"a quantised tensor has dtype and shape: {shortened(name)}",
                    got=shortened(entry),
                )  # fmt: skip
            scheme = scheme_of(entry["dtype"])
            if scheme is None:
                raise StoreError(
                    "store.open", f"the scheme of {shortened(name)} is known",
                    got=shortened(entry["dtype"]),
                )  # fmt: skip
            schemes[name] = (scheme, checked_shape(entry.get("shape"), name))
    for name in reading:
        if name not in schemes and scheme_of(reading.spec(name).dtype) is not None:
            raise StoreError(
                "store.open", f"the metadata describe the quantised tensor {shortened(name)}",
                got=reading.spec(name).dtype,
            )  # fmt: skip
    return QuantizedReading(reading, schemes) if schemes else reading


def _check(inner: Reading, name: str, scheme: QDType, shape: tuple[int, ...]) -> None:
    stored, dtype = _stored(scheme, shape)
    wanted = {name: (dtype,), name + SCALE: ("float32", "float64")}
    if not scheme.symmetric:
        wanted[name + ZERO] = ("int8",)
    for part, dtypes in wanted.items():
        spec = inner.spec(part) if part in inner else None
        fits = spec is not None and spec.dtype in dtypes and (
            spec.shape == stored if part == name else _spreads(spec.shape, shape, scheme.block)
        )  # fmt: skip
        if not fits:
            raise StoreError(
                "store.open",
                f"a {scheme.name}{list(shape)} has integers, scales and zero points that fit",
                got=f"{shortened(part)}: "
                + ("nothing" if spec is None else f"{shortened(spec.dtype)}{list(spec.shape)}"),
            )  # fmt: skip


def _spreads(part: tuple[int, ...], shape: tuple[int, ...], block: int) -> bool:
    """Return whether scales of a shape reach every element of a tensor."""
    if block and part:
        return part == ((*shape[:-1], -(-shape[-1] // block)) if shape else (1,))
    ends = zip(part[::-1], shape[::-1], strict=False)
    return len(part) <= len(shape) and all(p in (1, n) for p, n in ends)
