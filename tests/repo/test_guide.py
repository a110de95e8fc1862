"""The guide: rows that promise an executed section have it; every package has a true page."""

from __future__ import annotations

import re

import pytest

from tests.repo.tree import ROOT, Package, packages


def test_every_row_of_the_table_is_executed() -> None:
    text = (ROOT / "docs/guide/from-pytorch.md").read_text()
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    shown = [
        int(found[1])
        for section in sections
        if (found := re.match(r"(\d+)\. ", section)) and "```python" in section
    ]
    assert rows == shown == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.name)
def test_every_package_has_a_page_that_says_what_it_needs(package: Package) -> None:
    page = (ROOT / "docs/packages" / f"{package.name}.md").read_text()
    project = package.manifest["project"]
    needs = [line.partition("==")[0] for line in project["dependencies"]]
    found = re.search(r"^- Needs: (.*)\.$", page, re.MULTILINE)
    assert found
    assert sorted(found[1].split(", ")) == sorted(needs or ["nothing"])
    for extra in project.get("optional-dependencies", {}):
        assert f"`{extra}`" in page
    for group, names in project.get("entry-points", {}).items():
        for name in names if group.startswith("burn.") else ():
            assert f"`{name}`" in page, group
    assert package.name in (ROOT / "docs/packages/index.md").read_text()


def test_the_language_page_names_every_construct() -> None:
    page = (ROOT / "docs/kernel-language.md").read_text()
    names = [
        line.partition(".")[2]
        for line in (ROOT / "tests/repo/public_names.txt").read_text().splitlines()
        if line.startswith("burn_cube.")
    ]
    stems = {re.sub(r"_[XYZ]$", "", name) for name in names}  # one word for the parts of a position
    assert not [name for name in sorted(stems) if not re.search(rf"\b{name}\b", page)]
