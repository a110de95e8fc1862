"""Samples of convolution, pooling, resampling, normalisation, attention and losses."""

from __future__ import annotations

from burn_std import ArgumentError, DTypeError, ShapeError, quantized
from burn_std.dtypes import float32, float64
from burn_testing.samples.sample import FLOAT_NAMES, error, ints, sample, t, v

F = ("f32", "f64")
NONE: None = None

# ---- convolution: x, weight, bias, stride, padding, dilation, groups ------------------------------

CONVS = (
    ((2, 3, 7), (4, 3, 3), True, (1,), (0,), (1,), 1),
    ((1, 4, 8), (6, 2, 3), True, (2,), (1,), (2,), 2),
    ((2, 1, 4), (1, 1, 1), False, (2,), (0,), (1,), 1),
    ((2, 2, 5, 6), (3, 2, 3, 2), True, (1, 2), (1, 0), (1, 1), 1),
    ((1, 4, 5, 5), (4, 1, 3, 3), False, (1, 1), (1, 1), (1, 1), 4),
    ((1, 2, 3, 4, 4), (2, 2, 2, 2, 2), True, (1, 2, 1), (0, 1, 0), (1, 1, 2), 1),
    ((0, 3, 7), (4, 3, 3), True, (1,), (0,), (1,), 1),
)


def _conv_shape(x, w, stride, padding, dilation):  # type: ignore[no-untyped-def]
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    ]
    return (x[0], w[0], *sizes)


for _x, _w, _bias, _s, _p, _d, _g in CONVS:
    _k = 1
    for _n in _w[1:]:
        _k *= _n
    _attrs = (_s, _p, _d, _g)
    sample("conv", t(*_x), t(*_w), t(_w[0]) if _bias else None, attrs=_attrs, length=_k)
    _y = _conv_shape(_x, _w, _s, _p, _d)
    sample("conv_input_grad", t(*_y), t(*_w), attrs=(*_attrs, _x), length=_k, dtypes=FLOAT_NAMES)
    sample("conv_weight_grad", t(*_y), t(*_x), attrs=(*_attrs, _w), length=64, dtypes=FLOAT_NAMES)
error("conv", "channels", ShapeError, t(1, 3, 5), t(2, 2, 3), None, attrs=((1,), (0,), (1,), 1))
error("conv", "kernel", ShapeError, t(1, 1, 2), t(1, 1, 3), None, attrs=((1,), (0,), (1,), 1))
error("conv", "stride", ArgumentError, t(1, 1, 5), t(1, 1, 3), None, attrs=((0,), (0,), (1,), 1))
error("conv", "rank", ShapeError, t(1, 5), t(1, 1, 3), None, attrs=((1,), (0,), (1,), 1))
error("conv", "bias", ShapeError, t(1, 1, 5), t(2, 1, 3), t(3), attrs=((1,), (0,), (1,), 1))
for _name in ("conv_input_grad", "conv_weight_grad"):
    error(_name, "not_a_tensor", DTypeError, None, t(1, 1, 3), attrs=((1,), (0,), (1,), 1, (1, 1, 5)))

for _x, _w, _b, _attrs in (
    ((2, 3, 5), (3, 4, 3), 4, ((1,), (0,), (0,), (1,), 1)),
    ((1, 4, 4), (4, 3, 2), 6, ((2,), (1,), (1,), (2,), 2)),
    ((1, 1, 2), (1, 1, 1), None, ((2,), (0,), (0,), (1,), 1)),
    ((2, 2, 3, 3), (2, 3, 2, 3), 3, ((2, 1), (0, 1), (1, 0), (1, 1), 1)),
    ((1, 2, 2, 2, 2), (2, 1, 2, 2, 2), None, ((1, 1, 2), (0, 0, 0), (0, 0, 1), (1, 1, 1), 1)),
):
    sample("conv_transpose", t(*_x), t(*_w), t(_b) if _b else None, attrs=_attrs, length=24)
_attrs = ((1,), (0,), (0,), (1,), 1)
error("conv_transpose", "channels", ShapeError, t(1, 3, 5), t(2, 2, 3), None, attrs=_attrs)
error("conv_transpose", "output_padding", ArgumentError, t(1, 1, 5), t(1, 1, 3), None, attrs=((1,), (0,), (1,), (1,), 1))

# ---- pooling ------------------------------------------------------------------------------------

