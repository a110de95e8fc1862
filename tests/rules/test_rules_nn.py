"""Rules of convolution, pooling, resampling, normalisation and attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

CONVS = [
    # stride, padding, dilation, groups, extents, kernel
    ((1,), (0,), (1,), 1, (7,), (3,)),
    ((2,), (1,), (2,), 2, (8,), (3,)),
    ((2, 1), (1, 0), (1, 2), 1, (5, 6), (3, 2)),
    ((3, 2), (0, 2), (1, 1), 2, (7, 6), (2, 3)),
    ((1, 2, 1), (1, 0, 1), (1, 1, 1), 1, (3, 4, 3), (2, 2, 3)),
]


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups", "extents", "kernel"), CONVS)
def test_conv(
    rules: Any, rand: Any, stride: Any, padding: Any, dilation: Any, groups: int, extents: Any,
    kernel: Any,
) -> None:  # fmt: skip
    how = (stride, padding, dilation, groups)
    x, w = rand(2, 4, *extents), rand(6, 4 // groups, *kernel)
    rules.check("conv", [x, w, rand(6)], how)
    rules.check("conv", [x, w, None], how)
    out = rules.numpy(
        rules.plain.conv(*(rules.plain.tensor_from_numpy(t) for t in (x, w)), None, *how)
    )
    rules.check("conv_input_grad", [rand(*out.shape), w], (*how, x.shape))
    rules.check("conv_weight_grad", [rand(*out.shape), x], (*how, w.shape))


@pytest.mark.parametrize(
    ("stride", "padding", "more", "dilation", "groups"),
    [((1,), (0,), (0,), (1,), 1), ((2,), (1,), (1,), (1,), 2), ((2,), (1,), (2,), (3,), 1),
     ((1,), (2,), (1,), (2,), 2), ((2, 3), (1, 0), (1, 2), (1, 1), 1)],
)  # fmt: skip
def test_conv_transpose(
    rules: Any, rand: Any, stride: Any, padding: Any, more: Any, dilation: Any, groups: int
) -> None:
    n = len(stride)
    x, w = rand(2, 4, *(4, 3)[:n]), rand(4, 3, *(3, 2)[:n])
    rules.check(
        "conv_transpose", [x, w, rand(3 * groups)], (stride, padding, more, dilation, groups)
    )
    rules.check("conv_transpose", [x, w, None], (stride, padding, more, dilation, groups))


def test_conv_of_equal_stride_and_dilation(rules: Any) -> None:
    x, w = np.array([[[7.0, 3]], [[3, 2]]]), np.array([[[3.0, 6]], [[4, 2]]])
    gx, gw = rules.grads("conv", [x, w, None], ((2,), (1,), (2,), 1))
    np.testing.assert_array_equal(gw, [[[0, 5]], [[0, 5]]])
    np.testing.assert_array_equal(gx, [[[0, 8]], [[0, 8]]])


def test_max_pool(rules: Any, rand: Any) -> None:
    rules.check("max_pool", [rand(2, 3, 7)], ((3,), (2,), (1,), (1,), False))
    rules.check("max_pool", [rand(2, 3, 6, 7)], ((2, 3), (2, 2), (1, 1), (1, 2), True))
    rules.check("max_pool", [rand(1, 2, 4, 4, 4)], ((2,) * 3, (2,) * 3, (0,) * 3, (1,) * 3, False))
    rules.check("adaptive_max_pool", [rand(2, 3, 5, 7)], ((2, 3),))
    indices = np.array([[[0, 2, 2]]])
    rules.check("max_pool_backward", [rand(1, 1, 3), indices], ((), (), (), (), (1, 1, 5)))
    rules.check("pool_gather", [rand(1, 1, 5), indices])


@pytest.mark.parametrize(
    ("ceil", "inside", "divisor"), [(False, True, None), (True, False, None), (True, True, 3)]
)
def test_avg_pool(rules: Any, rand: Any, ceil: bool, inside: bool, divisor: Any) -> None:
    how = ((2, 3), (2, 2), (1, 1), ceil, inside, divisor)
    x = rand(2, 3, 5, 6)
    rules.check("avg_pool", [x], how)
    out = rules.numpy(rules.plain.avg_pool(rules.plain.tensor_from_numpy(x), *how))
    rules.check("avg_pool_backward", [rand(*out.shape)], (*how, x.shape))


def test_adaptive_avg_pool(rules: Any, rand: Any) -> None:
    rules.check("adaptive_avg_pool", [rand(2, 3, 5, 7)], ((2, 3),))
    rules.check("adaptive_avg_pool_backward", [rand(2, 3, 2, 3)], ((2, 3, 5, 7),))


@pytest.mark.parametrize(
    ("mode", "align", "extents", "size"),
    [("nearest", False, (5,), (8,)), ("nearest-exact", False, (4, 5), (6, 3)),
     ("linear", True, (5,), (8,)), ("bilinear", False, (4, 5), (6, 3)),
     ("bicubic", True, (4, 5), (6, 3)), ("bicubic", False, (4, 5), (7, 5)),
     ("trilinear", False, (3, 2, 4), (4, 4, 2))],
)  # fmt: skip
def test_interpolate(
    rules: Any, rand: Any, mode: str, align: bool, extents: Any, size: Any
) -> None:
    scales = (None,) * len(size)
    shape = (2, 3, *extents)
    rules.check("interpolate", [rand(*shape)], (mode, align, size, scales))
    rules.check("interpolate_backward", [rand(2, 3, *size)], (mode, align, size, scales, shape))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(rules: Any, rand: Any, mode: str, padding: str) -> None:
    x, grid = rand(2, 3, 4, 5), rand(2, 3, 2, 2, low=-1.2, high=1.2)
    rules.check("grid_sample", [x, grid], (mode, padding, False), order=1)


def test_windows(rules: Any, rand: Any) -> None:
    how = ((2, 3), (1, 2), (1, 0), (2, 1))
    x = rand(2, 3, 5, 6)
    rules.check("unfold", [x], how)
    columns = rules.numpy(rules.plain.unfold(rules.plain.tensor_from_numpy(x), *how))
    rules.check("fold", [rand(*columns.shape)], (*how, (5, 6)))


# ---- normalisation ------------------------------------------------------------------------------


def test_softmax(rules: Any, rand: Any) -> None:
    for op in ("softmax", "log_softmax"):
        rules.check(op, [rand(3, 4)], (1, None))
        rules.check(op, [rand(3, 4)], (0, None))
        rules.check(op, [rand()], (0, None))


def test_softmax_into_another_dtype(rules: Any, rand: Any) -> None:
    from burn_std.dtypes import float64

    got = rules.grads("softmax", [rand(3).astype(np.float32)], (0, float64))[0]
    assert got.dtype == np.float32


@pytest.mark.parametrize("outputs", [(0,), (0, 1, 2), (1,), (2,)])
def test_layer_and_group_norm(rules: Any, rand: Any, outputs: Any) -> None:
    x = rand(2, 3, 4)
    rules.check("layer_norm", [x, rand(3, 4), rand(3, 4)], (2, 1e-3), outputs=outputs)
    rules.check("layer_norm", [x, None, None], (1, 1e-3), outputs=outputs)
    x = rand(2, 6, 3)
    rules.check("group_norm", [x, rand(6), rand(6)], (3, 1e-3), outputs=outputs)
    rules.check("group_norm", [x, None, None], (2, 1e-3), outputs=outputs)


@pytest.mark.parametrize("outputs", [(0,), (0, 1)])
def test_rms_norm(rules: Any, rand: Any, outputs: Any) -> None:
    rules.check("rms_norm", [rand(2, 3, 4), rand(4)], (1, 1e-3), outputs=outputs)
    rules.check("rms_norm", [rand(2, 3, 4), None], (2, 1e-3), outputs=outputs)


@pytest.mark.parametrize("outputs", [(0,), (0, 1, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(rules: Any, rand: Any, training: bool, outputs: Any) -> None:
    mean, var = rand(3), rand(3, low=0.5, high=2.0)
    x = rand(4, 3, 2)
    if training:
        rules.check("batch_norm", [x, rand(3), rand(3), None, None], (True, 1e-3), outputs=outputs)
        rules.check("batch_norm", [x, None, None, None, None], (True, 1e-3), outputs=outputs)
    else:
        rules.check("batch_norm", [x, rand(3), rand(3), mean, var], (False, 1e-3), outputs=outputs)
        rules.check(
            "batch_norm", [rand(4, 3), None, None, mean, var], (False, 1e-3), outputs=outputs
        )


def test_norms_of_half_precision_keep_dtypes(rules: Any, rand: Any) -> None:
    x = rand(4, 6, 2).astype(np.float16)
    w = rand(6).astype(np.float32)
    gx, gw, gb = rules.grads("batch_norm", [x, w, w, None, None], (True, 1e-5))
    assert (gx.dtype, gw.dtype, gb.dtype) == (np.float16, np.float32, np.float32)
    grads = rules.grads("group_norm", [x, w.astype(x.dtype), w.astype(x.dtype)], (3, 1e-5))
    assert {g.dtype for g in grads} == {np.dtype(np.float16)}


# ---- attention ----------------------------------------------------------------------------------

MASK = np.array([[True, False, True], [False, False, False], [True, True, True]])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "bool", "float"])
def test_attention(rules: Any, rand: Any, mask: str, causal: bool) -> None:
    q, k, v = rand(2, 2, 3, 4), rand(2, 2, 3, 4), rand(2, 2, 3, 5)
    m = {"none": None, "bool": MASK, "float": rand(2, 1, 3, 3)}[mask]
    # The sums of rows that see nothing are infinite.
    for outputs in [(0,)] if mask == "bool" else [(0,), (1,), (0, 1)]:
        rules.check("attention", [q, k, v, m], (causal, False, 0.5), outputs=outputs)


def test_attention_of_grouped_and_broadcast_heads(rules: Any, rand: Any) -> None:
    q, k, v = rand(2, 4, 3, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 3)
    rules.check("attention", [q, k, v, None], (False, True, 0.7))
    rules.check("attention", [q, k, v, rand(3, 5)], (False, True, 0.7))
    rules.check("attention", [rand(2, 3, 4), rand(5, 4), rand(1, 5, 3), None], (False, False, 0.7))


def test_rows_masked_everywhere_have_no_gradient(rules: Any, rand: Any) -> None:
    q, k, v = rand(3, 4), rand(3, 4), rand(3, 4)
    gq, gk, gv = rules.grads("attention", [q, k, v, MASK], (False, False, 0.5))
    np.testing.assert_array_equal(gq[1], 0)
    assert all(np.isfinite(g).all() for g in (gq, gk, gv))


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_of_a_mask_has_its_own_dtype(rules: Any, rand: Any, create_graph: bool) -> None:
    q = rules.tensor(rand(3, 4).astype(np.float16), track=True)
    mask = rules.tensor(rand(3, 3).astype(np.float32), track=True)
    y, _ = rules.ctx.attention(q, q, q, mask, False, False, 0.5)
    one = rules.ctx.full(y.dtype, y.shape, 1)
    found = rules.tape.backward([y], [one], create_graph=create_graph)
    assert found.get(mask).dtype is mask.dtype
    assert found.get(q).dtype is q.dtype
