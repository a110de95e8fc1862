"""Rules of products, factorisations and transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((3,), (3, 4)), ((3,), (2, 3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)),
     ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)),
     ((5, 2, 3), (1, 3, 4)), ((2, 0), (0, 3))],
)  # fmt: skip
def test_matmul(rules: Any, rand: Any, left: Any, right: Any) -> None:
    rules.check("matmul", [rand(*left), rand(*right)])


def test_linear(rules: Any, rand: Any) -> None:
    rules.check("linear", [rand(2, 5, 3), rand(4, 3), rand(4)])
    rules.check("linear", [rand(3), rand(4, 3), None])
    rules.check("linear", [rand(2, 3), rand(3), rand()])


def test_cross(rules: Any, rand: Any) -> None:
    rules.check("cross", [rand(2, 3), rand(2, 3)], (1,))
    rules.check("cross", [rand(3, 4), rand(3, 1)], (0,))


def regular(rand: Any, *shape: int) -> Any:
    return rand(*shape) + 3 * np.eye(shape[-1])


def test_det(rules: Any, rand: Any) -> None:
    for n in (1, 2, 3, 4, 6):
        rules.check("det", [rand(2, n, n) + np.eye(n)], tol=1e-5)
    assert rules.grads("det", [np.zeros((2, 0, 0))])[0].shape == (2, 0, 0)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_det_of_a_singular_matrix(rules: Any, rand: Any, n: int) -> None:
    x = rand(n, n)
    x[-1] = x[0]
    rules.check("det", [x], order=2 if n <= 4 else 1, tol=1e-5)
    np.testing.assert_allclose(rules.grads("det", [np.zeros((n, n))])[0], 0)


def test_inverse_and_solve(rules: Any, rand: Any) -> None:
    rules.check("inverse", [regular(rand, 2, 4, 4)])
    rules.check("solve", [regular(rand, 2, 4, 4), rand(2, 4, 3)])
    rules.check("solve", [regular(rand, 4, 4), rand(2, 4, 3)])


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_solve(rules: Any, rand: Any, upper: bool, flipped: bool, unit: bool) -> None:
    a = regular(rand, 2, 4, 4)
    rules.check("triangular_solve", [a, rand(2, 4, 3)], (upper, flipped, unit))
    rules.check("triangular_solve", [a[0], rand(2, 4, 3)], (upper, flipped, unit))


SHAPES = [(2, 4, 4), (3, 5), (5, 3)]


@pytest.mark.parametrize("outputs", [(1, 2), (1,), (2,)])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(rules: Any, rand: Any, shape: Any, outputs: Any) -> None:
    x = rand(*shape) + 2 * np.eye(*shape[-2:])
    rules.check("lu", [x], (True,), outputs=outputs)
    rules.check("lu", [x], (False,), outputs=outputs)


@pytest.mark.parametrize("outputs", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(rules: Any, rand: Any, shape: Any, outputs: Any) -> None:
    rules.check("qr", [rand(*shape)], ("reduced",), outputs=outputs, tol=1e-5)


def test_qr_of_modes_without_gradient_says_so(rules: Any, rand: Any) -> None:
    from burn_std import AutodiffError

    for mode in ("r", "complete"):
        with pytest.raises(AutodiffError, match="reduced"):
            rules.grads("qr", [rand(4, 3)], (mode,), [None, np.ones((3 if mode == "r" else 4, 3))])


@pytest.mark.parametrize("outputs", [(0, 1, 2), (0,), (1,), (2,), (0, 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(rules: Any, rand: Any, shape: Any, outputs: Any) -> None:
    x = rand(*shape) + np.diag([4.0, 3, 2, 1, 0])[: shape[-2], : shape[-1]]
    rules.check("svd", [x], (False,), outputs=outputs, tol=1e-4, step=1e-5)


def test_full_svd_of_singular_values(rules: Any, rand: Any) -> None:
    rules.check("svd", [rand(5, 3)], (True,), outputs=(1,), order=1)


# ---- transforms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [1, 4, 6, 7, 9])
def test_transforms(rules: Any, rand: Any, n: int, norm: str) -> None:
    rules.check("rfft", [rand(2, 7, 3)], (1, norm, n))
    rules.check("rfft", [rand(7)], (0, norm, n), outputs=(1,) if n > 2 else (0,))
    rules.check("irfft", [rand(2, 4), rand(2, 4)], (1, norm, n))
    rules.check("irfft", [rand(2, 4), None], (1, norm, n))
    bins = n // 2 + 1
    rules.check("rfft_backward", [rand(2, bins), rand(2, bins)], (1, norm, n))
    rules.check("irfft_backward", [rand(2, n)], (1, norm, bins))


def test_an_output_reached_directly_and_through_a_saved_value_adds_up(
    rules: Any, rand: Any
) -> None:
    ctx, tape = rules.ctx, rules.tape
    start = rand(3, 3) + np.diag([4.0, 2, 0])

    def loss(value: Any) -> tuple[Any, Any]:
        x = rules.tensor(value, track=True)
        _, s, vh = ctx.svd(x, False)
        g = tape.backward([vh], [ctx.full(vh.dtype, vh.shape, 1)], create_graph=True).get(x)
        both = ctx.add(ctx.sum(s, None, False, None), ctx.sum(ctx.square(g), None, False, None))
        return x, both

    x, y = loss(start)
    slope = rules.numpy(tape.backward([y], [None]).get(x))
    way, h = rand(3, 3), 1e-5
    high, low = (float(rules.numpy(loss(start + s * way)[1])) for s in (h, -h))
    np.testing.assert_allclose((slope * way).sum(), (high - low) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
@pytest.mark.parametrize("upper", [False, True])
def test_factors_of_symmetric_matrices(rand: Any, shape: tuple[int, ...], upper: bool) -> None:
    # The rules are those of symmetric changes: checked on matrices made symmetric.
    device = burn.device("flex").autodiff()
    a = rand(*shape)

    def taken(x: Any) -> Any:
        square = x @ x.mT + burn.eye(shape[-1], dtype=burn.float64, device=device)
        factor = burn.linalg.cholesky(square, upper=upper)
        values, vectors = burn.linalg.eigh(square, "U" if upper else "L")
        # Vectors have no sign: their products with themselves have one.
        pairs = vectors[..., :, :1] * vectors[..., :1, :1]
        return (factor.sin()).sum() + (values * values).sum() + (pairs * pairs.cos()).sum()

    first = numeric(taken, a, device)
    grad = burn.grad(taken)(burn.tensor(a, device=device))
    np.testing.assert_allclose(grad.numpy(), first, rtol=2e-6, atol=2e-7)

    def slope(x: Any) -> Any:
        return (burn.grad(taken)(x) * burn.tensor(np.cos(a), device=device)).sum()

    second = burn.grad(slope)(burn.tensor(a, device=device))
    np.testing.assert_allclose(second.numpy(), numeric(slope, a, device), rtol=2e-5, atol=2e-6)


def numeric(fn: Any, x: Any, device: Any) -> Any:
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = x.copy()
            moved[at] += step
            ends.append(fn(burn.tensor(moved, device=device)).item())
        out[at] = (ends[0] - ends[1]) / 2e-5
    return out


def test_gradients_of_symmetric_factors_are_symmetric() -> None:
    device = burn.device("flex").autodiff()
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.7], [0.5, -0.7, 2.0]])
    x = burn.tensor(a, device=device)
    for fn in (
        lambda t: burn.linalg.cholesky(t).sin().sum(),
        lambda t: burn.linalg.eigh(t).eigenvectors[:, 0].square().sin().sum(),
    ):
        grad = burn.grad(fn)(x).numpy()
        np.testing.assert_allclose(grad, grad.T, atol=1e-12)
