"""Samples of the updates of many parameters as one operation, and of maps over many tensors."""

from __future__ import annotations

from typing import Any

from burn_std import DTypeError, ShapeError
from burn_testing.samples.sample import error, ints, sample, t, v

F = ("f32", "f64")
STEP, LATER, WHOLE = ints(0), ints(3), ints([1, 2])
SHAPES = ((3, 2), (4,))
PARAMS, GRADS = [t(*s) for s in SHAPES], [t(*s) for s in SHAPES]
# Squares are positive; averages are small, so that a variance of both is positive too.
SQUARES = [t(*s, low=0.1, high=0.9) for s in SHAPES]
AVERAGES = [t(*s, low=0.02, high=0.2) for s in SHAPES]
SKIP, GO = v(True, "bool"), v(False, "bool")


def _steps(
    name: str, lists: list[Any], attrs: tuple[Any, ...], extra: tuple[Any, ...] = ()
) -> None:
    """Add the first step, a later one, and both answers of `skip`."""
    for step in (STEP, LATER):
        sample(name, *lists, step, *extra, None, attrs=attrs, dtypes=F)
    sample(name, *lists, LATER, *extra, SKIP, attrs=attrs, dtypes=F, name="skipped")
    sample(name, *lists, LATER, *extra, GO, attrs=attrs, dtypes=F, name="not_skipped")


def _refused(name: str, lists: int, attrs: tuple[Any, ...], extra: tuple[Any, ...] = ()) -> None:
    """Add the calls that every update refuses."""
    more: list[list[Any]] = [[]] * (lists - 2)
    error(name, "not_a_list", DTypeError, t(2), [t(2)], *more, STEP, *extra, None, attrs=attrs)
    error(
        name, "shapes", ShapeError, [t(2)], [t(3)], *more, STEP, *extra, None, attrs=attrs,
        ops=("update",),
    )  # fmt: skip
    for which, params, grads in (("params", [WHOLE], [t(2)]), ("grads", [t(2)], [WHOLE])):
        error(
            name, f"integer_{which}", DTypeError, params, grads, *more, STEP, *extra, None,
            attrs=attrs, ops=(name, "update"),
        )  # fmt: skip


BASE = [PARAMS, GRADS]
# nesterov, maximize, lr, momentum, dampening, weight_decay
for _sgd in (
    (False, False, 0.1, 0.0, 0.0, 0.0), (False, False, 0.1, 0.9, 0.0, 0.01),
    (True, False, 0.1, 0.9, 0.0, 0.0), (False, True, 0.05, 0.5, 0.3, 0.1),
):  # fmt: skip
    _steps("sgd_step", [*BASE, SQUARES if _sgd[3] else []], _sgd)
# decoupled, maximize, lr, beta1, beta2, eps, weight_decay
ADAM = (
    (False, False, 0.01, 0.9, 0.999, 1e-8, 0.0), (True, False, 0.01, 0.9, 0.99, 1e-8, 0.05),
    (False, True, 0.02, 0.8, 0.9, 1e-6, 0.1),
)  # fmt: skip
for _adam in ADAM:
    for _maxima in ([], SQUARES):
        _steps("adam_step", [*BASE, AVERAGES, SQUARES, _maxima], _adam)
    _steps("radam_step", [*BASE, AVERAGES, SQUARES], _adam)
    _steps("nadam_step", [*BASE, AVERAGES, SQUARES], (*_adam, 0.004), (v(0.8, "f64"),))
    _steps("adamax_step", [*BASE, AVERAGES, SQUARES], _adam[1:])
    _steps("lamb_step", [*BASE, AVERAGES, SQUARES], _adam[1:])
