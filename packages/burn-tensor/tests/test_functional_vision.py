"""Padding, windows, resampling and grids."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import float16, float32, int64
from burn_tensor import functional as F

RNG = np.random.default_rng(0)


def given(*shape: int) -> burn.Tensor:
    return burn.tensor(RNG.standard_normal(shape))


def test_pad_names_the_last_dim_first() -> None:
    x = burn.ones(2, 3)
    assert F.pad(x, [1, 2]).shape == (2, 6)
    assert F.pad(x, (0, 0, 1, 0)).shape == (3, 3)
    assert F.pad(x, (-1, 0), value=7.0).shape == (2, 2)
    assert F.pad(burn.tensor([True]), (1, 0), value=1.0).tolist() == [True, True]
    assert F.pad(burn.tensor([2]), (1, 0), "constant", 1.0).tolist() == [1, 2]


def test_what_pad_refuses() -> None:
    x = burn.ones(2, 3)
    with pytest.raises(ArgumentError, match="pad: pad is a"):
        F.pad(x, (1,))
    with pytest.raises(ArgumentError, match="pad: pad is a"):
        F.pad(x, (1,) * 6)
    with pytest.raises(ArgumentError, match="pad: mode is one of"):
        F.pad(x, (1, 1), "edge")
    with pytest.raises(ArgumentError, match="takes no value"):
        F.pad(x, (1, 1), "reflect", 2.0)
    with pytest.raises(ShapeError, match="reflect padding"):
        F.pad(x, (3, 0), "reflect")


def test_shuffles_are_inverse() -> None:
    x = given(2, 3, 8, 4, 6)
    there = F.pixel_shuffle(x, 2)
    assert there.shape == (2, 3, 2, 8, 12)
    np.testing.assert_array_equal(F.pixel_unshuffle(there, 2).numpy(), x.numpy())
    y = given(2, 6, 5)
    np.testing.assert_array_equal(F.channel_shuffle(F.channel_shuffle(y, 2), 3).numpy(), y.numpy())
    with pytest.raises(ShapeError, match="pixel_shuffle: needs"):
        F.pixel_shuffle(x, 3)
    with pytest.raises(ArgumentError, match="downscale_factor"):
        F.pixel_unshuffle(x, 0)


def test_fold_adds_what_unfold_read() -> None:
    x = given(1, 2, 4, 5)
    counts = F.fold(F.unfold(burn.ones(1, 2, 4, 5), 3, padding=1), (4, 5), 3, padding=1)
    back = F.fold(F.unfold(x, 3, padding=1), (4, 5), 3, padding=1)
    np.testing.assert_allclose(back.numpy(), (x * counts).numpy(), rtol=1e-6)
    np.testing.assert_array_equal(F.unfold(x[0], 2).numpy(), F.unfold(x, 2)[0].numpy())
    np.testing.assert_array_equal(
        F.fold(F.unfold(x, 2)[0], [4, 5], 2).numpy(), F.fold(F.unfold(x, 2), (4, 5), 2)[0].numpy()
    )


def line(*values: float) -> burn.Tensor:
    return burn.tensor([[list(values)]])


@pytest.mark.parametrize(("x", "size", "corners", "expected"), [
    (line(0, 1, 2, 3), 7, True, [0, 0.5, 1, 1.5, 2, 2.5, 3]),
    (line(0, 10), 4, True, [0, 3.3333333, 6.6666667, 10]),
    (line(0, 1, 2, 3), 7, False, [0, 0.357143, 0.928571, 1.5, 2.071429, 2.642857, 3]),
    (line(0, 10), 4, False, [0, 2.5, 7.5, 10]),
    (line(4, 5), 1, True, [4]),
    (line(4, 5), 1, False, [4.5]),
])  # fmt: skip
def test_two_conventions_of_coordinates(
    x: burn.Tensor, size: int, corners: bool, expected: list[float]
) -> None:  # B77
    out = F.interpolate(x.to(float32), size, mode="linear", align_corners=corners)
    np.testing.assert_allclose(out.numpy()[0, 0], expected, rtol=1e-5)


def test_the_same_size_is_the_identity() -> None:  # B78
    x = burn.arange(36).reshape(1, 3, 3, 4).to(float32)
    for mode in ("bicubic", "bilinear", "nearest", "area"):
        np.testing.assert_allclose(
            F.interpolate(x, (3, 4), mode=mode).numpy(), x.numpy(), rtol=1e-6
        )


def test_older_names_of_interpolate() -> None:
    x = given(1, 1, 3, 3)
    for one, two in (
        (F.upsample(x, 5), F.interpolate(x, 5)),
        (F.upsample_nearest(x, scale_factor=2), F.interpolate(x, scale_factor=2)),
        (F.upsample_bilinear(x, 5), F.interpolate(x, 5, mode="bilinear", align_corners=True)),
    ):
        np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_what_interpolate_refuses() -> None:
    x = given(1, 1, 3, 3)
    for more, rule in (
        ({}, "one of size and scale_factor"),
        ({"size": 2, "scale_factor": 2.0}, "one of size and scale_factor"),
        ({"size": (2, 2, 2)}, "size is an int or 2 ints"),
        ({"scale_factor": (2.0,)}, "scale_factor is a number or 2"),
        ({"size": 2, "mode": "cubic"}, "mode is one of"),
        ({"size": 2, "align_corners": False}, "align_corners goes with"),
        ({"size": 2, "recompute_scale_factor": True}, "recompute_scale_factor goes with"),
    ):
        with pytest.raises(ArgumentError, match=rule):
            F.interpolate(x, **more)
    with pytest.raises(ShapeError, match="mode linear needs 3 dims"):
        F.interpolate(x, 2, mode="linear")
    for mode in ("nearest", "area"):
        with pytest.raises(ArgumentError, match="antialias goes with"):
            F.interpolate(x, 2, mode=mode, antialias=True)
    with pytest.raises(DTypeError, match="needs floats"):
        F.interpolate(burn.ones(1, 1, 2, 2, dtype=int64), 3, mode="lanczos")
    with pytest.raises(ShapeError, match="extents are positive"):
        F.interpolate(x, 0, mode="lanczos")


# What PyTorch 2.13 makes of arange(12) ** 1.5 as [3, 4], with antialias, as [2, 3].
SMALLER = {
    "bilinear": [3.5453, 6.0484, 9.3186, 18.3198, 23.1716, 28.4055],
    "bicubic": [2.5004, 5.0754, 8.5728, 18.583, 24.0066, 29.8524],
    "lanczos": [1.9313, 4.4777, 8.0377, 18.7816, 24.4093, 30.4765],
}


@pytest.mark.parametrize("mode", SMALLER)
def test_antialias_widens_the_filter(mode: str) -> None:
    x = burn.tensor((np.arange(12, dtype=np.float32) ** 1.5).reshape(1, 1, 3, 4))
    found = F.interpolate(x, (2, 3), mode=mode, antialias=True)
    np.testing.assert_allclose(found.numpy().ravel(), SMALLER[mode], atol=1e-3)
    # A larger result needs none; the same one is the input.
    same = F.interpolate(x, (3, 4), mode=mode, antialias=True)
    np.testing.assert_allclose(same.numpy(), x.numpy(), atol=1e-5)
    half = F.interpolate(x.to(float16), (2, 3), mode=mode, antialias=True)
    assert half.dtype is float16
    np.testing.assert_allclose(half.numpy().ravel(), SMALLER[mode], rtol=2e-3)


def _lanczos(n: int, m: int, step: float, width: float, corners: bool) -> np.ndarray:
    """Return the weights [m, n] element by element, in float64."""
    made = np.zeros((m, n))
    for i in range(m):
        centre = i * step + 0.5 if corners else (i + 0.5) * step
        for j in range(n):
            t = (j + 0.5 - centre) / width
            made[i, j] = np.sinc(t) * np.sinc(t / 3) if abs(t) < 3 else 0.0
    return made / made.sum(1, keepdims=True)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("extents", [((9,), (4,)), ((5,), (13,)), ((7, 6), (3, 11)), ((4,), (4,))])
def test_lanczos_weighs_six_elements(antialias: bool, extents: tuple) -> None:
    before, after = extents
    x = given(2, 3, *before)
    want = x.numpy().astype(np.float64)
    for k, (n, m) in enumerate(zip(before, after, strict=True)):
        weights = _lanczos(n, m, n / m, max(n / m, 1.0) if antialias else 1.0, False)
        want = np.moveaxis(np.moveaxis(want, 2 + k, -1) @ weights.T, -1, 2 + k)
    found = F.interpolate(x, after, mode="lanczos", antialias=antialias)
    np.testing.assert_allclose(found.numpy(), want, atol=1e-5)


def test_lanczos_with_corners_keeps_them() -> None:
    x = given(1, 2, 6)
    found = F.interpolate(x, 11, mode="lanczos", align_corners=True)
    np.testing.assert_allclose(found.numpy()[..., ::2], x.numpy(), atol=1e-5)
    want = x.numpy() @ _lanczos(6, 11, 0.5, 1.0, True).T
    np.testing.assert_allclose(found.numpy(), want, atol=1e-5)


def test_the_gradient_of_a_filter_is_its_transpose() -> None:
    with Device.default().autodiff():
        x = given(1, 1, 5, 4).require_grad()
    g = RNG.standard_normal((1, 1, 3, 7)).astype(np.float32)
    out = F.interpolate(x, (3, 7), mode="lanczos", antialias=True)
    found = (out * burn.tensor(g)).sum().backward()
    rows, columns = _lanczos(5, 3, 5 / 3, 5 / 3, False), _lanczos(4, 7, 4 / 7, 1.0, False)
    want = rows.T @ g[0, 0] @ columns
    np.testing.assert_allclose(x.grad(found).numpy()[0, 0], want, atol=1e-5)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("extents", [(3, 4), (2, 3, 4)])
def test_the_identity_map_samples_the_input(corners: bool, extents: tuple[int, ...]) -> None:
    n = len(extents)
    x = given(2, 3, *extents)
    theta = burn.tensor(np.repeat(np.eye(n, n + 1)[None], 2, 0))
    grid = F.affine_grid(theta, x.shape, corners)
    assert grid.shape == (2, *extents, n)
    out = F.grid_sample(x, grid, align_corners=corners)
    np.testing.assert_allclose(out.numpy(), x.numpy(), rtol=1e-9, atol=1e-12)


def test_affine_grid_has_a_gradient_and_checks_its_shapes() -> None:
    theta = burn.ones(1, 2, 3, device=Device.default().autodiff()).require_grad()
    grid = F.affine_grid(theta, (1, 1, 1, 1), True)
    assert grid.tolist() == [[[[1.0, 1.0]]]]
    assert theta.grad(grid.sum().backward()).tolist() == [[[0.0, 0.0, 1.0]] * 2]
    with pytest.raises(ShapeError, match="affine_grid: theta"):
        F.affine_grid(theta, (2, 1, 1, 1))


def test_what_grid_sample_refuses() -> None:
    x, grid = given(1, 1, 2, 2, 2), given(1, 1, 1, 1, 3)
    for more, rule in (
        ({"mode": "cubic"}, "mode is"),
        ({"padding_mode": "wrap"}, "padding_mode is"),
        ({"mode": "bicubic"}, "bicubic is for planes"),
    ):
        with pytest.raises(ArgumentError, match=rule):
            F.grid_sample(x, grid, **more)
