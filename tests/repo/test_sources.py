"""House rules over the text of the repository."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, packages, parse, text_files

LIMIT, WISHED = 700, 400
# Names that say nothing of what a module holds.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
# The places that may import by a string: the plugin loader, and the facade's lazy parts.
IMPORT_BY_STRING = {
    "packages/burn-std/src/burn_std/plugins.py",
    "packages/burn/src/burn/__init__.py",
}
SOURCES = [file for package in packages() for file in package.files]
PYTHON = [path for path in text_files() if path.suffix == ".py"]


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_stay_short(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = {place(path): len(path.read_text().splitlines()) for path in PYTHON}
    long = {name: lines for name, lines in lengths.items() if lines > WISHED}
    with capsys.disabled():
        print(f"\n{sum(lengths.values())} lines of Python in {len(lengths)} files")
        for name, lines in sorted(long.items(), key=lambda item: -item[1]):
            print(f"  over {WISHED}: {lines:4} {name}")
    assert not {name: lines for name, lines in long.items() if lines > LIMIT}


def test_module_names_say_what_they_hold() -> None:
    assert not [place(path) for path in SOURCES if path.stem.strip("_") in EMPTY_NAMES]


def test_no_open_ends() -> None:
    marker = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    found = [
        f"{place(path)}:{number}"
        for path in text_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if marker.search(line)
    ]
    assert not found


def test_no_package_index_and_no_path_of_a_machine() -> None:
    index = re.compile(r"\b(?:[a-z0-9-]+\.)*(?:pypi|python" + r"hosted|pypa)\.(?:org|io)\b")
    machine = re.compile(r"(?<![\w.])/(?:home|root|Users|work)/\w")
    found = [
        f"{place(path)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if index.search(line) or machine.search(line)
    ]
    assert not found


def test_no_text_tells_to_install_burn_from_an_index() -> None:
    # The name belongs to another tool there.
    command = re.compile(r"(?:pip|uv) (?:install|add) burn")
    found = [place(path) for path in text_files() if command.search(path.read_text())]
    assert [name for name in found if not name.startswith("tests/repo/")] == []


def test_modules_are_imported_by_string_in_two_places_only() -> None:
    found = {
        place(path)
        for path in SOURCES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"importlib.import_module", "import_module", "__import__"}
    }
    assert found <= IMPORT_BY_STRING


def test_every_module_says_what_it_holds() -> None:
    assert not [place(path) for path in SOURCES if not ast.get_docstring(parse(path))]
