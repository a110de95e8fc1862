"""Wrong arguments get typed errors, and tracebacks end at the user's line."""

import inspect
import pickle
import traceback

import numpy as np
import pytest

import burn_tensor as bt
from burn_std import (
    ArgumentError,
    BurnError,
    DTypeError,
    ExecutionError,
    IndexRangeError,
    ShapeError,
)
from burn_tensor import functional as F
from burn_tensor.guard import guarded


class Odd:
    """Nothing that a tensor knows."""


ODD = [
    None,
    "abc",
    [1.0],
    np.ones(2, np.float32),
    np.float32(1),
    {},
    True,
    3,
    0.5,
    1j,
    Odd(),
    float,
]


@pytest.mark.parametrize("value", ODD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", ["relu", "gelu", "softmax", "layer_norm", "mse_loss", "glu"])
def test_functional_refuses_what_is_no_tensor(name, value):
    more = {"layer_norm": (2,), "mse_loss": (value,)}.get(name, ())
    with pytest.raises(DTypeError, match=rf"^{name}: .*tensor"):
        getattr(F, name)(value, *more)


@pytest.mark.parametrize("value", ODD, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", sorted(bt.free.__all__))
def test_free_functions_refuse_what_is_no_tensor(name, value):
    function = getattr(bt, name)
    needed = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    with pytest.raises((DTypeError, ArgumentError, ShapeError)):
        function(value, *[bt.ones(2, 2)] * (len(needed) - 1))


CALLS = {
    "dim is a string": lambda x: x.sum("a"),
    "dim is out of range": lambda x: x.sum(7),
    "dim is an array": lambda x: x.sum(np.ones(2)),
    "shape is a float": lambda x: x.reshape(2.5),
    "shape does not fit": lambda x: x.reshape(5),
    "operand does not fit": lambda x: x + bt.ones(5),
    "operand in a method": lambda x: x.mul(bt.ones(5)),
    "operand is None": lambda x: x.add(None, alpha=2),
    "bound is a string": lambda x: x.clamp("a"),
    "correction is a tensor": lambda x: x.var(correction=bt.ones(())),
    "list has None": lambda x: bt.cat([x, None]),
    "dtype is an int": lambda x: bt.zeros(2, dtype=3),
    "groups is a bool": lambda x: F.conv1d(bt.ones(1, 1, 4), bt.ones(1, 1, 2), groups=True),
    "number leaves 64 bits": lambda x: x.diagonal(2**70),
    "key": lambda x: x[9],
    "key list": lambda x: x[[0, 9]],
    "assignment": lambda x: x.__setitem__((0, 9), 1),
    "scale is not finite": lambda x: F.interpolate(bt.ones(1, 1, 4), scale_factor=float("inf")),
    "einsum without tensor": lambda x: bt.einsum("i->i", None),
    "product of vectors": lambda x: x @ bt.ones(5),
    "power": lambda x: x ** bt.ones(5),
    "comparison": lambda x: x < bt.ones(5),
    "weights of bincount": lambda x: bt.arange(3).bincount(bt.ones(2)),
    "norm of nothing": lambda x: bt.zeros(0).norm(float("inf")),
}


@pytest.mark.parametrize("name", CALLS)
def test_error_is_typed_and_stands_near_the_line(name):
    with pytest.raises(BurnError) as caught:
        CALLS[name](bt.ones(2, 3))
    assert not isinstance(caught.value, ExecutionError)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert len(frames) <= 4, frames  # this function, the lambda, and two of the library
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_defect_passes_with_its_traceback():
    def broken(x: int) -> int:
        return {}[x]

    with pytest.raises(KeyError) as caught:
        guarded(broken)(1)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


def test_guarded_keeps_signature_names_and_document():
    assert list(inspect.signature(F.leaky_relu).parameters) == [
        "input",
        "negative_slope",
        "inplace",
    ]
    assert F.leaky_relu(negative_slope=0.5, input=bt.tensor([-2.0])).tolist() == [-1.0]
    assert bt.exp(input=bt.zeros(1)).tolist() == [1.0]
    assert F.relu.__module__ == "burn_tensor.functional"
    assert F.relu.__doc__
    with pytest.raises(TypeError, match=r"relu\(\)"):
        F.relu()


def test_memory_that_is_not_there_has_words():
    with pytest.raises(ExecutionError, match="does not fit in memory") as caught:
        bt.ones(1, device="flex").repeat(2**45)
    assert isinstance(caught.value.__cause__, MemoryError)


def test_first_errors_of_shapes():
    with pytest.raises(ShapeError):
        F.embedding(bt.tensor([0]), bt.tensor(1.0))
    with pytest.raises(ShapeError):
        F.adaptive_avg_pool2d(bt.ones(3), 2)
    with pytest.raises(IndexRangeError):
        bt.ones(2).unbind(3)


REFUSED = {
    "data is None": lambda: bt.tensor(None),
    "data has None": lambda: bt.tensor([1.0, None]),
    "einsum of a number": lambda: bt.einsum(3),
    "probability": lambda: bt.bernoulli(bt.zeros(2), 1.5),
    "rows": lambda: bt.tril_indices(-1, 2),
    "gradients are a dict": lambda: bt.ones(2).grad({}),
    "gradients are None": lambda: bt.ones(2).grad(None),
    "backward of a number": lambda: bt.backward(3),
    "function is a number": lambda: bt.grad(3),
    "argnums": lambda: bt.grad(lambda x: x.sum(), argnums=1)(bt.ones(2)),
    "no pair": lambda: bt.grad(lambda x: x.sum(), has_aux=True)(bt.ones(2)),
    "checkpoint of a number": lambda: bt.checkpoint(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises((DTypeError, ArgumentError)):
        REFUSED[name]()


def test_frames_of_a_function_of_the_user_stay():
    def distance(a, b):
        return a + bt.ones(7)

    x = bt.ones(2, 3)
    with pytest.raises(ShapeError) as caught:
        F.triplet_margin_with_distance_loss(x, x, x, distance_function=distance)
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert "distance" in names


@pytest.mark.parametrize("space", [bt, F, bt.linalg, bt.fft], ids=lambda s: s.__name__)
def test_public_functions_pickle_by_name(space):
    for name in space.__all__:
        function = getattr(space, name)
        if inspect.isfunction(function):
            assert pickle.loads(pickle.dumps(function)) is function, name