POOLS = (
    ((2, 3, 8), (2,), (2,), (0,), (1,), False, (4,)),
    ((1, 2, 7), (3,), (2,), (1,), (1,), True, (4,)),
    ((1, 2, 6, 5), (2, 3), (2, 1), (1, 0), (1, 1), False, (4, 3)),
    ((1, 1, 6, 6), (2, 2), (2, 2), (0, 0), (2, 1), False, (2, 3)),
    ((1, 1, 4, 4, 4), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False, (2, 2, 2)),
    ((0, 2, 4), (2,), (2,), (0,), (1,), False, (2,)),
)
for _x, _k, _s, _p, _d, _ceil, _out in POOLS:
    sample("max_pool", t(*_x, low=-9, high=9), attrs=(_k, _s, _p, _d, _ceil))
    _y = (*_x[:2], *_out)
    if _x[0]:
        sample("max_pool_backward", t(*_y), t(*_y, low=0, high=3, dtype="i64"), attrs=(_x,), dtypes=FLOAT_NAMES, length=8)
        sample("pool_gather", t(*_x), t(*_y, low=0, high=3, dtype="i64"), dtypes=FLOAT_NAMES)
    if set(_d) == {1}:
        for _include, _divisor in ((True, None), (False, None), (True, 3)):
            _attrs = (_k, _s, _p, _ceil, _include, _divisor)
            sample("avg_pool", t(*_x), attrs=_attrs, dtypes=FLOAT_NAMES, length=8)
            sample("avg_pool_backward", t(*_y), attrs=(*_attrs, _x), dtypes=FLOAT_NAMES, length=8)
sample("max_pool", v([[[-1.0, -2.0]]]), attrs=((3,), (1,), (1,), (1,), False), name="negative", grad=False, dtypes=("f32", "f64", "i32", "i8"))
sample("max_pool", v([[[2, 2, 1, 2, 2]]]), attrs=((3,), (1,), (0,), (1,), False), name="ties", grad=False)
sample("max_pool", v([[[1.0, float("nan"), 2.0, 0.0]]]), attrs=((2,), (1,), (0,), (1,), False), name="special", grad=False, dtypes=FLOAT_NAMES)
_attrs = ((2,), (2,), (0,), (1,), False)
error("max_pool", "padding", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (2,), (1,), False))
error("max_pool", "window", ShapeError, t(1, 1, 2), attrs=((3,), (1,), (0,), (1,), False))
error("max_pool", "rank", ShapeError, t(4), attrs=_attrs)
error("max_pool", "empty", ShapeError, t(1, 0, 4), attrs=_attrs)
error("avg_pool", "padding", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (2,), False, True, None))
error("avg_pool", "divisor", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (0,), False, True, 0))
error("max_pool_backward", "not_a_tensor", DTypeError, None, ints([[[0]]]), attrs=((1, 1, 4),))
error("pool_gather", "not_a_tensor", DTypeError, None, ints([[[0]]]))
error("avg_pool_backward", "not_a_tensor", DTypeError, None, attrs=((2,), (2,), (0,), False, True, None, (1, 1, 4)))
for _x, _size in (((2, 3, 7), (3,)), ((1, 2, 5, 6), (2, 4)), ((1, 1, 3, 4, 5), (2, 2, 2)), ((1, 1, 2), (4,)), ((0, 1, 4), (2,))):
    sample("adaptive_avg_pool", t(*_x), attrs=(_size,), dtypes=FLOAT_NAMES, length=8)
    sample("adaptive_avg_pool_backward", t(*_x[:2], *_size), attrs=(_x,), dtypes=FLOAT_NAMES, length=8)
    sample("adaptive_max_pool", t(*_x, low=-9, high=9), attrs=(_size,), dtypes=FLOAT_NAMES)
for _name in ("adaptive_avg_pool", "adaptive_max_pool"):
    error(_name, "rank", ShapeError, t(4), attrs=((2,),))
    error(_name, "empty", ShapeError, t(1, 0, 4), attrs=((2,),))
error("adaptive_avg_pool_backward", "not_a_tensor", DTypeError, None, attrs=((1, 1, 4),))

# ---- resampling ---------------------------------------------------------------------------------

