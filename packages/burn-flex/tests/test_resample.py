import numpy as np
import pytest

RNG = np.random.default_rng(0)
MODES = ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"]
RANK = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def test_coordinates_of_both_conventions(call):
    x, y = np.array([[[0.0, 1, 2, 3]]]), np.array([[[0.0, 10]]])
    for align, x7, y4 in (
        (True, [0, 0.5, 1, 1.5, 2, 2.5, 3], [0, 10 / 3, 20 / 3, 10]),
        (False, [0, 5 / 14, 13 / 14, 1.5, 29 / 14, 37 / 14, 3], [0, 2.5, 7.5, 10]),
    ):
        np.testing.assert_allclose(call("interpolate", x, "linear", align, (7,), (None,))[0, 0], x7)
        np.testing.assert_allclose(call("interpolate", y, "linear", align, (4,), (None,))[0, 0], y4)


def test_one_output_with_aligned_corners_is_the_first_element(call, same):
    x = np.array([[[5.0, 1]]])
    same(call("interpolate", x, "linear", True, (1,), (None,)), np.array([[[5.0]]]))


def test_bicubic_to_the_same_size_is_the_identity(call, same):
    x = np.arange(36.0).reshape(1, 3, 3, 4)
    same(call("interpolate", x, "bicubic", False, (3, 4), (None, None)), x)


def test_a_given_scale_maps_outputs_to_inputs(call, same):
    x = np.array([[[0.0, 1, 2, 3]]])
    given = call("interpolate", x, "nearest", False, (6,), (1.7,))
    same(given, x[..., [0, 0, 1, 1, 2, 2]])
    same(call("interpolate", x, "nearest", False, (6,), (None,)), x[..., [0, 0, 1, 2, 2, 3]])


@pytest.mark.parametrize("mode", MODES)
def test_backward_is_the_adjoint(call, mode):
    for _ in range(20):
        rank = RANK.get(mode) or int(RNG.integers(1, 4))
        x = RNG.standard_normal((2, 2, *RNG.integers(1, 7, rank).tolist()))
        scales = tuple(RNG.uniform(0.5, 2.5, rank).tolist()) if RNG.integers(2) else (None,) * rank
        size = tuple(
            max(1, int(n * s)) if s else int(RNG.integers(1, 12))
            for n, s in zip(x.shape[2:], scales, strict=True)
        )
        how = (mode, bool(RNG.integers(2)) and mode in RANK, size, scales)
        y = call("interpolate", x, *how)
        g = RNG.standard_normal(y.shape)
        back = call("interpolate_backward", g, *how, x.shape)
        assert abs((y * g).sum() - (back * x).sum()) < 1e-10


def test_bytes_use_fixed_point_and_stay_in_range(call, same):
    x = np.array([[[[0, 255, 0]]]], np.uint8)
    y = call("interpolate", x, "bicubic", False, (1, 6), (None, None))
    assert y.dtype == np.uint8 and y.min() == 0 and y.max() >= 200
    same(
        call("interpolate", x, "bilinear", False, (2, 3), (None, None)),
        np.repeat(x, 2, axis=2),
    )


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float16])
def test_nearest_takes_any_dtype(call, same, dtype):
    x = np.array([[[1, 0, 1]]], dtype)
    same(call("interpolate", x, "nearest", False, (6,), (None,)), np.repeat(x, 2, axis=2))


GRIDS = [
    (2, mode, padding, align)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for align in (False, True)
] + [(3, "bilinear", p, a) for p in ("zeros", "border", "reflection") for a in (False, True)]


@pytest.mark.parametrize(("rank", "mode", "padding", "align"), GRIDS)
def test_grid_sample_gradients_are_differences(call, rank, mode, padding, align):
    x = RNG.standard_normal((2, 2, *(4, 3, 5)[:rank]))
    grid = RNG.uniform(-1.7, 1.7, (2, *(2, 3, 2)[:rank], rank))
    how = (mode, padding, align)
    y = call("grid_sample", x, grid, *how)
    g = RNG.standard_normal(y.shape)
    dx, dgrid = call("grid_sample_backward", g, x, grid, *how)
    assert abs((y * g).sum() - (dx * x).sum()) < 1e-10
    step = 1e-6 * RNG.standard_normal(grid.shape)
    up, down = (call("grid_sample", x, grid + s * step, *how) for s in (1, -1))
    assert abs(((up - down) * g).sum() / 2 - (dgrid * step).sum()) < 1e-9


def test_grid_corners(call, same):
    x = np.arange(6.0).reshape(1, 1, 2, 3)
    grid = np.array([[[[-1.0, -1], [1, 1], [0, 0]]]])
    same(call("grid_sample", x, grid, "bilinear", "zeros", True), np.array([[[[0.0, 5, 2.5]]]]))
    same(call("grid_sample", x, grid, "bilinear", "zeros", False), np.array([[[[0.0, 1.25, 2.5]]]]))
    same(call("grid_sample", x, grid, "bilinear", "border", False), np.array([[[[0.0, 5, 2.5]]]]))


def test_positions_that_are_not_finite_read_zeros(call):
    x = np.ones((1, 1, 2, 2))
    grid = np.array([[[[np.nan, 0.0], [np.inf, 0], [1e30, 0]]]])
    y = call("grid_sample", x, grid, "nearest", "zeros", False)
    assert not y.any()
