"""Cost of one operation on 8 float32 elements: ours beside numpy and PyTorch, in one run.

    python benchmarks/overhead.py [--json FILE] [--quick]

Prints ratios of medians. numpy's equivalent of each operation is written out below; PyTorch is
measured when it is installed (`nox -s bench` installs it into its own environment). The marks are
those of the foundation: on flex untracked at most 6 times numpy (views 8, geometric mean 4),
tracked at most 12 (geometric mean 8); recorded `x + y` at most 0.55 of PyTorch's untracked and 0.45
of its tracked small add; flushing a known segment of 60 adds at most twice numpy's own loop; a step
that trains a perceptron on the cpu device, as written, at most 3 us for each of its operations in
all: record, flush, launch, and the module, the walk of the tape and the optimizer around them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import Device, functional as F

try:
    import torch
    import torch.nn.functional as TF

except ImportError:
    torch = None  # type: ignore[assignment]

VIEWS = {"reshape", "transpose", "slice", "select"}


def median_us(fn: Callable[[], Any], calls: int, rounds: int) -> float:
    """Return the median over rounds of the time of one call, in microseconds."""
    fn()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs, the same for everybody."""
    rng = np.random.default_rng(0)

    def f(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "x": f(8),
        "y": f(8),
        "m": f(2, 4),
        "w": f(4, 2),
        "b": f(2),
        "g": f(4),
        "cond": f(8) > 0,
        "image": f(1, 1, 4, 4),
        "kernel": f(1, 1, 3, 3),
        "target": np.array([1, 3]),
        "index": np.array([1, 3, 5]),
    }


def numpy_ops(a: dict[str, np.ndarray[Any, Any]]) -> dict[str, Callable[[], Any]]:
    """Return numpy's equivalents."""
    x, y, m, w, b, g = (a[k] for k in ("x", "y", "m", "w", "b", "g"))
    cond, image, kernel, target, index = (
        a[k] for k in ("cond", "image", "kernel", "target", "index")
    )

    def softmax() -> Any:
        e = np.exp(m - m.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def layer_norm() -> Any:
        mean = m.mean(axis=1, keepdims=True)
        var = m.var(axis=1, keepdims=True)
        return (m - mean) / np.sqrt(var + 1e-5) * g + g

    def cross_entropy() -> Any:
        z = m - m.max(axis=1, keepdims=True)
        z = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        return -z[np.arange(2), target].mean()

    def conv() -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, kernel)

    return {
        "add": lambda: x + y,
        "mul scalar": lambda: x * 2.0,
        "matmul": lambda: m @ w,
        "linear": lambda: m @ w + b,
        "relu": lambda: np.maximum(x, 0),
        "exp": lambda: np.exp(x),
        "tanh": lambda: np.tanh(x),
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "max": lambda: x.max(),
        "gt": lambda: x > y,
        "reshape": lambda: x.reshape(2, 4),
        "transpose": lambda: m.transpose(1, 0),
        "slice": lambda: x[1:5],
        "select": lambda: m[1],
        "cat": lambda: np.concatenate([x, y]),
        "where": lambda: np.where(cond, x, y),
        "index_select": lambda: np.take(x, index, 0),
        "softmax": softmax,
        "layer_norm": layer_norm,
        "cross_entropy": cross_entropy,
        "conv2d": conv,
    }


