"""The contract with a backend of Python lists: tables, look-ups, fragments, execution."""

from __future__ import annotations

from typing import Any

import pytest

from burn_backend import (
    Again,
    Backend,
    Kernel,
    Memo,
    TensorBase,
    argument_names,
    infer_lines,
    payload_names,
    specs_of,
)
from burn_ir import CATALOG, Spec
from burn_std import BackendContractError, DTypeError, quantized
from burn_std.dtypes import bool_, float32, int64


class Box:
    """A payload."""

    def __init__(self, data: list[float], dtype: str = "f") -> None:
        self.data = data
        self.shape = (len(data),)
        self.dtype = dtype


class Lists(Backend):
    """Adds; whatever else is core is there and refuses."""

    name = "lists"

    def __init__(self, without: str = "", unknown: str = "") -> None:
        def add(x: Box, y: Box) -> Box:
            return Box([a + b for a, b in zip(x.data, y.data, strict=True)])

        def missing(*args: Any) -> Any:
            raise RuntimeError("not here")

        table = {
            e.name: Kernel(lambda d, e=e: add if e.name == "add" else missing)
            for e in CATALOG
            if e.grade == "core" and e.name != without
        }
        if unknown:
            table[unknown] = Kernel(lambda d: missing)
        super().__init__(table, {float32: "f", int64: "i"})


def test_a_table_must_be_complete_and_known():
    with pytest.raises(BackendContractError, match="matmul"):
        Lists(without="matmul")
    with pytest.raises(BackendContractError, match="ad"):
        Lists(unknown="addd")


def test_dtypes_both_ways():
    backend = Lists()
    assert backend.dtypes["f"] is float32
    assert backend.native[int64] == "i"
    scheme = quantized(8)
    assert backend.dtypes[scheme] is scheme
    with pytest.raises(DTypeError, match="lists"):
        backend.native[bool_]
    with pytest.raises(KeyError):
        backend.dtypes["nothing"]


def test_kernels_are_made_once_per_dtype():
    backend = Lists()
    kernels = backend.kernels(CATALOG["add"])
    assert kernels["f"] is kernels["f"]
    assert kernels is backend.kernels(CATALOG["add"])


def test_integers_at_a_lifting_operation_ask_for_promotion():
    with pytest.raises(Again):
        Lists().kernels(CATALOG["exp"])["i"]


def test_a_dtype_the_entry_refuses_is_named():
    with pytest.raises(DTypeError, match="dequantize"):
        Lists().accepts(CATALOG["dequantize"], "f")
    with pytest.raises(Again):  # the call is made once more with the floats it stands for
        Lists().kernels(CATALOG["matmul"])[quantized(8)]


def test_execute_runs_one_operation():
    backend = Lists()
    out = backend.execute(CATALOG["add"], [Box([1.0]), Box([2.0])], [])
    assert out.data == [3.0]


def test_rules_are_remembered():
    backend = Lists()
    memo = backend.infer(CATALOG["add"])
    key = ("f", (2, 1), (3,))
    assert memo[key] == ((2, 3), "f")
    assert key in memo


def test_names_and_keys_of_a_frame():
    entry = CATALOG["linear"]
    assert argument_names(entry)[:2] == ["x", "weight"]
    assert payload_names(entry)[2] == "bias_v"
    assert "bias_v is None" in infer_lines(entry, "")[-1]
    specs = specs_of(entry, ("f", (2, 3), (4, 3), None), {"f": float32})
    assert specs == [Spec((2, 3), float32), Spec((4, 3), float32), None]


def test_a_memo_stays_bounded():
    made: list[int] = []
    memo = Memo(lambda k: made.append(k) or k * 2, limit=3)
    assert [memo[k] for k in (1, 2, 3, 1)] == [2, 4, 6, 2]
    assert made == [1, 2, 3]
    assert memo[4] == 8
    assert len(memo) == 1


def test_a_tensor_is_its_context_payload_and_node():
    t = object.__new__(TensorBase)
    t.b, t.v, t.node = Lists(), Box([1.0, 2.0]), None
    assert t.shape == (2,)
    assert t.dtype is float32
