"""The option that names the backend under test."""

from __future__ import annotations

from typing import Any

import pytest

from burn_dispatch import device as find_device
from burn_testing.conformance.reference import reference as find_reference


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--burn-backend NAME`, repeatable, unless the tests around have it."""
    try:
        parser.addoption(
            "--burn-backend", action="append", metavar="NAME", help="device to test; repeatable"
        )
    except ValueError as error:
        if "already added" not in str(error):
            raise


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test on every backend named."""
    if "backend" in metafunc.fixturenames:
        names = metafunc.config.getoption("--burn-backend") or ["flex"]
        metafunc.parametrize("backend", names, scope="session")


@pytest.fixture(scope="session")
def device(backend: str) -> Any:
    """The device under test."""
    return find_device(backend)


@pytest.fixture(scope="session")
def reference(backend: str) -> Any:
    """What the device is compared with."""
    return find_reference(backend)
