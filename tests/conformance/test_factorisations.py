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
