"""The cube backend on a GPU beside PyTorch, medians of one run.

    python benchmarks/gpu_backend.py [--device cuda] [--json FILE]

Times are of one call in a queue of many, the device waited for at the end; the first calls compile
and are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import burn
from burn import functional as F

Fn = Callable[[], Any]


def median_ms(fn: Fn, wait: Fn, calls: int, rounds: int = 5) -> float:
    """Return the median over rounds of the time of one call, in milliseconds."""
    fn(), fn()
    wait()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        wait()
        times.append((time.perf_counter() - start) / calls * 1e3)
    return statistics.median(times)


def workloads(device: burn.Device) -> dict[str, tuple[Fn, Fn, int]]:
    """Return ours, PyTorch's and the calls of a round, by name."""
    many, rows, columns = 1 << 26, 16384, 4096
    x, y = burn.rand(many, device=device), burn.rand(many, device=device)
    xt, yt = torch.rand(many, device="cuda"), torch.rand(many, device="cuda")
    a, at = burn.rand(rows, columns, device=device), torch.rand(rows, columns, device="cuda")
    w, wt = burn.ones(columns, device=device), torch.ones(columns, device="cuda")
    s, st = burn.ones(8, device=device), torch.ones(8, device="cuda")
    k = burn.randint(0, 1 << 30, (1 << 24,), device=device).to(burn.int32)
    kt = torch.randint(0, 1 << 30, (1 << 24,), device="cuda", dtype=torch.int32)
    TF = torch.nn.functional
    out: dict[str, tuple[Fn, Fn, int]] = {
        "add of 8 elements": (lambda: s + 1.0, lambda: st + 1.0, 1000),
        "add 64 M": (lambda: x + y, lambda: xt + yt, 20),
        "tanh 64 M": (lambda: x.tanh(), lambda: xt.tanh(), 20),
        "gelu 64 M": (lambda: F.gelu(x), lambda: TF.gelu(xt), 20),
        "sum of the last dim": (lambda: a.sum(1), lambda: at.sum(1), 20),
        "sum of the first dim": (lambda: a.sum(0), lambda: at.sum(0), 20),
        "sum of all": (lambda: a.sum(), lambda: at.sum(), 20),
        "softmax": (lambda: a.softmax(1), lambda: at.softmax(1), 20),
        "layer norm": (
            lambda: F.layer_norm(a, (columns,), w, w),
            lambda: TF.layer_norm(at, (columns,), wt, wt),
            20,
        ),
        "sort 16 M int32": (lambda: k.sort()[0], lambda: kt.sort()[0], 5),
        "transposed copy": (lambda: a.T.contiguous(), lambda: at.T.contiguous(), 20),
    }
    for n in (1024, 4096):
        m, mt = burn.rand(n, n, device=device), torch.rand(n, n, device="cuda")
        h, ht = m.to(burn.bfloat16), mt.bfloat16()
        out[f"matmul f32 {n}"] = (lambda m=m: m @ m, lambda mt=mt: mt @ mt, 20)
        out[f"matmul bf16 {n}"] = (lambda h=h: h @ h, lambda ht=ht: ht @ ht, 50)
    return out


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="The cube backend on a GPU beside PyTorch.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    device = burn.device(args.device)
    rows = {}
    print(f"{'workload':24}{'burn ms':>10}{'torch ms':>10}{'torch/burn':>12}")
    for name, (ours, theirs, calls) in workloads(device).items():
        b = median_ms(ours, device.sync, calls)
        t = median_ms(theirs, torch.cuda.synchronize, calls)
        rows[name] = {"burn ms": b, "torch ms": t, "torch/burn": t / b}
        print(f"{name:24}{b:10.4f}{t:10.4f}{t / b:12.2f}", flush=True)
    if args.json:
        facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        args.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
