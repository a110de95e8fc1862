"""One name for everything: what is there at once, and what comes when it is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

import burn


def test_every_public_name_is_there() -> None:
    for name in burn.__all__:
        assert getattr(burn, name) is not None
    assert burn.__all__ == sorted(burn.__all__)


def test_dtypes_are_named() -> None:
    assert burn.zeros(1).dtype is burn.float32
    assert burn.tensor([True]).dtype is burn.bool_
    assert burn.tensor(1).dtype is burn.int64


def test_parts_load_when_named() -> None:
    code = (
        "import sys, burn; before = 'burn_train' in sys.modules; burn.train;"
        "print(before, 'burn_train' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_an_unknown_name_has_a_hint() -> None:
    with pytest.raises(AttributeError, match=r"burn\.zeros"):
        burn.zeroes  # noqa: B018
    with pytest.raises(AttributeError, match=r"burn\.store\.save\(model, path\)"):
        burn.save  # noqa: B018
    assert "train" in dir(burn)
