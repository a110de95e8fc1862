"""Random programs of up to sixty operations: recorded, captured, or as a graph, beside eager.

A program is data: steps over a pool of tensors. It is run several times with other values,
numbers, extents and tensors that are dropped, so that its plans are made, used again, noted and
replayed. What it leaves has the bits of the eager run, a NaN is a NaN; what earlier runs left stays
as it was.

    python -m tests.fusion.random_programs --backend cpu --first 0 --count 5000 --seconds 90
"""

from __future__ import annotations

import argparse
import gc
import random
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, NamedTuple

import numpy as np

import burn
from tests.fusion.random_steps import DYNAMIC, OPS, RANDOM, adapted

LIMIT, DEPTH, LENGTH = 2500, 5, 60
DTYPES = (
    burn.float32, burn.float32, burn.float64, burn.float16, burn.bfloat16, burn.int64, burn.int32,
    burn.int16, burn.int8, burn.uint8, burn.bool_,
)  # fmt: skip
SCOPES = ("no_fusion", "no_grad", "autocast", "thread", "both", "profile")
CONTROL = (
    "cast", "cast", "cast", "drop", "drop", "drop", "drop now and then", "read", "flush", "alias",
    "keep", "export", "bad index", "bad shape", "backward", "raise", "two devices",
)  # fmt: skip


class Step(NamedTuple):
    """An operation on members of the pool, in a scope."""

    name: str
    i: int
    j: int
    k: int
    s: float
    scope: str | None = None


class Program(NamedTuple):
    """What a seed stands for."""

    seed: int
    tracked: bool
    steps: tuple[Step, ...]


class Setting(NamedTuple):
    """What differs between the runs of a program: extent of batches, numbers, values, drops."""

    extent: int
    shift: float
    values: int
    drops: int


# Equal ones make plans and replays; other numbers make numbers late, and check them.
SETTINGS = (
    Setting(3, 0.0, 0, 0), Setting(3, 0.0, 0, 0), Setting(3, 0.0, 1, 0), Setting(3, 0.25, 1, 0),
    Setting(3, 0.5, 2, 1), Setting(3, 0.75, 2, 0), Setting(5, 0.75, 3, 0), Setting(1, 0.5, 3, 0),
    Setting(3, -1.0, 4, 0),
)  # fmt: skip


class Difference(AssertionError):
    """A run that differs from the eager one."""


class _Planned(Exception):
    """An error that a program raises on purpose."""


def make(seed: int, pure: bool = False, length: int = LENGTH, often: Sequence[str] = ()) -> Program:
    """Return the program of a seed.

    Args:
        seed: decides on everything.
        pure: it only computes, from inputs to results.
        length: steps at most. A driver that compiles slowly runs more short ones in its time.
        often: operations that every program has, twice as often as others.
    """
    dice = random.Random(seed)
    names = [n for n in OPS if not pure or n not in RANDOM | DYNAMIC]
    # Each program draws from a part of the operations, so that some meet often.
    names = dice.sample(names, dice.randint(6, 24))
    names += [n for n in often if n in OPS] * 2
    control = ("cast", "drop") if pure else CONTROL
    steps = []
    for _ in range(dice.randint(3, length)):
        name = dice.choice(control) if dice.random() < 0.25 else dice.choice(names)
        scope = None
        if not pure and name in OPS and dice.random() < 0.06:
            scope = dice.choice(SCOPES)
        near = dice.random() < 0.7  # of the last results, else of all
        i = dice.randrange(-3, 0) if near else dice.randrange(64)
        steps.append(
            Step(name, i, dice.randrange(64), dice.randrange(8),
                 dice.choice([0.5, 2.0, -1.25, 3.0, 1.0]), scope)
        )  # fmt: skip
    return Program(seed, dice.random() < 0.35 and not pure, tuple(steps))


