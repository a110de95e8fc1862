"""Samples of resampling, grid sampling and windows."""

from __future__ import annotations

from typing import Any

from burn_std import DTypeError, ShapeError
from burn_testing.samples.sample import FLOAT_NAMES, error, sample, t

# The loops below reuse these names for tuples of many kinds.
_attrs: Any

F = ("f32", "f64")

for _mode, _x, _size in (
    ("nearest", (2, 2, 5), (7,)),
    ("nearest-exact", (1, 2, 3, 4), (5, 2)),
    ("linear", (2, 1, 4), (7,)),
    ("bilinear", (1, 2, 3, 4), (5, 6)),
    ("bicubic", (1, 1, 4, 5), (6, 3)),
    ("trilinear", (1, 1, 2, 3, 2), (3, 4, 3)),
    ("linear", (1, 1, 4), (1,)),
):
    for _corners in (False, True) if "linear" in _mode or _mode == "bicubic" else (False,):
        _attrs = (_mode, _corners, _size, (None,) * len(_size))
        sample("interpolate", t(*_x), attrs=_attrs, dtypes=FLOAT_NAMES, length=16)
        sample(
            "interpolate_backward",
            t(*_x[:2], *_size),
            attrs=(*_attrs, _x),
            dtypes=FLOAT_NAMES,
            length=16,
        )
error("interpolate", "rank", ShapeError, t(2, 3), attrs=("linear", False, (4,), (None,)))
error("interpolate", "size", ShapeError, t(1, 1, 3), attrs=("linear", False, (0,), (None,)))
error(
    "interpolate_backward",
    "not_a_tensor",
    DTypeError,
    None,
    attrs=("linear", False, (4,), (None,), (1, 1, 3)),
)
_smooth = {"bilinear": True, "bicubic": True, "nearest": False}
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _corners in (False, True):
            _attrs = (_mode, _padding, _corners)
            sample(
                "grid_sample",
                t(2, 2, 4, 5),
                t(2, 3, 2, 2, low=-1.3, high=1.3),
                attrs=_attrs,
                dtypes=F,
                grad=_smooth[_mode],
                length=16,
            )
            sample(
                "grid_sample_backward",
                t(2, 2, 3, 2),
                t(2, 2, 4, 5),
                t(2, 3, 2, 2, low=-1.3, high=1.3),
                attrs=_attrs,
                dtypes=F,
                length=16,
            )
sample(
    "grid_sample",
    t(1, 2, 3, 3, 3),
    t(1, 2, 2, 2, 3, low=-1, high=1),
    attrs=("bilinear", "zeros", False),
    dtypes=F,
    length=8,
)
error(
    "grid_sample",
    "grid",
    ShapeError,
    t(1, 1, 3, 3),
    t(1, 2, 2, 3),
    attrs=("bilinear", "zeros", False),
)
error(
    "grid_sample_backward",
    "not_a_tensor",
    DTypeError,
    None,
    t(1, 1, 3, 3),
    t(1, 2, 2, 2),
    attrs=("bilinear", "zeros", False),
)
for _k, _d, _p, _s, _l in (
    ((2, 2), (1, 1), (0, 0), (1, 1), 12),
    ((2, 3), (2, 1), (1, 1), (2, 1), 10),
):
    sample("unfold", t(1, 2, 4, 5), attrs=(_k, _d, _p, _s), dtypes=FLOAT_NAMES)
    sample(
        "fold",
        t(1, 2 * _k[0] * _k[1], _l),
        attrs=(_k, _d, _p, _s, (4, 5)),
        dtypes=FLOAT_NAMES,
        length=6,
    )
error("unfold", "rank", ShapeError, t(4, 5), attrs=((2, 2), (1, 1), (0, 0), (1, 1)))
error("fold", "blocks", ShapeError, t(1, 4, 7), attrs=((2, 2), (1, 1), (0, 0), (1, 1), (4, 5)))
