"""Lets worker processes of the tests import `worker_cases`: they get this process's path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import worker_cases

    return worker_cases
