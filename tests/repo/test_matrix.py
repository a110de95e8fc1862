"""The dated run of every test on every backend: what it found, and what has changed since.

Sources change every day and the run takes hours, so its age is listed and fails nothing: decision
0025. What fails is a file that is no record of a whole run, or one with failures in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import matrix


def wrong(result: dict[str, Any]) -> list[str]:
    """Return what is wrong with a committed record."""
    out = []
    if set(result["backends"]) != set(matrix.PARTS):
        out.append(f"backends {sorted(result['backends'])}, expected {sorted(matrix.PARTS)}")
    for backend, row in result["backends"].items():
        parts = [r for r in result["parts"] if r["backend"] == backend]
        count = matrix.PARTS.get(backend, 0)
        if [r["part"] for r in parts] != [f"{k}/{count}" for k in range(1, count + 1)]:
            out.append(f"{backend}: {len(parts)} parts of {count}")
        if row["passed"] != sum(r["passed"] for r in parts) or not row["passed"]:
            out.append(f"{backend}: {row['passed']} passed")
        out += [f"{backend}: {name} failed" for name in row["failed"]]
    if not result["sources"]:
        out.append("no digests of sources")
    return out


def test_the_committed_run_is_whole_and_clean(capsys: pytest.CaptureFixture[str]) -> None:
    if not matrix.RESULT.exists():
        status = (matrix.ROOT / "docs" / "status.md").read_text()
        assert "no whole run is recorded" in status
        return
    result = json.loads(matrix.RESULT.read_text())
    with capsys.disabled():
        print("\n" + "\n".join(matrix.lines(result, matrix.sources())))
    assert not wrong(result)


def record(**changes: Any) -> dict[str, Any]:
    row = {"passed": 2, "skipped": 0, "failed": [], "seconds": 1.0}
    parts = [
        {"backend": b, "part": f"{k}/{n}", **row}
        for b, n in matrix.PARTS.items()
        for k in range(1, n + 1)
    ]
    backends = {b: {**row, "passed": 2 * n} for b, n in matrix.PARTS.items()}
    made = {"date": "2026-01-01", "commit": "abc", "backends": backends, "parts": parts}
    return {**made, "sources": {"burn_ir/entry.py": "1"}, **changes}


def test_a_record_of_half_a_run_is_refused() -> None:
    assert not wrong(record())
    assert wrong(record(backends={}))
    assert wrong(record(parts=record()["parts"][1:]))
    assert wrong(record(sources={}))
    failed = record()
    failed["backends"]["cpu"]["failed"] = ["tests.x::test_y"]
    assert wrong(failed) == ["cpu: tests.x::test_y failed"]


def test_sources_are_compared_by_what_they_do() -> None:
    one = matrix.digest_of("def f(x):\n    return x + 1\n")
    same = matrix.digest_of('def f(x):\n    "Add."\n    return (x + 1)  # one more\n')
    assert one == same
    assert one != matrix.digest_of("def f(x):\n    return x + 2\n")
    since = {"burn_ir/a.py": "1", "burn_ir/b.py": "2"}
    assert matrix.changed(since, {"burn_ir/a.py": "1", "burn_ir/c.py": "2"}) == [
        "burn_ir/b.py",
        "burn_ir/c.py",
    ]
    said = matrix.lines(record(sources=since), {"burn_ir/a.py": "9", "burn_ir/b.py": "2"})
    assert said[-1].endswith("1 sources of kernels and plans have changed since: burn_ir (1)")
    now = matrix.sources()
    assert {name.partition("/")[0] for name in now} == {
        package.replace("-", "_") for package in matrix.PACKAGES
    }


def test_a_part_of_other_sources_is_owed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "STATE", tmp_path)
    count = matrix.PARTS["flex"]
    assert matrix.owed("flex", "a") == list(range(1, count + 1))
    matrix.place("flex", 2).write_text(json.dumps({"sources": "a"}))
    assert matrix.owed("flex", "a") == [k for k in range(1, count + 1) if k != 2]
    assert 2 in matrix.owed("flex", "b")
