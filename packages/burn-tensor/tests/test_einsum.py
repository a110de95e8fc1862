"""Einstein summation against numpy: syntax, diagonals, broadcasting, order, errors."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError

RNG = np.random.default_rng(0)


def given(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij->ji", [(2, 3)]), ("ba", [(2, 3)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]),
    ("iij->ij", [(2, 2, 3)]), ("iiij->j", [(2, 2, 2, 3)]), ("ijij->", [(2, 3, 2, 3)]),
    ("...ii->...", [(4, 2, 3, 3)]), ("->", [()]), ("", [()]),
    ("i...", [(3, 2)]), ("...i,i", [(2, 3), (3,)]), ("ij,jk", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("ij,kl->ijkl", [(2, 3), (4, 5)]), ("i,i->", [(3,), (3,)]), ("i,i->i", [(3,), (3,)]),
    ("ij,j->", [(2, 3), (3,)]), ("ij,ij,ij->i", [(2, 3)] * 3),
    ("ab,bc,cd,de->ae", [(2, 30), (30, 3), (3, 40), (40, 2)]),
    ("ab,cd,ac,bd->", [(2, 3), (4, 5), (2, 4), (3, 5)]), ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("...a,...b->...ab", [(2, 1, 3), (4, 5)]), ("bi...,bj...->...ij", [(2, 3, 4), (2, 5, 4)]),
    ("ij , jk -> k i", [(2, 3), (3, 4)]), ("aab,bcc->ac", [(2, 2, 3), (3, 4, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]), ("ij,jk->ik", [(0, 2), (2, 3)]), (",ij->ij", [(), (2, 3)]),
    ("Ab,bC->AC", [(2, 3), (3, 4)]),
])  # fmt: skip
def test_numpy_agrees(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [given(*s) for s in shapes]
    out = burn.einsum(equation, *map(burn.tensor, arrays))
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    assert out.shape == expected.shape


def test_extents_of_one_broadcast() -> None:
    x, y = given(2, 1), given(3, 4)
    out = burn.einsum("ij,jk->ijk", burn.tensor(x), burn.tensor(y))
    np.testing.assert_allclose(out.numpy(), x[:, :, None] * y[None])
    out = burn.einsum("ij,jk->ik", burn.tensor(x), burn.tensor(y))
    np.testing.assert_allclose(out.numpy(), x @ y.sum(0, keepdims=True))


def test_dims_of_an_ellipsis_missing_in_the_output_are_summed() -> None:
    x = given(2, 3)
    np.testing.assert_allclose(burn.einsum("...->", burn.tensor(x)).item(), x.sum())
    np.testing.assert_allclose(burn.einsum("...i->i", burn.tensor(x)).numpy(), x.sum(0))


def test_lists_of_labels_and_lists_of_operands() -> None:
    x, y = given(2, 3), given(3, 4)
    a, b = burn.tensor(x), burn.tensor(y)
    np.testing.assert_allclose(burn.einsum(a, [0, 1], b, [1, 2], [0, 2]).numpy(), x @ y)
    np.testing.assert_allclose(burn.einsum(a, [0, 1], b, [1, 2]).numpy(), x @ y)
    np.testing.assert_allclose(burn.einsum(a, [..., 1], b, [1, 2], [..., 2]).numpy(), x @ y)
    np.testing.assert_allclose(burn.einsum("ij,jk", [a, b]).numpy(), x @ y)


def test_gradients_reach_every_operand() -> None:
    device = Device.default().autodiff()
    arrays = [given(2, 3), given(3, 3), given(3, 4)]
    xs = [burn.tensor(a, device=device).require_grad() for a in arrays]
    grads = burn.einsum("ij,jj,jk->ik", *xs).sum().backward()
    x, m, y = arrays
    d = np.diagonal(m)
    np.testing.assert_allclose(xs[0].grad(grads).numpy(), np.tile(d * y.sum(1), (2, 1)))
    np.testing.assert_allclose(xs[1].grad(grads).numpy(), np.diag(x.sum(0) * y.sum(1)))
    plain = burn.einsum("ij,jk->ik", burn.tensor(x), xs[2]).sum().backward()
    np.testing.assert_allclose(xs[2].grad(plain).numpy(), np.tile(x.sum(0)[:, None], (1, 4)))


@pytest.mark.parametrize(("equation", "shapes", "rule"), [
    ("ij,jk", [(2, 3)], "name every operand"), ("ij", [(2,)], "as many as its dims"),
    ("i", [(2, 3)], "as many as its dims"), ("ij->ii", [(2, 3)], "once in the output"),
    ("ij->k", [(2, 3)], "occurs in an operand"), ("i1->i", [(2, 3)], "labels are letters"),
    ("......i", [(2,)], "labels are letters"), ("ij->i->j", [(2, 3)], "labels are letters"),
])  # fmt: skip
def test_malformed_equations_are_refused(
    equation: str, shapes: list[tuple[int, ...]], rule: str
) -> None:
    with pytest.raises(ArgumentError, match=rule):
        burn.einsum(equation, *(burn.ones(*s) for s in shapes))


def test_extents_that_differ_are_refused() -> None:
    with pytest.raises(ShapeError, match="a label names one extent, or 1; got j: 3 and 2"):
        burn.einsum("ij,jk", burn.ones(2, 3), burn.ones(2, 2))
    with pytest.raises(ShapeError, match="a label names one extent"):
        burn.einsum("ii", burn.ones(2, 1))
    with pytest.raises(ArgumentError, match="at least one operand"):
        burn.einsum("")
    with pytest.raises(ArgumentError, match="labels are ints"):
        burn.einsum(burn.ones(2), [52])
