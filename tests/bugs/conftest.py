"""Tensors on the device under test, short to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn

Make = Callable[..., Any]


@pytest.fixture
def make(device: Any) -> Make:
    """Makes a tensor on the device under test."""
    return lambda data, dtype=None: burn.tensor(data, dtype=dtype, device=device)


@pytest.fixture
def leaf(tracking: Any) -> Make:
    """Makes a marked leaf on the device under test."""
    return lambda data, dtype=None: burn.tensor(data, dtype=dtype, device=tracking).require_grad()


@pytest.fixture
def slope() -> Callable[..., Any]:
    """Returns the gradients of sum(f(*leaves)) as arrays."""

    def run(f: Callable[..., Any], *leaves: Any) -> Any:
        grads = f(*leaves).sum().backward()
        found = [np.array(x.grad(grads)) for x in leaves]
        return found[0] if len(found) == 1 else found

    return run
