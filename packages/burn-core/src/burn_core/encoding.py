"""Python values of constructors and configs as JSON, and back."""

from __future__ import annotations

import enum
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from burn_dispatch import Device
from burn_std import ConfigError, DType, parse_dtype
from burn_tensor import functional

# How a module (an object with a recorded call) is written; the module configs put it here.
_MODULE_WRITER: list[Callable[[Any], Any]] = []
_MODULE_READER: list[Callable[[Any, Device | None], Any]] = []


def register_modules(
    write: Callable[[Any], Any], read: Callable[[Any, Device | None], Any]
) -> None:
    """Say how modules among the values are written and read."""
    _MODULE_WRITER[:] = [write]
    _MODULE_READER[:] = [read]


def encode(value: Any, where: str) -> Any:
    """Return a JSON-able form of a value.

    Args:
        value: numbers, texts, dtypes, paths, functions of `functional`, modules, and lists, tuples
            and dicts of them.
        where: names the value in an error.

    Raises:
        ConfigError: the value has no such form.

    Example:
        >>> encode((1, burn.float32), "x")
        {'tuple': [1, {'dtype': 'float32'}]}
    """
    if isinstance(value, enum.Enum):
        return encode(value.value, where)
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return {"tuple": [encode(v, f"{where}[{k}]") for k, v in enumerate(value)]}
    if isinstance(value, list):
        return [encode(v, f"{where}[{k}]") for k, v in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) for k in value):
            raise ConfigError(where, "the keys of a dict are texts", got=list(value))
        return {"map": {k: encode(v, f"{where}.{k}") for k, v in value.items()}}
    if isinstance(value, os.PathLike):
        return {"path": os.fspath(value)}
    if (
        callable(value)
        and getattr(functional, name := getattr(value, "__name__", ""), None) is value
    ):
        return {"function": name}
    written = _MODULE_WRITER[0](value) if _MODULE_WRITER else None
    if written is not None:
        return written
    raise ConfigError(
        where, "an argument must be serialisable", got=type(value).__name__,
        remedy="Pass numbers, texts, dtypes, modules, functions of burn.functional, "
        "or lists and dicts of them.",
    )  # fmt: skip


def decode(value: Any, device: Device | None) -> Any:
    """Return the value of its JSON-able form.

    Args:
        value: what `encode` returned.
        device: where modules among the values are made.

    Raises:
        ConfigError: the form is unknown.

    Example:
        >>> decode({"tuple": [1, {"dtype": "f32"}]}, None)
        (1, burn.float32)
    """
    if isinstance(value, list):
        return [decode(v, device) for v in value]
    if not isinstance(value, dict):
        return decode_module(value, device) if hasattr(value, "to_dict") else value
    if "module" in value:
        return decode_module(value, device)
    if len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "tuple" and isinstance(inner, list):
            return tuple(decode(v, device) for v in inner)
        if kind == "map" and isinstance(inner, dict):
            return {k: decode(v, device) for k, v in inner.items()}
        if isinstance(inner, str) and kind in _NAMED:
            return _NAMED[kind](inner)
    raise ConfigError("Config", "a value has an unknown form", got=sorted(value))


def decode_module(value: Any, device: Device | None) -> Any:
    """Return the module of its config or of the JSON-able form of it."""
    return _MODULE_READER[0](value, device)


def _dtype(name: str) -> DType:
    try:
        return parse_dtype(name)
    except ValueError as cause:
        raise ConfigError("Config", "the dtype is unknown", got=name) from cause


def _function(name: str) -> Any:
    if name not in functional.__all__:
        raise ConfigError("Config", "burn.functional has no such function", got=name)
    return getattr(functional, name)


def _float(text: str) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise ConfigError("Config", "a float in words is inf, -inf or nan", got=text)
    return float(text)


def _path(text: str) -> Any:
    from pathlib import Path  # costs 3 ms, and few programs come here

    return Path(text)


_NAMED: dict[str, Callable[[str], Any]] = {
    "dtype": _dtype, "function": _function, "float": _float, "path": _path,
}  # fmt: skip


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write JSON to a file by way of a temporary one, so that it is whole or not there.

    Args:
        path: the file.
        data: JSON-able.
    """
    target = _path(os.fspath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON from a file.

    Args:
        path: the file.

    Raises:
        ConfigError: there is no such file, or it is no JSON; file and place are named.
    """
    try:
        text = _path(os.fspath(path)).read_text(encoding="utf-8")
    except FileNotFoundError as cause:
        raise ConfigError("Config.load", "there is no such file", got=path) from cause
    except UnicodeDecodeError as cause:
        raise ConfigError("Config.load", "the file is no text", got=f"{path}: {cause}") from cause
    return parse_json(text, str(path))


def parse_json(text: str, where: str = "the text") -> Any:
    """Parse JSON.

    Args:
        text: JSON.
        where: names the text in an error.

    Raises:
        ConfigError: it is none; the place is named.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as cause:  # also a number of thousands of digits
        raise ConfigError("Config.load", "needs JSON", got=f"{where}: {cause}") from cause