def starts(setting: Setting) -> list[Any]:
    """Return arrays that a program begins with."""
    n, rng = setting.extent, np.random.default_rng(setting.values)
    made = [
        rng.standard_normal((n, 4)).astype(np.float32),
        rng.standard_normal((n, 4)).astype(np.float32),
        rng.integers(-2, 5, 4),
        np.float32(0.75 + setting.values),
        np.zeros((0, 4), np.float32),
        rng.integers(0, 3, (n, 4)).astype(np.int32),
        rng.random(4) > 0.5,
        rng.standard_normal((1, 6)),
        rng.standard_normal((2, n, 5)).astype(np.float32),
        rng.standard_normal((n, 16)).astype(np.float32).T,
    ]
    special = np.array([[0.0, -0.0, np.inf, 2.0], [-np.inf, np.nan, 1.0, -1.0]], np.float32)
    return [*made, special]


class _Run:
    """One run of a program on a device."""

    def __init__(self, program: Program, device: Any, setting: Setting) -> None:
        self.program, self.setting = program, setting
        self.device = device.autodiff() if program.tracked else device
        self.plain = device
        self.pool: list[Any] = []
        self.leaves: list[Any] = []
        self.seen: list[Any] = []  # what was observed: arrays and names of errors
        self.held: list[tuple[Any, Any, Any]] = []  # tensor, exported view, copy

    def go(self) -> _Run:
        """Run it all; observe what is left."""
        self.plain.seed(self.program.seed)
        for k, array in enumerate(starts(self.setting)):
            x = burn.tensor(array, device=self.device)
            if self.program.tracked and k in (0, 1, 3, 8):
                x = x.require_grad()
                self.leaves.append(x)
            self.pool.append(x)
            del x
        for step in self.program.steps:
            if not self.pool:
                break
            try:
                self._step(step)
            except (burn.BurnError, IndexError, _Planned) as error:
                self.seen.append(f"{step.name}: {type(error).__name__}")
        for x in self.pool:
            self.look(x)
        self.plain.sync()
        return self

    def look(self, x: Any) -> None:
        """Observe a tensor."""
        self.seen.append((x.dtype.name, x.numpy().copy()))

    def add(self, out: Any) -> None:
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if prod(x.shape) <= LIMIT and len(x.shape) <= DEPTH:
                self.pool.append(x)

    def _pick(self, i: int) -> Any:
        return self.pool[i if -len(self.pool) <= i < 0 else i % len(self.pool)]

    def _step(self, step: Step) -> None:
        name = step.name
        if name == "drop":
            self.pool.pop(step.i % len(self.pool))
        elif name == "drop now and then":
            if self.setting.drops & 1:
                self.pool.pop(step.i % len(self.pool))
        elif name in OPS:
            self._called(step)
        else:
            getattr(self, "_" + name.replace(" ", "_"))(step)

    def _called(self, step: Step) -> None:
        x, y, z = self._pick(step.i), self._pick(step.j), self._pick(step.j + step.k)
        s = step.s + self.setting.shift

        def call() -> Any:
            return OPS[step.name](x, y, z, s, step.k)

        if step.scope in ("thread", "both"):
            if step.name in RANDOM:  # the stream is one of a thread
                return
            self._threads(call, 2 if step.scope == "both" else 1)
            return
        scopes: dict[str | None, Callable[[], Any]] = {
            "no_fusion": burn.no_fusion, "no_grad": burn.no_grad, "profile": burn.profile,
            "autocast": lambda: burn.autocast(burn.bfloat16 if step.k % 2 else burn.float16),
        }  # fmt: skip
        with scopes.get(step.scope, nullcontext)():
            out = call()
        self.add(out)

    def _threads(self, call: Callable[[], Any], count: int) -> None:
        made: list[Any] = [None] * count

        def work(k: int) -> None:
            try:
                made[k] = call()
                if k:
                    self.plain.flush()
            except (burn.BurnError, IndexError) as error:
                made[k] = error

        threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for out in made:
            if isinstance(out, Exception):
                self.seen.append(type(out).__name__)
            else:
                self.add(out)

    def _cast(self, step: Step) -> None:
        self.add(self._pick(step.i).to(DTYPES[step.j % len(DTYPES)]))

    def _read(self, step: Step) -> None:
        self.look(self._pick(step.i))

    def _flush(self, step: Step) -> None:
        self.plain.flush() if step.k % 2 else self.plain.sync()

    def _alias(self, step: Step) -> None:
        self.pool.append(self._pick(step.i))

    def _keep(self, step: Step) -> None:
        x = self._pick(step.i).detach()  # an object of its own, which nobody assigns into
        self.held.append((x, None, None))

    def _export(self, step: Step) -> None:
        x = self._pick(step.i).detach()
        array = x.numpy()
        self.held.append((x, array, array.copy()))

    def _bad_index(self, step: Step) -> None:
        x = adapted(self._pick(step.i), 4, 3)
        at = burn.tensor([0, 3 + step.k % 3, 2], device=self.plain)
        x.index_select(0, at + 1).tolist()

    def _bad_shape(self, step: Step) -> None:
        self.add(self._pick(step.i).reshape(-1, 7)[:, :3] @ burn.ones(2, 2, device=self.plain))

    def _raise(self, step: Step) -> None:
        x = self._pick(step.i)
        with burn.no_grad() if step.k % 2 else nullcontext():
            half = x * 2
            self.add(half)
            raise _Planned

    def _two_devices(self, step: Step) -> None:
        x = self._pick(step.i)
        self.add((x.to_device("flex:7") * 2).to_device(x.device))

    def _backward(self, step: Step) -> None:
        if not self.program.tracked:
            return
        chosen = [x for x in self.pool[-4:] if x.dtype.is_float]
        total = sum(((x * 0.01).sum().to(burn.float32) for x in chosen), self.leaves[0].sum())
        grads = total.backward()
        for leaf in self.leaves:
            g = leaf.grad(grads)
            if g is not None:
                self.add(g)


