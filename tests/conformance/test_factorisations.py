"""Factorisations give back what they took apart; signs and phases are theirs to choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn

SHAPES = ((3, 3), (5, 2), (2, 5), (2, 4, 3), (1, 1), (0, 3, 3))


def given(shape: tuple[int, ...], device: Any) -> tuple[Any, Any]:
    x = np.random.default_rng(1).normal(size=shape)
    return x, burn.tensor(x, device=device)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def orthonormal(q: Any) -> None:
    close(
        np.swapaxes(q, -1, -2) @ q,
        np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape: tuple[int, ...], device: Any) -> None:
    x, t = given(shape, device)
    u, s, vh = (part.numpy() for part in burn.linalg.svd(t, full_matrices=False))
    close((u * s[..., None, :]) @ vh, x)
    orthonormal(u)
    orthonormal(np.swapaxes(vh, -1, -2))
    assert (s >= 0).all()
    assert (np.diff(s, axis=-1) <= 0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, ...], device: Any) -> None:
    x, t = given(shape, device)
    q, r = (part.numpy() for part in burn.linalg.qr(t))
    close(q @ r, x)
    orthonormal(q)
    close(r, np.triu(r))


@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape: tuple[int, ...], device: Any) -> None:
    x, t = given(shape, device)
    p, lower, upper = (part.numpy() for part in burn.linalg.lu(t))
    close(p @ lower @ upper, x)
    close(lower, np.tril(lower))
    close(upper, np.triu(upper))
    assert (np.abs(lower) <= 1 + 1e-12).all()


def symmetric(shape: tuple[int, ...], device: Any) -> tuple[Any, Any]:
    x, _ = given(shape, device)
    square = x @ np.swapaxes(x, -1, -2) + np.eye(shape[-2])
    return square, burn.tensor(square, device=device)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3)])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(shape: tuple[int, ...], upper: bool, device: Any) -> None:
    x, t = symmetric(shape, device)
    half = burn.triu(t) if upper else burn.tril(t)
    factor = burn.linalg.cholesky(half, upper=upper).numpy()
    close(factor, np.triu(factor) if upper else np.tril(factor))
    turned = np.swapaxes(factor, -1, -2)
    close(turned @ factor if upper else factor @ turned, x)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3)])
@pytest.mark.parametrize("side", ["L", "U"])
def test_eigh_reads_one_triangle(shape: tuple[int, ...], side: Any, device: Any) -> None:
    x, t = symmetric(shape, device)
    half = burn.triu(t) if side == "U" else burn.tril(t)
    values, vectors = (part.numpy() for part in burn.linalg.eigh(half, side))
    close((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2), x)
    orthonormal(vectors)
    assert (np.diff(values, axis=-1) >= 0).all()
    close(burn.linalg.eigvalsh(half, side).numpy(), values)


def test_what_is_not_positive_definite_is_refused(device: Any) -> None:
    with pytest.raises(burn.ExecutionError) as caught:
        burn.linalg.cholesky(burn.tensor([[1.0, 2.0], [2.0, 1.0]], device=device)).numpy()
    assert caught.value.op == "cholesky"
