"""The page for people from PyTorch: every row of its table has a section that is executed."""

from __future__ import annotations

import re

from tests.repo.tree import ROOT


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
