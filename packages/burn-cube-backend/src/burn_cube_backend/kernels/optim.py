"""Updates of SGD and Adam: all parameters in few launches, and one before them for the step.

Parameter and states are read once and written once; 16-bit ones are updated in float32. Steps are
counted on the device, so nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.late import real
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

Tensors = Sequence[CubeTensor]


class Step(NamedTuple):
    """What an update's kernel depends on.

    Attributes:
        rule: `sgd` or `adam`.
        dtypes: of parameter, gradient and states.
        skip: a number says whether everything stays as it was.
        maximize: the gradient is turned round.
        flag: `nesterov` of SGD, `decoupled` of Adam.
        decays: there is a weight decay.
        places: dtype of places.
    """

    rule: str
    dtypes: tuple[DType, ...]
    skip: bool
    maximize: bool
    flag: bool
    decays: bool
    places: DType


# Parameters of one launch on a GPU, where a launch of few elements costs as much as one of many.
_TOGETHER = 12
# Numbers of a kernel by rule, in order; 1 - beta is a number of its own, made in float64, as the
# difference would lose the digits of a beta near 1 in float32.
_NUMBERS = {
    "sgd": ("lr", "momentum", "rest", "decay"),
    "adam": ("lr", "beta1", "beta2", "rest1", "rest2", "eps", "decay"),
}


def count_kernel(rule: str, dtype: DType, skip: bool) -> Kernel:
    """Write the new step and what the update takes from the old one, in float64.

    SGD: whether it is the first; Adam: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t).
    """
    code = Code(f"{rule}_count", d.int64, 1)
    new, facts = code.buffer("new", dtype), code.buffer("facts", d.float64)
    step = code.buffer("step", dtype)
    stays = code.buffer("skip", d.bool_) if skip else None
    offset, skip0 = code.place("offset"), code.place("skip_offset")
    numbers = {n: code.scalar(n, d.float64) for n in _NUMBERS[rule]}
    with code.each(code.at(1)) as i:
        old = step[offset]
        after = old.cast(d.float64) + 1
        made = after.cast(dtype)
        new[i] = made if stays is None else stays[skip0].pick(old, made)
        if rule == "sgd":
            facts[i] = old.cast(d.float64).eq(0).pick(code.const(1, d.float64), 0.0)
        else:
            first, second = (1 - numbers[b].call("pow", after) for b in ("beta1", "beta2"))
            facts[i] = numbers["lr"] / first
            facts[i + 1] = 1.0 / second.call("sqrt")
    return code.finish()


def update_kernel(s: Step, many: int) -> Kernel:
    """Write parameters and their states after a step, `many` of them, each in cubes of its own."""
    code = Code(f"{s.rule}_step", s.places)
    kind = wide(s.dtypes[0])
    kept = (s.dtypes[0], *s.dtypes[2:])
    each = [
        _Tensors(
            [code.buffer(f"new{j}_{k}", t) for k, t in enumerate(kept)],
            [code.buffer(f"old{j}_{k}", t) for k, t in enumerate(s.dtypes)],
        )
        for j in range(many)
    ]
    facts = code.buffer("facts", d.float64)
    stays = code.buffer("skip", d.bool_) if s.skip else None
    skip0 = code.place("skip_offset")
    places = [
        (
            code.place(f"start{j}"),
            code.place(f"count{j}"),
            code.places(f"offset{j}_", len(s.dtypes)),
        )
        for j in range(many)
    ]
    numbers = {n: code.scalar(n, kind) for n in _NUMBERS[s.rule]}

    def update(i: Val, tensors: _Tensors, offsets: Sequence[Val]) -> None:
        p, g, *states = (
            b[o + i].cast(kind) for b, o in zip(tensors.olds, offsets, strict=True)
        )  # fmt: skip
        fact = [facts[code.at(k)] for k in range(1 if s.rule == "sgd" else 2)]
        g = -g if s.maximize else g
        if s.decays and not (s.rule == "adam" and s.flag):
            g = g + p * numbers["decay"]
        made = (_sgd if s.rule == "sgd" else _adam)(s, p, g, states, fact, numbers, kind)
        for k, (new, t, value) in enumerate(zip(tensors.news, kept, made, strict=True)):
            narrow = value.cast(t)
            if stays is not None:
                at = 0 if k == 0 else k + 1  # the gradient is no state
                narrow = stays[skip0].pick(tensors.olds[at][offsets[at] + i], narrow)
            new[i] = narrow

    if many == 1:
        with code.each(places[0][1]) as i:
            update(i, each[0], places[0][2])
        return code.finish()
    unit = code.special("absolute_pos")
    for tensors, (start, count, offsets) in zip(each, places, strict=True):
        with code.when((unit >= start) & (unit - start < count)):
            update(unit - start, tensors, offsets)
    return code.finish()


class _Tensors(NamedTuple):
    """The buffers of one parameter: what is written, and what is read."""

    news: Sequence[Buf]
    olds: Sequence[Buf]


def _sgd(
    s: Step, p: Val, g: Val, states: Sequence[Val], fact: Sequence[Val], n: dict[str, Val],
    kind: DType,
) -> list[Val]:  # fmt: skip
    if not states:
        return [p - g * n["lr"]]
    grown = states[0] * n["momentum"] + g * n["rest"]
    held = fact[0].ne(0.0).pick(g, grown)
    moved = g + held * n["momentum"] if s.flag else held
    return [p - moved * n["lr"], held]


def _adam(
    s: Step, p: Val, g: Val, states: Sequence[Val], fact: Sequence[Val], n: dict[str, Val],
    kind: DType,
) -> list[Val]:  # fmt: skip
    size, root = (f.cast(kind) for f in fact)
    if s.flag and s.decays:
        p = p * (1.0 - n["lr"] * n["decay"])
    m = states[0] + (g - states[0]) * n["rest1"]
    v = states[1] * n["beta2"] + g * g * n["rest2"]
    top = [states[2].call("max", v)] if len(states) > 2 else []
    below = (top[0] if top else v).call("sqrt") * root + n["eps"]
    return [p - size * (m / below), m, v, *top]


def _updated(
    engine: Engine, rule: str, lists: Sequence[Tensors], step: CubeTensor,
    skip: CubeTensor | None, flag: bool, maximize: bool, numbers: Sequence[float],
) -> list[CubeTensor]:  # fmt: skip
    numbers = [real(n) for n in numbers]
    new_step, facts = engine.empty((), step.dtype), engine.empty((2,), d.float64)
    extra = [] if skip is None else [skip.buf]
    skip0 = 0 if skip is None else skip.offset
    args: list[Any] = [new_step.buf, facts.buf, step.buf, *extra, step.offset, skip0, *numbers]
    engine.run(count_kernel, (rule, step.dtype, skip is not None), 1, args)
    used = [group for group in lists if group]
    out: list[list[CubeTensor]] = [[] for _ in range(len(used) - 1)]
    together: dict[Step, list[_Job]] = {}
    for tensors in zip(*used, strict=True):
        olds = [engine.row_major(t) for t in tensors]
        news = [engine.empty(t.shape, t.dtype) for k, t in enumerate(olds) if k != 1]
        for column, new in zip(out, news, strict=True):
            column.append(new)
        index = engine.index_dtype(*olds, count=olds[0].size)
        spec = Step(
            rule, tuple(t.dtype for t in olds), skip is not None, maximize, flag,
            numbers[-1] != 0, index,
        )  # fmt: skip
        if olds[0].size:
            together.setdefault(spec, []).append(_Job(news, olds, -(-olds[0].size // UNITS)))
    most = _TOGETHER if engine.client.properties.kind == "gpu" else 1
    for spec, jobs in together.items():
        for first in range(0, len(jobs), most):
            _launch(engine, spec, jobs[first : first + most], [facts.buf, *extra, skip0], numbers)
    return [*(t for column in out for t in column), new_step]


class _Job(NamedTuple):
    """The update of one parameter, and the cubes it takes."""

    news: Sequence[CubeTensor]
    olds: Sequence[CubeTensor]
    cubes: int


def _launch(
    engine: Engine, spec: Step, jobs: Sequence[_Job], shared: Sequence[Any],
    numbers: Sequence[float],
) -> None:  # fmt: skip
    buffers = [t.buf for job in jobs for t in (*job.news, *job.olds)]
    places, cubes = [], 0
    for job in jobs:
        places += [cubes * UNITS, job.olds[0].size, *(t.offset for t in job.olds)]
        cubes += job.cubes
    args = [*buffers, *shared, *places, *numbers]
    engine.cubes(update_kernel, (spec, len(jobs)), cubes, args)


@kernel("sgd_step")
def sgd_step(
    engine: Engine, params: Tensors, grads: Tensors, momenta: Tensors, step: CubeTensor,
    skip: CubeTensor | None, nesterov: bool, maximize: bool, lr: float, momentum: float,
    dampening: float, weight_decay: float,
) -> list[CubeTensor]:  # fmt: skip
    """(params, momenta, step + 1); the first momentum is the gradient itself, undampened."""
    numbers = (lr, momentum, 1 - dampening, weight_decay)
    lists = (params, grads, momenta)
    return _updated(engine, "sgd", lists, step, skip, nesterov, maximize, numbers)


@kernel("adam_step")
def adam_step(
    engine: Engine, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
    max_sqs: Tensors, step: CubeTensor, skip: CubeTensor | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> list[CubeTensor]:  # fmt: skip
    """(params, averages, squares, maxima, step + 1); decoupled decay is AdamW's."""
    numbers = (lr, beta1, beta2, 1 - beta1, 1 - beta2, eps, weight_decay)
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_sqs)
    return _updated(engine, "adam", lists, step, skip, decoupled, maximize, numbers)
