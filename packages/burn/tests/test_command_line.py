"""`python -m burn`: what it prints, and its exit status."""

from __future__ import annotations

import re

import pytest

from burn.__main__ import main


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    out = capsys.readouterr().out
    assert "flex" in out.splitlines()
    assert "default: " in out


def test_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"flex +burn-flex \S+ +loaded", out)
    assert re.search(r"autodiff +burn-autodiff", out)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("matmul", ["entry", "shape rule", "method", "linalg", "kernel (flex)", "backward"]),
        ("relu", ["entry", "decomposition", "method", "functional", "backward"]),
        ("conv2d", ["functional"]),
        ("cat", ["entry", "function", "backward"]),
    ],
)
def test_where_names_files_and_lines(
    name: str, labels: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = dict(re.split(r"  +", line, maxsplit=1) for line in lines)
    for label in labels:
        assert re.search(r"\.py:\d+$", found[label]), label


def test_where_of_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "matmull"]) == 1
    assert "matmul" in capsys.readouterr().out
