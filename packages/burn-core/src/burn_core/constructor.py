"""Constructor calls of modules as configs.

The metaclass records the outermost call of every module in a form that holds none of the objects
passed, so a config keeps no tensor alive.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from burn_core.encoding import (
    decode,
    encode,
    parse_json,
    read_json,
    register_modules,
    write_json,
)
from burn_dispatch import Device, device as named_device
from burn_std import BurnError, ConfigError

_MODULES: WeakValueDictionary[str, type] = WeakValueDictionary()
_SIGNATURES: WeakKeyDictionary[type, inspect.Signature] = WeakKeyDictionary()
RECORDED = "__recorded__"


def register_module(cls: type) -> None:
    """Make a module class known by name, so that a config finds it without importing by path."""
    _MODULES[f"{cls.__module__}.{cls.__qualname__}"] = cls


def name_of(cls: type) -> str:
    """Return the public name of a class: `burn_nn.Linear`, wherever it is defined inside.

    Example:
        >>> name_of(burn.nn.Linear)
        'burn_nn.Linear'
    """
    package = cls.__module__.partition(".")[0]
    if getattr(sys.modules.get(package), cls.__qualname__, None) is cls:
        return f"{package}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def find_class(name: str) -> type:
    """Return the module class of a recorded name.

    Args:
        name: what `name_of` returned. `__main__` names whatever script was run, so it stands for
            any module with one class of that name.

    Raises:
        ConfigError: no such class is loaded.
    """
    found = _MODULES.get(name)
    if found is not None:
        return found
    home, _, leaf = name.rpartition(".")
    public = getattr(sys.modules.get(home), leaf, None)
    if isinstance(public, type) and hasattr(public, "__burn_module__"):
        return public
    namesakes = {k: c for k, c in _MODULES.items() if k.rpartition(".")[2] == leaf}
    if home == "__main__" and len(namesakes) == 1:
        return next(iter(namesakes.values()))
    script = _MODULES.get(f"__main__.{leaf}")
    if script is not None:
        return script
    from difflib import get_close_matches

    near = sorted(namesakes) or get_close_matches(name, list(_MODULES), 3)
    where = f"the file that defines {leaf}" if home == "__main__" else home
    raise ConfigError(
        name, "no module class of that name is loaded", got=f"near it: {near}" if near else None,
        remedy=f"Import {where} first.",
    )  # fmt: skip


def signature_of(cls: type) -> inspect.Signature:
    """Return the signature of a class's constructor, remembered."""
    found = _SIGNATURES.get(cls)
    if found is None:
        found = _SIGNATURES[cls] = inspect.signature(cls)
    return found


class _Unserialisable:
    """Stands for an argument that has no JSON form; asking for the config raises."""

    __slots__ = ("got", "remedy", "where")

    def __init__(self, error: ConfigError) -> None:
        self.where, self.got, self.remedy = error.op, error.got, error.remedy

    def error(self) -> ConfigError:
        return ConfigError(
            self.where, "a constructor argument must be serialisable", got=self.got,
            remedy=self.remedy,
        )  # fmt: skip


