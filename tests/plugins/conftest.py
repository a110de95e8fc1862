"""One environment with every plugin serves all tests of this folder."""

from __future__ import annotations

import pytest

from tests.environments import Environment, build_wheels
from tests.plugins.sources import PLUGINS, write_project


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plugins")
    ours = build_wheels(folder / "ours")
    theirs = folder / "theirs"
    for plugin in PLUGINS:
        build_wheels(theirs, write_project(folder, *plugin))
    made = Environment(folder / "env")
    made.install_needs_of("burn")
    made.install("burn", *(plugin[0] for plugin in PLUGINS), wheels=[ours, theirs])
    return made
