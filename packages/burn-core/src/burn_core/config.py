"""Experiment configs: frozen dataclasses that are JSON both ways."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import types
import typing
from collections.abc import Mapping
from typing import Any, Self, dataclass_transform

from burn_core.constructor import ModuleConfig
from burn_core.encoding import decode, encode, parse_json, read_json, write_json
from burn_std import ConfigError


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Config:
    """Base of experiment configs: a subclass with annotations becomes a frozen dataclass.

    Fields are numbers, texts, dtypes, paths, other configs, configs of modules, and lists, tuples
    and dicts of them. Numbers and texts are checked against their annotations.

    Example:
        >>> class Run(burn.Config):
        ...     lr: float = 0.1
        ...     epochs: int = 3
        >>> Run(lr=0.5).to_json()
        '{"lr": 0.5, "epochs": 3}'
        >>> Run.from_json('{"lr": 0.5}').epochs
        3
        >>> Run.from_json('{"rate": 0.5}')
        Traceback (most recent call last):
        burn_std.errors.ConfigError: Run: fields must match; got unknown ['rate'], missing []
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        """Check numbers and texts against the annotations; a subclass that overrides it calls it.

        Raises:
            ConfigError: a value is of another kind.
        """
        hints = _hints(type(self))
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            _check(getattr(self, f.name), hints.get(f.name), f"{type(self).__name__}.{f.name}")

    def replace(self, **changes: Any) -> Self:
        """Return a config with some fields changed.

        Args:
            changes: fields by name.

        Raises:
            ConfigError: a field is unknown.
        """
        unknown = [k for k in changes if k not in _fields(type(self))]
        if unknown:
            raise ConfigError(
                type(self).__name__, "fields must match", got=f"unknown {unknown}, missing []"
            )
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in JSON-able form, nested configs as dicts.

        Raises:
            ConfigError: a value cannot be serialised; its field is named.
        """
        name = type(self).__name__
        hints = _hints(type(self))
        return {
            f.name: _write(getattr(self, f.name), hints.get(f.name), f"{name}.{f.name}")
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the config of a dict.

        Args:
            data: what `to_dict` returned; fields with defaults may be absent.

        Raises:
            ConfigError: fields are unknown or missing (all are named), or a value is of another
                kind than its annotation.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(cls.__name__, "needs fields by name", got=type(data).__name__)
        fields = _fields(cls)
        unknown = [k for k in data if k not in fields]
        missing = [
            n for n, f in fields.items()
            if n not in data
            and f.default is dataclasses.MISSING
            and f.default_factory is dataclasses.MISSING
        ]  # fmt: skip
        if unknown or missing:
            raise ConfigError(
                cls.__name__, "fields must match", got=f"unknown {unknown}, missing {missing}"
            )
        hints = _hints(cls)
        try:
            read = {k: _read(v, hints.get(k), f"{cls.__name__}.{k}") for k, v in data.items()}
        except RecursionError as cause:
            raise ConfigError(cls.__name__, "is not nested that deep") from cause
        return cls(**read)

    def to_json(self) -> str:
        """Return JSON text.

        Raises:
            ConfigError: a value cannot be serialised; its field is named.
        """
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the config of JSON text.

        Args:
            text: JSON.

        Raises:
            ConfigError: as for `from_dict`, or the text is no JSON.
        """
        return cls.from_dict(parse_json(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON to a file, whole or not at all.

        Args:
            path: the file.

        Raises:
            ConfigError: a value cannot be serialised; its field is named.
        """
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a config that `save` wrote.

        Args:
            path: the file.

        Raises:
            ConfigError: as for `from_dict`, or the file is missing or no JSON.
        """
        return cls.from_dict(read_json(path))


def _fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    return {f.name: f for f in dataclasses.fields(cls)}


def _hints(cls: type) -> dict[str, Any]:
    """Return the annotations of a config.

    What cannot be resolved (a class local to a function) is left out: its values are taken as
    they are.
    """
    try:
        return typing.get_type_hints(cls)
    except NameError:
        return {
            name: kind
            for base in reversed(cls.__mro__)
            for name, kind in inspect.get_annotations(base).items()
            if isinstance(kind, type)
        }


def _choices(hint: Any) -> list[Any]:
    """Return the kinds that an annotation allows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [c for part in typing.get_args(hint) for c in _choices(part)]
    return [hint]


def _check(value: Any, hint: Any, where: str) -> None:
    plain = (bool, int, float, str, type(None))
    choices = _choices(hint)
    if not all(c in plain for c in choices):
        return
    fits = type(value) in choices or (float in choices and type(value) is int)
    if not fits:
        names = " or ".join(c.__name__ for c in choices)
        raise ConfigError(where, f"needs {names}", got=repr(value))


def _write(value: Any, hint: Any, where: str) -> Any:
    if isinstance(value, (Config, ModuleConfig)):
        return value.to_dict()
    choices = _choices(hint)
    if isinstance(value, (list, tuple)):
        items = [_write(v, _item(hint, k), f"{where}[{k}]") for k, v in enumerate(value)]
        says = any(typing.get_origin(c) is tuple or c is tuple for c in choices)
        return {"tuple": items} if isinstance(value, tuple) and not says else items
    if isinstance(value, dict) and any(typing.get_origin(c) is dict for c in choices):
        return {k: _write(v, _item(hint, k), f"{where}.{k}") for k, v in value.items()}
    return encode(value, where)


def _read(value: Any, hint: Any, where: str) -> Any:
    for kind in _choices(hint):
        origin = typing.get_origin(kind)
        if isinstance(value, dict):
            if isinstance(kind, type) and issubclass(kind, Config):
                return kind.from_dict(value)
            if kind is ModuleConfig:
                return ModuleConfig.from_dict(value)
            if origin is dict:
                return {k: _read(v, _item(hint, k), f"{where}.{k}") for k, v in value.items()}
        if isinstance(value, list) and (origin in (tuple, list) or kind in (tuple, list)):
            items = [_read(v, _item(hint, k), f"{where}[{k}]") for k, v in enumerate(value)]
            return tuple(items) if tuple in (origin, kind) else items
    return decode(value, None)


def _item(hint: Any, key: Any) -> Any:
    """Return the annotation of an element of a list, tuple or dict."""
    for kind in _choices(hint):
        args = typing.get_args(kind)
        if not args:
            continue
        origin = typing.get_origin(kind)
        if origin is tuple and args[-1] is not Ellipsis:
            return args[key] if key < len(args) else None
        return args[-1] if origin is dict else args[0]
    return None