for _mode, _x, _size in (
    ("nearest", (2, 2, 5), (7,)), ("nearest-exact", (1, 2, 3, 4), (5, 2)), ("linear", (2, 1, 4), (7,)),
    ("bilinear", (1, 2, 3, 4), (5, 6)), ("bicubic", (1, 1, 4, 5), (6, 3)),
    ("trilinear", (1, 1, 2, 3, 2), (3, 4, 3)), ("linear", (1, 1, 4), (1,)),
):  # fmt: skip
    for _corners in (False, True) if "linear" in _mode or _mode == "bicubic" else (False,):
        _attrs = (_mode, _corners, _size, (None,) * len(_size))
        sample("interpolate", t(*_x), attrs=_attrs, dtypes=FLOAT_NAMES, length=16)
        sample("interpolate_backward", t(*_x[:2], *_size), attrs=(*_attrs, _x), dtypes=FLOAT_NAMES, length=16)
error("interpolate", "rank", ShapeError, t(2, 3), attrs=("linear", False, (4,), (None,)))
error("interpolate", "size", ShapeError, t(1, 1, 3), attrs=("linear", False, (0,), (None,)))
error("interpolate_backward", "not_a_tensor", DTypeError, None, attrs=("linear", False, (4,), (None,), (1, 1, 3)))
_smooth = {"bilinear": True, "bicubic": True, "nearest": False}
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _corners in (False, True):
            _attrs = (_mode, _padding, _corners)
            sample("grid_sample", t(2, 2, 4, 5), t(2, 3, 2, 2, low=-1.3, high=1.3), attrs=_attrs, dtypes=F, grad=_smooth[_mode], length=16)
            sample("grid_sample_backward", t(2, 2, 3, 2), t(2, 2, 4, 5), t(2, 3, 2, 2, low=-1.3, high=1.3), attrs=_attrs, dtypes=F, length=16)
sample("grid_sample", t(1, 2, 3, 3, 3), t(1, 2, 2, 2, 3, low=-1, high=1), attrs=("bilinear", "zeros", False), dtypes=F, length=8)
error("grid_sample", "grid", ShapeError, t(1, 1, 3, 3), t(1, 2, 2, 3), attrs=("bilinear", "zeros", False))
error("grid_sample_backward", "not_a_tensor", DTypeError, None, t(1, 1, 3, 3), t(1, 2, 2, 2), attrs=("bilinear", "zeros", False))
for _k, _d, _p, _s, _l in (((2, 2), (1, 1), (0, 0), (1, 1), 12), ((2, 3), (2, 1), (1, 1), (2, 1), 10)):
    sample("unfold", t(1, 2, 4, 5), attrs=(_k, _d, _p, _s), dtypes=FLOAT_NAMES)
    sample("fold", t(1, 2 * _k[0] * _k[1], _l), attrs=(_k, _d, _p, _s, (4, 5)), dtypes=FLOAT_NAMES, length=6)
error("unfold", "rank", ShapeError, t(4, 5), attrs=((2, 2), (1, 1), (0, 0), (1, 1)))
error("fold", "blocks", ShapeError, t(1, 4, 7), attrs=((2, 2), (1, 1), (0, 0), (1, 1), (4, 5)))

# ---- normalisation ------------------------------------------------------------------------------

for _name in ("softmax", "log_softmax"):
    for _x, _dim in (((3, 4), 1), ((3, 4), 0), ((), 0), ((2, 3, 2), 1), ((0, 3), 1)):
        sample(_name, t(*_x), attrs=(_dim, None), dtypes=FLOAT_NAMES, length=4, grad=True)
    sample(_name, t(3, 4), attrs=(1, float64), length=4, grad=False)
    sample(_name, v([[1000.0, 1000.0], [-1000.0, 1000.0]]), attrs=(1, None), name="large", dtypes=F, grad=False)
    sample(_name, v([[-float("inf"), 0.0], [-float("inf"), -float("inf")]]), attrs=(1, None), name="special", dtypes=F, grad=False)
    error(_name, "ints", DTypeError, t(2), attrs=(0, None), dtype="i64")
for _w, _b in ((False, False), (True, False), (True, True)):
    sample("layer_norm", t(3, 2, 4), t(4) if _w else None, t(4) if _b else None, attrs=(1, 1e-5), length=4)
    sample("layer_norm", t(3, 2, 4), t(2, 4) if _w else None, t(2, 4) if _b else None, attrs=(2, 1e-3), length=8)
    sample("group_norm", t(2, 6, 3), t(6) if _w else None, t(6) if _b else None, attrs=(3, 1e-5), length=6)
    sample("batch_norm", t(4, 3), t(3) if _w else None, t(3) if _b else None, None, None, attrs=(True, 1e-5), length=4)
    sample("batch_norm", t(2, 3, 2, 2), t(3) if _w else None, t(3) if _b else None, None, None, attrs=(True, 1e-5), length=8)
    sample("batch_norm", t(4, 3), t(3) if _w else None, t(3) if _b else None, t(3), t(3, low=0.5, high=2), attrs=(False, 1e-5), length=4)
