"""Keeps the compile cache of the tests apart from the user's."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    # Set before the first kernel is loaded: the cache of a process is opened once.
    before = os.environ.get("BURN_CACHE_DIR")
    os.environ["BURN_CACHE_DIR"] = before or str(tmp_path_factory.mktemp("cache"))
    yield
