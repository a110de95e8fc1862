"""Shapes and strides against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from burn_cube_backend.geometry import (
    broadcast_strides,
    collapse,
    dense,
    is_dense,
    reshaped,
)

VIEWS = [
    (np.zeros((4, 6)), (2, 2, 6)),
    (np.zeros((4, 6)), (24,)),
    (np.zeros((4, 6)).T, (24,)),
    (np.zeros((4, 6)).T, (2, 3, 4)),
    (np.zeros((4, 6))[::2], (12,)),
    (np.zeros((4, 6))[::2], (2, 3, 2)),
    (np.zeros((4, 6))[:, ::2], (2, 2, 3)),
    (np.zeros((4, 6))[:, ::2], (12,)),
    (np.zeros((1, 3, 1)), (3, 1, 1, 1)),
    (np.zeros((2, 3, 4)).transpose(0, 2, 1), (2, 2, 2, 3)),
    (np.zeros((2, 3, 4))[::-1], (6, 4)),
    (np.zeros((2, 3, 4))[::-1], (2, 12)),
]


@pytest.mark.parametrize(("x", "new"), VIEWS)
def test_reshape_is_a_view_exactly_where_numpy_has_one(x: np.ndarray, new: tuple[int, ...]) -> None:
    strides = tuple(s // x.itemsize for s in x.strides)
    made = reshaped(x.shape, strides, new)
    other = x.view()
    try:
        other.shape = new  # raises where a copy would be needed
    except AttributeError:
        assert made is None
        return
    expected = [s // x.itemsize for s in other.strides]
    assert made is not None
    assert [m for m, n in zip(made, new, strict=True) if n != 1] == [
        e for e, n in zip(expected, new, strict=True) if n != 1
    ]


def test_collapse_keeps_every_place() -> None:
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    for view in (x, x.transpose(1, 0, 2, 3), x[:, :, ::2], x[:, 1:2], x.transpose(3, 2, 1, 0)):
        strides = tuple(s // x.itemsize for s in view.strides)
        extents, (merged,) = collapse(view.shape, [strides])
        offset = int(view.reshape(-1)[0]) if view.size else 0
        grid = np.meshgrid(*[np.arange(n) for n in extents], indexing="ij")
        places = offset + sum(g * s for g, s in zip(grid, merged, strict=True))
        assert (places.reshape(-1) == view.reshape(-1)).all()


def test_broadcast_repeats_with_stride_0() -> None:
    assert broadcast_strides((3, 1), (1, 1), (2, 3, 4)) == (0, 1, 0)


def test_dense_ignores_dims_of_size_1() -> None:
    assert is_dense((1, 3), (99, 1))
    assert is_dense((0, 3), (7, 7))
    assert not is_dense((2, 3), (1, 2))
    assert is_dense((2, 3), dense((2, 3)))
