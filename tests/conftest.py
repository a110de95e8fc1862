"""What the tests that cross packages share: the device under test, and where the cases are.

`--burn-backend NAME` and the fixture `backend` come from the plugin of burn-testing.
"""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from burn_dispatch import device as burn_device
from burn_testing.devices import another

# Property tests say the same today and tomorrow; `--hypothesis-profile=long` draws anew, and more.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100, database=None)
settings.register_profile("long", deadline=None, max_examples=5000, database=None)
if settings.get_current_profile_name() != "long":
    settings.load_profile("fixed")

HERE = Path(__file__).parent
CASES = HERE / "cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that takes a part of the cases."""
    parser.addoption(
        "--burn-case-share",
        type=int,
        default=1,
        metavar="N",
        help="run every N-th case of each operator, beginning with another one each day (1: all)",
    )
    parser.addoption(
        "--burn-dependent",
        choices=("only", "none"),
        help="run only what depends on --burn-backend, or only what names its devices itself",
    )
    parser.addoption(
        "--burn-part",
        metavar="I/N",
        help="of all tests that are collected, run the I-th and every N-th after it",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other sessions and parts."""
    wanted = config.getoption("--burn-dependent")
    if wanted:
        kept, left = [], []
        for item in items:
            depends = "backend" in getattr(item, "fixturenames", ())
            (kept if depends == (wanted == "only") else left).append(item)
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    given = config.getoption("--burn-part")
    if given:
        part, count = map(int, given.split("/"))
        config.hook.pytest_deselected(
            items=[item for k, item in enumerate(items) if k % count != part - 1]
        )
        items[:] = items[part - 1 :: count]


@pytest.fixture(scope="session")
def share(request: pytest.FixtureRequest) -> slice:
    """Which cases of an operator run."""
    every: int = request.config.getoption("--burn-case-share")
    return slice(date.today().toordinal() % every, None, every)


@pytest.fixture
def device(backend: str) -> Any:
    """The device under test, without autodiff."""
    return burn_device(backend)


@pytest.fixture
def other(device: Any) -> Any:
    """Another device, of the same backend where it has one."""
    return another(device)


@pytest.fixture
def tracking(device: Any) -> Any:
    """The device under test, with autodiff."""
    return device.autodiff()


@pytest.fixture(scope="session")
def known_failures() -> dict[str, str]:
    """Case ids that may fail, with the reason of each."""
    rows = tomllib.loads((HERE / "known_failures.toml").read_text())["failure"]
    return {row["case"]: row["reason"] for row in rows}
