"""The pytest plugin: `--burn-backend NAME` and the fixture `backend` that runs a test on each.

An entry point, not a conftest: with `--pyargs` pytest reads the command line before it knows where
the package of the tests is.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--burn-backend",
        action="append",
        metavar="NAME",
        help="burn device to test, such as flex, fusion-flex or eager-cpu; repeatable (flex)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that asks for a backend on each one named."""
    if "backend" in metafunc.fixturenames:
        names = metafunc.config.getoption("--burn-backend") or ["flex"]
        metafunc.parametrize("backend", names, scope="session")
