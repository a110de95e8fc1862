"""The example, briefly: the best linear model would stop at an error of about 2.4."""

from __future__ import annotations

import re
from collections.abc import Callable


def test_it_learns(run_script: Callable[..., str], device: str) -> None:
    said = run_script("train.py", "--epochs", 12, device=device)
    error = re.search(r"root mean squared error: ([0-9.]+)", said)
    assert error, said
    assert 0.9 < float(error[1]) < 1.6
    assert said.count("predicted") == 3