def bits(array: Any) -> bytes:
    """Return the elements, all NaN as one of them."""
    wide = array.astype(np.float64) if array.dtype.kind in "fV" else array
    unequal = wide != wide
    return (np.where(unequal, np.nan, wide) if unequal.any() else wide).tobytes()


def _same(found: Any, expected: Any, where: str) -> None:
    if isinstance(found, str) or isinstance(expected, str):
        if found is not expected and found != expected:
            raise Difference(f"{where}: {_shown(found)}, expected {_shown(expected)}")
        return
    (a, x), (b, y) = found, expected
    if (a, x.shape) != (b, y.shape):
        raise Difference(f"{where}: {a}{list(x.shape)}, expected {b}{list(y.shape)}")
    if bits(x) != bits(y):
        k = next(
            (i for i, (p, q) in enumerate(zip(x.flat, y.flat, strict=True)) if bits(p) != bits(q)),
            0,
        )
        raise Difference(f"{where}: {a}{list(x.shape)} at {k}: {x.flat[k]!r}, not {y.flat[k]!r}")


def _shown(seen: Any) -> str:
    return seen if isinstance(seen, str) else f"{seen[0]}{list(seen[1].shape)}"


def check(
    program: Program, eager: Any, fused: Any, settings: tuple[Setting, ...] = SETTINGS,
    counts: Counter[str] | None = None,
) -> None:  # fmt: skip
    """Compare the runs of a program.

    Raises:
        Difference: a run differs, or a result changed after its run.
    """
    assert eager != fused, "one device under two names is compared with itself"
    kept: list[tuple[int, list[tuple[Any, Any, Any]]]] = []
    known: dict[Setting, list[Any]] = {}
    for number, setting in enumerate(settings):
        expected = known.get(setting)
        if expected is None:
            expected = known[setting] = _Run(program, eager, setting).go().seen
        run = _Run(program, fused, setting).go()
        where = f"run {number}"
        for at, (a, b) in enumerate(zip(run.seen, expected, strict=False)):
            _same(a, b, f"{where}, observation {at}")
        if len(run.seen) != len(expected):
            raise Difference(f"{where}: {len(run.seen)} observations, expected {len(expected)}")
        held = [(x, a, x.numpy().copy() if c is None else c) for x, a, c in run.held]
        kept.append((number, held))
        if counts is not None and not number:
            counts.update(s if isinstance(s, str) else "values" for s in expected)
    for number, held in kept:
        for x, exported, copy in held:
            for now in (x.numpy(), exported):
                if now is not None and bits(now) != bits(copy):
                    raise Difference(f"a result of run {number} changed afterwards")


