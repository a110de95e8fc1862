"""Random programs: a recorded run gives what an eager one gives, bit for bit.

Programs make views and alias them, assign into tensors, drop values while others still need them,
read in the middle, meet size 0 and rank 0, change dtype, and run again with other scalars, so that
plans are used a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn

F = burn.functional
DTYPES = (
    burn.float32,
    burn.float64,
    burn.int64,
    burn.int32,
    burn.uint8,
    burn.bool_,
    burn.float16,
    burn.bfloat16,
)
STARTS = (
    np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4),
    np.arange(4, dtype=np.int64) - 1,
    np.float32(0.75),
    np.zeros((0, 4), np.float32),
    np.array([[1, 0, 2, 1]] * 3, np.int32),
    np.array([True, False, True, True]),
    np.linspace(1, 2, 6, dtype=np.float64).reshape(1, 6)[:, ::1],
)
LIMIT = 4000


def _assign(x: Any, y: Any, s: float) -> Any:
    z = x * 1
    z[..., :1] = s
    return z


def _rebind(x: Any, y: Any, s: float) -> Any:
    x[..., :1] = s
    return x + 0


def _grow(x: Any, y: Any, s: float) -> Any:
    x += s
    return x


OPS: dict[str, Callable[[Any, Any, float], Any]] = {
    "add": lambda x, y, s: x + y,
    "mul": lambda x, y, s: x * y,
    "sub": lambda x, y, s: x - y,
    "div": lambda x, y, s: x / (y * y + 1),
    "scale": lambda x, y, s: x * s + 0.5,
    "power": lambda x, y, s: (x * x + 1) ** s,
    "exp": lambda x, y, s: (x * 0.25).exp(),
    "tanh": lambda x, y, s: x.tanh(),
    "relu": lambda x, y, s: F.relu(x),
    "abs": lambda x, y, s: x.abs(),
    "less": lambda x, y, s: x < y,
    "where": lambda x, y, s: burn.where(x > s, x, y),
    "maximum": lambda x, y, s: burn.maximum(x, y),
    "clamp": lambda x, y, s: x.clamp(-1, s),
    "floor": lambda x, y, s: x // (abs(int(s)) + 1),
    "turn": lambda x, y, s: x.permute(*reversed(range(len(x.shape)))),
    "line": lambda x, y, s: x.reshape(prod(x.shape)),
    "flip": lambda x, y, s: x.flip(0),
    "evens": lambda x, y, s: x[..., ::2],
    "back": lambda x, y, s: x[::-1],
    "tail": lambda x, y, s: x[1:],
    "first": lambda x, y, s: x[0],
    "none": lambda x, y, s: x[..., :0],
    "deeper": lambda x, y, s: x.unsqueeze(0).expand(2, *x.shape),
    "sum": lambda x, y, s: x.sum(),
    "rows": lambda x, y, s: x.sum(-1, keepdim=True),
    "largest": lambda x, y, s: x.amax(-1),
    "mean": lambda x, y, s: x.mean(0),
    "running": lambda x, y, s: x.cumsum(0),
    "best": lambda x, y, s: x.argmax(-1),
    "sorted": lambda x, y, s: x.sort(-1).values,
    "softmax": lambda x, y, s: F.softmax(x, -1),
    "product": lambda x, y, s: x.reshape(-1, 1)[:20] @ y.reshape(1, -1)[:, :20],
    "join": lambda x, y, s: burn.cat([x.reshape(-1), y.reshape(-1)]),
    "pad": lambda x, y, s: F.pad(x, (1, 2), value=s),
    "roll": lambda x, y, s: x.roll(int(s), 0),
    "take": lambda x, y, s: x[[0, -1]],
    "assign": _assign,
    "rebind": _rebind,
    "grow": _grow,
    "same": lambda x, y, s: x,
    "random": lambda x, y, s: burn.rand(*x.shape, device=x.device) + s,
    "dropout": lambda x, y, s: F.dropout(x, 0.5, training=True),
}
STEP = st.tuples(
    st.sampled_from([*OPS, "cast", "drop", "drop", "read"]),
    st.integers(0, 30), st.integers(0, 30), st.sampled_from([0.5, 2.0, -1.25, 3.0]),
)  # fmt: skip
PROGRAMS = st.lists(STEP, min_size=1, max_size=40)


def run(program: list[Any], device: Any, shift: float) -> tuple[list[Any], list[str]]:
    """Return what is left at the end, and how each refused step was refused."""
    device.seed(11)
    pool = [burn.tensor(a, device=device) for a in STARTS]
    refused = []
    for name, i, j, s in program:
        if not pool:
            break
        x, y = pool[i % len(pool)], pool[j % len(pool)]
        if name == "drop":
            pool.pop(i % len(pool))
        elif name == "read":
            x.tolist()
        elif name == "cast":
            pool.append(x.to(DTYPES[j % len(DTYPES)]))
        else:
            try:
                out = OPS[name](x, y, s + shift)
            except (burn.BurnError, IndexError) as error:
                refused.append(
                    f"{name}: {type(error).__name__}: {error}".replace(str(device), "device")
                )
                continue
            if prod(out.shape) <= LIMIT:
                pool.append(out)
        del x, y
    return pool, refused


def same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    a, b = found.numpy(), expected.numpy()
    assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f") or a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ["flex", "cpu"])
@settings(max_examples=max(300, settings().max_examples))
@given(program=PROGRAMS)
def test_a_recorded_program_is_the_eager_one(name: str, program: list[Any]) -> None:
    eager, fused = burn.device(f"eager-{name}"), burn.device(f"fusion-{name}")
    for shift in (0.0, 0.25):
        expected, refused = run(program, eager, shift)
        found, also = run(program, fused, shift)
        assert [r.partition(":")[0] for r in also] == [r.partition(":")[0] for r in refused]
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)


SMOOTH = ("add", "mul", "sub", "div", "scale", "exp", "tanh", "relu", "where", "maximum", "turn",
          "line", "flip", "evens", "back", "tail", "first", "deeper", "sum", "rows", "mean",
          "running", "softmax", "product", "join", "pad", "roll", "take", "assign", "same",
          "dropout")  # fmt: skip
TRACKED = st.lists(
    st.tuples(
        st.sampled_from(SMOOTH),
        st.integers(0, 30),
        st.integers(0, 30),
        st.sampled_from([0.5, 2.0]),
    ),
    min_size=1,
    max_size=20,
)


def slopes(program: list[Any], device: Any) -> list[Any]:
    tracking = device.autodiff()
    tracking.seed(5)
    leaves = [
        burn.tensor(a, device=tracking).require_grad() for a in (STARTS[0], STARTS[2], STARTS[3])
    ]
    pool: list[Any] = list(leaves)
    for name, i, j, s in program:
        try:
            out = OPS[name](pool[i % len(pool)], pool[j % len(pool)], s)
        except (burn.BurnError, IndexError):
            continue
        if prod(out.shape) <= LIMIT and out.dtype.is_float:
            pool.append(out)
    total = sum(((x * 0.01).sum() for x in pool[1:]), pool[0].sum())
    grads = total.backward()
    return [leaf.grad(grads) for leaf in leaves]


@settings(max_examples=max(100, settings().max_examples))
@given(TRACKED)
def test_gradients_of_a_recorded_program_are_the_eager_ones(program: list[Any]) -> None:
    expected = slopes(program, burn.device("flex"))
    for device in (
        burn.device("fusion-flex"),
        burn.device("flex").autodiff().gradient_checkpointing(),
    ):
        for a, b in zip(slopes(program, device), expected, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                same(a, b)
