"""What `BURN_FUSION` changes."""

from __future__ import annotations

from array import array

import pytest

from burn_fusion.mode import compared, mode
from burn_std import ArgumentError, ExecutionError


class DType:
    name = "float64"


class Array:
    """As much of an array as is compared."""

    dtype = DType()

    def __init__(self, *values):
        self.values = array("d", values)
        self.shape = (len(values),)

    def tobytes(self):
        return self.values.tobytes()

    def __ne__(self, other):
        return Array()

    def any(self):
        return bool(self.values)

    def times(self, k):
        return Array(*[v * k for v in self.values])


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
        (x,) = payloads
        return (x.times(0) if 3 in x.values else x.times(2),)


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
    run = compared(Plan(), lambda payloads, numbers: (payloads[0].times(2),), Host())
    assert run([Array(1.0, float("nan"))], {})[0].values[0] == 2
    with pytest.raises(ExecutionError, match=r"mul: .* got other bits of float64\[2\]"):
        run([Array(3.0, 1.0)], {})
    assert run([Array(2.0)], {})[0].values[0] == 4