# Where the squares of RAdam are used at last.
sample(
    "radam_step",
    *BASE,
    AVERAGES,
    SQUARES,
    ints(30),
    None,
    attrs=ADAM[0],
    dtypes=F,
    name="rectified",
)
# A zero norm trusts the move as it is.
sample(
    "lamb_step", [v([0.0, 0.0])], [t(2)], [v([0.0, 0.0])], [v([0.0, 0.0])], STEP, None,
    attrs=ADAM[0][1:], dtypes=F, name="zero_norm",
)  # fmt: skip
# maximize, lr, alpha, eps, weight_decay, momentum
for _averages, _momenta, _rms in (
    ([], [], (False, 0.01, 0.99, 1e-8, 0.0, 0.0)),
    (AVERAGES, SQUARES, (False, 0.01, 0.95, 1e-6, 0.01, 0.5)),
    ([], SQUARES, (True, 0.01, 0.9, 1e-8, 0.1, 0.9)),
):
    _steps("rmsprop_step", [*BASE, SQUARES, _averages, _momenta], _rms)
# maximize, lr, lr_decay, eps, weight_decay
for _grad in ((False, 0.1, 0.0, 1e-10, 0.0), (True, 0.1, 0.2, 1e-6, 0.1)):
    _steps("adagrad_step", [*BASE, SQUARES], _grad)
# maximize, lr, rho, eps, weight_decay
for _delta in ((False, 1.0, 0.9, 1e-6, 0.0), (True, 0.5, 0.8, 1e-5, 0.1)):
    _steps("adadelta_step", [*BASE, SQUARES, AVERAGES], _delta)
# maximize, lr, beta1, beta2, weight_decay
for _lion in ((False, 0.01, 0.9, 0.99, 0.0), (True, 0.02, 0.8, 0.9, 0.1)):
    _steps("lion_step", [*BASE, SQUARES], _lion)
# maximize, lr, lambd, alpha, t0, weight_decay
for _asgd in ((False, 0.01, 1e-4, 0.75, 1e6, 0.0), (True, 0.1, 0.1, 0.5, 1.0, 0.1)):
    _steps("asgd_step", [*BASE, PARAMS], _asgd)
# maximize, lr, etaminus, etaplus, least, most
for _rprop in ((False, 0.01, 0.5, 1.2, 1e-6, 50.0), (True, 0.1, 0.3, 1.5, 0.2, 0.6)):
    _steps("rprop_step", [*BASE, GRADS, SQUARES], _rprop)
    _steps("rprop_step", [*BASE, PARAMS, SQUARES], _rprop)
# no_prox, lr, beta1, beta2, beta3, eps, weight_decay
for _adan in ((False, 0.01, 0.98, 0.92, 0.99, 1e-8, 0.1), (True, 0.02, 0.9, 0.9, 0.9, 1e-6, 0.1)):
    _steps("adan_step", [*BASE, AVERAGES, AVERAGES, SQUARES, GRADS], _adan)
# maximize, lr, beta2_decay, eps1, eps2, d, weight_decay
for _factor in (
    (False, 0.01, -0.8, 1e-7, 1e-3, 1.0, 0.0), (True, 0.5, -0.5, 1e-5, 1e-2, 0.5, 0.1),
):  # fmt: skip
    _steps("adafactor_step", [*BASE, [], [], SQUARES], _factor)
    _whole = [t(3, 2), t(2, 3, 4)]
    _rows = [t(3, 1, low=0.1, high=0.9), t(2, 3, 1, low=0.1, high=0.9)]
    _columns = [t(1, 2, low=0.1, high=0.9), t(2, 1, 4, low=0.1, high=0.9)]
    _steps("adafactor_step", [_whole, _whole, _rows, _columns, []], _factor)
# nesterov, match_rms, steps, lr, momentum, weight_decay, a, b, c, eps
_NS = (3.4445, -4.775, 2.0315, 1e-7)
for _muon in (
    (True, False, 5, 0.02, 0.95, 0.1, *_NS), (False, True, 3, 0.1, 0.9, 0.0, *_NS),
):  # fmt: skip
    for _shape in ((3, 2), (2, 3)):
        # f32 and a small rate: the iteration itself holds bfloat16.
        _steps("muon_step", [[t(*_shape)], [t(*_shape)], [t(*_shape, low=0.1)]], _muon)

