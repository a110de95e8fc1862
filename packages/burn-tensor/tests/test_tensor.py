"""The class itself: operators, conversions, values, errors of names that do not exist."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, dtypes as d


@pytest.mark.parametrize(
    "name",
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"],
)
@pytest.mark.parametrize("number", [2, 2.5, np.float32(3)])
def test_operators_with_numbers_on_both_sides(name: str, number: Any) -> None:
    op = getattr(operator, name)
    a = np.array([1.0, 2.0, 4.0], np.float32)
    x = bt.tensor(a)
    for got, want in (
        (op(x, number), op(a, number)),
        (op(number, x), op(number, a)),
        (op(x, x), op(a, a)),
    ):
        assert got.dtype in (d.float32, d.bool_)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_numpy_leaves_operators_to_tensors() -> None:
    x = bt.tensor([1.0, 2.0])
    assert isinstance(np.float64(2) * x, bt.Tensor)
    assert (np.float64(2) * x).dtype is d.float32
    with pytest.raises(DTypeError):
        x + np.ones(2)
    with pytest.raises(DTypeError):
        np.ones(2) + x


def test_bit_operators() -> None:
    x = bt.tensor([6, 3])
    assert [(x & 3).tolist(), (3 | x).tolist(), (x ^ 1).tolist(), (~x).tolist()] == [
        [2, 3], [7, 3], [7, 2], [-7, -4],
    ]  # fmt: skip
    assert [(x << 1).tolist(), (x >> 1).tolist(), (1 << x).tolist()] == [[12, 6], [3, 1], [64, 8]]


def test_other_classes_answer_for_themselves() -> None:
    class Other:
        def __radd__(self, left: Any) -> str:
            return "mine"

        def __rmatmul__(self, left: Any) -> str:
            return "mine"

    x = bt.zeros(2)
    assert x + Other() == "mine"
    assert x @ Other() == "mine"
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError):
        x + "a"


def test_a_tensor_is_a_key_by_identity() -> None:
    x, y = bt.zeros(1), bt.zeros(1)
    assert {x: 1, y: 2}[x] == 1
    assert len({x, y, x}) == 2


def test_numbers() -> None:
    x = bt.tensor(3)
    assert (int(x), float(x), bool(x), [0, 1, 2, 3][x], f"{bt.tensor(1.5):.2f}") == (
        3,
        3.0,
        True,
        3,
        "1.50",
    )
    with pytest.raises(ArgumentError, match="any"):
        bool(bt.zeros(2))
    with pytest.raises(ArgumentError):
        bt.zeros(2).item()
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        operator.index(bt.tensor(1.0))
    assert bt.tensor([1, 2]).tolist() == [1, 2]
    assert [t.item() for t in bt.tensor([1, 2])] == [1, 2]
    assert 2 in bt.tensor([1, 2])
    assert isinstance(bt.tensor([1.5]).bfloat16().item(), float)
    assert bt.tensor([1.5]).bfloat16().tolist() == [1.5]


def test_numpy_is_read_only_and_np_array_copies() -> None:
    x = bt.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 5
    a = np.array(x)
    a[0] = 5
    assert x.tolist() == [1, 2]
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.exp(x).shape == (2,)


def test_dlpack_both_ways() -> None:
    x = bt.tensor([[1, 2], [3, 4]])
    back = np.from_dlpack(x)
    np.testing.assert_array_equal(back, [[1, 2], [3, 4]])
    # Readers that write, as PyTorch does, write into a copy; who asks gets the memory itself.
    back[0, 0] = 9
    assert x.tolist() == [[1, 2], [3, 4]]
    shared = np.from_dlpack(x, copy=False)
    assert not shared.flags.writeable and shared.tolist() == x.tolist()
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)
    assert bt.from_dlpack(x.numpy()).tolist() == x.tolist()
    a = np.arange(3)
    copied = bt.from_dlpack(a)
    a[0] = 9
    assert copied.tolist() == [0, 1, 2]
    with pytest.raises(DTypeError, match="bfloat16"):
        np.from_dlpack(bt.zeros(1, dtype=d.bfloat16))


def test_names_that_mutate_raise_with_the_functional_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = bt.zeros(1)
    for name, word in (("add_", "x.add"), ("relu_", "x.relu"), ("copy_", "x"), ("eval", "valid")):
        with pytest.raises(AttributeError, match=word):
            getattr(x, name)
        assert not hasattr(bt.Tensor, name)
        assert name not in dir(x)
        assert name not in dir(bt.Tensor)
    with pytest.raises(AttributeError, match="Select the elements"):
        del x[0]
    with pytest.raises(AttributeError) as caught:
        x.reshap  # noqa: B018
    sys.__excepthook__(caught.type, caught.value, None)  # as Python prints it
    assert "Did you mean: 'reshape'?" in capsys.readouterr().err
    assert not hasattr(x, "nothing_like_it")
    assert [row.item() for row in reversed(bt.tensor([1, 2]))] == [2, 1]


def test_python_finds_attributes_of_tensors_and_contexts_the_short_way() -> None:
    x = bt.zeros(1)
    for cls in (bt.Tensor, type(x.b)):
        assert not hasattr(cls, "__getattr__")
        assert cls.__getattribute__ is object.__getattribute__


def test_conversions() -> None:
    x = bt.tensor([1.7, float("nan"), 1e20])
    assert x.to(d.int32).tolist() == [1, 0, 2**31 - 1]
    assert x.to(x) is x
    assert x.float() is x
    assert x.to("flex:1").device == Device.flex(1)
    assert x.to(Device.flex(1), d.float64).dtype is d.float64
    assert [x.half().dtype, x.bfloat16().dtype, x.long().dtype, x.bool().dtype] == [
        d.float16, d.bfloat16, d.int64, d.bool_,
    ]  # fmt: skip
    with pytest.raises(DTypeError):
        x.to(3.5)


def test_quantisation_round_trip() -> None:
    x = bt.linspace(-1, 1, 9)
    q = x.to(d.quantized(8))
    assert q.dtype is d.quantized(8)
    np.testing.assert_allclose(q.dequantize().numpy(), x.numpy(), atol=1 / 127)
    with pytest.raises(DTypeError, match="dequantize"):
        q.numpy()


def test_copies_and_pickles() -> None:
    x = bt.tensor([1.0, 2.0])
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert y is not x
        assert y.equal(x)
    leaf = bt.ones(2, device=Device.default().autodiff()).require_grad()
    assert copy.deepcopy(leaf).is_require_grad()
    assert pickle.loads(pickle.dumps(leaf)).is_require_grad()


def test_clone_of_a_leaf_is_no_leaf() -> None:
    x = bt.ones(2, device=Device.default().autodiff()).require_grad()
    y = x.clone()
    assert not y.is_require_grad()
    assert x.grad((x * 2 + y).sum().backward()).tolist() == [3, 3]


def test_views_take_pytorchs_arguments() -> None:
    x = bt.arange(24).reshape(2, 3, 4)
    assert x.reshape(-1, 4).shape == x.reshape((-1, 4)).shape == x.reshape([6, -1]).shape == (6, 4)
    assert x.permute(2, 0, 1).shape == x.permute((2, 0, 1)).shape == x.permute(dims=[2, 0, 1]).shape
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x.unsqueeze(-1).squeeze(-1).shape == (2, 3, 4)
    assert x.size() == (2, 3, 4)
    assert (x.size(-1), x.dim(), x.ndim, x.numel(), x.nbytes) == (4, 3, 3, 24, 192)
    assert x[0, 0].expand(2, -1).shape == (2, 4)
    assert x.view(6, 4).view_as(x).equal(x)
    assert [t.shape for t in x.split([1, 2], 1)] == [(2, 1, 4), (2, 2, 4)]
    assert x.movedim((0, 1), (1, 2)).shape == (4, 2, 3)


def test_named_results() -> None:
    x = bt.tensor([[3.0, 1.0], [2.0, 4.0]])
    values, indices = x.max(1)
    assert values.tolist() == [3, 4]
    assert x.max(dim=1, keepdim=True).indices.tolist() == indices.unsqueeze(1).tolist()
    assert x.aminmax().max.item() == 4
    assert x.sort(descending=True).values.tolist() == [[3, 1], [4, 2]]
    assert x.var_mean(0).mean.tolist() == [2.5, 2.5]


def test_repeat_interleave_and_counts() -> None:
    x = bt.tensor([[1, 2], [3, 4]])
    assert x.repeat_interleave(2, 0).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert x.repeat_interleave(bt.tensor([0, 2]), 1).tolist() == [[2, 2], [4, 4]]
    assert x.unique().tolist() == [1, 2, 3, 4]
    assert bt.tensor([0, 3, 3]).bincount(minlength=2).tolist() == [1, 0, 0, 2]


def test_quantiles_agree_with_numpy() -> None:
    a = np.random.default_rng(0).random((5, 7))
    x = bt.tensor(a)
    for q in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(x.quantile(q, 1).numpy(), np.quantile(a, q, 1))
        for method in ("lower", "higher", "nearest", "midpoint"):
            np.testing.assert_allclose(
                x.quantile(q, 0, interpolation=method).numpy(), np.quantile(a, q, 0, method=method)
            )
    many = x.quantile(bt.tensor([0.25, 0.5], dtype=d.float64), 1, keepdim=True)
    np.testing.assert_allclose(many.numpy(), np.quantile(a, [0.25, 0.5], 1, keepdims=True))
    assert np.isnan(bt.tensor([1.0, float("nan")]).quantile(0.5).item())


def test_std_of_equal_values_has_gradient_zero() -> None:
    x = bt.ones(3, device=Device.default().autodiff()).require_grad()
    assert x.grad(x.std().backward()).tolist() == [0, 0, 0]


def test_scatter_reduce() -> None:
    x, index, src = bt.ones(3) * 2, bt.tensor([0, 0, 2]), bt.tensor([1.0, 5.0, 3.0])
    wanted = {
        ("sum", True): [8, 2, 5], ("sum", False): [6, 2, 3], ("prod", True): [10, 2, 6],
        ("mean", True): [8 / 3, 2, 2.5], ("mean", False): [3, 2, 3], ("amax", False): [5, 2, 3],
        ("amin", True): [1, 2, 2],
    }  # fmt: skip
    for (reduce, own), want in wanted.items():
        got = x.scatter_reduce(0, index, src, reduce, include_self=own)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
