"""The example, briefly: better by far than the most frequent answer; padding does not count."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import burn

HERE = Path(__file__).parent


def test_it_learns(run_script: Callable[..., str], device: str) -> None:
    small = ["--epochs", 2, "--width", 32, "--lr", 0.006]
    said = run_script("train.py", *small, "Open a socket to the server.", device=device)
    found = re.search(r"test accuracy: ([0-9.]+) % \(the largest field alone: ([0-9.]+) %", said)
    assert found, said
    assert float(found[1]) > float(found[2]) + 10
    assert said.splitlines()[-1].endswith("Open a socket to the server.")


@pytest.fixture
def classifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example's model as a module; its plain name is given back afterwards."""
    monkeypatch.syspath_prepend(HERE)
    import model

    yield model
    del sys.modules["model"]


def test_padding_changes_nothing(classifier: ModuleType, device: str) -> None:
    on = burn.device(device)
    on.seed(2)
    model = classifier.Classifier(20, 3, width=16, device=on)
    words = np.array([[3, 7, 5, 9]])
    short = model(burn.tensor(words, device=on)).numpy()
    padded = model(burn.tensor(np.pad(words, ((0, 0), (0, 6))), device=on)).numpy()
    np.testing.assert_allclose(padded, short, rtol=1e-5, atol=1e-6)
