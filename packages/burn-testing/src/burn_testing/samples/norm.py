"""Samples of softmax, normalisation and attention."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import float64
from burn_testing.samples.sample import FLOAT_NAMES, error, ints, sample, t, v

F = ("f32", "f64")

# ---- normalisation -------------------------------------------------------------------------------

for _name in ("softmax", "log_softmax"):
    for _x, _dim in (((3, 4), 1), ((3, 4), 0), ((), 0), ((2, 3, 2), 1), ((0, 3), 1)):
        sample(_name, t(*_x), attrs=(_dim, None), dtypes=FLOAT_NAMES, length=4, grad=True)
    sample(_name, t(3, 4), attrs=(1, float64), length=4, grad=False)
    sample(
        _name,
        v([[1000.0, 1000.0], [-1000.0, 1000.0]]),
        attrs=(1, None),
        name="large",
        dtypes=F,
        grad=False,
    )
    sample(
        _name,
        v([[-float("inf"), 0.0], [-float("inf"), -float("inf")]]),
        attrs=(1, None),
        name="special",
        dtypes=F,
        grad=False,
    )
    error(_name, "ints", DTypeError, t(2), attrs=(0, None), dtype="i64")
for _w, _b in ((False, False), (True, False), (True, True)):
    sample(
        "layer_norm",
        t(3, 2, 4),
        t(4) if _w else None,
        t(4) if _b else None,
        attrs=(1, 1e-5),
        length=4,
    )
    sample(
        "layer_norm",
        t(3, 2, 4),
        t(2, 4) if _w else None,
        t(2, 4) if _b else None,
        attrs=(2, 1e-3),
        length=8,
    )
    sample(
        "group_norm",
        t(2, 6, 3),
        t(6) if _w else None,
        t(6) if _b else None,
        attrs=(3, 1e-5),
        length=6,
    )
    sample(
        "batch_norm",
        t(4, 3),
        t(3) if _w else None,
        t(3) if _b else None,
        None,
        None,
        attrs=(True, 1e-5),
        length=4,
    )
    sample(
        "batch_norm",
        t(2, 3, 2, 2),
        t(3) if _w else None,
        t(3) if _b else None,
        None,
        None,
        attrs=(True, 1e-5),
        length=8,
    )
    sample(
        "batch_norm",
        t(4, 3),
        t(3) if _w else None,
        t(3) if _b else None,
        t(3),
        t(3, low=0.5, high=2),
        attrs=(False, 1e-5),
        length=4,
    )
    for _training in (True, False):
        sample(
            "batch_norm_backward",
            t(4, 3, 2, 2),
            t(4, 3, 2, 2),
            t(3) if _w else None,
            t(3),
            t(3, low=0.5, high=2),
            attrs=(_training, 1e-5),
            length=16,
        )
sample("layer_norm", t(0, 4), t(4), t(4), attrs=(1, 1e-5), length=4, grad=False)
sample(
    "layer_norm",
    v([[0.0, 0.0, 0.0]]),
    None,
    None,
    attrs=(1, 1e-12),
    name="zeros",
    dtypes=FLOAT_NAMES,
    grad=False,
)
sample("rms_norm", t(3, 4), None, attrs=(1, 1e-5), length=4)
sample("rms_norm", t(3, 2, 4), t(2, 4), attrs=(2, 1e-3), length=8)
error("layer_norm", "weight", ShapeError, t(2, 3), t(2), None, attrs=(1, 1e-5))
error("rms_norm", "weight", ShapeError, t(2, 3), t(2), attrs=(1, 1e-5))
error("group_norm", "groups", ShapeError, t(2, 5), None, None, attrs=(2, 1e-5))
error(
    "batch_norm_backward", "output", ShapeError, t(2, 4), t(2, 3), None, t(3), t(3),
    attrs=(True, 1e-5),
)  # fmt: skip
error("batch_norm", "rank", ShapeError, t(3), None, None, None, None, attrs=(True, 1e-5))
error(
    "batch_norm", "statistics", ArgumentError, t(2, 3), None, None, None, None, attrs=(False, 1e-5)
)

# ---- attention -----------------------------------------------------------------------------------

_mask = v(
    [[True, True, False, True], [False, False, False, False], [True, False, True, True]], "bool"
)


def _attention_backward(q: tuple[int, ...], k: tuple[int, ...], mask: Any, causal: bool) -> None:
    """Add a backward; sums of halves are float32."""
    rows = (*q[:-1], 3)
    for kinds, kept in ((("bf16", "f16", "f32"), "f32"), (("f64",), "f64")):
        sample(
            "attention_backward", t(*rows), t(*q), t(*k), t(*k[:-1], 3), mask, t(*rows),
            t(*q[:-1], low=2.0, high=4.0, dtype=kept), attrs=(causal, False, 0.6), dtypes=kinds,
            length=16,
        )  # fmt: skip


for _q, _k, _causal, _gqa in (
    ((3, 2), (4, 2), False, False), ((2, 3, 2), (2, 4, 2), True, False),
    ((1, 4, 3, 2), (1, 2, 3, 2), True, True), ((2, 1, 3, 2), (3, 4, 2), False, False),
):  # fmt: skip
    sample("attention", t(*_q), t(*_k), t(*_k[:-1], 3), None, attrs=(_causal, _gqa, 0.6), length=8)
    if not _gqa and len(_q) == len(_k):
        _attention_backward(_q, _k, None, _causal)
_seen = v(
    [[True, True, False, True], [False, True, False, False], [True, False, True, True]], "bool"
)
for _m in (_mask, _seen, t(3, 4)):
    # The sum of a row that sees nothing is infinite.
    sample(
        "attention", t(2, 3, 2), t(2, 4, 2), t(2, 4, 2), _m, attrs=(False, False, 0.7), length=8,
        grad=_m is not _mask,
    )  # fmt: skip
    _attention_backward((2, 3, 2), (2, 4, 2), _m, False)
sample("attention", t(2, 0, 2), t(2, 4, 2), t(2, 4, 2), None, attrs=(False, False, 0.7))
error(
    "attention", "features", ShapeError, t(3, 2), t(4, 3), t(4, 2), None, attrs=(False, False, 1.0)
)
error(
    "attention",
    "mask_dtype",
    DTypeError,
    t(3, 2),
    t(4, 2),
    t(4, 2),
    ints([[1] * 4] * 3),
    attrs=(False, False, 1.0),
)
error(
    "attention_backward",
    "not_a_tensor",
    DTypeError,
    None,
    t(3, 2),
    t(4, 2),
    t(4, 2),
    None,
    t(3, 2),
    t(3),
    attrs=(False, False, 1.0),
)
error(
    "attention_backward", "sums", ShapeError, t(3, 2), t(3, 2), t(4, 2), t(4, 2), None, t(3, 2),
    t(4), attrs=(False, False, 1.0),
)  # fmt: skip
error(
    "attention_backward", "sums_dtype", DTypeError, t(3, 2), t(3, 2), t(4, 2), t(4, 2), None,
    t(3, 2), t(3, dtype="f64"), attrs=(False, False, 1.0),
)  # fmt: skip
