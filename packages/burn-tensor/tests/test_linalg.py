"""Linear algebra against numpy, and the rules of PyTorch's arguments."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import float64
from burn_tensor import linalg

RNG = np.random.default_rng(0)
INF = float("inf")


def close(x: burn.Tensor, expected: object) -> None:
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-9, atol=1e-10)


def given(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_matrix_norms(ord: object) -> None:
    a = given(3, 4)
    close(linalg.matrix_norm(burn.tensor(a), ord), np.linalg.norm(a, ord))
    close(linalg.norm(burn.tensor(a), ord), np.linalg.norm(a, ord))
    batch = given(2, 3, 4, 5)
    out = linalg.matrix_norm(burn.tensor(batch), ord, dim=(2, 0), keepdim=True)
    assert out.shape == (1, 3, 1, 5)
    for i in range(3):
        for j in range(5):
            np.testing.assert_allclose(
                out.numpy()[0, i, 0, j], np.linalg.norm(batch[:, i, :, j].T, ord), rtol=1e-9
            )


def test_norm_picks_vectors_or_matrices() -> None:
    a = given(3, 4)
    x = burn.tensor(a)
    close(linalg.norm(x), np.sqrt((a**2).sum()))
    close(linalg.norm(x, 3, dim=1), np.linalg.norm(a, 3, axis=1))
    close(linalg.norm(x, dim=(0, 1)), np.linalg.norm(a))
    close(linalg.norm(x, 1, dim=(0, 1)), np.linalg.norm(a, 1))
    close(linalg.norm(burn.tensor(a[0]), INF), abs(a[0]).max())
    assert linalg.norm(burn.ones(2), dtype=float64).dtype is float64
    with pytest.raises(ArgumentError, match="ord without dim"):
        linalg.norm(burn.ones(1, 1, 1), 2)
    with pytest.raises(ArgumentError, match="ord is"):
        linalg.matrix_norm(x, 3)


def test_determinants_inverses_and_conditions() -> None:
    a = given(4, 3, 3)
    x = burn.tensor(a)
    sign, log = np.linalg.slogdet(a)
    close(linalg.slogdet(x).sign, sign)
    close(linalg.slogdet(x).logabsdet, log)
    close(linalg.inv(x), np.linalg.inv(a))
    for p in (None, 1, "fro", -2, INF):
        close(linalg.cond(x, p), np.linalg.cond(a, p))
    zero = linalg.slogdet(burn.zeros(2, 2))
    assert (zero.sign.item(), zero.logabsdet.item()) == (0.0, -INF)


def test_slogdet_has_the_gradient_of_the_inverse() -> None:
    a = given(3, 3)
    x = burn.tensor(a, device=Device.default().autodiff()).require_grad()
    grads = linalg.slogdet(x).logabsdet.backward()
    close(x.grad(grads), np.linalg.inv(a).T)


def test_systems() -> None:
    a, b, v = given(2, 3, 3), given(2, 3, 4), given(2, 3)
    close(linalg.solve(burn.tensor(a), burn.tensor(b)), np.linalg.solve(a, b))
    close(linalg.solve(burn.tensor(a), burn.tensor(v)), np.linalg.solve(a, v[..., None])[..., 0])
    close(linalg.solve(burn.tensor(a[0]), burn.tensor(v[0])), np.linalg.solve(a[0], v[0]))
    right = linalg.solve(burn.tensor(a), burn.tensor(b.swapaxes(1, 2)), left=False)
    close(right.matmul(burn.tensor(a)), b.swapaxes(1, 2))
    for upper in (True, False):
        t = (np.triu if upper else np.tril)(a)
        x = linalg.solve_triangular(burn.tensor(a), burn.tensor(b), upper=upper)
        np.testing.assert_allclose(t @ x.numpy(), b, atol=1e-8)
        y = linalg.solve_triangular(
            burn.tensor(a), burn.tensor(b.swapaxes(1, 2)), upper=upper, left=False
        )
        np.testing.assert_allclose(y.numpy() @ t, b.swapaxes(1, 2), atol=1e-8)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    a = given(*shape)
    x = burn.tensor(a)
    p, low, up = linalg.lu(x)
    close(p.matmul(low).matmul(up), a)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(x, mode)
        close(q.matmul(r), a)
    u, s, vh = linalg.svd(x, False)
    close((u * s.unsqueeze(-2)).matmul(vh), a)
    close(linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
    close(linalg.pinv(x), np.linalg.pinv(a))


def test_rank_and_pseudo_inverse_of_a_singular_matrix() -> None:
    a = np.outer([1.0, 2.0], [3.0, 4.0])
    assert linalg.matrix_rank(burn.tensor(a)).item() == 1
    assert linalg.matrix_rank(burn.tensor(a), atol=100.0).item() == 0
    close(linalg.pinv(burn.tensor(a)), np.linalg.pinv(a))
    assert linalg.pinv(burn.ones(2, 0)).shape == (0, 2)


def test_products() -> None:
    a, b, c = given(3, 4), given(4, 5), given(5, 2)
    chain = list(map(burn.tensor, (a, b, c)))
    close(linalg.multi_dot(chain), a @ b @ c)
    close(linalg.multi_dot([burn.tensor(a[0]), *chain[1:]]), a[0] @ b @ c)
    close(linalg.multi_dot([*chain[:2], burn.tensor(c[:, 0])]), a @ b @ c[:, 0])
    assert linalg.multi_dot([burn.tensor(a[0]), burn.tensor(a[1])]).shape == ()
    close(linalg.vecdot(burn.tensor(a), burn.tensor(a), dim=0), (a * a).sum(0))
    square = given(2, 3, 3)
    for n in (0, 1, 2, 5, -3):
        close(linalg.matrix_power(burn.tensor(square), n), np.linalg.matrix_power(square, n))
    with pytest.raises(ArgumentError, match="at least two"):
        linalg.multi_dot(chain[:1])
    with pytest.raises(ShapeError, match="sizes chain"):
        linalg.multi_dot(chain[::-1])
