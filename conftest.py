"""Runs the examples of Markdown files and docstrings as tests, as the `doctest` session asks."""

import doctest
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# Fenced Python, with `>>>` or without. Blocks of one file share their names, in order.
pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE),
        SkipParser(),
    ],
    patterns=["*.md"],
).pytest()


@pytest.fixture(scope="session", autouse=True)
def _docstring_names(request: pytest.FixtureRequest) -> None:
    """Let docstring examples say `burn.tensor(...)` without importing it first."""
    if request.config.getoption("doctestmodules"):
        import burn

        names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
        names["burn"] = burn
