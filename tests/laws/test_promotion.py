"""The promotion table, every pair of it, against the words of the contract."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn_std import PLAIN

ORDER = {"bool": 0, "uint": 1, "int": 1, "float": 2}


def expected(a: Any, b: Any) -> Any:
    """The contract: numpy's table inside integers, the float with an integer, bool joins."""
    if a is b:
        return a
    ka, kb = ORDER[a.kind], ORDER[b.kind]
    if ka != kb:
        return a if ka > kb else b
    if ka == 2:
        return (
            burn.float32
            if {a, b} == {burn.float16, burn.bfloat16}
            else max(a, b, key=lambda d: d.bits)
        )
    joined = np.promote_types(a.name, b.name)
    return None if joined.kind == "f" else getattr(burn, joined.name)


@pytest.mark.parametrize(("a", "b"), list(product(PLAIN, PLAIN)), ids=lambda d: d.short)
def test_two_tensors_meet_in_the_dtype_of_the_contract(a: Any, b: Any, device: Any) -> None:
    x, y = burn.ones(2, dtype=a, device=device), burn.ones(2, dtype=b, device=device)
    want = expected(a, b)
    if want is None:
        with pytest.raises(burn.DTypeError):
            x + y
        return
    assert (x + y).dtype is want
    assert (x * y).dtype is want
    assert burn.cat([x, y]).dtype is want
    assert burn.where(x == y, x, y).dtype is want
    assert (x == y).dtype is burn.bool_
    assert (x / y).dtype is (want if want.is_float else burn.float32)


@pytest.mark.parametrize(("a", "b"), list(product(PLAIN, PLAIN)), ids=lambda d: d.short)
def test_rank_0_never_raises_the_dtype_inside_its_kind(a: Any, b: Any, device: Any) -> None:
    x, y = burn.ones(2, dtype=a, device=device), burn.ones((), dtype=b, device=device)
    want = a if ORDER[a.kind] >= ORDER[b.kind] else b
    assert (x + y).dtype is want
    assert (y + x).dtype is want


@pytest.mark.parametrize("dtype", PLAIN, ids=lambda d: d.short)
def test_python_scalars_are_weak(dtype: Any, device: Any) -> None:
    x = burn.ones(2, dtype=dtype, device=device)
    assert (x * True).dtype is dtype
    assert (x * 2).dtype is (burn.int64 if dtype.is_bool else dtype)
    assert (x * 2.5).dtype is (dtype if dtype.is_float else burn.float32)
    assert (2.5 * x).dtype is (x * 2.5).dtype
    assert (x * np.float64(2.5)).dtype is (x * 2.5).dtype
    assert (x * np.int8(2)).dtype is (x * 2).dtype
    with pytest.raises(burn.DTypeError):
        burn.ones(2, dtype=burn.bool_, device=device) - burn.ones(
            2, dtype=burn.bool_, device=device
        )
