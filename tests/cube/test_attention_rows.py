"""Attention and row kernels of both layouts against the reference."""

import itertools

import numpy as np
import pytest

from burn_dispatch import device
from burn_ir import CATALOG

FLEX = device("flex").without_autodiff()
RNG = np.random.default_rng(7)


def run(name, inputs, attrs, on):
    """Return the numpy results of one operation of the catalogue."""
    context = on.context
    made = [None if x is None else context.tensor_from_numpy(x) for x in inputs]
    out = getattr(context, name)(*made, *attrs)
    return [context.to_numpy(t) for t in (out if CATALOG[name].multi else [out])]


def same(place, name, inputs, attrs, tolerance=2e-5):
    """Compare an operation with the reference."""
    on = device(place).without_autodiff()
    for a, b in zip(run(name, inputs, attrs, on), run(name, inputs, attrs, FLEX), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def normal(*shape):
    """Return float32 samples."""
    return RNG.standard_normal(shape).astype(np.float32)


MASKS = {
    "none": None,
    "bool": RNG.random((5, 7)) < 0.5,
    "bool per head": RNG.random((1, 4, 5, 7)) < 0.2,
    "float": normal(2, 1, 5, 7),
    "column": normal(5, 1),
    "row": normal(1, 7),
}


@pytest.mark.parametrize("place", ["interp", "eager-cpu"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("causal", "gqa"), list(itertools.product([False, True], repeat=2)))
def test_attention_and_its_gradients(place, mask, causal, gqa):
    q, g = normal(2, 4, 5, 6), normal(2, 4, 5, 3)
    heads = 2 if gqa else 4
    k, v = normal(2, heads, 7, 6), normal(2, heads, 7, 3)
    attrs = (causal, gqa, 0.4)
    same(place, "attention", [q, k, v, MASKS[mask]], attrs)
    made = run("attention", [q, k, v, MASKS[mask]], attrs, FLEX)
    same(place, "attention_backward", [g, q, k, v, MASKS[mask], *made], attrs)


@pytest.mark.parametrize("place", ["interp", "eager-cpu"])
def test_batches_broadcast_and_may_be_empty(place):
    q, k, v, g = normal(3, 5, 6), normal(7, 6), normal(2, 1, 7, 3), normal(2, 3, 5, 3)
    same(place, "attention", [q, k, v, None], (False, False, 1.0))
    made = run("attention", [q, k, v, None], (False, False, 1.0), FLEX)
    same(place, "attention_backward", [g, q, k, v, None, *made], (False, False, 1.0))
    empty = np.zeros((0, 2, 5, 6), np.float32)
    same(place, "attention", [empty, empty, empty, None], (True, False, 1.0))
    no_keys = np.zeros((2, 2, 0, 6), np.float32)
    same(place, "attention", [normal(2, 2, 5, 6), no_keys, no_keys, None], (False, False, 1.0))


@pytest.mark.parametrize("place", ["interp", "eager-cpu"])
@pytest.mark.parametrize("length", [1, 3, 16, 33, 64, 65, 100, 300])
def test_rows_of_any_length(place, length):
    x, w, b = normal(3, length), normal(length), normal(length)
    for dim in (0, 1):
        same(place, "softmax", [x * 9], (dim, None))
        same(place, "log_softmax", [x * 9], (dim, None))
    same(place, "layer_norm", [x + 3, w, b], (1, 1e-5), 1e-4)
    same(place, "rms_norm", [x, w], (1, 1e-5))
    same(place, "softmax", [x.astype(np.float16)], (1, None), 1e-3)
    same(place, "softmax", [x.astype(np.float64)], (1, None), 1e-12)
