"""Samples of convolution and its gradients."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_testing.samples.sample import FLOAT_NAMES, error, sample, t

# The loops below reuse these names for tuples of many kinds.
_attrs: Any

CONVS = (
    ((2, 3, 7), (4, 3, 3), True, (1,), (0,), (1,), 1),
    ((1, 4, 8), (6, 2, 3), True, (2,), (1,), (2,), 2),
    ((2, 1, 4), (1, 1, 1), False, (2,), (0,), (1,), 1),
    ((2, 2, 5, 6), (3, 2, 3, 2), True, (1, 2), (1, 0), (1, 1), 1),
    ((1, 4, 5, 5), (4, 1, 3, 3), False, (1, 1), (1, 1), (1, 1), 4),
    ((1, 2, 3, 4, 4), (2, 2, 2, 2, 2), True, (1, 2, 1), (0, 1, 0), (1, 1, 2), 1),
    ((0, 3, 7), (4, 3, 3), True, (1,), (0,), (1,), 1),
)


def _conv_shape(x: Any, w: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
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
    error(
        _name, "not_a_tensor", DTypeError, None, t(1, 1, 3), attrs=((1,), (0,), (1,), 1, (1, 1, 5))
    )

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
error(
    "conv_transpose",
    "output_padding",
    ArgumentError,
    t(1, 1, 5),
    t(1, 1, 3),
    None,
    attrs=((1,), (0,), (1,), (1,), 1),
)
