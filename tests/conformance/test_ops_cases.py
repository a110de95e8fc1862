"""Every operator case of PyTorch, forward and backward, in the layout it was given in."""

from __future__ import annotations

from typing import Any

import pytest

from burn_testing.cases import load, names, run_case
from tests.conftest import CASES

OPS = CASES / "ops"


@pytest.mark.parametrize("name", names(OPS))
def test_cases_hold(name: str, device: Any, known_failures: dict[str, str], share: slice) -> None:
    failures = []
    cases = load(OPS, name)
    for case in cases[share] or cases[:1]:
        wrong = run_case(case, device)
        if case.id in known_failures:
            if not wrong:
                failures.append(f"{case.id}: passes now, take it out of known_failures.toml")
        elif wrong:
            failures.append(f"{case.id}: {'; '.join(wrong)}")
    assert not failures, "\n".join(failures)


def test_known_failures_are_few_and_exist(known_failures: dict[str, str]) -> None:
    ids = [case.id for name in names(OPS) for case in load(OPS, name)]
    assert len(ids) > 6900
    assert set(known_failures) <= set(ids)
    assert len(known_failures) <= 0.005 * len(ids)
    assert all(len(reason) > 20 for reason in known_failures.values())