_refused("sgd_step", 3, (False, False, 0.1, 0.0, 0.0, 0.0))
_refused("adam_step", 5, ADAM[0])
_refused("radam_step", 4, ADAM[0])
_refused("nadam_step", 4, (*ADAM[0], 0.004), (v(1.0, "f64"),))
_refused("adamax_step", 4, ADAM[0][1:])
_refused("lamb_step", 4, ADAM[0][1:])
_refused("rmsprop_step", 5, (False, 0.01, 0.99, 1e-8, 0.0, 0.0))
_refused("adagrad_step", 3, (False, 0.1, 0.0, 1e-10, 0.0))
_refused("adadelta_step", 4, (False, 1.0, 0.9, 1e-6, 0.0))
_refused("lion_step", 3, (False, 0.01, 0.9, 0.99, 0.0))
_refused("asgd_step", 3, (False, 0.01, 1e-4, 0.75, 1e6, 0.0))
_refused("rprop_step", 4, (False, 0.01, 0.5, 1.2, 1e-6, 50.0))
_refused("adan_step", 6, (False, 0.01, 0.98, 0.92, 0.99, 1e-8, 0.0))
error(
    "adafactor_step", "no_states", ShapeError, [t(2)], [t(2)], [], [], [], STEP, None,
    attrs=(False, 0.01, -0.8, 1e-7, 1e-3, 1.0, 0.0),
)  # fmt: skip
error(
    "muon_step", "not_a_matrix", ShapeError, [t(2)], [t(2)], [t(2)], STEP, None,
    attrs=(True, False, 5, 0.02, 0.95, 0.1, *_NS),
)  # fmt: skip
WHOLES = ints([[1, 2]])
error(
    "adafactor_step", "integer_params", DTypeError, [WHOLE], [t(2)], [], [], [t(2)], STEP, None,
    attrs=(False, 0.01, -0.8, 1e-7, 1e-3, 1.0, 0.0),
)  # fmt: skip
error(
    "adafactor_step", "integer_grads", DTypeError, [t(2)], [WHOLE], [], [], [t(2)], STEP, None,
    attrs=(False, 0.01, -0.8, 1e-7, 1e-3, 1.0, 0.0),
)  # fmt: skip
for _which, _two in (("params", [[WHOLES], [t(1, 2)]]), ("grads", [[t(1, 2)], [WHOLES]])):
    error(
        "muon_step", f"integer_{_which}", DTypeError, *_two, [t(1, 2)], STEP, None,
        attrs=(True, False, 5, 0.02, 0.95, 0.1, *_NS), ops=("update",),
    )  # fmt: skip

ONE = v(0.25)
for _p in (1.0, 2.0, 3.0, float("inf")):
    sample("norm_all", PARAMS, attrs=(_p,), dtypes=F, length=10, name=f"p{_p:g}")
    sample("norm_all", [t(0), t()], attrs=(_p,), dtypes=F, name=f"empty_p{_p:g}")
    sample("norm_all", [t(3, 2)], attrs=(_p,), length=6, name=f"halves_p{_p:g}")
sample("norm_all", [v([1.0, float("nan")])], attrs=(2.0,), dtypes=F, name="special")
sample("norm_all", [v([1.0, float("nan")])], attrs=(float("inf"),), dtypes=F, name="special_max")
sample("scale_all", PARAMS, ONE)
sample("scale_all", [t(0), t()], v(0.5, "f64"), name="factor_of_another_dtype")
for _name in ("add_scaled_all", "lerp_all"):
    sample(_name, PARAMS, GRADS, ONE)
    sample(_name, [t(0), t()], [t(0), t()], v(0.5, "f64"), name="factor_of_another_dtype")
    error(_name, "shapes", ShapeError, [t(2)], [t(3)], ONE)
error("norm_all", "none", DTypeError, [], attrs=(2.0,))
error("scale_all", "rank", ShapeError, [t(2)], t(2))