class ModuleConfig:
    """The constructor call of a module: JSON both ways, and `init` builds the module again.

    Args:
        module: public name of the class.
        args: arguments by name in their JSON-able form; `*args` of a constructor stand under its
            name as a list.

    Example:
        >>> config = burn.nn.Linear(2, 1).config()
        >>> config.to_json()
        '{"module": "burn_nn.Linear", "args": {"in_features": 2, "out_features": 1}}'
        >>> config.replace(out_features=4).init().weight.shape
        (4, 2)
    """

    __slots__ = ("args", "module")

    def __init__(self, module: str, args: dict[str, Any]) -> None:
        self.module = module
        self.args = args

    @classmethod
    def record(cls, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModuleConfig:
        """Return the config of a call that has succeeded."""
        signature = signature_of(kind)
        name = name_of(kind)
        out: dict[str, Any] = {}
        for key, value in signature.bind(*args, **kwargs).arguments.items():
            if isinstance(value, Device):
                continue
            var = signature.parameters[key].kind
            if var is inspect.Parameter.VAR_POSITIONAL:
                out[key] = [_form(v, f"{name}.{key}[{k}]") for k, v in enumerate(value)]
            elif var is inspect.Parameter.VAR_KEYWORD:
                rest = {k: v for k, v in value.items() if not isinstance(v, Device)}
                out.update({k: _form(v, f"{name}.{k}") for k, v in rest.items()})
            else:
                out[key] = _form(value, f"{name}.{key}")
        return cls(name, out)

    def init(self, device: Device | str | None = None) -> Any:
        """Build the module, with fresh parameters.

        Args:
            device: a device or its name: passed as `device=` to every constructor that takes it,
                and the default device of those that do not.

        Raises:
            ConfigError: the class is not loaded, fields are unknown or missing (all named), or the
                constructor cannot take what they hold.
        """
        try:
            if device is None:
                return _build(self, None, {})
            with named_device(device) as home:
                return _build(self, home, {})
        except RecursionError as cause:  # also a module that is an argument of itself
            raise ConfigError(self.module, "is not nested that deep") from cause

    def replace(self, **changes: Any) -> ModuleConfig:
        """Return a config with some arguments changed.

        Args:
            changes: arguments by name, as the constructor takes them.

        Raises:
            ConfigError: a value is not serialisable.
        """
        made = {k: encode(v, f"{self.module}.{k}") for k, v in changes.items()}
        return ModuleConfig(self.module, self.args | made)

    def text(self) -> str:
        """Return the plain arguments in words, `in_features=2, bias=False`."""
        shown = {k: _shown(v) for k, v in self.args.items()}
        return ", ".join(f"{k}={v}" for k, v in shown.items() if v is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form; a module passed twice is written once and referred to.

        Raises:
            ConfigError: an argument cannot be serialised; it is named.
        """
        counts: dict[int, int] = {}
        _count(self, counts)
        numbers: dict[int, int] = {}
        plain: dict[str, Any] = _plain(self, counts, numbers)
        return plain

    @classmethod
    def from_dict(cls, data: Any) -> ModuleConfig:
        """Return the config of its JSON-able form.

        Args:
            data: what `to_dict` returned.

        Raises:
            ConfigError: the fields are not those of a module config.
        """
        try:
            read = _read(data, {})
        except RecursionError as cause:
            raise ConfigError("ModuleConfig", "is not nested that deep") from cause
        if not isinstance(read, ModuleConfig):
            raise ConfigError("ModuleConfig", "needs the fields module and args", got=_names(data))
        return read

    def to_json(self) -> str:
        """Return JSON text.

        Raises:
            ConfigError: an argument cannot be serialised; it is named.
        """
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> ModuleConfig:
        """Return the config of JSON text.

        Args:
            text: what `to_json` returned.

        Raises:
            ConfigError: the text is no JSON or no module config.
        """
        return cls.from_dict(parse_json(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON to a file, whole or not at all.

        Args:
            path: the file.

        Raises:
            ConfigError: an argument cannot be serialised; it is named.
        """
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModuleConfig:
        """Read a config that `save` wrote.

        Args:
            path: the file.

        Raises:
            ConfigError: the file is missing, no JSON or no module config.
        """
        return cls.from_dict(read_json(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleConfig) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.module)

    def __repr__(self) -> str:
        return f"ModuleConfig({self.module}, {self.args})"


def _shown(value: Any) -> str | None:
    """Return a plain value in words, None for what holds modules or much else."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, list) and value and len(value) < 8:
        parts = [_shown(v) for v in value]
        return None if None in parts else f"[{', '.join(str(p) for p in parts)}]"
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "tuple":
            return _shown(inner)
        return str(inner) if isinstance(inner, str) else None
    return None


def _form(value: Any, where: str) -> Any:
    try:
        return encode(value, where)
    except ConfigError as error:
        return _Unserialisable(error)
    except RecursionError:  # a list that holds itself
        return _Unserialisable(ConfigError(where, "nests too deep", got=type(value).__name__))


def _write_module(value: Any) -> ModuleConfig | None:
    if isinstance(value, ModuleConfig):
        return value
    # A class attribute of that name would be another module's.
    recorded: ModuleConfig | None = getattr(value, "__dict__", {}).get(RECORDED)
    return recorded


def _count(value: Any, counts: dict[int, int]) -> None:
    if isinstance(value, ModuleConfig):
        counts[id(value)] = counts.get(id(value), 0) + 1
        if counts[id(value)] == 1:
            _count(value.args, counts)
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            _count(inner, counts)


def _plain(value: Any, counts: dict[int, int], numbers: dict[int, int]) -> Any:
    if isinstance(value, _Unserialisable):
        raise value.error()
    if isinstance(value, list):
        return [_plain(v, counts, numbers) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v, counts, numbers) for k, v in value.items()}
    if not isinstance(value, ModuleConfig):
        return value
    if id(value) in numbers:
        return {"module": value.module, "same": numbers[id(value)]}
    mark = {}
    if counts[id(value)] > 1:
        mark = {"number": numbers.setdefault(id(value), len(numbers))}
    return {"module": value.module, **mark, "args": _plain(value.args, counts, numbers)}


def _read(data: Any, known: dict[int, ModuleConfig]) -> Any:
    """Return JSON data with the configs of modules made out of their dicts."""
    if isinstance(data, list):
        return [_read(v, known) for v in data]
    if not isinstance(data, dict):
        return data
    if "module" not in data:
        return {k: _read(v, known) for k, v in data.items()}
    if set(data) == {"module", "same"} and type(data["same"]) is int and data["same"] in known:
        return known[data["same"]]
    fits = set(data) - {"number"} == {"module", "args"} and type(data.get("number", 0)) is int
    if not fits or not isinstance(data["args"], dict):
        raise ConfigError("ModuleConfig", "needs the fields module and args", got=_names(data))
    made = ModuleConfig(str(data["module"]), {})
    if "number" in data:
        known[data["number"]] = made
    # Not the dict itself: fields of a constructor may have the names that make a module of one.
    made.args = {name: _read(value, known) for name, value in data["args"].items()}
    return made


def _names(data: Any) -> Any:
    return sorted(data) if isinstance(data, dict) else type(data).__name__


# Modules built by the config that is being built, so that one passed twice stays one.
_Built = dict[int, Any]


def _build(config: ModuleConfig, device: Device | None, built: _Built) -> Any:
    if id(config) in built:
        return built[id(config)]
    kind = find_class(config.module)
    params = signature_of(kind).parameters
    kinds = {k: p.kind for k, p in params.items()}
    loose = inspect.Parameter.VAR_KEYWORD in kinds.values()
    star = next((k for k, v in kinds.items() if v is inspect.Parameter.VAR_POSITIONAL), None)
    unknown = [k for k in config.args if k not in params and not loose]
    required = [
        k for k, p in params.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]  # fmt: skip
    missing = [k for k in required if k not in config.args and k != "device"]
    if unknown or missing:
        raise ConfigError(
            config.module, "the fields must match the constructor",
            got=f"unknown {unknown}, missing {missing}",
        )  # fmt: skip
    values = {k: _value(v, device, built) for k, v in config.args.items()}
    if device is not None and "device" in params:
        values["device"] = device
    positional: list[Any] = []
    if star is not None and not isinstance(values.get(star, []), list):
        raise ConfigError(config.module, f"{star} is a list", got=_names(values[star]))
    if values.get(star or ""):
        before = list(params)[: list(params).index(str(star))]
        positional = [values.pop(k, params[k].default) for k in before]
        positional += values[str(star)]
    values.pop(star or "", None)
    try:
        made = built[id(config)] = kind(*positional, **values)
    except BurnError:
        raise
    except (TypeError, ValueError, AttributeError) as cause:
        raise ConfigError(
            config.module, "the constructor takes these arguments", got=f"{cause}"
        ) from cause
    return made


def _value(value: Any, device: Device | None, built: _Built) -> Any:
    if isinstance(value, _Unserialisable):
        raise value.error()
    if isinstance(value, ModuleConfig):
        return _build(value, device, built)
    if isinstance(value, list):
        return [_value(v, device, built) for v in value]
    if isinstance(value, dict) and set(value) == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(_value(v, device, built) for v in value["tuple"])
    if isinstance(value, dict) and set(value) == {"map"} and isinstance(value["map"], dict):
        return {k: _value(v, device, built) for k, v in value["map"].items()}
    return decode(value, device)


def _read_module(value: Any, device: Device | None) -> Any:
    config = value if isinstance(value, ModuleConfig) else ModuleConfig.from_dict(value)
    return config.init(device)


register_modules(_write_module, _read_module)
