"""What a device's name stands for: usual decorators, bare devices, one canonical name for each."""

from __future__ import annotations

from typing import Any

import pytest

from burn_dispatch.stack import stack_of
from burn_std import BackendLoadError, DeviceError


class Group:
    """Plugins by name, in the place of the entry points."""

    def __init__(self, **plugins: Any) -> None:
        self.plugins = plugins

    def installed(self, name: str) -> bool:
        return name in self.plugins

    def load(self, name: str) -> Any:
        if name not in self.plugins:
            raise BackendLoadError(name, "no plugin of that name")
        return self.plugins[name]


class Plugin:
    """A backend that may ask for decorators."""

    def __init__(self, *behind: str) -> None:
        if behind:
            self.behind = behind


BACKENDS: Any = Group(fast=Plugin("fusion"), plain=Plugin(), deep=Plugin("outer", "inner"))
DECORATORS: Any = Group(fusion=None, echo=None, outer=None, inner=None)


@pytest.mark.parametrize(
    ("given", "name", "chain", "wrappers"),
    [
        ("fast", "fast", "fast", "fusion"),
        ("fusion-fast", "fast", "fast", "fusion"),
        ("fusion-eager-fast", "fast", "fast", "fusion"),
        ("eager-fast", "eager-fast", "eager<fast>", ""),
        ("echo-fast", "echo-fast", "echo<fast>", "echo fusion"),
        ("echo-fusion-fast", "echo-fast", "echo<fast>", "echo fusion"),
        ("fusion-echo-fast", "fusion-echo-fast", "fusion<echo<fast>>", "fusion echo"),
        ("echo-eager-fast", "echo-eager-fast", "echo<eager<fast>>", "echo"),
        ("plain", "plain", "plain", ""),
        ("eager-plain", "plain", "plain", ""),
        ("fusion-plain", "fusion-plain", "fusion<plain>", "fusion"),
        ("deep", "deep", "deep", "outer inner"),
        ("outer-inner-deep", "deep", "deep", "outer inner"),
        ("inner-deep", "inner-deep", "inner<deep>", "inner"),
        ("eager-deep", "eager-deep", "eager<deep>", ""),
    ],
)
def test_names_that_mean_one_device_have_one_form(
    given: str, name: str, chain: str, wrappers: str
) -> None:
    found = stack_of(given, BACKENDS, DECORATORS)
    assert (found.name, found.chain, found.wrappers) == (name, chain, tuple(wrappers.split()))
    assert stack_of(found.name, BACKENDS, DECORATORS) == found


def test_without_the_decorator_the_device_is_bare_and_says_so() -> None:
    none: Any = Group()
    for name in ("fast", "eager-fast"):
        found = stack_of(name, BACKENDS, none)
        assert (found.name, found.chain, found.wrappers) == ("eager-fast", "eager<fast>", ())
    # Who names the decorator wants it: its absence is an error where it is loaded.
    assert stack_of("fusion-fast", BACKENDS, none).wrappers == ("fusion",)


@pytest.mark.parametrize(
    "name", ["fusion-fusion-fast", "eager-eager-fast", "eager-fusion-fast", "eager-echo-plain"]
)
def test_decorators_stand_once_and_eager_before_the_backend(name: str) -> None:
    with pytest.raises(DeviceError, match=name):
        stack_of(name, BACKENDS, DECORATORS)
    with pytest.raises(BackendLoadError):
        stack_of("eager-gone", BACKENDS, DECORATORS)
