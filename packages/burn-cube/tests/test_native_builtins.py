"""Native functions that Python calls as builtins: what they tell, do, and leave alone."""

import sys

import numpy as np
import pytest

import burn_cube as bc

pytest.importorskip("llvmlite")


class Part:
    """Something whose equality nobody may ask."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared by identity only")

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def runtime():
    return bc.client("cpu").runtime


def test_what_dicts_and_lists_hold_is_compared_by_identity(runtime):
    a, b = Part(), Part()
    held, rows = {"a": a, "b": b}, [a, b]
    same = runtime.frames().same_objects([held, rows, {}, []])
    assert same() is True
    held["b"] = Part()
    assert same() is False
    held["b"] = b
    assert same() is True
    rows.reverse()
    assert same() is False
    rows.reverse()
    rows.append(a)
    assert same() is False
    rows.pop()
    held["c"] = a
    assert same() is False
    del held["c"]
    assert same() is True
    held.pop("a")
    held["a"] = a  # the same ones in another order
    assert same() is False


def test_it_takes_no_references(runtime):
    a = Part()
    held = {"a": a}
    same = runtime.frames().same_objects([held])
    before = sys.getrefcount(a), sys.getrefcount(held)
    for _ in range(100):
        assert same()
    assert (sys.getrefcount(a), sys.getrefcount(held)) == before


@bc.cube
def scaled(x: bc.Array[bc.Float], out: bc.Array[bc.Float], by: bc.Float):
    i = bc.ABSOLUTE_POS
    if i < len(out):
        out[i] = x[i] * by


def test_launches_at_addresses_that_are_given(runtime):
    device = bc.client("cpu")
    first = device.from_numpy(np.arange(8, dtype=np.float32))
    between, last = (device.empty(8, first.dtype) for _ in range(2))
    program = device.load(scaled.ir(first, between, 2.0))
    calls = runtime.sequence([
        program.prepared((1, 1, 1), (first, between, 2.0)),
        program.prepared((1, 1, 1), (between, last, 3.0)),
    ])  # fmt: skip
    x, out, _ = program.places
    words = len(calls.words) // 2
    launch = calls.placed([x, out, words + x, words + out], [0, 1, 1, 2], [0, 0, 0, 0])
    for k in range(3):
        given = device.from_numpy(np.full(8, k + 1, np.float32))
        result = device.empty(8, first.dtype)
        assert launch(given.pointer, between.pointer, result.pointer) == 2
        assert result.numpy().tolist() == [6.0 * (k + 1)] * 8