sample("layer_norm", t(0, 4), t(4), t(4), attrs=(1, 1e-5), length=4, grad=False)
sample("layer_norm", v([[0.0, 0.0, 0.0]]), None, None, attrs=(1, 1e-12), name="zeros", dtypes=FLOAT_NAMES, grad=False)
sample("rms_norm", t(3, 4), None, attrs=(1, 1e-5), length=4)
sample("rms_norm", t(3, 2, 4), t(2, 4), attrs=(2, 1e-3), length=8)
error("layer_norm", "weight", ShapeError, t(2, 3), t(2), None, attrs=(1, 1e-5))
error("rms_norm", "weight", ShapeError, t(2, 3), t(2), attrs=(1, 1e-5))
error("group_norm", "groups", ShapeError, t(2, 5), None, None, attrs=(2, 1e-5))
error("batch_norm", "rank", ShapeError, t(3), None, None, None, None, attrs=(True, 1e-5))
error("batch_norm", "statistics", ArgumentError, t(2, 3), None, None, None, None, attrs=(False, 1e-5))

# ---- attention ----------------------------------------------------------------------------------

_mask = v([[True, True, False, True], [False, False, False, False], [True, False, True, True]], "bool")
for _q, _k, _causal, _gqa in (
    ((3, 2), (4, 2), False, False), ((2, 3, 2), (2, 4, 2), True, False),
    ((1, 4, 3, 2), (1, 2, 3, 2), True, True), ((2, 1, 3, 2), (3, 4, 2), False, False),
):  # fmt: skip
    sample("attention", t(*_q), t(*_k), t(*_k[:-1], 3), None, attrs=(_causal, _gqa, 0.6), length=8)
    if not _gqa:
        _heads = _q[:-2] if len(_q) >= len(_k) and _q[0] == 2 and len(_q) == len(_k) else ()
        if len(_q) == len(_k):
            sample("attention_backward", t(*_q[:-1], 3), t(*_q), t(*_k), t(*_k[:-1], 3), None, attrs=(_causal, _gqa, 0.6), dtypes=FLOAT_NAMES, length=16)
for _m in (_mask, t(3, 4)):
    sample("attention", t(2, 3, 2), t(2, 4, 2), t(2, 4, 2), _m, attrs=(False, False, 0.7), length=8)
    sample("attention_backward", t(2, 3, 2), t(2, 3, 2), t(2, 4, 2), t(2, 4, 2), _m, attrs=(False, False, 0.7), dtypes=FLOAT_NAMES, length=16)
sample("attention", t(2, 0, 2), t(2, 4, 2), t(2, 4, 2), None, attrs=(False, False, 0.7))
error("attention", "features", ShapeError, t(3, 2), t(4, 3), t(4, 2), None, attrs=(False, False, 1.0))
error("attention", "mask_dtype", DTypeError, t(3, 2), t(4, 2), t(4, 2), ints([[1] * 4] * 3), attrs=(False, False, 1.0))
error("attention_backward", "not_a_tensor", DTypeError, None, t(3, 2), t(4, 2), t(4, 2), None, attrs=(False, False, 1.0))

# ---- losses -------------------------------------------------------------------------------------

