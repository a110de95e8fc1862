"""Gradients against central differences in float64, of first and second order.

The function checked is sum(c * out) over the float outputs of an operation, c drawn once. Second
order differentiates sum(u * gradient) and, with c a leaf as well, checks the backward rule in every
argument it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn_backend import TensorBase
from burn_ir import CATALOG
from burn_std import UnsupportedOpError, parse_dtype
from burn_testing.samples import SAMPLES, Draw, Sample, arrays, dtype_of

Array = np.ndarray[Any, Any]

STEP = 1e-5
# Central differences of smooth functions near 1: error of the formula 1e-10, of rounding 1e-11.
FIRST, SECOND = 1e-7, 2e-6


class Probe:
    """One sample with its leaves as flat float64 vectors.

    Attributes:
        leaves: the arrays that are varied.
    """

    def __init__(self, s: Sample) -> None:
        self.sample = s
        self.given = arrays(s, "f64")
        self.leaves: list[Array] = []
        self.template = [self._mark(d, a) for d, a in zip(s.inputs, self.given, strict=True)]
        self.cotangents: list[Array] = []

    def _mark(self, d: Any, a: Any) -> Any:
        if isinstance(d, Draw) and not d.fixed and dtype_of(d, "f64").name == "float64":
            self.leaves.append(a)
            return len(self.leaves) - 1, a
        if isinstance(d, list):
            return [self._mark(e, v) for e, v in zip(d, a, strict=True)]
        return None, a

    def run(self, context: Any, leaves: list[TensorBase]) -> list[TensorBase]:
        """Return the float outputs for these leaves."""

        def made(t: Any) -> Any:
            if isinstance(t, list):
                return [made(e) for e in t]
            at, a = t
            if at is not None:
                return leaves[at]
            return context.tensor_from_numpy(a) if isinstance(a, np.ndarray) else a

        out = getattr(context, self.sample.entry)(*map(made, self.template), *self.sample.attrs)
        outs = [out] if isinstance(out, TensorBase) else list(out)
        return [x for x in outs if x.dtype.is_float]

    def draw_cotangents(self, outs: list[TensorBase]) -> list[Array]:
        """Return one fixed array per output."""
        if not self.cotangents:
            rng = np.random.default_rng(len(self.sample.name))
            self.cotangents = [rng.uniform(0.5, 1.5, tuple(x.shape)) for x in outs]
        return self.cotangents


def _leaves(context: Any, values: list[Array]) -> list[Any]:
    return [context.decorator.leaf(context.tensor_from_numpy(np.array(v))) for v in values]


def _value(context: Any, probe: Probe, values: list[Array]) -> float:
    plain = context.resource.plain_context()
    outs = probe.run(plain, [plain.tensor_from_numpy(np.array(v)) for v in values])
    cotangents = probe.draw_cotangents(outs)
    return sum(
        float((np.asarray(plain.to_numpy(o)) * c).sum())
        for o, c in zip(outs, cotangents, strict=True)
    )


def gradients(
    context: Any, probe: Probe, values: list[Array], cotangents: list[Array] | None = None
) -> list[Array]:
    """Return the gradients that the tape gives, zeros where nothing arrived."""
    leaves = _leaves(context, values)
    outs = probe.run(context, leaves)
    given = cotangents or probe.draw_cotangents(outs)
    tracked = [(o, c) for o, c in zip(outs, given, strict=True) if o.node is not None]
    grads = context.decorator.backward(
        [o for o, _ in tracked], [context.tensor_from_numpy(np.array(c)) for _, c in tracked]
    )
    found = [grads.get(x) for x in leaves]
    return [
        np.zeros(v.shape) if g is None else np.array(context.to_numpy(g), np.float64)
        for g, v in zip(found, values, strict=True)
    ]


def differences(fn: Callable[[list[Array]], float], values: list[Array]) -> list[Array]:
    """Return the central differences of a scalar function of several arrays."""
    out = []
    for k, v in enumerate(values):
        grad = np.zeros(v.shape)
        for at in np.ndindex(v.shape):
            ends = []
            for sign in (1, -1):
                moved = [np.array(a) for a in values]
                moved[k][at] += sign * STEP
                ends.append(fn(moved))
            grad[at] = (ends[0] - ends[1]) / (2 * STEP)
        out.append(grad)
    return out


def _wrong(found: list[Array], expected: list[Array], bound: float) -> list[str]:
    wrong = []
    for i, (f, e) in enumerate(zip(found, expected, strict=True)):
        scale = max(1.0, float(np.abs(e).max(initial=0.0)))
        if f.shape != e.shape:
            wrong.append(f"leaf {i}: shape {list(f.shape)}, expected {list(e.shape)}")
        elif e.size and not float(np.abs(f - e).max()) <= bound * scale:
            at = (
                tuple(int(j) for j in np.unravel_index(np.nanargmax(np.abs(f - e)), e.shape))
                if np.isfinite(f).all()
                else ()
            )
            wrong.append(
                f"leaf {i}: differs at {list(at)}, {f[at]!r}, expected {e[at]!r}"
                if at or not e.shape
                else f"leaf {i}: {f.reshape(-1)[:4]}, expected {e.reshape(-1)[:4]}"
            )
    return wrong


def first_order(device: Any, s: Sample) -> list[str]:
    """Return where the gradients of a sample differ from central differences."""
    context = device.autodiff().context
    probe = Probe(s)
    found = gradients(context, probe, probe.leaves)
    expected = differences(lambda values: _value(context, probe, values), probe.leaves)
    return _wrong(found, expected, FIRST)


def second_order(device: Any, s: Sample) -> list[str]:
    """Return where the gradients of the gradients of a sample are wrong."""
    context = device.autodiff().context
    decorator = context.decorator
    probe = Probe(s)
    leaves = _leaves(context, probe.leaves)
    outs = [o for o in probe.run(context, leaves) if o.node is not None]
    every = [
        tuple(o.shape)
        for o in probe.run(
            context.resource.plain_context(),
            [context.resource.plain_context().tensor_from_numpy(v) for v in probe.leaves],
        )
    ]
    if len(every) != len(outs):
        return [f"{len(outs)} of {len(every)} float outputs are tracked"]
    cotangents = probe.draw_cotangents(outs)
    seeds = _leaves(context, cotangents)
    grads = decorator.backward(outs, seeds, create_graph=True)
    found = [grads.get(x) for x in leaves]
    rng = np.random.default_rng(5)
    mixers = [rng.uniform(0.5, 1.5, v.shape) for v in probe.leaves]
    pairs = [
        (g, m) for g, m in zip(found, mixers, strict=True) if g is not None and g.node is not None
    ]
    values = [*probe.leaves, *cotangents]
    count = len(probe.leaves)

    def mixed(at: list[Array]) -> float:
        first = gradients(context, probe, at[:count], at[count:])
        return sum(float((g * m).sum()) for g, m in zip(first, mixers, strict=True))

    if pairs:
        again = decorator.backward(
            [g for g, _ in pairs], [context.tensor_from_numpy(m) for _, m in pairs]
        )
        second = [again.get(x) for x in (*leaves, *seeds)]
    else:
        second = [None] * len(values)
    arrays_ = [
        np.zeros(v.shape) if g is None else np.array(context.to_numpy(g), np.float64)
        for g, v in zip(second, values, strict=True)
    ]
    return _wrong(arrays_, differences(mixed, values), SECOND)


def checkpointed(device: Any, s: Sample) -> list[str]:
    """Return where the balanced strategy changes a gradient; it must not change a bit."""
    tracking = device.autodiff()
    probe = Probe(s)
    plain = gradients(tracking.context, probe, probe.leaves)
    again = gradients(tracking.gradient_checkpointing().context, probe, probe.leaves)
    return [
        f"leaf {i} differs" for i, (a, b) in enumerate(zip(plain, again, strict=True))
        if a.tobytes() != b.tobytes()
    ]  # fmt: skip


def check(device: Any, name: str, order: Callable[[Any, Sample], list[str]]) -> list[str]:
    """Return what is wrong with an operation over all samples that have gradients."""
    wrong = []
    for s in SAMPLES[name]:
        if not s.grad or "f64" not in s.dtypes or not device.supports_dtype(parse_dtype("f64")):
            continue
        if not Probe(s).leaves:
            continue
        try:
            wrong += [f"{s.name}: {line}" for line in order(device, s)]
        except UnsupportedOpError:
            if CATALOG[name].grade != "optional":
                raise
        except Exception as error:  # noqa: BLE001 - one report of all samples
            wrong.append(f"{s.name}: {type(error).__name__}: {error}")
    return wrong


def checkable(name: str) -> bool:
    """Return whether an operation has a sample with gradients."""
    return any(s.grad and "f64" in s.dtypes and Probe(s).leaves for s in SAMPLES[name])
