"""Texts of configurations that nobody wrote with `to_json`: each is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from burn_core import Config, Module, ModuleConfig
from burn_std import ConfigError


class Holder(Module):
    def __init__(self, *parts: Any, size: int = 1, **more: Any) -> None:
        self.parts = list(parts)
        self.size = size + 0


class Settings(Config):
    rate: float = 0.1
    sizes: tuple[int, ...] = (1, 2)
    table: dict[str, int] | None = None


NAME = Holder().config().module


def _module(**args: Any) -> dict[str, Any]:
    return {"module": NAME, "args": args}


@pytest.mark.parametrize("data", [
    None, [], 3, {}, {"module": NAME}, {"module": NAME, "args": []}, {"module": "os.system",
    "args": {"command": "true"}}, {"module": 3, "args": {}}, {"module": NAME, "same": 0},
    {"module": NAME, "same": []}, {"module": NAME, "args": {}, "number": []},
    {"module": NAME, "args": {}, "number": True}, _module(parts=1.5), _module(parts={"a": 1}),
    _module(size="x"), _module(size=None), _module(size={"tuple": 5}), _module(size={"map": 5}),
    _module(size={"dtype": "zz"}), _module(size={"function": "__class__"}),
    {"module": NAME, "number": 0, "args": {"parts": [{"module": NAME, "same": 0}]}},
])  # fmt: skip
def test_what_is_no_config_of_a_module(data: Any) -> None:
    with pytest.raises(ConfigError):
        ModuleConfig.from_json(json.dumps(data)).init()


def test_names_of_arguments_are_free() -> None:
    class Free(Module):
        def __init__(self, module: str = "a", args: int = 0, same: int = 0) -> None:
            self.known = (module, args, same)

    config = Free("b", 2, 3).config()
    assert ModuleConfig.from_json(config.to_json()).init().known == ("b", 2, 3)


@pytest.mark.parametrize("text", [
    "", "[" * 100_000, "9" * 5000, "\ud800", '{"rate": ' + "9" * 5000 + "}", '{"rate": "x"}',
    '{"table": ' + '{"a": ' * 300 + "1" + "}" * 301, '{"table": ' + "[" * 900 + "]" * 900 + "}",
    '{"module": "' + NAME + '", "args": {"size": ' + '{"tuple": [' * 450 + "]}" * 450 + "}}",
])  # fmt: skip
def test_what_is_no_config_at_all(text: str) -> None:
    for kind in (ModuleConfig, Settings):
        with pytest.raises(ConfigError):
            found = kind.from_json(text)
            if isinstance(found, ModuleConfig):
                found.init()
