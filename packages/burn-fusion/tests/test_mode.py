"""What `BURN_FUSION` changes."""

from __future__ import annotations

import numpy as np
import pytest

from burn_fusion.mode import compared, mode
from burn_std import ArgumentError, ExecutionError


class Host:
    """A backend whose payloads are arrays."""

    def to_numpy(self, payload):
        return payload


class Named:
    name = "mul"


class Step:
    entry, slot, outputs = Named(), 0, 1


class Plan:
    """A plan of one operation that doubles its input, and does not at 3."""

    live = (0,)
    steps = (Step(),)

    def run(self, payloads, numbers):
        return (np.where(payloads[0] == 3, 0, payloads[0] * 2),)


def test_modes(monkeypatch):
    for name in ("on", "off", "check"):
        monkeypatch.setenv("BURN_FUSION", name)
        assert mode() == name
    monkeypatch.delenv("BURN_FUSION")
    assert mode() == "on"
    monkeypatch.setenv("BURN_FUSION", "yes")
    with pytest.raises(ArgumentError, match="on, off, check"):
        mode()


def test_a_plan_that_gives_other_bits_is_named():
    run = compared(Plan(), lambda payloads, numbers: (payloads[0] * 2,), Host())
    assert run([np.array([1.0, np.nan])], {})[0][0] == 2
    with pytest.raises(ExecutionError, match=r"mul: .* got other bits of float64\[2\]"):
        run([np.array([3.0, 1.0])], {})
    assert run([np.float32(2)], {})[0] == 4
