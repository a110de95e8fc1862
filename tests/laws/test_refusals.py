"""One wrong call is one error on every device, also where several things are wrong with it.

Layers look at a call in orders of their own: numpy refuses a shape, a recorder asks its rules, a
look-up by dtype comes before either or after. What the user reads must not tell which one it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import burn
from burn_std import DTypeError, ShapeError
from burn_testing.conformance.calls import call, inputs
from burn_testing.samples import SAMPLES, Draw, Sample

DEVICES = ("fusion-flex", "eager-cpu", "cpu")


def shaped(s: Sample, shape: Any) -> Iterator[Sample]:
    """Yield the sample with one input of another shape, each in turn."""
    for k, x in enumerate(s.inputs):
        if isinstance(x, Draw):
            other = x._replace(shape=shape(x.shape), values=None)
            yield s._replace(inputs=(*s.inputs[:k], other, *s.inputs[k + 1 :]))


def wrong_calls(name: str) -> Iterator[tuple[Sample, str]]:
    """Yield calls with odd dtypes, odd shapes, and both."""
    # Samples of the ends of integers know no other dtype.
    for s in [s for s in SAMPLES[name] if not any(map(_extreme, s.inputs))][:2]:
        same = [s, *shaped(s, lambda n: (5, *n)), *shaped(s, lambda n: tuple(e + 3 for e in n))]
        for other in same:
            for dtype in ("f32", "i32", "bool"):
                yield other, dtype


def _extreme(x: Any) -> bool:
    return isinstance(x, Draw) and x.values == "extremes"


def outcome(device: Any, s: Sample, dtype: str) -> Any:
    """Return class and operation of the error of a call, None where it is accepted."""
    try:
        given = inputs(device.context, s, dtype)
    except burn.BurnError:
        return None  # the sample cannot be made in this dtype
    try:
        call(device.context, s, given)
    except (DTypeError, ShapeError) as error:
        return type(error).__name__, error.op
    except burn.BurnError:
        pass
    with suppress(burn.BurnError):  # values at fault are told when the device finds out
        device.sync()
    return None


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if "::" not in n))
def test_a_wrong_call_is_the_same_error_everywhere(name: str) -> None:
    differs = []
    for s, dtype in wrong_calls(name):
        expected = outcome(burn.device("flex"), s, dtype)
        for place in DEVICES:
            # What is accepted would be compiled.
            if expected is None and "cpu" in place:
                continue
            found = outcome(burn.device(place), s, dtype)
            if found != expected:
                shapes = [x.shape if isinstance(x, Draw) else x for x in s.inputs]
                differs.append(f"{place} {s.name} {dtype} {shapes}: {found}, flex {expected}")
    assert not differs, "\n".join(differs)
