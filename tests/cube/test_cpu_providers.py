"""The BLAS provider, convolution through it, reductions in panels, and pooling, on the cpu."""

from types import SimpleNamespace

import numpy as np
import pytest

from burn_cube_backend.kernels import blas, conv_blas
from burn_dispatch import device
from burn_ir import CATALOG
from burn_std.dtypes import float32

CPU, FLEX = device("eager-cpu").without_autodiff(), device("flex").without_autodiff()
RNG = np.random.default_rng(11)


def run(name, inputs, attrs, on):
    """Return the numpy results of one operation of the catalogue."""
    context = on.context
    made = [None if x is None else context.tensor_from_numpy(x) for x in inputs]
    out = getattr(context, name)(*made, *attrs)
    return [context.to_numpy(t) for t in (out if CATALOG[name].multi else [out])]


def same(name, inputs, attrs, tolerance=3e-5):
    """Compare an operation with the reference."""
    for a, b in zip(run(name, inputs, attrs, CPU), run(name, inputs, attrs, FLEX), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        scale = max(1.0, float(np.abs(np.nan_to_num(b.astype(np.float64))).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def normal(*shape, dtype=np.float32):
    """Return samples."""
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((70, 1), (1, 70)), ((1, 300), (300, 20)), ((30, 200), (200, 1)),
     ((2, 3, 5, 6), (3, 6, 7)), ((129, 200), (200, 251)), ((8, 6, 6), (8, 6, 6)),
     ((1, 1, 64, 3), (5, 1, 3, 8)), ((301, 65), (65, 99)), ((500, 80), (80, 70))],
)  # fmt: skip
def test_products_of_every_layout(dtype, a, b):
    x, y = normal(*a, dtype=dtype), normal(*b, dtype=dtype)
    tolerance = 4e-3 if dtype is np.float16 else 3e-5
    same("matmul", [x, y], (), tolerance)
    c = CPU.context
    turned = list(range(x.ndim))
    turned[-2:] = turned[:-3:-1]
    left = c.permute(c.tensor_from_numpy(np.swapaxes(x, -1, -2).copy()), tuple(turned))
    turned = list(range(y.ndim))
    turned[-2:] = turned[:-3:-1]
    right = c.permute(c.tensor_from_numpy(np.swapaxes(y, -1, -2).copy()), tuple(turned))
    want = run("matmul", [x, y], (), FLEX)[0]
    for one, other in ((left, c.tensor_from_numpy(y)), (c.tensor_from_numpy(x), right)):
        got = c.to_numpy(c.matmul(one, other))
        np.testing.assert_allclose(got, want, tolerance, tolerance)


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n"), [(512, 512), (1024, 512), (512, 1024), (2048, 256)])
def test_threads_have_pieces_of_one_extent(m, n, turned, threads):
    place = blas.Matrix(512, False, np.zeros(1, np.int64), 4)
    fake = SimpleNamespace(
        runtime=SimpleNamespace(threads=threads), products={float32: 0}, entries={float32: 0}
    )
    right = place._replace(turned=turned)
    plan = blas.Blas.plan(fake, float32, (m, n, 512), place, right, (m, n))
    *_, parts, columns, piece, _, _, _ = plan.tail
    assert plan.total == parts == threads
    assert piece * threads == (n if columns else m)
    assert columns == (m <= n * (4 if turned else 1))


def test_the_library_keeps_its_threads_for_others():
    lib = blas.library()
    if lib is None:
        pytest.skip("numpy brings no OpenBLAS of its own here")
    before = lib.threads()
    run("matmul", [normal(100, 100), normal(100, 100)], (), CPU)
    assert lib.threads() == before


def test_without_a_library_the_kernels_multiply(monkeypatch):
    on = CPU.context
    x, y = on.tensor_from_numpy(normal(40, 50)), on.tensor_from_numpy(normal(50, 60))
    with_library = on.to_numpy(on.matmul(x, y))
    monkeypatch.setattr(blas, "provider", lambda engine: None)
    monkeypatch.setattr(conv_blas, "provider", lambda engine: None)
    np.testing.assert_allclose(on.to_numpy(on.matmul(x, y)), with_library, 1e-5, 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (1, 2, 1), (2, 1, 2)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_and_their_gradients(rank, stride, padding, dilation, groups, dtype):
    lengths, size = (9, 37, 6)[:rank], (3, 2, 3)[:rank]
    x, w, b = normal(2, 4, *lengths), normal(6, 4 // groups, *size), normal(6)
    convolutions(x, w, b, [(n,) * rank for n in (stride, padding, dilation)], groups, dtype)


def convolutions(x, w, b, each, groups, dtype):
    """Compare a convolution and its gradients with the reference."""
    x, w, b = (a.astype(dtype) for a in (x, w, b))
    tolerance = 4e-3 if dtype is np.float16 else 3e-5
    same("conv", [x, w, b], (*each, groups), tolerance)
    out = run("conv", [x, w, None], (*each, groups), FLEX)[0]
    g = normal(*out.shape, dtype=dtype)
    same("conv_weight_grad", [g, x], (*each, groups, w.shape), tolerance)
    same("conv_input_grad", [g, w], (*each, groups, x.shape), tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("size", "stride", "channels"), [(1, 1, 4), (1, 2, 4), (3, 2, 40)])
def test_convolutions_of_one_tap_and_of_windows_that_lie_apart(size, stride, channels, dtype):
    x, w, b = normal(3, channels, 9, 11), normal(6, channels // 2, size, size), normal(6)
    convolutions(x, w, b, [(n, n) for n in (stride, 0, 2)], 2, dtype)


@pytest.mark.parametrize("shape", [(40, 37), (3, 70, 130), (2000, 16), (100_000,), (3, 50_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_reductions_of_every_axis(shape, dtype):
    x = (RNG.standard_normal(shape) * 9).astype(dtype)
    if dtype is np.float32:
        x.flat[5] = np.nan
    tolerance = 2e-3 if dtype is np.float16 else 3e-5
    for dim in (*range(x.ndim), None):
        dims = None if dim is None else (dim,)
        same("sum", [x], (dims, False, None), tolerance)
        same("amax", [x], (dims, False))
        same("amin", [x], (dims, True))
        same("argmax", [x], (dim, False))
        same("argmin", [x], (dim, False))


def test_pooling_of_windows_that_overlap_and_overhang():
    x = normal(2, 3, 9, 8)
    x[0, 0, 3, 3] = np.nan
    for ceil in (False, True):
        attrs = ((3, 2), (2, 2), (1, 1), (1, 1), ceil)
        same("max_pool", [x], attrs)
        values, places = run("max_pool", [x], attrs, FLEX)
        same("max_pool_backward", [normal(*values.shape), places], (*attrs[:4], x.shape))
        mean = ((3, 2), (2, 2), (1, 1), ceil)
        for rest in ((True, None), (False, None), (True, 5)):
            out = run("avg_pool", [x], (*mean, *rest), FLEX)[0]
            same("avg_pool", [x], (*mean, *rest))
            same("avg_pool_backward", [normal(*out.shape)], (*mean, *rest, x.shape))
    for size in ((4, 3), (9, 8), (1, 1), (12, 5)):
        same("adaptive_avg_pool", [x], (size,))
        same("adaptive_avg_pool_backward", [normal(2, 3, *size)], (x.shape,))


@pytest.mark.parametrize("seed", range(8))
def test_maxima_of_rows_of_windows(seed):
    dice = np.random.default_rng(seed)
    kernel = (2, 2) if seed < 4 else tuple(int(n) for n in dice.integers(1, 5, 2))
    stride = (2, 2) if seed < 4 else tuple(int(n) for n in dice.integers(1, 4, 2))
    for _ in range(12):
        shape = [int(n) for n in (*dice.integers(1, 4, 2), *dice.integers(4, 70, 2))]
        padding = tuple(int(dice.integers(0, k // 2 + 1)) for k in kernel)
        x = dice.integers(-3, 4, shape).astype(np.float32)  # equal ones: the first wins
        x[dice.random(shape) < 0.1] = np.nan
        x[dice.random(shape) < 0.2] = -np.inf
        attrs = (kernel, stride, padding, (1, 1), bool(dice.integers(0, 2)))
        for a, b in zip(*(run("max_pool", [x], attrs, on) for on in (CPU, FLEX)), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("flag", [False, True])
def test_updates_of_parameters(flag):
    shapes = [(5, 7), (3,)]
    params, grads, m = ([normal(*s) for s in shapes] for _ in range(3))
    v = [np.abs(normal(*s)) for s in shapes]
    for step in (0.0, 3.0):
        count = np.float32(step).reshape(())
        for skip in (None, np.array(False), np.array(True)):
            sgd = (flag, flag, 0.1, 0.9, 0.1, 0.01)
            adam = (flag, not flag, 1e-2, 0.9, 0.99, 1e-8, 0.1)
            _compared("sgd_step", [params, grads, m], count, skip, sgd)
            _compared("adam_step", [params, grads, m, v, v], count, skip, adam)


def _compared(name, lists, step, skip, attrs):
    made = []
    for on in (CPU, FLEX):
        c = on.context
        put = c.tensor_from_numpy
        given = [[put(x) for x in group] for group in lists]
        out = getattr(c, name)(*given, put(step), None if skip is None else put(skip), *attrs)
        made.append([c.to_numpy(t) for t in out])
    for a, b in zip(*made, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 2e-5, 2e-6)