def burn_ops(
    a: dict[str, np.ndarray[Any, Any]], device: Device, tracked: bool
) -> dict[str, Callable[[], Any]]:
    """Return our operations on a device."""

    def make(v: np.ndarray[Any, Any]) -> Any:
        t = burn.tensor(v, device=device)
        return t.require_grad() if tracked and v.dtype == np.float32 else t

    t = {k: make(v) for k, v in a.items()}
    x, y, m, w, b, g = (t[k] for k in ("x", "y", "m", "w", "b", "g"))
    cond, image, kernel, target, index = (
        t[k] for k in ("cond", "image", "kernel", "target", "index")
    )
    wt = make(np.ascontiguousarray(a["w"].T))
    return {
        "add": lambda: x + y,
        "mul scalar": lambda: x * 2.0,
        "matmul": lambda: m @ w,
        "linear": lambda: F.linear(m, wt, b),
        "relu": lambda: F.relu(x),
        "exp": lambda: x.exp(),
        "tanh": lambda: x.tanh(),
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "max": lambda: x.max(),
        "gt": lambda: x > y,
        "reshape": lambda: x.reshape(2, 4),
        "transpose": lambda: m.transpose(1, 0),
        "slice": lambda: x[1:5],
        "select": lambda: m[1],
        "cat": lambda: burn.cat([x, y]),
        "where": lambda: burn.where(cond, x, y),
        "index_select": lambda: x.index_select(0, index),
        "softmax": lambda: F.softmax(m, 1),
        "layer_norm": lambda: F.layer_norm(m, (4,), g, g),
        "cross_entropy": lambda: F.cross_entropy(m, target),
        "conv2d": lambda: F.conv2d(image, kernel),
    }


def torch_ops(a: dict[str, np.ndarray[Any, Any]], tracked: bool) -> dict[str, Callable[[], Any]]:
    """Return PyTorch's operations."""

    def make(v: np.ndarray[Any, Any]) -> Any:
        t = torch.from_numpy(v.copy())
        return t.requires_grad_() if tracked and v.dtype == np.float32 else t

    t = {k: make(v) for k, v in a.items()}
    x, y, m, w, b, g = (t[k] for k in ("x", "y", "m", "w", "b", "g"))
    cond, image, kernel, target, index = (
        t[k] for k in ("cond", "image", "kernel", "target", "index")
    )
    wt = make(np.ascontiguousarray(a["w"].T))
    return {
        "add": lambda: x + y,
        "mul scalar": lambda: x * 2.0,
        "matmul": lambda: m @ w,
        "linear": lambda: TF.linear(m, wt, b),
        "relu": lambda: TF.relu(x),
        "exp": lambda: x.exp(),
        "tanh": lambda: x.tanh(),
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "max": lambda: x.max(),
        "gt": lambda: x > y,
        "reshape": lambda: x.reshape(2, 4),
        "transpose": lambda: m.transpose(1, 0),
        "slice": lambda: x[1:5],
        "select": lambda: m[1],
        "cat": lambda: torch.cat([x, y]),
        "where": lambda: torch.where(cond, x, y),
        "index_select": lambda: x.index_select(0, index),
        "softmax": lambda: TF.softmax(m, 1),
        "layer_norm": lambda: TF.layer_norm(m, (4,), g, g),
        "cross_entropy": lambda: TF.cross_entropy(m, target),
        "conv2d": lambda: TF.conv2d(image, kernel),
    }


def recorded_add_us(tracked: bool, runs: int) -> float:
    """Return the median cost of a recorded `x + y` in runs of 200, the flush outside."""
    device = burn.device("fusion-flex")
    device = device.autodiff() if tracked else device
    a = arrays()
    x, y = burn.tensor(a["x"], device=device), burn.tensor(a["y"], device=device)
    if tracked:
        x, y = x.require_grad(), y.require_grad()
    times = []
    for _ in range(runs):
        device.flush()
        start = time.perf_counter()
        for _ in range(200):
            x + y
        times.append((time.perf_counter() - start) / 200 * 1e6)
    return statistics.median(times)


def flush_ratio(runs: int) -> tuple[float, float]:
    """Return the median time of flushing 60 known adds and of the same numpy calls, in us."""
    device = burn.device("fusion-flex")
    a = arrays()
    x, y = burn.tensor(a["x"], device=device), burn.tensor(a["y"], device=device)
    flushes, loops = [], []
    for _ in range(runs):
        v = x
        for _ in range(60):
            v = v + y
        start = time.perf_counter()
        device.flush()
        flushes.append((time.perf_counter() - start) * 1e6)
        n, ny = a["x"], a["y"]
        start = time.perf_counter()
        for _ in range(60):
            n = n + ny
        loops.append((time.perf_counter() - start) * 1e6)
    return statistics.median(flushes), statistics.median(loops)


