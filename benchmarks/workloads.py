"""Whole programs on the processor, ours beside PyTorch, torch.compile, JAX and tinygrad in one run.

    python benchmarks/workloads.py [--json FILE] [--only WORD] [--rounds N] [--sides ours,torch,...]

Each library has a process of its own; they take turns at every workload, so that all see the
machine in the same state. Printed are medians in microseconds and ratios peer / ours, above 1
where we are faster. First calls, which compile, are left out. A peer that is not installed in this
environment is left out too. tinygrad runs on its CPU device under TinyJit, and wants `clang`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jitted_peers import Call, floats, jax_workloads, labels, tinygrad_workloads

DEVICE = "cpu"
SIDES = {
    "ours": "burn", "captured": "burn", "torch": "torch", "compile": "torch", "jax": "jax",
    "tinygrad": "tinygrad",
}  # fmt: skip
# Calls that are not measured: libraries compile in the first, and what comes often in the tenth.
WARM = 12
# What a peer has to take at least, as a multiple of our time.
MARKS = {
    "elementwise 16M": {"torch": 14, "jax": 3},
    "elementwise 1M": {"torch": 7, "jax": 1.5},
    "mlp step 64": {"torch": 1.7},
    "mlp step 512": {"torch": 1.7},
    "cnn step 64": {"torch": 1.6},
    "gpt forward": {"torch": 1.6},
    "gpt step": {"torch": 1.3},
    "lstm forward": {"torch": 1.15},
    "lstm step": {"torch": 1.3},
    "cnn inference 1": {"torch": 2},
    "mlp inference 1": {"torch": 2},
    "small chain": {"torch": 2.5},
}
# The same for captured steps.
CAPTURED = {
    "mlp step 64": {"torch": 2.2, "jax": 1.15},
    "mlp step 512": {"torch": 2.2, "jax": 1.15},
    "mlp inference 1": {"torch": 4},
    "small chain": {"jax": 1},
}


class Ours:
    """This framework, plain code on a device that fuses, or its steps captured."""

    def __init__(self, captured: bool = False) -> None:
        import burn
        from burn import nn, optim

        self.nn, self.optim, self.lib = nn, optim, burn
        self.f: Any = burn.functional
        self.plain = burn.device(DEVICE)
        self.device = self.plain.autodiff()
        self.where = {"device": self.device}
        self.captured = captured

    def put(self, array: Any) -> Any:
        return self.lib.tensor(array, device=self.plain)

    def done(self, value: Any) -> Any:
        self.plain.sync()
        return value

    def trained(self, model: Any, loss: Callable[..., Any], *inputs: Any) -> Call:
        optimizer = self.optim.Adam(lr=1e-3)

        def step(*inputs: Any) -> None:
            optimizer.step(model, loss(*inputs).backward())

        fn = self.lib.capture(step, state=(model, optimizer)) if self.captured else step
        return lambda: self.done(fn(*inputs))

    def infer(self, model: Any) -> Any:
        model = model.valid()
        return self.lib.capture(model.__call__, state=model) if self.captured else model

    def leaf(self, array: Any) -> Any:
        return self.lib.tensor(array, device=self.device).require_grad()

    def gradient(self, loss: Callable[[], Any], leaf: Any) -> Call:
        fn = self.step(lambda: leaf.grad(loss().backward()))
        return lambda: self.done(fn())

    def step(self, fn: Callable[[], Any]) -> Call:
        if not self.captured:
            return fn
        anchor = self.lib.zeros(1, device=self.plain)  # says which device a step without tensors is
        return self.lib.capture(fn, state=anchor)  # type: ignore[no-any-return]


class Torch:
    """PyTorch, eager or compiled."""

    def __init__(self, compiled: bool) -> None:
        import torch

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.lib: Any = torch
        self.nn: Any = torch.nn
        self.f = torch.nn.functional
        self.where: dict[str, Any] = {}
        self.compiled = compiled
        self.put = torch.from_numpy

    def done(self, value: Any) -> Any:
        return value

    def trained(self, model: Any, loss: Callable[..., Any], *inputs: Any) -> Call:
        optimizer = self.lib.optim.Adam(model.parameters(), lr=1e-3)
        fn = self.lib.compile(loss) if self.compiled else loss

        def step() -> None:
            optimizer.zero_grad()
            fn(*inputs).backward()
            optimizer.step()

        return step

    def infer(self, model: Any) -> Any:
        model = model.eval()
        for p in model.parameters():
            p.requires_grad_(False)
        return self.lib.compile(model) if self.compiled else model

    def leaf(self, array: Any) -> Any:
        return self.lib.from_numpy(array).requires_grad_()

    def gradient(self, loss: Callable[[], Any], leaf: Any) -> Call:
        fn = self.step(loss)
        return lambda: self.lib.autograd.grad(fn(), leaf)[0]

    def step(self, fn: Callable[[], Any]) -> Call:
        return self.lib.compile(fn) if self.compiled else fn  # type: ignore[no-any-return]


def elementwise(lib: Any, count: int) -> Call:
    """Return gelu(x * y + z) * tanh(z) + y."""
    x, y, z = (lib.put(floats(3, count)[k].copy()) for k in range(3))
    f = lib.f
    fn = lib.step(lambda: f.gelu(x * y + z) * z.tanh() + y)
    return lambda: lib.done(fn())


def mlp(lib: Any, sizes: tuple[int, ...]) -> Any:
    """Return a network of linear layers and relus."""
    nn, parts = lib.nn, []
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b, **lib.where), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def cnn(lib: Any) -> Any:
    """Return a network for 28 x 28 images."""
    nn, w = lib.nn, lib.where
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, **w), nn.ReLU(), nn.Conv2d(32, 64, 3, **w), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 12 * 12, 128, **w), nn.ReLU(),
        nn.Linear(128, 10, **w),
    )  # fmt: skip


def gpt(lib: Any) -> Any:
    """Return a small causal transformer."""
    nn, f, w = lib.nn, lib.f, lib.where
    dim, heads, layers, vocabulary, length = 256, 8, 4, 1000, 256

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(dim, **w), nn.LayerNorm(dim, **w)
            self.qkv, self.out = nn.Linear(dim, 3 * dim, **w), nn.Linear(dim, dim, **w)
            self.up, self.down = nn.Linear(dim, 4 * dim, **w), nn.Linear(4 * dim, dim, **w)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.qkv(self.ln1(x)).reshape(b, t, 3, heads, dim // heads)
            q, k, v = (parts[:, :, j].permute(0, 2, 1, 3) for j in range(3))
            a = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.permute(0, 2, 1, 3).reshape(b, t, dim))
            return x + self.down(f.gelu(self.up(self.ln2(x))))

    class Gpt(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, dim, **w)
            self.places = nn.Embedding(length, dim, **w)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(dim, **w), nn.Linear(dim, vocabulary, **w)

        def forward(self, x: Any, at: Any) -> Any:
            x = self.tokens(x) + self.places(at)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Gpt()


def training(lib: Any, model: Any, inputs: tuple[Any, ...], target: Any) -> Call:
    """Return a step of Adam on the cross-entropy."""

    def loss(*given: Any) -> Any:
        *inputs, target = given
        out = model(*inputs)
        return lib.f.cross_entropy(out.reshape(-1, out.shape[-1]), target)

    return lib.trained(model, loss, *inputs, target)  # type: ignore[no-any-return]


def inference(lib: Any, model: Any, *inputs: Any) -> Call:
    """Return a forward without gradients."""
    fast = lib.infer(model)
    return lambda: lib.done(fast(*inputs))


def lstm(lib: Any) -> Any:
    """Return a recurrent layer and a head over its last step."""
    nn, w = lib.nn, lib.where

    class Last(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTM(128, 256, batch_first=True, **w)
            self.head = nn.Linear(256, 10, **w)

        def forward(self, x: Any) -> Any:
            return self.head(self.cell(x)[0][:, -1])

    return Last()


def chain(lib: Any) -> Call:
    """Return ten times (mul, add) on 8 x 8, and the gradient."""
    x, y = lib.leaf(floats(8, 8)), lib.put(floats(8, 8) * 0.5)

    def total() -> Any:
        v = x
        for _ in range(10):
            v = v * y + y
        return v.sum()

    return lib.gradient(total, x)  # type: ignore[no-any-return]


def workloads(lib: Any) -> dict[str, Callable[[], Call]]:
    """Return what is measured; data are made when a workload begins."""
    put = lib.put
    images, digits = (lambda n: put(floats(n, 1, 28, 28))), (lambda n: put(labels(n, 10)))
    words, places = (lambda: put(labels(1024, 1000).reshape(4, 256))), (lambda: put(np.arange(256)))
    out: dict[str, Callable[[], Call]] = {
        "elementwise 16M": lambda: elementwise(lib, 1 << 24),
        "elementwise 1M": lambda: elementwise(lib, 1 << 20),
    }
    for n in (64, 512):
        out[f"mlp step {n}"] = lambda n=n: training(
            lib, mlp(lib, (784, 512, 512, 10)), (put(floats(n, 784)),), digits(n)
        )
    out["cnn step 64"] = lambda: training(lib, cnn(lib), (images(64),), digits(64))
    out["gpt forward"] = lambda: inference(lib, gpt(lib), words(), places())
    out["gpt step"] = lambda: training(lib, gpt(lib), (words(), places()), put(labels(1024, 1000)))
    out["lstm forward"] = lambda: inference(lib, lstm(lib), put(floats(32, 64, 128)))
    out["lstm step"] = lambda: training(lib, lstm(lib), (put(floats(32, 64, 128)),), digits(32))
    out["cnn inference 1"] = lambda: inference(lib, cnn(lib), images(1))
    out["mlp inference 1"] = lambda: inference(lib, mlp(lib, (16, 32, 4)), put(floats(1, 16)))
    out["small chain"] = lambda: chain(lib)
    return out


def serve(side: str) -> None:
    """Measure the workloads whose names come in, one answer a line."""
    if side == "jax":
        known = jax_workloads()
    elif side == "tinygrad":
        known = tinygrad_workloads()
    else:
        ours = side in ("ours", "captured")
        known = workloads(Ours(side == "captured") if ours else Torch(side == "compile"))
    ready: dict[str, Call] = {}
    print(json.dumps({"side": side, "known": list(known)}), flush=True)
    for line in sys.stdin:
        name, calls = json.loads(line)
        if name not in ready:
            ready.clear()  # data of one workload at a time
            ready[name] = known[name]()
            for _ in range(WARM):
                ready[name]()
        fn, times = ready[name], []
        for _ in range(calls):
            start = time.perf_counter()
            fn()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


class Worker:
    """A process with one library."""

    def __init__(self, side: str) -> None:
        self.side = side
        args = [sys.executable, __file__, "--side", side]
        self.process = subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.known = self._answer()["known"]

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.side} ended early; its error is above")
        return json.loads(line)

    def measure(self, name: str, calls: int) -> list[float]:
        """Return the times of some calls."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, calls]) + "\n")
        self.process.stdin.flush()
        answer: list[float] = self._answer()
        return answer


