"""Functions that change single tensors on their way to a file or from one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_store as store
import burn_tensor as bt
from burn_core import Module, Parameter
from burn_std import StoreError
from burn_std.dtypes import float16, float32, float64, int8


class LSTM(Module):
    """Its burnpack has a transposed piece per gate."""

    def __init__(self, inner: int, size: int) -> None:
        self.weight_ih_l0 = Parameter(bt.randn(4 * size, inner))
        self.weight_hh_l0 = Parameter(bt.randn(4 * size, size))
        self.bias_ih_l0 = Parameter(bt.randn(4 * size))
        self.bias_hh_l0 = Parameter(bt.randn(4 * size))


class MultiheadAttention(Module):
    """Its burnpack has query, key and value apart."""

    def __init__(self, size: int) -> None:
        self.in_proj_weight = Parameter(bt.randn(3 * size, size))
        self.in_proj_bias = Parameter(bt.randn(3 * size))


class Linear(Module):
    """Its burnpack is transposed."""

    def __init__(self, inner: int, out: int) -> None:
        self.weight = Parameter(bt.randn(out, inner))


class Tied(Module):
    def __init__(self) -> None:
        self.inner = Linear(3, 2)
        self.again = self.inner


def test_a_file_in_another_layout_is_loaded_and_written(tmp_path: Path, pair: Any) -> None:
    path = tmp_path / "m.safetensors"
    w, b = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 2, 3], "f4")
    store.save_tensors({"w": bt.tensor(w.T), "b": bt.tensor(b)}, path)
    model = pair()
    assert store.load(model, path, mappers={"w": np.transpose}).complete
    np.testing.assert_array_equal(model.w.numpy(), w)
    np.testing.assert_array_equal(model.b.numpy(), b)
    back = tmp_path / "back.safetensors"
    store.save(model, back, mappers=[("^w$", np.transpose)])
    assert back.read_bytes() == path.read_bytes()


def test_the_first_filter_that_chooses_counts(pair: Any) -> None:
    model = pair()
    chosen = [(lambda path: path == "b", lambda x: x * 2), (re.compile("."), lambda x: x + 1)]
    with store.open(store.to_bytes(model, mappers=chosen)) as file:
        assert set(file.numpy("b").ravel()) == {14.0}
        assert set(file.numpy("w").ravel()) == {8.0}


def test_what_a_mapper_makes_must_fit_and_nothing_changes_else(pair: Any) -> None:
    data = store.to_bytes(pair())
    wrong: list[Any] = [
        lambda x: x[:1], lambda x: x.astype("i4"), lambda x: x.astype("c8"), lambda x: "text",
        lambda x: None, lambda x: x.reshape(-1),
    ]  # fmt: skip
    for mapper in wrong:
        model = pair()
        model.w.set(bt.zeros(2, 3))
        with pytest.raises(StoreError, match="w"):
            store.load(model, data, mappers={"b": lambda x: x * 0, "w": mapper})
        assert model.w.tolist() == [[0.0] * 3] * 2
        assert model.b.tolist() == [7.0] * 3
    report = store.load(pair(), data, strict=False, mappers={"w": lambda x: x[:1]})
    assert list(report.mismatched) == ["w"]
    assert "as its mapper returns it" in report.problems()


def test_a_mapper_for_nothing_is_named(pair: Any) -> None:
    data = store.to_bytes(pair())
    for mappers in ({"v": abs}, [("^v", abs)], [(".", abs), ("w", abs)]):
        with pytest.raises(StoreError, match="every mapper is for a tensor"):
            store.load(pair(), data, mappers=mappers)
        with pytest.raises(StoreError, match="every mapper is for a tensor"):
            store.to_bytes(pair(), mappers=mappers)
    with pytest.raises(StoreError, match="a mapper is a function"):
        store.load(pair(), data, mappers={"w": 3})


def test_an_error_of_a_mapper_says_where(pair: Any) -> None:
    data = store.to_bytes(pair())
    with pytest.raises(ZeroDivisionError) as caught:
        store.load(pair(), data, mappers={"w": lambda x: 1 / 0})
    assert caught.value.__notes__ == ["in the mapper of w"]


def test_arrays_of_the_user_are_not_shared(pair: Any) -> None:
    own = np.ones((2, 3), "f4")
    model = pair()
    store.load(model, store.to_bytes(pair()), mappers={"w": lambda x: own})
    own[:] = 5
    assert model.w.tolist() == [[1.0] * 3] * 2


def test_policies_hold_for_what_a_mapper_makes(pair: Any) -> None:
    data = store.to_bytes(pair())
    model = pair()
    store.load(model, data, mappers={"w": lambda x: x.astype("f2")})
    assert model.w.dtype is float32
    store.load(model, data, dtype="file", mappers={"w": lambda x: x.astype("f8")})
    assert (model.w.dtype, model.b.dtype) == (float64, float32)
    data = store.to_bytes(
        pair(), adapter=store.HalfPrecision(), mappers={"w": lambda x: x.astype("i1")}
    )
    with store.open(data) as file:
        assert (file.dtype("w"), file.dtype("b")) == (int8, float16)


@pytest.mark.parametrize("make", [
    lambda: LSTM(2, 3), lambda: MultiheadAttention(4), lambda: Tied(),
])  # fmt: skip
@pytest.mark.parametrize("format", ["burnpack", "safetensors"])
def test_pieces_and_transposed_weights(make: Any, format: str) -> None:
    model, other = make(), make()
    data = store.to_bytes(model, format, mappers=[("", lambda x: x * 2)])
    store.load(other, data, mappers=[("", lambda x: x / 2)])
    for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)


def test_a_layout_that_divides_needs_its_shape() -> None:
    with pytest.raises(StoreError, match="layout can hold"):
        store.to_bytes(LSTM(2, 3), "burnpack", mappers={"weight_ih_l0": np.ravel})


def test_a_lazy_parameter_takes_what_its_mapper_makes() -> None:
    class Lazy(Module):
        def __init__(self) -> None:
            self.w = Parameter.lazy()

    model = Lazy()
    data = store.to_bytes(Linear(3, 2), include="weight", rename={"weight": "w"})
    store.load(model, data, mappers={"w": np.transpose})
    assert model.w.shape == (3, 2)
