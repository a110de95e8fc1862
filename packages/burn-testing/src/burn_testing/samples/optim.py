"""Samples of the updates of many parameters as one operation."""

from __future__ import annotations

from typing import Any

from burn_std import DTypeError
from burn_testing.samples.sample import error, ints, sample, t, v

# The loops below reuse these names for tuples of many kinds.
_attrs: Any

F = ("f32", "f64")
STEP = ints(0)
LATER = ints(3)
PARAMS, GRADS, STATE = (
    [t(3, 2), t(4)],
    [t(3, 2), t(4)],
    [t(3, 2, low=0.1, high=0.9), t(4, low=0.1, high=0.9)],
)
SKIP, GO = v(True, "bool"), v(False, "bool")

# nesterov, maximize, lr, momentum, dampening, weight_decay
for _attrs in (
    (False, False, 0.1, 0.0, 0.0, 0.0), (False, False, 0.1, 0.9, 0.0, 0.01),
    (True, False, 0.1, 0.9, 0.0, 0.0), (False, True, 0.05, 0.5, 0.3, 0.1),
):  # fmt: skip
    _momenta = STATE if _attrs[3] else []
    for _step in (STEP, LATER):
        sample("sgd_step", PARAMS, GRADS, _momenta, _step, None, attrs=_attrs, dtypes=F)
    sample("sgd_step", PARAMS, GRADS, _momenta, LATER, SKIP, attrs=_attrs, dtypes=F, name="skipped")
    sample(
        "sgd_step", PARAMS, GRADS, _momenta, LATER, GO, attrs=_attrs, dtypes=F, name="not_skipped"
    )
# decoupled, maximize, lr, beta1, beta2, eps, weight_decay
for _attrs in (
    (False, False, 0.01, 0.9, 0.999, 1e-8, 0.0), (True, False, 0.01, 0.9, 0.99, 1e-8, 0.05),
    (False, True, 0.02, 0.8, 0.9, 1e-6, 0.1),
):  # fmt: skip
    for _maxima in ([], STATE):
        for _step in (STEP, LATER):
            sample(
                "adam_step",
                PARAMS,
                GRADS,
                STATE,
                STATE,
                _maxima,
                _step,
                None,
                attrs=_attrs,
                dtypes=F,
            )
        sample(
            "adam_step",
            PARAMS,
            GRADS,
            STATE,
            STATE,
            _maxima,
            LATER,
            SKIP,
            attrs=_attrs,
            dtypes=F,
            name="skipped",
        )
        sample(
            "adam_step",
            PARAMS,
            GRADS,
            STATE,
            STATE,
            _maxima,
            LATER,
            GO,
            attrs=_attrs,
            dtypes=F,
            name="not_skipped",
        )
error(
    "sgd_step",
    "not_a_list",
    DTypeError,
    3.0,
    [t(2)],
    [],
    STEP,
    None,
    attrs=(False, False, 0.1, 0.0, 0.0, 0.0),
)
error(
    "adam_step",
    "not_a_list",
    DTypeError,
    3.0,
    [t(2)],
    [],
    [],
    [],
    STEP,
    None,
    attrs=(False, False, 0.1, 0.9, 0.999, 1e-8, 0.0),
)
