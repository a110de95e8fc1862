"""Samples of losses."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_testing.samples.sample import error, ints, sample, t, v

# The loops below reuse these names for tuples of many kinds.
_unit: Any
_goal: Any

F = ("f32", "f64")

LOSSES = {
    "mse_loss": ((),), "l1_loss": ((),), "smooth_l1_loss": ((1.0,), (0.3,)),
    "huber_loss": ((1.0,), (0.4,)),
    "binary_cross_entropy": ((),), "binary_cross_entropy_with_logits": ((),),
    "kl_div": ((False,), (True,)),
}  # fmt: skip
for _name, _variants in LOSSES.items():
    _extra = {"binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 2}.get(_name, 0)
    _unit = {"low": 0.05, "high": 0.95} if _name in ("binary_cross_entropy", "kl_div") else {}
    # Apart from the inputs by neither 0 nor a threshold.
    _goal = (
        {"low": 0.05, "high": 0.95} if _extra or _name == "kl_div" else {"low": -1.87, "high": 2.21}
    )
    for _reduction in ("none", "mean", "sum"):
        for _more in _variants:
            _attrs = (_reduction, *_more)
            sample(
                _name, t(3, 4, **_unit), t(3, 4, **_goal), *[None] * _extra, attrs=_attrs, length=12
            )
            if _extra:
                sample(
                    _name,
                    t(3, 4, **_unit),
                    t(3, 4, **_goal),
                    *[t(4, low=0.2, high=2)] * _extra,
                    attrs=_attrs,
                    length=12,
                )
            sample(_name, t(0, **_unit), t(0, **_goal), *[None] * _extra, attrs=_attrs, grad=False)
    error(_name, "shapes", ShapeError, t(2), t(3), *[None] * _extra, attrs=("mean", *_variants[0]))
    error(
        _name,
        "reduction",
        ArgumentError,
        t(2),
        t(2),
        *[None] * _extra,
        attrs=("max", *_variants[0]),
    )
sample(
    "binary_cross_entropy_with_logits",
    v([100.0, -100.0, 100.0, -100.0]),
    v([0.0, 1.0, 1.0, 0.0]),
    None,
    None,
    attrs=("none",),
    name="large",
    dtypes=F,
    grad=False,
)
_classes = ints([1, 0, 3])
for _reduction in ("none", "mean", "sum"):
    for _weight in (None, t(4, low=0.3, high=2, fixed=True)):
        sample("nll_loss", t(3, 4), _classes, _weight, attrs=(_reduction, -100), length=3)
        sample(
            "nll_loss",
            t(2, 4, 3),
            t(2, 3, low=0, high=3, dtype="i64"),
            _weight,
            attrs=(_reduction, 1),
            length=6,
        )
        for _smoothing in (0.0, 0.2):
            sample(
                "cross_entropy",
                t(3, 4),
                _classes,
                _weight,
                attrs=(_reduction, None, -100, _smoothing),
                length=12,
            )
            sample(
                "cross_entropy",
                t(3, 4),
                t(3, 4, low=0.1, high=0.9),
                _weight,
                attrs=(_reduction, None, -100, _smoothing),
                length=12,
            )
        sample(
            "cross_entropy",
            t(2, 4, 3),
            t(2, 3, low=0, high=3, dtype="i64"),
            _weight,
            attrs=(_reduction, None, 1, 0.1),
            length=24,
        )
    sample(
        "nll_loss",
        t(2, 4),
        ints([1, 1]),
        None,
        attrs=(_reduction, 1),
        name="all_ignored",
        grad=False,
    )
    sample(
        "cross_entropy",
        t(2, 4),
        ints([1, 1]),
        None,
        attrs=(_reduction, None, 1, 0.0),
        name="all_ignored",
        grad=False,
    )
sample("cross_entropy", t(4), ints(2), None, attrs=("mean", None, -100, 0.0), length=4)
for _reduction in ("none", "mean", "sum"):
    for _weight in (None, t(4, low=0.3, high=2, fixed=True)):
        for _smoothing in (0.0, 0.2):
            sample(
                "cross_entropy_backward",
                t(3) if _reduction == "none" else t(),
                t(3, 4),
                _classes,
                _weight,
                attrs=(_reduction, None, 3, _smoothing),
                length=12,
            )
            sample(
                "cross_entropy_backward",
                t(2, 3) if _reduction == "none" else t(),
                t(2, 4, 3),
                t(2, 3, low=0, high=3, dtype="i64"),
                _weight,
                attrs=(_reduction, None, 1, _smoothing),
                length=24,
            )
    sample(
        "cross_entropy_backward",
        t(2) if _reduction == "none" else t(),
        t(2, 4),
        ints([1, 1]),
        None,
        attrs=(_reduction, None, 1, 0.1),
        name="all_ignored",
        grad=False,
    )
sample(
    "cross_entropy_backward", t(), t(4), ints(2), None, attrs=("mean", None, -100, 0.1), length=4
)
error(
    "cross_entropy_backward",
    "g",
    ShapeError,
    t(2),
    t(3, 4),
    _classes,
    None,
    attrs=("none", None, -100, 0.0),
)
error(
    "cross_entropy_backward",
    "soft_target",
    DTypeError,
    t(),
    t(3, 4),
    t(3, 4),
    None,
    attrs=("mean", None, -100, 0.0),
)
error("nll_loss", "target", ShapeError, t(3, 4), ints([0, 1]), None, attrs=("mean", -100))
error("nll_loss", "float_target", DTypeError, t(3, 4), t(3), None, attrs=("mean", -100))
error(
    "cross_entropy",
    "target",
    ShapeError,
    t(3, 4),
    ints([0, 1]),
    None,
    attrs=("mean", None, -100, 0.0),
)
error(
    "cross_entropy", "weight", ShapeError, t(3, 4), _classes, t(3), attrs=("mean", None, -100, 0.0)
)
_lengths = (ints([5, 4]), ints([2, 1]))
sample(
    "ctc_loss",
    v([[[-1.2, -0.9, -1.3, -1.1]] * 2] * 5),
    ints([[1, 2], [3, 0]]),
    *_lengths,
    attrs=(0,),
    dtypes=F,
    length=64,
    grad=False,
)
sample(
    "ctc_loss",
    t(5, 2, 4, low=-2.5, high=-0.3),
    ints([[1, 1], [2, 0]]),
    *_lengths,
    attrs=(0,),
    dtypes=F,
    length=64,
    grad=False,
)
error("ctc_loss", "rank", ShapeError, t(5, 4), ints([[1]]), ints([5]), ints([1]), attrs=(0,))
error("ctc_loss", "blank", ArgumentError, t(5, 1, 4), ints([[1]]), ints([5]), ints([1]), attrs=(9,))
