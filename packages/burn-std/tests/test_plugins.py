from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from burn_std import BackendLoadError, PluginGroup, load_object, nearest


class Dist:
    def __init__(self, name: str, version: str = "1.0") -> None:
        self.name = name
        self.version = version


def entry(name: str, value: str, dist: str) -> EntryPoint:
    made = EntryPoint(name, value, "burn.backends")
    vars(made)["dist"] = Dist(dist)
    return made


class Good:
    api_version = 1


GOOD = Good()
OLD = type("Old", (), {"api_version": 0})()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    entries: list[EntryPoint] = []
    module = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "plugin_under_test", module)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    yield entries


def test_plugin_is_loaded_once(installed: list[EntryPoint]) -> None:
    installed += [entry("good", "plugin_under_test:GOOD", "good-dist")] * 2
    group = PluginGroup("burn.backends", 1)
    assert [i.status for i in group.infos()] == ["not loaded"]
    assert group.load("good") is GOOD is group.load("good")
    assert group.names() == ["good"]
    assert group.installed("good") and group.installed("good-dist:good")
    info = group.infos()[0]
    assert (info.distribution, info.version, info.status) == ("good-dist", "1.0", "loaded")
    assert "good-dist 1.0" in repr(info)


def test_missing_plugin_names_the_remedy(installed: list[EntryPoint]) -> None:
    group = PluginGroup("burn.backends", 1)
    with pytest.raises(BackendLoadError, match="uv sync --inexact --package burn-flex") as caught:
        group.load("flex")
    assert caught.value.got == "installed: none"
    with pytest.raises(BackendLoadError, match="Did you mean 'flex'"):
        group.load("flx")
    with pytest.raises(BackendLoadError, match=r"python -m burn backends"):
        group.load("zzzzzz")


def test_a_package_that_is_installed_is_not_the_remedy(installed: list[EntryPoint]) -> None:
    installed.append(entry("opencl", "plugin_under_test:GOOD", "burn-cube-backend"))
    with pytest.raises(
        BackendLoadError, match="burn-cube-backend is installed and has none yet"
    ) as caught:
        PluginGroup("burn.backends", 1).load("cuda")
    assert "uv sync" not in str(caught.value)


def test_missing_plugin_is_found_after_a_refresh(installed: list[EntryPoint]) -> None:
    group = PluginGroup("burn.backends", 1)
    with pytest.raises(BackendLoadError):
        group.load("late")
    installed.append(entry("late", "plugin_under_test:GOOD", "late-dist"))
    group.refresh()
    assert group.load("late") is GOOD


def test_broken_plugin_chains_its_cause_and_is_remembered(installed: list[EntryPoint]) -> None:
    installed.append(entry("bad", "no_such_module_anywhere:X", "bad-dist"))
    group = PluginGroup("burn.backends", 1)
    with pytest.raises(BackendLoadError, match=r"bad-dist 1\.0") as caught:
        group.load("bad")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(BackendLoadError) as again:
        group.load("bad")
    assert again.value is caught.value
    assert group.infos()[0].status.startswith("failed: ")


def test_two_distributions_of_one_name_must_be_told_apart(installed: list[EntryPoint]) -> None:
    installed.append(entry("x", "plugin_under_test:GOOD", "one"))
    installed.append(entry("x", "plugin_under_test:OLD", "two"))
    group = PluginGroup("burn.backends")
    with pytest.raises(BackendLoadError, match="two distributions offer 'x'"):
        group.load("x")
    assert group.load("one:x") is GOOD


def test_plugin_for_another_contract_is_refused(installed: list[EntryPoint]) -> None:
    installed.append(entry("old", "plugin_under_test:OLD", "old-dist"))
    with pytest.raises(BackendLoadError, match="Upgrade old-dist"):
        PluginGroup("burn.backends", 1).load("old")


def test_import_reads_no_metadata() -> None:
    code = "import burn_std, sys; print(int('importlib.metadata' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_load_object_and_nearest() -> None:
    found: Any = load_object("burn_std.plugins:PluginGroup")
    assert found is PluginGroup
    assert nearest("x", []) is None
