"""The `rename=` that a report suggests, and that it makes names fit."""

from __future__ import annotations

import re

import pytest

from burn_store import LoadReport

CASES = [
    (["a.w", "a.b"], ["module.a.w", "module.a.b"], []),
    # One name that the file truly lacks hides no prefix.
    (["head.w", "a.w", "a.b"], ["module.a.w", "module.a.b"], []),
    (["a.w", "b.w"], ["module.a.w", "module.b.w", "extra"], []),
    (["model.a.w", "model.b.w"], ["a.w", "b.w"], []),
    (["model.a.w", "model.new"], ["a.w"], []),
    # What fits already is not renamed.
    (["model.a.w"], ["a.w"], ["model.b.w"]),
    (["a.w"], ["module.a.w"], ["b.w"]),
    (["a.b.w", "a.c.w"], ["x.y.a.b.w", "x.y.a.c.w"], []),
]


@pytest.mark.parametrize(("missing", "unused", "applied"), CASES)
def test_the_suggestion_fits_and_breaks_nothing(missing, unused, applied):
    hint = LoadReport(applied, missing, unused, {}).hint()
    assert hint is not None
    pattern, new = re.search(r"rename=\[\((.*), (.*)\)\]", hint).groups()
    pattern, new = (text.strip("'").replace("\\\\", "\\") for text in (pattern, new))
    names = {re.sub(pattern, new, name) for name in unused}
    fitting = [name for name in missing if name in names]
    assert fitting and len(fitting) >= min(len(missing), len(unused)) - 1
    assert [re.sub(pattern, new, name) for name in applied] == applied
    left = len(missing) - len(fitting)
    assert (f"{left} more are not in the file" in hint) == (left > 0)


@pytest.mark.parametrize(
    ("missing", "unused", "applied"),
    [
        (["a.w"], ["b.w"], []),
        ([], ["b.w"], []),
        (["a.w"], ["module.a.w"], ["module.b.w"]),
        (["model.a.w"], ["a.w"], ["b.w"]),
    ],
)
def test_no_suggestion_where_none_would_do(missing, unused, applied):
    assert LoadReport(applied, missing, unused, {}).hint() is None
