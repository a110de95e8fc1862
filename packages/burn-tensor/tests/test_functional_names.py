"""The module promises what it holds, and activations check what has no meaning."""

from __future__ import annotations

import inspect

import pytest

import burn_tensor as burn
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import float32
from burn_tensor import fft, functional as F, linalg


@pytest.mark.parametrize("module", [F, linalg, fft], ids=lambda m: m.__name__)
def test_names_are_sorted_and_documented(module: object) -> None:
    names = module.__all__
    assert list(names) == sorted(names)
    for name in names:
        doc = inspect.getdoc(getattr(module, name)) or ""
        if inspect.isfunction(getattr(module, name)):
            for part in ("Args:", "Shapes:", "DTypes:", "Gradient:", "Example:"):
                assert part in doc, f"{name} lacks {part}"


def test_arguments_without_a_meaning_are_refused() -> None:
    x = burn.ones(3)
    for call, error in (
        (lambda: F.hardtanh(x, 1.0, -1.0), ArgumentError),
        (lambda: F.celu(x, 0.0), ArgumentError),
        (lambda: F.gelu(x, "erf"), ArgumentError),
        (lambda: F.softshrink(x, -1.0), ArgumentError),
        (lambda: F.rrelu(x, 0.5, 0.25), ArgumentError),
        (lambda: F.gumbel_softmax(x, 0.0), ArgumentError),
        (lambda: F.glu(x), ShapeError),
        (lambda: F.glu(burn.tensor(1.0)), ShapeError),
        (lambda: F.glu(x, 1), IndexRangeError),
        (lambda: F.softmax(x, 1), IndexRangeError),
        (lambda: F.log_softmax(x, -2), IndexRangeError),
        (lambda: F.softmax(burn.tensor([1]), 0), DTypeError),
        (lambda: F.prelu(burn.ones(2, 3), burn.ones(2)), ShapeError),
        (lambda: F.bilinear(x, x, burn.ones(1, 2, 3)), ShapeError),
        (lambda: F.silu(burn.tensor([1])), DTypeError),
    ):
        with pytest.raises(error):
            call()


def test_softmax_without_a_dim_follows_the_old_rule() -> None:
    for rank, dim in ((1, 0), (2, 1), (3, 0), (4, 1)):
        x = burn.arange(2**rank).reshape((2,) * rank).to(float32)
        assert F.softmax(x).tolist() == F.softmax(x, dim).tolist()
    assert F.softmax(burn.tensor(3.0)).item() == 1.0


def test_inplace_is_accepted_and_changes_nothing() -> None:
    x = burn.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True).tolist() == [0.0, 2.0]
    assert x.tolist() == [-1.0, 2.0]
