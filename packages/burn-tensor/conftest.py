"""The names that examples in docstrings use: `burn`, as the facade shows it, and `F`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import burn_dispatch
import burn_tensor
from burn_std import dtypes

# The facade lies above this package, so what it adds is put together here.
BURN = SimpleNamespace(
    **{d.name + ("_" if d.is_bool else ""): d for d in dtypes.PLAIN},
    quantized=dtypes.quantized,
    **{n: getattr(burn_dispatch, n) for n in ("Device", "device", "no_grad", "autocast")},
    **{n: v for n, v in vars(burn_tensor).items() if not n.startswith("_")},
)


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    """Put the names where doctest looks."""
    doctest_namespace["burn"] = BURN
    doctest_namespace["F"] = burn_tensor.functional
