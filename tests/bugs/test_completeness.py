"""The list of reported failures is complete, and what it names exists."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import CASES, HERE

LIST = tomllib.loads((HERE / "bugs.toml").read_text())
ENTRIES = re.findall(r"^\*\*(B\d+)\*\*", (CASES / "bugs.md").read_text(), re.MULTILINE)


def test_every_entry_is_listed() -> None:
    assert len(ENTRIES) > 110
    assert list(LIST) == ENTRIES


def test_every_entry_has_tests_and_they_exist() -> None:
    for entry, places in LIST.items():
        assert places, entry
        for place in places:
            file, _, name = place.partition("::")
            source = (HERE / "bugs" / file).resolve()
            assert f"def {name}(" in source.read_text(), place


def test_every_test_of_an_entry_is_listed() -> None:
    named = {place for places in LIST.values() for place in places}
    for file in (HERE / "bugs").glob("test_*.py"):
        for name in re.findall(r"^def (test_b\d+_\w+)", file.read_text(), re.MULTILINE):
            assert f"{file.name}::{name}" in named
