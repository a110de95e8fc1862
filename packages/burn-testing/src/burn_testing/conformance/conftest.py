"""The device under test and what it is compared with; the plugin gives the name."""

from __future__ import annotations

from typing import Any

import pytest

from burn_dispatch import device as find_device
from burn_testing.conformance.reference import reference as find_reference
from burn_testing.devices import another


@pytest.fixture(scope="session")
def device(backend: str) -> Any:
    """The device under test."""
    return find_device(backend)


@pytest.fixture(scope="session")
def reference(backend: str) -> Any:
    """What the device is compared with."""
    return find_reference(backend)


@pytest.fixture(scope="session")
def other(backend: str) -> Any:
    """Another device, of the same backend where it has one."""
    return another(find_device(backend))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave plans that keep changing without a word: every sample is another program by intent."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::burn_std.PlanChurnWarning"))
