"""Every relative link in a Markdown file leads to a file that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, text_files

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
PAGES = [path for path in text_files() if path.suffix == ".md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    targets = [found.group(1) for found in LINK.finditer(re.sub(r"`[^`\n]*`", "", text))]
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    # The reference pages are written when the site is built.
    made = [target for target in local if "reference/" in target]
    missing = [t for t in set(local) - set(made) if not (page.parent / t).exists()]
    assert not missing
