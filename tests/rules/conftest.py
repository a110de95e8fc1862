"""A checker of backward rules: central differences in float64, first and second order.

Rules are run by the tape over a backend, so these tests stand beside the packages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


class Rules:
    """Runs operations of the catalogue on arrays and differentiates them."""

    def __init__(self) -> None:
        from burn_autodiff import tape
        from burn_autodiff.plugin import decorator
        from burn_dispatch import Device

        self.tape = tape
        self.decorator = decorator
        self.ctx = Device.flex().autodiff().context
        self.plain = Device.flex().context

    def tensor(self, value: Any, track: bool = False) -> Any:
        if isinstance(value, list):
            return [self.tensor(v, track) for v in value]
        if not isinstance(value, np.ndarray):
            return value
        t = self.ctx.tensor_from_numpy(value)
        return self.decorator.leaf(t) if track and value.dtype.kind == "f" else t

    def numpy(self, t: Any) -> Any:
        return np.array(t.b.to_numpy(t))

    def call(self, op: str, inputs: list[Any], attrs: tuple[Any, ...]) -> list[Any]:
        out = getattr(self.ctx, op)(*inputs, *attrs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def grads(
        self, op: str, inputs: list[Any], attrs: tuple[Any, ...] = (), cotangents: Any = None
    ) -> list[Any]:
        """Return the gradient of every float input (flat), None where nothing arrives."""
        tensors = [self.tensor(x, track=True) for x in inputs]
        outs = self.call(op, tensors, attrs)
        ys, cs = self._tracked(outs, cotangents)
        found = self.tape.backward(ys, cs)
        return [
            None if (g := found.get(t)) is None else self.numpy(g) for t in self._leaves(tensors)
        ]

    def _tracked(self, outs: list[Any], cotangents: Any) -> tuple[list[Any], list[Any]]:
        cotangents = [np.ones(y.shape) for y in outs] if cotangents is None else cotangents
        pairs = [
            (y, self.tensor(np.asarray(c).astype(self.numpy(y).dtype)))
            for y, c in zip(outs, cotangents, strict=True)
            if y.node is not None and c is not None
        ]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def _leaves(self, tensors: list[Any]) -> list[Any]:
        flat = [t for x in tensors for t in (x if isinstance(x, list) else [x])]
        return [t for t in flat if hasattr(t, "node") and t.node is not None]

    def check(
        self, op: str, inputs: list[Any], attrs: tuple[Any, ...] = (), *, order: int = 2,
        outputs: tuple[int, ...] | None = None, step: float = 1e-5, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        """Compare the rule of `op` with central differences along random directions.

        Args:
            op: the operation.
            inputs: arrays (float64 ones are differentiated), lists of them, None or scalars.
            attrs: attributes.
            order: 1, or 2 for the derivative of the gradient with respect to inputs and cotangent.
            outputs: which outputs get a cotangent; None is every float one.
            step: of the differences.
            tol: relative, and absolute times the largest value.
        """
        rng = np.random.default_rng(7)
        outs = [self.numpy(y) for y in self.call(op, self.tensor(inputs), attrs)]
        chosen = range(len(outs)) if outputs is None else outputs
        cotangents = [
            rng.normal(size=o.shape) if o.dtype.kind == "f" and k in chosen else None
            for k, o in enumerate(outs)
        ]
        ways = [_direction(rng, x) for x in inputs]

        def value(h: float) -> list[Any]:
            moved = [_moved(x, w, h) for x, w in zip(inputs, ways, strict=True)]
            return [self.numpy(y) for y in self.call(op, self.tensor(moved), attrs)]

        def slopes(h: float) -> list[Any]:
            moved = [_moved(x, w, h) for x, w in zip(inputs, ways, strict=True)]
            return self.grads(op, moved, attrs, cotangents)

        flat_ways = [w for way in ways for w in (way if isinstance(way, list) else [way])]
        flat_ways = [w for w in flat_ways if w is not None]
        high, low = value(step), value(-step)
        moves = [
            None if c is None else (a - b) / (2 * step)
            for a, b, c in zip(high, low, cotangents, strict=True)
        ]
        want = sum(
            float((m * c).sum()) for m, c in zip(moves, cotangents, strict=True) if c is not None
        )
        found = self.grads(op, inputs, attrs, cotangents)
        assert len(found) == len(flat_ways)
        for g, w in zip(found, flat_ways, strict=True):
            assert g is None or g.shape == w.shape, f"{op}: gradient {g.shape} of input {w.shape}"
        got = sum(
            float((g * w).sum()) for g, w in zip(found, flat_ways, strict=True) if g is not None
        )
        size = max(1.0, *(float(np.abs(g).max(initial=0)) for g in found if g is not None))
        assert abs(got - want) <= tol * max(size, abs(want)) * 10, f"{op}: {got} for {want}"
        if order == 2:
            up, down = slopes(step), slopes(-step)
            self._check_second(
                op, inputs, attrs, cotangents, flat_ways, (up, down), moves, step, tol
            )

    def _check_second(
        self, op: str, inputs: list[Any], attrs: tuple[Any, ...], cotangents: list[Any],
        ways: list[Any], slopes: tuple[Any, Any], moves: list[Any], step: float, tol: float,
    ) -> None:  # fmt: skip
        tensors = [self.tensor(x, track=True) for x in inputs]
        leaves = self._leaves(tensors)
        outs = self.call(op, tensors, attrs)
        pairs = [
            (y, self.tensor(c, track=True), m)
            for y, c, m in zip(outs, cotangents, moves, strict=True)
            if y.node is not None and c is not None
        ]
        ys, cs, moved = ([p[i] for p in pairs] for i in range(3))
        first = self.tape.backward(ys, cs, create_graph=True)
        reached = [(first.get(t), w) for t, w in zip(leaves, ways, strict=True)]
        reached = [(g, w) for g, w in reached if g is not None and g.node is not None]
        second = self.tape.backward([g for g, _ in reached], [self.tensor(w) for _, w in reached])
        for k, t in enumerate(leaves):
            got = second.get(t)
            a, b = slopes[0][k], slopes[1][k]
            want = np.zeros(t.shape) if a is None else (a - b) / (2 * step)
            _close(f"{op}: second order, input {k}", got, want, tol, self)
        for k, (c, m) in enumerate(zip(cs, moved, strict=True)):
            _close(f"{op}: second order, cotangent {k}", second.get(c), m, tol, self)


def _close(what: str, got: Any, want: Any, tol: float, rules: Rules) -> None:
    have = np.zeros(want.shape) if got is None else rules.numpy(got)
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(have, want, rtol=tol * 20, atol=tol * 20 * scale, err_msg=what)


def _direction(rng: Any, x: Any) -> Any:
    if isinstance(x, list):
        return [_direction(rng, v) for v in x]
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.asarray(rng.normal(size=x.shape))
    return None


def _moved(x: Any, way: Any, h: float) -> Any:
    if isinstance(x, list):
        return [_moved(v, w, h) for v, w in zip(x, way, strict=True)]
    return x if way is None else np.asarray(x + h * way)


@pytest.fixture(scope="session")
def rules() -> Rules:
    return Rules()


@pytest.fixture
def rand() -> Callable[..., Any]:
    """Return a maker of arrays in [low, high), away from each other and from round numbers."""
    rng = np.random.default_rng(11)

    def make(*shape: int, low: float = -1.5, high: float = 1.5) -> Any:
        return np.asarray(rng.uniform(low, high, shape))

    return make
