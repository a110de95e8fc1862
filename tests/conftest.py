"""What the tests that cross packages share: the backends they run on, and where the cases are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CASES = HERE / "cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--burn-backend",
        action="append",
        metavar="NAME",
        help="device to test, such as flex or fusion-flex; repeatable (flex)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        names = metafunc.config.getoption("--burn-backend") or ["flex"]
        metafunc.parametrize("backend", names, scope="session")


@pytest.fixture
def device(backend: str) -> Any:
    """The device under test, without autodiff."""
    import burn

    return burn.device(backend)


@pytest.fixture
def tracking(device: Any) -> Any:
    """The device under test, with autodiff."""
    return device.autodiff()


@pytest.fixture(scope="session")
def known_failures() -> dict[str, str]:
    """Case ids that may fail, with the reason of each."""
    rows = tomllib.loads((HERE / "known_failures.toml").read_text())["failure"]
    return {row["case"]: row["reason"] for row in rows}
