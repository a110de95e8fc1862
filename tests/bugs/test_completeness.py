"""The list of reported failures is complete, and what it names exists."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import CASES, HERE

LIST = tomllib.loads((HERE / "bugs.toml").read_text())
ENTRIES = re.findall(r"^\*\*(B\d+)\*\*", (CASES / "bugs.md").read_text(), re.MULTILINE)
# Issues that build what an entry is about.
OPEN = {3, 4, 5}


def test_every_entry_is_listed() -> None:
    assert len(ENTRIES) > 110
    assert list(LIST) == ENTRIES


def test_every_test_named_exists_and_every_other_entry_has_an_issue() -> None:
    for entry, value in LIST.items():
        if isinstance(value, int):
            assert value in OPEN, entry
            continue
        for place in value:
            file, _, name = place.partition("::")
            source = (HERE / "bugs" / file).resolve()
            assert f"def {name}(" in source.read_text(), place


def test_every_test_of_an_entry_is_listed() -> None:
    named = {place for value in LIST.values() if isinstance(value, list) for place in value}
    for file in (HERE / "bugs").glob("test_*.py"):
        for name in re.findall(r"^def (test_b\d+_\w+)", file.read_text(), re.MULTILINE):
            assert f"{file.name}::{name}" in named
