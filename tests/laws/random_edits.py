"""Random indexing, assignment and scattering, with repeated indices, beside numpy.

A program edits a few small tensors several times before anything is read, holds views and detached
copies of what it edits, and takes gradients. Numbers are small and whole, so that no order of a sum
decides and every answer is numpy's, bit for bit. Dtypes and Python numbers promote by a table that
is written here again.

    python -m tests.laws.random_edits --device cpu --first 0 --count 1000
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import burn

DTYPES = (
    burn.float32, burn.float64, burn.int64, burn.int32, burn.uint8, burn.int16, burn.bool_,
)  # fmt: skip
NUMPY: dict[Any, Any] = {d: np.dtype(d.name.rstrip("_")) for d in DTYPES}
FLOATS = (burn.float32, burn.float64)


class Difference(AssertionError):
    """A value is not that of numpy."""


class Pair:
    """A tensor, and what numpy has for it."""

    def __init__(self, array: Any, device: Any, dtype: Any) -> None:
        self.array = np.array(array, NUMPY[dtype])
        self.tensor = burn.tensor(self.array, device=device)
        self.dtype = dtype


class Program:
    """One program of a seed."""

    def __init__(self, seed: int, device: Any) -> None:
        self.dice = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.device = device
        self.held: list[tuple[str, Any, Any]] = []
        self.pool = [self.fresh() for _ in range(3)]
        self.trace: list[str] = []

    # ---- parts --------------------------------------------------------------------------------

    def shape(self) -> tuple[int, ...]:
        rank = self.dice.choice([1, 1, 2, 2, 2, 3])
        return tuple(self.dice.choice([1, 2, 3, 4, 5, 7]) for _ in range(rank))

    def values(self, shape: tuple[int, ...], dtype: Any) -> Any:
        low = 0 if dtype in (burn.uint8, burn.bool_) else -4
        high = 2 if dtype is burn.bool_ else 5
        return self.rng.integers(low, high, shape).astype(NUMPY[dtype])

    def fresh(self) -> Pair:
        dtype = self.dice.choice(DTYPES)
        return Pair(self.values(self.shape(), dtype), self.device, dtype)

    def other(self, shape: tuple[int, ...], dtype: Any) -> Pair:
        return Pair(self.values(shape, dtype), self.device, dtype)

    def index(self, n: int, count: int, negative: bool = True) -> Any:
        """Return indices into a dim, with repeats."""
        low = -n if negative and self.dice.random() < 0.5 else 0
        return self.rng.integers(low, n, count)

    def place(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Return an index of a tensor, for burn and for numpy."""
        ours: list[Any] = []
        theirs: list[Any] = []
        count = self.dice.choice([1, 2, 4])
        together = self.dice.random() < 0.4
        for n in shape:
            kind = self.dice.randrange(8)
            if kind == 0:
                k = self.dice.randrange(-n, n)
                ours.append(k)
                theirs.append(k)
            elif kind in (1, 2):
                a, b = sorted(self.dice.choices(range(-n, n + 2), k=2))
                s = slice(a, b, self.dice.choice([None, 1, 2]))
                ours.append(s)
                theirs.append(s)
            elif kind == 3:
                s = slice(None, None, self.dice.choice([-1, -2]))
                ours.append(s)
                theirs.append(s)
            elif kind == 4 and together and not any(isinstance(t, np.ndarray) for t in theirs):
                m = self.rng.random(n) < 0.5
                ours.append(burn.tensor(m, device=self.device))
                theirs.append(m)
                together = False
            elif kind in (5, 6) and together:
                i = self.index(n, count)
                ours.append(burn.tensor(i, device=self.device))
                theirs.append(i)
            elif kind == 7:
                ours.append(...)
                theirs.append(...)
                break
            else:
                ours.append(slice(None))
                theirs.append(slice(None))
        if self.dice.random() < 0.2:
            ours.insert(0, None)
            theirs.insert(0, None)
        return tuple(ours), tuple(theirs)

    def hold(self, pair: Pair) -> None:
        """Hold views of a tensor; what is done to the tensor later must not show in them."""
        x = pair.tensor
        made = {
            "detached": x.detach(), "flat": x.reshape(-1), "part": x[..., :1], "turned": x.flip(0),
            "moved": x.movedim(0, -1),
        }  # fmt: skip
        name = self.dice.choice(list(made))
        a = pair.array
        known = {
            "detached": a, "flat": a.reshape(-1), "part": a[..., :1], "turned": np.flip(a, 0),
            "moved": np.moveaxis(a, 0, -1),
        }[name]  # fmt: skip
        self.held.append((name, made[name], known.copy()))

    # ---- what is done -------------------------------------------------------------------------

    def do_get(self, p: Pair) -> None:
        ours, theirs = self.place(p.array.shape)
        self.held.append((f"x[{theirs}]", p.tensor[ours], p.array[theirs].copy()))

    def do_set(self, p: Pair) -> None:
        ours, theirs = self.place(p.array.shape)
        shape = p.array[theirs].shape
        if self.dice.random() < 0.4:
            value: Any = self.dice.choice([0, 1, 3])
            value = bool(value) if p.dtype is burn.bool_ else value
            p.tensor[ours] = value
            p.array[theirs] = value
            return
        if shape and self.dice.random() < 0.3:
            shape = (1, *shape[1:])
        given = self.other(shape, p.dtype)
        p.tensor[ours] = given.tensor
        p.array[theirs] = given.array

    def do_set_own(self, p: Pair) -> None:
        """Assign a part of a tensor to another part of it."""
        n = p.array.shape[0]
        p.tensor[:] = p.tensor.flip(0)
        p.array[:] = np.flip(p.array, 0).copy()
        if n > 1:
            p.tensor[1:] = p.tensor[:-1]
            p.array[1:] = p.array[:-1].copy()

    def do_update(self, p: Pair) -> None:
        """`x[i] += v` with a repeated index counts once, as in numpy and PyTorch."""
        if p.dtype is burn.bool_:
            return
        i = self.index(p.array.shape[0], 3)
        p.tensor[burn.tensor(i, device=self.device)] += 1
        p.array[i] += np.array(1, p.array.dtype)

    def do_put(self, p: Pair) -> None:
        if p.dtype is burn.bool_:
            return
        count = self.dice.choice([1, 3, 9])
        axes = p.array.ndim if self.dice.random() < 0.5 else 1
        where = [self.index(n, count) for n in p.array.shape[:axes]]
        given = self.other((count, *p.array.shape[axes:]), p.dtype)
        accumulate = self.dice.random() < 0.6
        ours = [burn.tensor(i, device=self.device) for i in where]
        p.tensor = p.tensor.index_put(ours, given.tensor, accumulate)
        p.array = p.array.copy()
        if accumulate:
            np.add.at(p.array, tuple(where), given.array)
        else:
            p.array[tuple(where)] = given.array

    def scattered(self, p: Pair) -> tuple[int, Any, Pair]:
        dim = self.dice.randrange(p.array.ndim)
        shape = list(p.array.shape)
        shape = [self.dice.randint(1, n) for n in shape]
        shape[dim] = self.dice.choice([1, 3, 8])
        index = self.rng.integers(0, p.array.shape[dim], shape)
        return dim, index, self.other(tuple(shape), p.dtype)

    def do_scatter(self, p: Pair) -> None:
        dim, index, src = self.scattered(p)
        p.tensor = p.tensor.scatter(dim, burn.tensor(index, device=self.device), src.tensor)
        p.array = p.array.copy()
        for at in np.ndindex(*index.shape):
            to = list(at)
            to[dim] = index[at]
            p.array[tuple(to)] = src.array[at]  # the last one wins

    def do_scatter_reduce(self, p: Pair) -> None:
        if p.dtype is burn.bool_:
            return
        dim, index, src = self.scattered(p)
        kind = self.dice.choice(["sum", "prod", "amax", "amin"])
        ours = burn.tensor(index, device=self.device)
        with_self = self.dice.random() < 0.7
        if kind == "prod":  # of small numbers, so that nothing rounds
            src = Pair(src.array.clip(0, 2), self.device, p.dtype)
        p.tensor = p.tensor.scatter_reduce(dim, ours, src.tensor, kind, include_self=with_self)
        p.array = p.array.copy()
        first: set[Any] = set()
        fold: dict[str, Callable[..., Any]] = {
            "sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum,
        }  # fmt: skip
        for at in np.ndindex(*index.shape):
            to = list(at)
            to[dim] = index[at]
            key = tuple(to)
            if not with_self and key not in first:
                p.array[key] = src.array[at]
            else:
                p.array[key] = fold[kind](p.array[key], src.array[at])
            first.add(key)
        self.small(p)

    def do_along(self, p: Pair) -> None:
        """index_add, index_copy, index_fill, index_select along a dim."""
        dim = self.dice.randrange(p.array.ndim)
        n = p.array.shape[dim]
        i = self.index(n, self.dice.choice([1, 2, 6]), negative=False)
        ours = burn.tensor(i, device=self.device)
        shape = list(p.array.shape)
        shape[dim] = len(i)
        kind = self.dice.choice(["add", "copy", "fill", "select"])
        given = self.other(tuple(shape), p.dtype)
        lines = (slice(None),) * dim
        if kind == "select":
            self.held.append(
                ("index_select", p.tensor.index_select(dim, ours), p.array.take(i, dim))
            )
            return
        array = p.array.copy()
        if kind == "fill":
            p.tensor = p.tensor.index_fill(dim, ours, 1)
            array[(*lines, i)] = 1
        elif kind == "copy":
            p.tensor = p.tensor.index_copy(dim, ours, given.tensor)
            for k, at in enumerate(i):
                array[(*lines, at)] = given.array[(*lines, k)]
        elif p.dtype is not burn.bool_:
            alpha = self.dice.choice([1, 2])
            p.tensor = p.tensor.index_add(dim, ours, given.tensor, alpha=alpha)
            for k, at in enumerate(i):
                array[(*lines, at)] += given.array[(*lines, k)] * array.dtype.type(alpha)
        p.array = array
        self.small(p)

    def do_masks(self, p: Pair) -> None:
        mask = self.rng.random(p.array.shape) < 0.4
        ours = burn.tensor(mask, device=self.device)
        array = p.array.copy()
        if self.dice.random() < 0.5:
            p.tensor = p.tensor.masked_fill(ours, 1)
            array[mask] = 1
        else:
            given = self.other((array.size + self.dice.randrange(3),), p.dtype)
            p.tensor = p.tensor.masked_scatter(ours, given.tensor)
            array[mask] = given.array[: mask.sum()]
        p.array = array

    def do_slices(self, p: Pair) -> None:
        dim = self.dice.randrange(p.array.ndim)
        n = p.array.shape[dim]
        array = p.array.copy()
        lines = (slice(None),) * dim
        if self.dice.random() < 0.5:
            k = self.dice.randrange(-n, n)
            given = self.other(array.take(0, dim).shape, p.dtype)
            p.tensor = p.tensor.select_scatter(given.tensor, dim, k)
            array[(*lines, k)] = given.array
        else:
            a, b = sorted(self.dice.choices(range(n + 1), k=2))
            step = self.dice.choice([1, 2])
            part = (*lines, slice(a, b, step))
            given = self.other(array[part].shape, p.dtype)
            p.tensor = p.tensor.slice_scatter(given.tensor, dim, a, b, step)
            array[part] = given.array
        p.array = array

    def do_map(self, p: Pair) -> None:
        """Something elementwise, so that edits stand between what may be one kernel."""
        if p.dtype is burn.bool_:
            p.tensor, p.array = p.tensor.logical_not(), np.logical_not(p.array)
        else:
            one = p.array.dtype.type(1)
            p.tensor, p.array = p.tensor * 2 - p.tensor + 1, p.array + one
        self.small(p)

    def do_hold(self, p: Pair) -> None:
        self.hold(p)

    def small(self, p: Pair) -> None:
        """Keep numbers small and whole."""
        if p.dtype is not burn.bool_:
            p.tensor = p.tensor.clamp(0, 9)
            p.array = p.array.clip(0, 9)

    # ---- gradients ----------------------------------------------------------------------------

    def gradients(self) -> None:
        """Compare gradients of edits with those that numpy counts."""
        dtype = self.dice.choice(FLOATS)
        shape = self.shape()
        device = self.device.autodiff()
        x = burn.tensor(self.values(shape, dtype), device=device).require_grad()
        ours, theirs = self.place(shape)
        places = np.arange(int(np.prod(shape))).reshape(shape)
        picked = places[theirs]
        v = burn.tensor(self.values(picked.shape, dtype), device=device).require_grad()
        weight = self.values(shape, dtype)
        taken = self.values(picked.shape, dtype)
        w = burn.tensor(weight, device=self.device)
        t = burn.tensor(taken, device=self.device)
        y = x * 1
        y[ours] = v
        grads = ((y * w).sum() + (x[ours] * t).sum()).backward()
        into = weight.copy()
        into[theirs] = 0
        np.add.at(into.reshape(-1), picked.reshape(-1), taken.reshape(-1))
        self.same(f"gradient of x[{theirs}] = v for x", x.grad(grads), into)
        if (
            picked.size
        ):  # each of several values for one place gets what arrives there, as PyTorch's
            self.same(f"gradient of x[{theirs}] = v for v", v.grad(grads), weight[theirs])

    # ---- promotion ----------------------------------------------------------------------------

    def promotion(self) -> None:
        """Compare dtypes of a tensor with a Python number, a tensor of rank 0, another tensor."""
        p, q = self.fresh(), self.fresh()
        number = self.dice.choice([True, 2, 2.5])
        x = p.tensor
        got = (x * number).dtype
        rank = {bool: 0, int: 1, float: 2}
        own = 0 if p.dtype is burn.bool_ else 2 if p.dtype in FLOATS else 1
        want = p.dtype
        if rank[type(number)] > own:
            want = burn.float32 if isinstance(number, float) else burn.int64
        if got is not want:
            raise Difference(f"{p.dtype} * {number!r}: {got}, not {want}")
        zero = q.tensor.reshape(-1)[0]
        other = 0 if q.dtype is burn.bool_ else 2 if q.dtype in FLOATS else 1
        got = (x * zero).dtype
        want = p.dtype if other <= own else q.dtype
        if got is not want:
            raise Difference(f"{p.dtype} * rank 0 {q.dtype}: {got}, not {want}")
        got = (x.reshape(-1)[:1] * q.tensor).dtype
        if own == other == 1:
            want = burn_of(np.promote_types(NUMPY[p.dtype], NUMPY[q.dtype]))
        elif own == other == 2:
            want = burn.float64 if burn.float64 in (p.dtype, q.dtype) else burn.float32
        else:
            want = p.dtype if own >= other else q.dtype
        if got is not want:
            raise Difference(f"{p.dtype} * {q.dtype}: {got}, not {want}")

    # ---- a run --------------------------------------------------------------------------------

    def same(self, what: str, x: Any, known: Any) -> None:
        found = x.numpy()
        ok = found.dtype == known.dtype and found.shape == known.shape
        if not ok or not np.array_equal(found, known):
            raise Difference(f"{what}: {found.dtype} {found.tolist()}, not {known.tolist()}")

    def run(self) -> None:
        edits = [n for n in dir(self) if n.startswith("do_")]
        for _ in range(self.dice.randint(4, 14)):
            name = self.dice.choice(edits)
            self.trace.append(name[3:])
            k = self.dice.randrange(3)
            if self.dice.random() < 0.1:
                self.pool[k] = self.fresh()
            getattr(self, name)(self.pool[k])
            if self.dice.random() < 0.1:
                self.same("read early", self.pool[k].tensor, self.pool[k].array)
        for p in self.pool:
            self.same("a tensor", p.tensor, p.array)
        for name, x, known in self.held:
            self.same(name, x, known)
        self.gradients()
        self.promotion()


def burn_of(dtype: Any) -> Any:
    """Return the dtype of numpy's."""
    return next(d for d, n in NUMPY.items() if n == dtype)


def check(seed: int, device: Any) -> None:
    """Run the program of a seed.

    Raises:
        Difference: a value or a dtype is not what it should be.
    """
    program = Program(seed, device)
    try:
        program.run()
    except Difference as error:
        raise Difference(f"program {seed} ({' '.join(program.trace)}): {error}") from None


def main() -> None:
    """Check many seeds; print what differs and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    device, start, wrong, seed = burn.device(args.device), time.monotonic(), 0, args.first
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        try:
            check(seed, device)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            wrong += 1
            print(f"{seed}: {type(error).__name__}: {error}"[:600], flush=True)
        seed += 1
    print(f"{args.device}: programs {args.first} to {seed - 1}, {wrong} differ")


if __name__ == "__main__":
    main()
