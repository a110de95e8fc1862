"""The choice of the default device among plugins that are absent, idle, whole or broken."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

from burn_std import BackendLoadError

# The package offers a function of the module's name.
module: Any = importlib.import_module("burn_dispatch.device")


class Plugin:
    """A plugin with so many devices, some of which are GPUs."""

    def __init__(self, count: int = 0, gpus: int = 0, lacks: str | None = None) -> None:
        self.count, self.gpus, self.missing = count, gpus, lacks

    def device_count(self) -> int:
        return self.count

    def gpu_count(self) -> int:
        return self.gpus

    def lacks(self) -> str | None:
        return self.missing


class Broken(Plugin):
    """Sees hardware whose driver fails."""

    def device_count(self) -> int:
        raise OSError("ioctl failed")


class Group:
    """Plugins by name, in the place of the entry points."""

    def __init__(self, plugins: dict[str, Any]) -> None:
        self.plugins = plugins

    def installed(self, name: str) -> bool:
        return name in self.plugins

    def load(self, name: str) -> Any:
        return self.plugins[name]


def chosen(monkeypatch: pytest.MonkeyPatch, **plugins: Any) -> str:
    monkeypatch.setattr(module, "BACKENDS", Group(plugins))
    monkeypatch.setattr(module, "_why", [])
    monkeypatch.setattr(module, "resource", lambda name, index: (name, index))
    monkeypatch.setattr(module, "Device", lambda found: found)
    monkeypatch.delenv("BURN_DEVICE", raising=False)
    name, index = module._choose_default()
    assert index == 0
    return name


def test_gpus_come_first_then_what_compiles_for_processors_then_flex(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, gpu = Plugin(1), Plugin(2, gpus=1)
    assert chosen(monkeypatch, cuda=one, opencl=gpu, cpu=one, flex=one) == "cuda"
    assert chosen(monkeypatch, cuda=Plugin(), opencl=gpu, cpu=one, flex=one) == "opencl"
    assert chosen(monkeypatch, cuda=Plugin(), opencl=one, cpu=one, flex=one) == "cpu"
    assert chosen(monkeypatch, opencl=one, cpu=Plugin(), flex=one) == "flex"
    assert chosen(monkeypatch, opencl=one, cpu=Plugin()) == "opencl"


def test_each_one_that_is_passed_over_leaves_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "burn"):
        chosen(monkeypatch, opencl=Plugin(1), cpu=Plugin(lacks="llvmlite"), flex=Plugin(1))
    said = [record.getMessage().removeprefix("default device: ") for record in caplog.records]
    assert said == [
        "cuda: not installed",
        "opencl (GPU): finds no hardware",
        "cpu: llvmlite is not installed",
        "flex: chosen",
    ]


def test_one_that_sees_hardware_and_breaks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendLoadError, match="ioctl failed") as caught:
        chosen(monkeypatch, cuda=Broken(), flex=Plugin(1))
    assert isinstance(caught.value.__cause__, OSError)
