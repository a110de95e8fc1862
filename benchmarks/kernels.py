"""Operations of the backend written in burn-cube, on the processor, beside PyTorch in one run.

    python benchmarks/kernels.py [--torch PYTHON] [--json FILE] [--only WORD] [--rounds N]

Two processes, one with each library, take turns at every workload, so that both see the machine in
the same state. Printed are ratios PyTorch / ours, above 1 where we are faster: of the medians of
the wall time with all threads, of the best wall times, which a busy machine disturbs less, and of
processor time with one thread, which it hardly disturbs. `--torch` names a Python that has PyTorch,
this one by default. Rows of the file of results that a run leaves out stay as they are.
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
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[], Any]
# Seconds for which a workload runs before it is measured, and about as long after.
WARM = 0.01


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Return the same samples in both processes."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


class Ours:
    """The operations on `cpu`."""

    def __init__(self) -> None:
        from burn_dispatch import device

        self.c: Any = device("eager-cpu").without_autodiff().context
        self.put = self.c.tensor_from_numpy

    def maps(self, op: str, x: Any) -> Call:
        return (lambda: self.c.add(x, x)) if op == "add" else (lambda: getattr(self.c, op)(x))

    def gelu(self, x: Any) -> Call:
        return lambda: self.c.gelu(x, "none")

    def softmax(self, x: Any) -> Call:
        return lambda: self.c.softmax(x, 1, None)

    def layer_norm(self, x: Any) -> Call:
        return lambda: self.c.layer_norm(x, None, None, 1, 1e-5)

    def reduce(self, op: str, x: Any, dim: int) -> Call:
        if op == "sum":
            return lambda: self.c.sum(x, (dim,), False, None)
        if op == "amax":
            return lambda: self.c.amax(x, (dim,), False)
        return lambda: self.c.argmax(x, dim, False)

    def matmul(self, x: Any, y: Any) -> Call:
        return lambda: self.c.matmul(x, y)

    def conv(self, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        how = ((stride, stride), (1, 1), (1, 1), groups)
        return lambda: self.c.conv(x, w, None, *how)

    def conv_weight(self, g: Any, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        how = ((stride, stride), (1, 1), (1, 1), groups, tuple(w.shape))
        return lambda: self.c.conv_weight_grad(g, x, *how)

    def conv_input(self, g: Any, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        how = ((stride, stride), (1, 1), (1, 1), groups, tuple(x.shape))
        return lambda: self.c.conv_input_grad(g, w, *how)

    def max_pool(self, x: Any) -> Call:
        return lambda: self.c.max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), False)

    def attention(self, x: Any) -> Call:
        return lambda: self.c.attention(x, x, x, None, True, False, 0.125)

    def adam(self, params: list[Any]) -> Call:
        step = self.put(np.zeros((), np.float32))
        rates = (1e-3, 0.9, 0.999, 1e-8, 0.0)
        return lambda: self.c.adam_step(
            params, params, params, params, [], step, None, False, False, *rates
        )


class Theirs:
    """The operations in PyTorch."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.t: Any = torch
        self.put = torch.from_numpy

    def maps(self, op: str, x: Any) -> Call:
        return (lambda: x + x) if op == "add" else (lambda: getattr(self.t, op)(x))

    def gelu(self, x: Any) -> Call:
        return lambda: self.t.nn.functional.gelu(x)

    def softmax(self, x: Any) -> Call:
        return lambda: self.t.softmax(x, 1)

    def layer_norm(self, x: Any) -> Call:
        return lambda: self.t.nn.functional.layer_norm(x, x.shape[1:])

    def reduce(self, op: str, x: Any, dim: int) -> Call:
        return lambda: getattr(x, op)(dim)

    def matmul(self, x: Any, y: Any) -> Call:
        return lambda: x @ y

    def conv(self, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        return lambda: self.t.conv2d(x, w, padding=1, stride=stride, groups=groups)

    def conv_weight(self, g: Any, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        fn, how = self.t.nn.grad.conv2d_weight, {"padding": 1, "stride": stride, "groups": groups}
        return lambda: fn(x, w.shape, g, **how)

    def conv_input(self, g: Any, x: Any, w: Any, stride: int = 1, groups: int = 1) -> Call:
        fn, how = self.t.nn.grad.conv2d_input, {"padding": 1, "stride": stride, "groups": groups}
        return lambda: fn(x.shape, w, g, **how)

    def max_pool(self, x: Any) -> Call:
        pool = self.t.nn.functional.max_pool2d_with_indices
        return lambda: pool(x, 2)

    def attention(self, x: Any) -> Call:
        fn = self.t.nn.functional.scaled_dot_product_attention
        return lambda: fn(x, x, x, is_causal=True, scale=0.125)

    def adam(self, params: list[Any]) -> Call:
        leaves = [p.clone().requires_grad_() for p in params]
        for leaf in leaves:
            leaf.grad = leaf.detach().clone()
        optimizer = self.t.optim.Adam(leaves, fused=True)
        return optimizer.step  # type: ignore[no-any-return]


def workloads(lib: Any) -> dict[str, Callable[[], Call]]:
    """Return what is measured; data are made when a workload begins."""
    put = lib.put
    out: dict[str, Callable[[], Call]] = {}
    for op in ("add", "exp", "tanh"):
        out[f"{op} 1M"] = lambda op=op: lib.maps(op, put(floats(1 << 20)))
    out["gelu 1M"] = lambda: lib.gelu(put(floats(1 << 20)))
    out["add 16M"] = lambda: lib.maps("add", put(floats(1 << 24)))
    for rows, columns in ((4096, 1024), (1 << 20, 16)):
        name = f"{rows}x{columns}"
        out[f"softmax {name}"] = lambda s=(rows, columns): lib.softmax(put(floats(*s)))
        out[f"layer_norm {name}"] = lambda s=(rows, columns): lib.layer_norm(put(floats(*s)))
    for op in ("sum", "amax", "argmax"):
        for dim, where in ((1, "last"), (0, "first")):
            out[f"{op} {where} axis 4096x1024"] = lambda op=op, dim=dim: lib.reduce(
                op, put(floats(4096, 1024)), dim
            )
    for n in (64, 256, 512, 1024, 2048):
        out[f"matmul {n}"] = lambda n=n: lib.matmul(put(floats(n, n)), put(floats(n, n)))
    for n, channels, side in ((8, 64, 56), (8, 128, 28), (8, 256, 14)):
        shape = (n, channels, side, side)

        def operands(
            s: tuple[int, ...] = shape, stride: int = 1, groups: int = 1
        ) -> tuple[Any, Any, Any]:
            side = (s[2] - 1) // stride + 1
            return (
                put(floats(s[0], s[1], side, side)), put(floats(*s)),
                put(floats(s[1], s[1] // groups, 3, 3)),
            )  # fmt: skip

        name = f"{side}x{side}x{channels} b{n}"
        for kind, stride, groups in (
            ("", 1, 1), (" by 2", 2, 1), (" depthwise", 1, channels),
            (" depthwise by 2", 2, channels),
        ):  # fmt: skip
            if side < 28 and kind:
                continue
            how = (stride, groups)
            made = lambda o=operands, s=shape, how=how: o(s, *how)  # noqa: E731
            out[f"conv 3x3{kind} {name}"] = lambda m=made, how=how: lib.conv(*m()[1:], *how)
            out[f"conv weight{kind} {name}"] = lambda m=made, how=how: lib.conv_weight(*m(), *how)
            out[f"conv input{kind} {name}"] = lambda m=made, how=how: lib.conv_input(*m(), *how)
    out["max_pool 2x2 64x64x24x24"] = lambda: lib.max_pool(put(floats(64, 64, 24, 24)))
    out["attention causal 4x8x256x64"] = lambda: lib.attention(put(floats(4, 8, 256, 64)))
    out["adam 670 k in 6"] = lambda: lib.adam(
        [put(floats(*s)) for s in ((784, 512), (512,), (512, 512), (512,), (512, 10), (10,))]
    )
    return out


def serve(side: str, threads: int) -> None:
    """Measure the workloads whose names come in, one answer a line."""
    lib: Any = Ours() if side == "ours" else Theirs(threads)
    known = workloads(lib)
    ready: dict[str, Call] = {}
    print(json.dumps({"side": side}), flush=True)
    for line in sys.stdin:
        name, calls = json.loads(line)
        if name not in ready:
            ready.clear()  # data of one workload at a time
            ready[name] = known[name]()
            ready[name]()
        fn = ready[name]
        # Threads of a pool sleep by now, and those of the other side may still turn idly.
        warm = time.perf_counter() + WARM
        while time.perf_counter() < warm:
            fn()
        walls, work = [], []
        for _ in range(calls):
            wall, used = time.perf_counter(), time.process_time()
            fn()
            work.append(time.process_time() - used)
            walls.append(time.perf_counter() - wall)
        print(json.dumps([walls, work]), flush=True)


class Worker:
    """A process with one library."""

    def __init__(self, python: str, side: str, threads: int) -> None:
        env = dict(os.environ, BURN_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
        args = [python, __file__, "--side", side, "--threads", str(threads)]
        self.process = subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.answer()

    def answer(self) -> Any:
        """Return the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process with one of the libraries ended early; its error is above")
        return json.loads(line)

    def measure(self, name: str, calls: int) -> Any:
        """Return the wall and processor times of some calls."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, calls]) + "\n")
        self.process.stdin.flush()
        return self.answer()


def compared(pair: list[Worker], name: str, rounds: int) -> list[dict[str, float]]:
    """Return median and best wall time and median processor time of both, in microseconds."""
    walls: list[list[float]] = [[], []]
    work: list[list[float]] = [[], []]
    calls, single = 1, list[float]()
    for turn in range(rounds + 1):
        for k, worker in enumerate(pair):
            wall, used = worker.measure(name, calls)
            single.append(min(wall))
            if turn:  # the first turn only says how long a call is
                walls[k] += wall
                work[k] += used
        if not turn:
            calls = max(5, min(50, int(WARM / min(single))))
    return [
        {
            "median": statistics.median(walls[k]) * 1e6,
            "best": min(walls[k]) * 1e6,
            "work": statistics.median(work[k]) * 1e6,
        }
        for k in range(2)
    ]


def main() -> None:
    """Run both sides and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--torch", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--only", default="", help="workloads with this in their name")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each side")
    options = parser.parse_args()
    if options.side:
        serve(options.side, options.threads)
        return
    cpus = len(os.sched_getaffinity(0))
    sides = ((sys.executable, "ours"), (options.torch, "theirs"))
    pairs = [[Worker(p, s, threads) for p, s in sides] for threads in (cpus, 1)]

    class Names:
        put = None

    rows = {}
    print(f"{'torch / ours':32} {'median':>8} {'best':>8} {'1 thread':>8}   ours, torch best us")
    for name in workloads(Names()):
        if options.only not in name:
            continue
        many = compared(pairs[0], name, options.rounds)
        one = compared(pairs[1], name, options.rounds)
        rows[name] = {"date": time.strftime("%Y-%m-%d"), "threads": many, "one thread": one}
        ratios = [many[1][k] / many[0][k] for k in ("median", "best")]
        ratios.append(one[1]["work"] / max(one[0]["work"], 1e-3))
        words = " ".join(f"{r:8.2f}" for r in ratios)
        print(f"{name:32} {words}   {many[0]['best']:.0f}, {many[1]['best']:.0f}", flush=True)
    if options.json:
        facts = {
            "date": time.strftime("%Y-%m-%d"), "machine": platform.machine(), "cpus": cpus,
            "python": platform.python_version(), "numpy": np.__version__,
            "load": os.getloadavg(), "unit": "us",
            "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE", "chosen by OpenBLAS"),
            "columns": "first ours, then PyTorch",
        }  # fmt: skip
        known = json.loads(options.json.read_text()) if options.json.exists() else {}
        rows = known.get("rows", {}) | rows
        text = json.dumps(known | {"facts": facts, "rows": rows}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