def check_pure(seed: int, eager: Any, fused: Any) -> None:
    """Compare a program without reads as a captured step, as a graph, and eager."""
    assert eager != fused, "one device under two names is compared with itself"
    program, number = make(seed, pure=True), [0.0]

    def fn(*args: Any) -> list[Any]:
        run = _Run(program, fused, Setting(3, number[0], 0, 0))
        run.pool = list(args)
        del args
        for step in program.steps:
            if not run.pool:
                break
            try:
                run._step(step)
            except (burn.BurnError, IndexError) as error:
                if isinstance(error, burn.CaptureError):
                    raise
        return run.pool

    def given(device: Any, setting: Setting) -> list[Any]:
        return [burn.tensor(a, device=device) for a in starts(setting)]

    captured = burn.capture(fn)
    capturing = burn.Device.capture()
    try:
        graph = burn.graph(fn, *given(capturing, SETTINGS[0]))
    except burn.CaptureError as error:
        if "returns tensors" not in str(error):
            raise
        graph = None  # all was dropped
    for k in range(7):
        setting = Setting(3, 0.0, k, 0)
        expected = [(x.dtype.name, x.numpy()) for x in fn(*given(eager, setting))]
        found = captured(*given(fused, setting))
        outs = {"capture": found, "graph": None}
        if graph is not None and k < 2:
            outs["graph"] = graph.run(fused, *starts(setting))
        for title, out in outs.items():
            if out is None:
                continue
            if len(out) != len(expected):
                raise Difference(f"{title}: {len(out)} results, expected {len(expected)}")
            for at, (x, e) in enumerate(zip(out, expected, strict=True)):
                _same((x.dtype.name, x.numpy()), e, f"{title}, call {k}, result {at}")


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program with as few steps as still fail."""
    steps, end = list(program.steps), time.monotonic() + 20
    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps) and time.monotonic() < end:
            fewer = steps[:at] + steps[at + size :]
            if fewer != steps and fails(program._replace(steps=tuple(fewer))):
                steps = fewer
            else:
                at += size
        size = size // 2
    for at, step in enumerate(steps):
        if step.scope and fails(
            program._replace(steps=(*steps[:at], step._replace(scope=None), *steps[at + 1 :]))
        ):
            steps[at] = step._replace(scope=None)
    return program._replace(steps=tuple(steps))


def outcome(program: Program, eager: Any, fused: Any, counts: Any = None) -> str | None:
    """Return in words how a program goes wrong, None where it does not."""
    try:
        check(program, eager, fused, counts=counts)
    except Difference as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
        lines = traceback.format_exc().splitlines()[-5:]
        return f"{type(error).__name__}: " + " | ".join(line.strip() for line in lines)
    return None


def main() -> None:
    """Run many programs; print what differs, shrunk, and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cpu", help="what eager- and fusion- are put before")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--length", type=int, default=LENGTH, help="steps of a program at most")
    parser.add_argument("--often", nargs="*", default=(), help="operations that all programs have")
    parser.add_argument("--pure", action="store_true", help="captured steps and graphs")
    parser.add_argument("--shrink", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    eager, fused = (burn.device(f"{kind}-{args.backend}") for kind in ("eager", "fusion"))
    counts, wrong, start, seed = Counter[str](), 0, time.monotonic(), args.first
    while seed < args.first + args.count and time.monotonic() - start < args.seconds:
        if args.pure:
            try:
                check_pure(seed, eager, fused)
                found = None
            except Exception as error:  # noqa: BLE001 - as in `outcome`
                found = f"{type(error).__name__}: {error}"
        else:
            found = outcome(make(seed, length=args.length, often=args.often), eager, fused, counts)
        if found is not None:
            wrong += 1
            print(f"program {seed}: {found}", flush=True)
            if args.shrink and not args.pure:
                whole = make(seed, length=args.length, often=args.often)
                small = shrunk(whole, lambda p: outcome(p, eager, fused) is not None)
                print(f"    {outcome(small, eager, fused)}\n    {small}", flush=True)
        seed += 1
        if not seed % 50:
            gc.collect()
    taken = time.monotonic() - start
    refused = sum(n for name, n in counts.items() if name != "values")
    print(
        f"{args.backend}: programs {args.first} to {seed - 1}, {counts['values']} values, "
        f"{refused} refusals, {wrong} differ, {taken:.0f} s"
    )


if __name__ == "__main__":
    main()