LOSSES = {
    "mse_loss": ((),), "l1_loss": ((),), "smooth_l1_loss": ((1.0,), (0.3,)), "huber_loss": ((1.0,), (0.4,)),
    "binary_cross_entropy": ((),), "binary_cross_entropy_with_logits": ((),),
    "kl_div": ((False,), (True,)),
}  # fmt: skip
for _name, _variants in LOSSES.items():
    _extra = {"binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 2}.get(_name, 0)
    _unit = dict(low=0.05, high=0.95) if _name in ("binary_cross_entropy", "kl_div") else {}
    # Apart from the inputs by neither 0 nor a threshold.
    _goal = dict(low=0.05, high=0.95) if _extra or _name == "kl_div" else dict(low=-1.87, high=2.21)
    for _reduction in ("none", "mean", "sum"):
        for _more in _variants:
            _attrs = (_reduction, *_more)
            sample(_name, t(3, 4, **_unit), t(3, 4, **_goal), *[None] * _extra, attrs=_attrs, length=12)
            if _extra:
                sample(_name, t(3, 4, **_unit), t(3, 4, **_goal), *[t(4, low=0.2, high=2)] * _extra, attrs=_attrs, length=12)
            sample(_name, t(0, **_unit), t(0, **_goal), *[None] * _extra, attrs=_attrs, grad=False)
    error(_name, "shapes", ShapeError, t(2), t(3), *[None] * _extra, attrs=("mean", *_variants[0]))
    error(_name, "reduction", ArgumentError, t(2), t(2), *[None] * _extra, attrs=("max", *_variants[0]))
sample("binary_cross_entropy_with_logits", v([100.0, -100.0, 100.0, -100.0]), v([0.0, 1.0, 1.0, 0.0]), None, None, attrs=("none",), name="large", dtypes=F, grad=False)
_classes = ints([1, 0, 3])
for _reduction in ("none", "mean", "sum"):
    for _weight in (None, t(4, low=0.3, high=2, fixed=True)):
        sample("nll_loss", t(3, 4), _classes, _weight, attrs=(_reduction, -100), length=3)
        sample("nll_loss", t(2, 4, 3), t(2, 3, low=0, high=3, dtype="i64"), _weight, attrs=(_reduction, 1), length=6)
        for _smoothing in (0.0, 0.2):
            sample("cross_entropy", t(3, 4), _classes, _weight, attrs=(_reduction, -100, _smoothing), length=12)
            sample("cross_entropy", t(3, 4), t(3, 4, low=0.1, high=0.9), _weight, attrs=(_reduction, -100, _smoothing), length=12)
        sample("cross_entropy", t(2, 4, 3), t(2, 3, low=0, high=3, dtype="i64"), _weight, attrs=(_reduction, 1, 0.1), length=24)
    sample("nll_loss", t(2, 4), ints([1, 1]), None, attrs=(_reduction, 1), name="all_ignored", grad=False)
    sample("cross_entropy", t(2, 4), ints([1, 1]), None, attrs=(_reduction, 1, 0.0), name="all_ignored", grad=False)
sample("cross_entropy", t(4), ints(2), None, attrs=("mean", -100, 0.0), length=4)
error("nll_loss", "target", ShapeError, t(3, 4), ints([0, 1]), None, attrs=("mean", -100))
error("nll_loss", "float_target", DTypeError, t(3, 4), t(3), None, attrs=("mean", -100))
error("cross_entropy", "target", ShapeError, t(3, 4), ints([0, 1]), None, attrs=("mean", -100, 0.0))
error("cross_entropy", "weight", ShapeError, t(3, 4), _classes, t(3), attrs=("mean", -100, 0.0))
_lengths = (ints([5, 4]), ints([2, 1]))
sample("ctc_loss", v([[[-1.2, -0.9, -1.3, -1.1]] * 2] * 5), ints([[1, 2], [3, 0]]), *_lengths, attrs=(0,), dtypes=F, length=64, grad=False)
sample("ctc_loss", t(5, 2, 4, low=-2.5, high=-0.3), ints([[1, 1], [2, 0]]), *_lengths, attrs=(0,), dtypes=F, length=64, grad=False)
error("ctc_loss", "rank", ShapeError, t(5, 4), ints([[1]]), ints([5]), ints([1]), attrs=(0,))
error("ctc_loss", "blank", ArgumentError, t(5, 1, 4), ints([[1]]), ints([5]), ints([1]), attrs=(9,))

# ---- quantisation -------------------------------------------------------------------------------

for _scheme in (quantized(8), quantized(8, symmetric=False), quantized(4), quantized(8, block=4), quantized(4, symmetric=False, block=3)):
    sample("quantize", t(3, 7), None, None, attrs=(_scheme,), dtypes=("f32",), grad=False)
    sample("quantize", v([[0.0, 0.0, 0.0]]), None, None, attrs=(_scheme,), dtypes=("f32",), name="zeros", grad=False)
    sample("dequantize", ("quantized", t(3, 7), _scheme), attrs=(float32,), dtypes=("f32",), name=_scheme.name)
error("quantize", "dtype", DTypeError, t(3), None, None, attrs=(float32,))
error("quantize", "ints", DTypeError, t(3), None, None, attrs=(quantized(8),), dtype="i32")
error("dequantize", "float", DTypeError, t(3), attrs=(float32,))