def compared(workers: list[Worker], name: str, rounds: int) -> dict[str, float]:
    """Return the median time of each side, in microseconds."""
    able = [w for w in workers if name in w.known]
    first = max(w.measure(name, 1)[0] for w in able)
    calls = max(1, min(50, int(0.15 / first)))
    times: dict[str, list[float]] = {w.side: [] for w in able}
    for _ in range(rounds):
        for worker in able:
            times[worker.side] += worker.measure(name, calls)
    return {side: statistics.median(t) * 1e6 for side, t in times.items()}


def short(name: str, row: dict[str, float]) -> list[str]:
    """Return the marks that a workload misses, as written and captured."""
    out = []
    for way, marks in (("ours", MARKS), ("captured", CAPTURED)):
        for side, mark in marks.get(name, {}).items():
            if way in row and side in row and row[side] / row[way] < mark:
                words = name if way == "ours" else f"{name}, captured"
                out.append(f"{words}: {row[side] / row[way]:.2f} of {side} at mark {mark}")
    return out


def main() -> None:
    """Run all sides and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=tuple(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--sides", default="ours,torch", help="which libraries, ours first")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--only", default="", help="workloads with this in their name")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    options = parser.parse_args()
    if options.side:
        serve(options.side)
        return
    sides = [s for s in options.sides.split(",") if find_spec(SIDES[s])]
    workers = [Worker(side) for side in sides]
    rows, missed = {}, []
    print(f"{'peer / ours':20} {'ours us':>10} " + " ".join(f"{s:>9}" for s in sides[1:]))
    for name in workers[0].known:
        if options.only not in name:
            continue
        row = rows[name] = compared(workers, name, options.rounds)
        ours = row["ours"]
        words = " ".join(f"{row[s] / ours:9.2f}" if s in row else " " * 9 for s in sides[1:])
        print(f"{name:20} {ours:10.0f} {words}", flush=True)
        missed += short(name, row)
    print("marks missed: " + ("; ".join(missed) or "none"))
    if options.json:
        facts = {
            "date": time.strftime("%Y-%m-%d"), "machine": platform.machine(), "device": DEVICE,
            "cpus": len(os.sched_getaffinity(0)), "python": platform.python_version(),
            "numpy": np.__version__, "load": os.getloadavg(), "unit": "us",
        }  # fmt: skip
        text = json.dumps({"facts": facts, "medians": rows, "missed": missed}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