def step_us(runs: int) -> tuple[float, float]:
    """Return the median time of a small training step on the cpu device, and its operations."""
    from burn import nn, optim

    plain = burn.device("cpu")
    device = plain.autodiff()
    sizes, batch = (64, 32, 32, 10), 4
    parts: list[Any] = []
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b, device=device), nn.ReLU()]
    model, optimizer = nn.Sequential(*parts[:-1]), optim.Adam(lr=1e-3)
    rng = np.random.default_rng(0)
    x = burn.tensor(rng.standard_normal((batch, 64)).astype(np.float32), device=plain)
    y = burn.tensor(rng.integers(0, 10, batch), device=plain)
    times, operations = [], 0
    for k in range(runs + 60):  # what comes often is compiled
        start = time.perf_counter()
        optimizer.step(model, F.cross_entropy(model(x), y).backward(), flush=False)
        if k == 59:  # the first ones begin states too
            operations = device.resource.backend.report()["waiting"]
        plain.sync()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times[60:]), operations


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> int:
    """Measure, print, and say which marks are missed."""
    parser = argparse.ArgumentParser(description="Cost of one small operation.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    args = parser.parse_args()
    calls, rounds = (300, 7) if args.quick else (2000, 15)
    gc.disable()
    a = arrays()
    flex = Device.flex()
    sets = {
        "numpy": numpy_ops(a),
        "flex": burn_ops(a, flex, False),
        "tracked": burn_ops(a, flex.autodiff(), True),
    }
    if torch is not None:
        sets |= {"torch": torch_ops(a, False), "torch tracked": torch_ops(a, True)}
    rows: dict[str, dict[str, float]] = {}
    print(
        f"{'operation':14}"
        + "".join(f"{k:>15}" for k in sets)
        + f"{'flex/numpy':>12}{'tracked':>9}"
    )
    for name in sets["numpy"]:
        rows[name] = {k: median_us(ops[name], calls, rounds) for k, ops in sets.items()}
        gc.collect()
        r = rows[name]
        print(
            f"{name:14}"
            + "".join(f"{v:15.2f}" for v in r.values())
            + f"{r['flex'] / r['numpy']:12.2f}{r['tracked'] / r['numpy']:9.2f}"
        )
    plain = {k: r["flex"] / r["numpy"] for k, r in rows.items()}
    tracked = {k: r["tracked"] / r["numpy"] for k, r in rows.items()}
    runs = 100 if args.quick else 500
    flush, loop = flush_ratio(runs)
    step, operations = step_us(runs)
    result: dict[str, Any] = {
        "untracked mean": geometric_mean(list(plain.values())),
        "tracked mean": geometric_mean(list(tracked.values())),
        "recorded add us": recorded_add_us(False, runs),
        "recorded tracked add us": recorded_add_us(True, runs),
        "flush of 60 adds us": flush,
        "numpy loop of 60 adds us": loop,
        "flush ratio": flush / loop,
        "operations of a step": operations,
        "training step, us an operation": step / operations,
    }
    missed = [f"{k}: {v:.2f} of numpy" for k, v in plain.items() if v > (8 if k in VIEWS else 6)]
    missed += [f"{k} tracked: {v:.2f} of numpy" for k, v in tracked.items() if v > 12]
    missed += [
        k
        for k, mark in (
            ("untracked mean", 4),
            ("tracked mean", 8),
            ("flush ratio", 2),
            ("training step, us an operation", 3),
        )
        if result[k] > mark
    ]
    if torch is not None:
        result["recorded/torch"] = result["recorded add us"] / rows["add"]["torch"]
        result["recorded tracked/torch tracked"] = (
            result["recorded tracked add us"] / rows["add"]["torch tracked"]
        )
        missed += ["recorded add"] if result["recorded/torch"] > 0.55 else []
        missed += (
            ["recorded tracked add"] if result["recorded tracked/torch tracked"] > 0.45 else []
        )
    for k, v in result.items():
        print(f"{k:32}{v:9.3f}")
    print("marks missed: " + ("; ".join(missed) or "none"))
    if args.json:
        machine = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
            "torch": None if torch is None else torch.__version__,
        }
        args.json.write_text(
            json.dumps(
                {"machine": machine, "us": rows, "summary": result, "missed": missed}, indent=2
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
