import ml_dtypes
import numpy as np
import pytest

from burn_std import ExecutionError

nan, inf = float("nan"), float("inf")
RNG = np.random.default_rng(0)
BF16 = np.dtype(ml_dtypes.bfloat16)


def test_matmul_of_f32_is_numpys_own():
    from burn_flex.table import KERNELS

    assert KERNELS["matmul"].make(np.dtype(np.float32)) is np.matmul
    assert KERNELS["matmul"].checked


def test_matmul_over_nothing_is_zeros(call, same):
    same(call("matmul", np.zeros((2, 0)), np.zeros((0, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_integer_products_wrap(call, same, dtype):
    info = np.iinfo(dtype)
    for size in (3, 80):
        x, y = RNG.integers(info.min, info.max, (2, size, size), dtype, endpoint=True)
        exact = [
            [sum(int(a) * int(b) for a, b in zip(row, col, strict=True)) for col in y.T]
            for row in x
        ]
        want = np.array([[v & ((1 << info.bits) - 1) for v in row] for row in exact], np.uint64)
        same(call("matmul", x, y), want.astype(dtype))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_halves_accumulate_in_f32(call, same, dtype):
    x = np.ones(4096, dtype)
    same(call("matmul", x, x), np.array(4096, dtype))
    got = call("linear", x[None], x[None], np.ones(1, dtype))
    same(got, np.array([[4097]]).astype(dtype))


def test_linear_of_any_rank(call):
    weight, bias = RNG.standard_normal((3, 4)), RNG.standard_normal(3)
    for shape in ((4,), (2, 4), (2, 5, 4), (2, 0, 4)):
        x = RNG.standard_normal(shape)
        np.testing.assert_allclose(call("linear", x, weight, bias), x @ weight.T + bias)
        np.testing.assert_allclose(call("linear", x, weight[0], None), x @ weight[0])


@pytest.mark.parametrize("dim", [0, 1])
def test_cross(call, dim):
    x, y = RNG.standard_normal((2, 3, 3))
    np.testing.assert_allclose(call("cross", x, y, dim), np.cross(x, y, axis=dim))
    vector = np.array([200, 0, 1], np.uint8)
    assert call("cross", vector, vector[::-1].copy(), 0).dtype == np.uint8


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(call, upper, transpose, unit):
    full, b = RNG.standard_normal((2, 1, 5, 5)), RNG.standard_normal((3, 5, 2))
    a = np.triu(full) if upper else np.tril(full)
    if unit:
        a[..., range(5), range(5)] = 1
    a = np.swapaxes(a, -1, -2) if transpose else a
    got = call("triangular_solve", full, b, upper, transpose, unit)
    np.testing.assert_allclose(a @ got, np.broadcast_to(b, got.shape), atol=1e-9)


def test_singular_matrices_are_refused_in_words(call):
    for name, args in (("inverse", ()), ("solve", (np.ones((2, 1)),))):
        with pytest.raises(ExecutionError, match="invertible"):
            call(name, np.zeros((2, 2)), *args)


@pytest.mark.parametrize(
    "shape", [(3, 3), (2, 5, 3), (2, 2, 3, 5), (0, 3, 3), (2, 0, 3), (2, 3, 0)]
)
def test_factors_multiply_back(call, shape):
    x = RNG.standard_normal(shape)
    m, n = shape[-2:]
    p, low, up = call("lu", x, True)
    np.testing.assert_allclose(p @ low @ up, x, atol=1e-12)
    assert np.abs(low).max(initial=0) <= 1
    q, r = call("qr", x, "reduced")
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    q, r = call("qr", x, "complete")
    assert q.shape[-2:] == (m, m) and r.shape == x.shape
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    np.testing.assert_allclose(call("qr", x, "r")[1], call("qr", x, "reduced")[1])
    u, s, vh = call("svd", x, False)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, x, atol=1e-12)
    u, s, vh = call("svd", x, True)
    assert u.shape[-2:] == (m, m) and vh.shape[-2:] == (n, n)


def test_lu_of_a_singular_matrix_has_no_nan(call):
    x = np.array([[0.0, 1, 2], [0, 2, 4], [0, 3, 6]])
    p, low, up = call("lu", x, True)
    np.testing.assert_allclose(p @ low @ up, x, atol=1e-12)


def test_lu_without_pivoting(call, same):
    x = np.array([[2.0, 1], [4, 5]])
    p, low, up = call("lu", x, False)
    assert p.shape == (0,)
    same(low, np.array([[1.0, 0], [2, 1]]))
    same(up, np.array([[2.0, 1], [0, 3]]))


def test_determinants_and_inverses(call, same):
    x = RNG.standard_normal((3, 4, 4)).astype(np.float32)
    assert call("det", x).dtype == np.float32 and call("det", x).shape == (3,)
    np.testing.assert_allclose(x @ call("inverse", x), np.tile(np.eye(4), (3, 1, 1)), atol=1e-3)
    same(call("det", np.zeros((0, 0))), np.array(1.0))


# ---- transforms --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 16])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_and_their_adjoints(call, n, norm):
    x = RNG.standard_normal((2, n, 3))
    real, imag = call("rfft", x, 1, norm, n)
    assert real.shape == imag.shape == (2, n // 2 + 1, 3)
    np.testing.assert_allclose(call("irfft", real, imag, 1, norm, n), x, atol=1e-12)
    gr, gi = RNG.standard_normal((2, *real.shape))
    back = call("rfft_backward", gr, gi, 1, norm, n)
    assert abs((real * gr + imag * gi).sum() - (back * x).sum()) < 1e-10
    y = call("irfft", gr, gi, 1, norm, n)
    g = RNG.standard_normal(y.shape)
    hr, hi = call("irfft_backward", g, 1, norm, n // 2 + 1)
    assert abs((y * g).sum() - (hr * gr + hi * gi).sum()) < 1e-10


@pytest.mark.parametrize("bins", [2, 9])
def test_irfft_that_cuts_or_pads_its_bins(call, bins):
    gr, gi = RNG.standard_normal((2, bins, 3))
    y = call("irfft", gr, gi, 0, "backward", 8)
    g = RNG.standard_normal(y.shape)
    hr, hi = call("irfft_backward", g, 0, "backward", bins)
    assert hr.shape == gr.shape
    assert abs((y * g).sum() - (hr * gr + hi * gi).sum()) < 1e-10


def test_f32_and_halves_keep_their_dtype(call):
    for dtype in (np.float32, np.float16, BF16):
        x = RNG.standard_normal(6).astype(dtype)
        real, imag = call("rfft", x, 0, "backward", 6)
        assert (
            real.dtype == imag.dtype == call("irfft", real, None, 0, "backward", 6).dtype == dtype
        )
