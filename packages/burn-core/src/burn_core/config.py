"""Configs: what rebuilds a module or an experiment, as JSON."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from burn_dispatch import Device
from burn_std import ConfigError, DType, parse_dtype

_MODULES: dict[str, type] = {}


def register_module(cls: type) -> None:
    """Make a module class known by name, so that a config finds it without importing by path."""
    _MODULES[f"{cls.__module__}.{cls.__qualname__}"] = cls


def record_call(made: Any, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Remember the arguments of the outermost constructor call."""
    made.__dict__["__call_args__"] = (cls, args, kwargs)


def constructor(cls: type) -> inspect.Signature:
    """Return the signature of `__init__` without self; the metaclass hides it from `inspect`."""
    declared = cls.__dict__.get("__signature__")
    if declared is not None:
        found: inspect.Signature = declared
        return found
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def encode(value: Any, where: str) -> Any:
    """Return a JSON-able form of a constructor argument.

    Raises:
        ConfigError: the value has none; `where` names it.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return {"tuple": [encode(v, f"{where}[{k}]") for k, v in enumerate(value)]}
    if isinstance(value, list):
        return [encode(v, f"{where}[{k}]") for k, v in enumerate(value)]
    if isinstance(value, Mapping):
        return {"map": {str(k): encode(v, f"{where}.{k}") for k, v in value.items()}}
    if hasattr(value, "__call_args__"):
        return ModuleConfig.of(value).to_dict()
    raise ConfigError(
        where, "a constructor argument must be serialisable", got=type(value).__name__,
        remedy="Pass numbers, strings, dtypes, modules, or lists and dicts of them.",
    )  # fmt: skip


def decode(value: Any, device: Device | None) -> Any:
    """Return the constructor argument of its JSON-able form."""
    if isinstance(value, list):
        return [decode(v, device) for v in value]
    if isinstance(value, dict):
        if "dtype" in value:
            return parse_dtype(value["dtype"])
        if "tuple" in value:
            return tuple(decode(v, device) for v in value["tuple"])
        if "map" in value:
            return {k: decode(v, device) for k, v in value["map"].items()}
        if "module" in value:
            return ModuleConfig.from_dict(value).init(device)
        raise ConfigError("Config", "a value has an unknown form", got=sorted(value))
    return value


class ModuleConfig:
    """The constructor call of a module.

    Attributes:
        module: qualified name of the class.
        args: arguments by name; `*args` of a constructor stand under its name as a list.

    Example:
        >>> ModuleConfig("burn_nn.linear.Linear", {"in_features": 2, "out_features": 1}).to_json()
        '{"module": "burn_nn.linear.Linear", "args": {"in_features": 2, "out_features": 1}}'
    """

    __slots__ = ("args", "module")

    def __init__(self, module: str, args: dict[str, Any]) -> None:
        self.module = module
        self.args = args

    @classmethod
    def of(cls, made: Any) -> ModuleConfig:
        """Return the config of a module."""
        kind, args, kwargs = made.__call_args__
        signature = constructor(kind)
        bound = signature.bind(*args, **kwargs).arguments
        name = f"{kind.__module__}.{kind.__qualname__}"
        out: dict[str, Any] = {}
        for key, value in bound.items():
            if isinstance(value, Device):
                continue
            var = signature.parameters[key].kind
            if var is inspect.Parameter.VAR_POSITIONAL:
                out[key] = [encode(v, f"{name}.{key}[{k}]") for k, v in enumerate(value)]
            elif var is inspect.Parameter.VAR_KEYWORD:
                out.update({k: encode(v, f"{name}.{k}") for k, v in value.items()})
            else:
                out[key] = encode(value, f"{name}.{key}")
        return cls(name, out)

    def init(self, device: Device | None = None) -> Any:
        """Build the module.

        Args:
            device: passed as `device=` where the constructor takes it.

        Raises:
            ConfigError: the class is unknown (import its module first) or an argument is.
        """
        kind = _MODULES.get(self.module)
        if kind is None:
            raise ConfigError(
                self.module, "no module class of that name is loaded",
                remedy=f"Import {self.module.rpartition('.')[0]} first.",
            )  # fmt: skip
        params = constructor(kind).parameters
        loose = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in params.values())
        unknown = [k for k in self.args if k not in params and not loose]
        if unknown:
            raise ConfigError(self.module, "unknown fields", got=unknown)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for key, value in self.args.items():
            made = decode(value, device)
            if key in params and params[key].kind is inspect.Parameter.VAR_POSITIONAL:
                positional = made
            else:
                named[key] = made
        if device is not None and "device" in params:
            named["device"] = device
        return kind(*positional, **named)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"module": self.module, "args": self.args}

    @classmethod
    def from_dict(cls, data: Any) -> ModuleConfig:
        """Return the config of its JSON-able form."""
        if not isinstance(data, dict) or set(data) != {"module", "args"} or not isinstance(data["args"], dict):
            raise ConfigError("ModuleConfig", "needs exactly the fields module and args", got=sorted(data) if isinstance(data, dict) else type(data).__name__)
        return cls(str(data["module"]), data["args"])

    def to_json(self) -> str:
        """Return JSON text."""
        return json.dumps(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON to a file, whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModuleConfig:
        """Read a config that `save` wrote."""
        return cls.from_dict(read_json(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleConfig) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"ModuleConfig({self.module}, {self.args})"


class Config:
    """Base of experiment configs: a subclass with annotations becomes a frozen dataclass.

    Example:
        >>> class Run(Config):
        ...     lr: float = 0.1
        ...     epochs: int = 3
        >>> Run(lr=0.5).to_json()
        '{"lr": 0.5, "epochs": 3}'
        >>> Run.from_json('{"lr": 0.5}').epochs
        3
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True)(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, nested configs as dicts."""
        out: dict[str, Any] = {}
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            where = f"{type(self).__name__}.{f.name}"
            out[f.name] = value.to_dict() if isinstance(value, (Config, ModuleConfig)) else encode(value, where)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the config of a dict.

        Raises:
            ConfigError: fields are unknown or missing; all are named.
        """
        import typing

        fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = [k for k in data if k not in fields]
        missing = [
            n for n, f in fields.items()
            if n not in data and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]  # fmt: skip
        if unknown or missing:
            raise ConfigError(cls.__name__, "fields must match", got=f"unknown {unknown}, missing {missing}")
        hints = typing.get_type_hints(cls)
        made = {}
        for key, value in data.items():
            kind = hints.get(key)
            if isinstance(kind, type) and issubclass(kind, Config) and isinstance(value, dict):
                made[key] = kind.from_dict(value)
            elif kind is ModuleConfig:
                made[key] = ModuleConfig.from_dict(value)
            else:
                made[key] = decode(value, None)
        return cls(**made)

    def to_json(self) -> str:
        """Return JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the config of JSON text."""
        return cls.from_dict(json.loads(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON to a file, whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a config that `save` wrote."""
        return cls.from_dict(read_json(path))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file by way of a temporary one, so that it is whole or not there."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; ConfigError names the file and the place of a fault."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as cause:
        raise ConfigError("Config.load", "the file is no JSON", got=f"{path}: {cause}") from cause
