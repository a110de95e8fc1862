"""Random programs on a backend, step by step beside flex.

A program of twenty steps works on a pool of tensors: views of views, assignments, casts through all
dtypes, size 0 and rank 0. Before each step the reference takes the values that the device has, in
a plain layout, so both compute from equal inputs and one step's tolerance holds for each, however
long the program. What one refuses the other refuses, with the same class of error.

    python -m tests.laws.random_programs --backend cpu --first 0 --count 20000
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import burn
from burn_ir import CATALOG
from burn_testing import Tolerance, difference, tolerance

F = burn.functional
STEPS = 20
LIMIT = 2000
# Larger results leave the pool, so that nothing overflows where the order of a sum decides.
LARGE = 1e4
DTYPES = (
    burn.float32, burn.float64, burn.float16, burn.bfloat16, burn.int64, burn.int32, burn.int16,
    burn.int8, burn.uint8, burn.uint32, burn.bool_,
)  # fmt: skip
STARTS = (
    np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4),
    np.arange(4, dtype=np.int64) - 1,
    np.float32(0.75),
    np.int64(3),
    np.zeros((0, 4), np.float32),
    np.zeros((2, 0), np.int32),
    np.array([[1, 0, 2, 1]] * 3, np.int32),
    np.array([True, False, True, True]),
    np.linspace(1, 2, 6, dtype=np.float64).reshape(1, 6),
    np.array([[0.0, -0.0, np.inf], [-np.inf, np.nan, 1.0]], np.float32),
    np.arange(30, dtype=np.float32).reshape(2, 3, 5) / 7 - 2,
)


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


def _fill(x: Any, y: Any, s: float) -> Any:
    z = x * 1
    z[::2] = y[..., :1].amax().to(z.dtype)
    return z


# Name: the call, and the entry of the catalogue whose tolerance holds for its result.
OPS: dict[str, tuple[Callable[[Any, Any, float], Any], str]] = {
    "add": (lambda x, y, s: x + y, "add"),
    "mul": (lambda x, y, s: x * y, "mul"),
    "sub": (lambda x, y, s: x - y, "sub"),
    "div": (lambda x, y, s: x / (y * y + 1), "div"),
    "mod": (lambda x, y, s: x % (abs(s) + 0.5), "remainder"),
    "scale": (lambda x, y, s: x * s, "mul"),
    "power": (lambda x, y, s: (x * x + 1) ** s, "pow"),
    "exp": (lambda x, y, s: (x * 0.25).exp(), "exp"),
    "log": (lambda x, y, s: (x * x + 0.5).log(), "log"),
    "tanh": (lambda x, y, s: x.tanh(), "tanh"),
    "erf": (lambda x, y, s: x.erf(), "erf"),
    "atan": (lambda x, y, s: burn.atan2(x, y), "atan2"),
    "relu": (lambda x, y, s: F.relu(x), "relu"),
    "abs": (lambda x, y, s: x.abs(), "abs"),
    "less": (lambda x, y, s: x < y, "lt"),
    "where": (lambda x, y, s: burn.where(x > s, x, y), "where"),
    "maximum": (lambda x, y, s: burn.maximum(x, y), "maximum"),
    "clamp": (lambda x, y, s: x.clamp(-1, s), "clamp"),
    "floor": (lambda x, y, s: x // (abs(int(s)) + 1), "floor_divide"),
    "bits": (lambda x, y, s: x & y, "bitwise_and"),
    "turn": (lambda x, y, s: x.permute(*reversed(range(len(x.shape)))), "permute"),
    "line": (lambda x, y, s: x.reshape(prod(x.shape)), "reshape"),
    "flip": (lambda x, y, s: x.flip(0), "flip"),
    "evens": (lambda x, y, s: x[..., ::2], "slice"),
    "back": (lambda x, y, s: x[::-1], "slice"),
    "tail": (lambda x, y, s: x[1:], "slice"),
    "first": (lambda x, y, s: x[0], "select"),
    "none": (lambda x, y, s: x[..., :0], "slice"),
    "deeper": (lambda x, y, s: x.unsqueeze(0).expand(2, *x.shape), "expand"),
    "diagonal": (lambda x, y, s: x.diagonal(), "diagonal"),
    "triangle": (lambda x, y, s: x.tril(), "tril"),
    "sum": (lambda x, y, s: x.sum(), "sum"),
    "outer sum": (lambda x, y, s: x.sum((0, -1)), "sum"),
    "rows": (lambda x, y, s: x.sum(-1, keepdim=True), "sum"),
    "product": (lambda x, y, s: (x * 0.5).prod(0), "prod"),
    "largest": (lambda x, y, s: x.amax(-1), "amax"),
    "mean": (lambda x, y, s: x.mean(0), "mean"),
    "spread": (lambda x, y, s: x.var(-1), "var"),
    "any": (lambda x, y, s: x.any(0), "any"),
    "running": (lambda x, y, s: x.cumsum(0), "cumsum"),
    "best": (lambda x, y, s: x.argmax(-1), "argmax"),
    "sorted": (lambda x, y, s: x.sort(-1).values, "sort"),
    "order": (lambda x, y, s: x.argsort(0, descending=True, stable=True), "sort"),
    "softmax": (lambda x, y, s: F.softmax(x, -1), "softmax"),
    "matmul": (lambda x, y, s: x.reshape(-1, 1)[:20] @ y.reshape(1, -1)[:, :20], "matmul"),
    "inner": (lambda x, y, s: x.reshape(1, -1)[:, :4] @ y.reshape(-1, 1)[:4], "matmul"),
    "join": (lambda x, y, s: burn.cat([x.reshape(-1), y.reshape(-1)]), "cat"),
    "pad": (lambda x, y, s: F.pad(x, (1, 2), value=s), "pad"),
    "roll": (lambda x, y, s: x.roll(int(s), 0), "roll"),
    "take": (lambda x, y, s: x[[0, -1]], "index"),
    "gather": (lambda x, y, s: x.index_select(0, (y.reshape(-1) * 0).to(burn.int64)), "index"),
    "masked": (lambda x, y, s: x[x > s], "index"),
    "count": (lambda x, y, s: (x != 0).nonzero(), "index"),
    "repeat": (lambda x, y, s: x.repeat(*(2,) * max(1, len(x.shape))), "repeat"),
    "assign": (_assign, "mul"),
    "rebind": (_rebind, "add"),
    "grow": (_grow, "add"),
    "fill": (_fill, "mul"),
    "random": (lambda x, y, s: burn.rand(*x.shape, device=x.device) + s, "add"),
    "integers": (lambda x, y, s: burn.randint(-5, 9, x.shape, device=x.device), "slice"),
    "dropout": (lambda x, y, s: F.dropout(x, 0.5, training=True), "dropout"),
}  # fmt: skip
NAMES = [*OPS, "cast", "cast", "cast", "drop"]


class Difference(AssertionError):
    """A step after which device and reference differ."""


def _refused(call: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        out = call()
        out.numpy()  # an index outside shows when somebody reads
        return out, None
    except (burn.BurnError, IndexError) as error:
        return None, type(error).__name__


def _allowed(entry: str, out: Any, given: list[Any]) -> tuple[Tolerance, float]:
    """Return the tolerance of the table, and the magnitude that its absolute part is a share of.

    Sums that cancel are as exact as their terms are large.
    """
    length = max([1, *(g.size for g in given)])
    found = tolerance(CATALOG[entry], out.dtype.short, length)
    if CATALOG[entry].klass not in ("reduce", "contract", "opaque"):
        return found, 0.0
    terms = [np.abs(g.astype(np.float64)) for g in given if g.size]
    tops = [float(t[np.isfinite(t)].max(initial=0.0)) for t in terms]
    return found, max([1.0, *tops]) ** (2 if entry in ("matmul", "var") else 1)


def _compare(step: str, entry: str, found: Any, expected: Any, given: list[Any]) -> None:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise Difference(
            f"{step}: {found.dtype.name}{list(found.shape)}, expected "
            f"{expected.dtype.name}{list(expected.shape)}"
        )
    t, scale = _allowed(entry, found, given)
    a, e = found.numpy(), expected.numpy()
    wide = Tolerance(t.relative, t.absolute * max(1.0, scale))
    words = difference(a, e, wide)
    if words:
        raise Difference(f"{step}: {words}")


def run(seed: int, device: Any, counts: Counter[str] | None = None) -> None:
    """Run the program of a seed.

    Raises:
        Difference: device and reference differ; names step, shapes and dtypes.
    """
    rng = random.Random(seed)
    flex = burn.device("flex:9")
    for d in (device, flex):
        d.seed(seed)
    pool = [burn.tensor(a, device=device) for a in rng.sample(STARTS, 5)]
    for number in range(STEPS):
        if not pool:
            return
        name = rng.choice(NAMES)
        x, y = rng.choice(pool), rng.choice(pool)
        s, dtype = rng.choice([0.5, 2.0, -1.25, 3.0]), rng.choice(DTYPES)
        if name == "drop":
            pool.pop(next(k for k, t in enumerate(pool) if t is x))
            continue
        if name == "cast":
            call: Any = lambda x, y, s, dtype=dtype: x.to(dtype)  # noqa: E731
            entry = "cast"
        else:
            call, entry = OPS[name]
        # A copy of what the device has; one tensor where the step takes one twice.
        rx = burn.tensor(x.numpy(), device=flex, dtype=x.dtype)
        ry = rx if y is x else burn.tensor(y.numpy(), device=flex, dtype=y.dtype)
        given = [rx.numpy().copy(), ry.numpy().copy()]
        step = (
            f"program {seed}, step {number}: {name} of {x.dtype.name}{list(x.shape)}, "
            f"{y.dtype.name}{list(y.shape)}, {s}"
        )
        found, refusal = _refused(lambda: call(x, y, s))  # noqa: B023
        expected, other = _refused(lambda: call(rx, ry, s))  # noqa: B023
        if refusal != other:
            raise Difference(f"{step}: refused with {refusal}, expected {other}")
        if counts is not None:
            counts[name if refusal is None else "refused"] += 1
        if refusal is not None:
            continue
        _compare(step, entry, found, expected, given)
        _compare(f"{step}, its operand", entry, x, rx, given)
        values = found.numpy()
        finite = values[np.isfinite(values.astype(np.float64))].astype(np.float64)
        small = prod(found.shape) <= LIMIT and len(found.shape) <= 5
        if found is not x and small and np.abs(finite).max(initial=0.0) <= LARGE:
            pool.append(found)
    device.sync()


def main() -> None:
    """Run many programs; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    device, counts, wrong, start = burn.device(args.backend), Counter[str](), 0, time.monotonic()
    seed = args.first
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        try:
            run(seed, device, counts)
        except Difference as difference_:
            wrong += 1
            print(difference_, flush=True)
        seed += 1
    taken = time.monotonic() - start
    print(
        f"{args.backend}: programs {args.first} to {seed - 1}, {sum(counts.values())} steps "
        f"({counts['refused']} refused), {wrong} differ, {taken:.0f} s"
    )


if __name__ == "__main__":
    main()
