"""Memory of programs that go on for long, and of captured steps.

    python benchmarks/memory.py [--device fusion-cpu] [--steps 10000] [--json FILE]

Flatness: a small network with batches of changing content and a rate that changes at each step, as
written and captured, with exceptions in between. What the pool has in use and reserves, and the
memory of the process, early and at the end. Peak: a small decoder's training step as written,
captured, and captured with cheap values computed again, in bytes of the pool and milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from decoder import Decoder, Size

import burn
from burn import functional as F, nn, optim

ROWS, SIZE = 4, Size(tokens=128, layers=4, heads=4, width=256, words=1000)


def resident() -> int:
    """Return the bytes of this process in memory."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def flat(device: Any, steps: int, captured: bool) -> dict[str, float]:
    """Return memory after a tenth of the steps and after all."""
    tracked = device.autodiff()
    model = nn.Sequential(
        nn.Linear(16, 32, device=tracked), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(32, 4, device=tracked),
    )  # fmt: skip
    optimizer = optim.AdamW(lr=1e-2)
    rate = optim.lr_scheduler.ExponentialLR(1e-2, gamma=0.9999)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward(), lr=rate.lr)
        rate.step()
        return loss

    run = burn.capture(step, state=(model, optimizer, rate)) if captured else step
    rng = np.random.default_rng(0)

    def facts() -> tuple[int, int, int, int]:
        gc.collect()
        device.sync()
        report = device.memory_report()
        return report["in_use"], report["reserved"], resident(), len(gc.get_objects())

    early, start = None, time.perf_counter()
    for k in range(steps):
        x = burn.tensor(rng.standard_normal((8, 16)).astype(np.float32), device=device)
        y = burn.tensor(rng.integers(0, 4, 8), device=device)
        run(x, y)
        if k % 50 == 7:
            with suppress(burn.BurnError):
                run(x, burn.tensor(rng.integers(0, 4, 9), device=device))
            with suppress(burn.IndexRangeError):
                x.index_select(0, burn.tensor([9], device=device)).tolist()
        if k == steps // 10:
            early = facts()
    late = facts()
    assert early is not None
    names = ("in_use", "reserved", "resident", "objects")
    out = {f"{n} after {steps // 10}": a for n, a in zip(names, early, strict=True)}
    out |= {f"{n} after {steps}": b for n, b in zip(names, late, strict=True)}
    return {**out, "seconds": round(time.perf_counter() - start, 1)}


def peaks(device: Any, kind: str) -> dict[str, float]:
    """Return what one step needs at most, and its time."""
    burn.manual_seed(0)
    model, optimizer = Decoder(SIZE, device.autodiff()), optim.AdamW(lr=1e-3)
    rng = np.random.default_rng(0)
    x = burn.tensor(rng.integers(0, SIZE.words, (ROWS, SIZE.tokens)), device=device)
    y = burn.tensor(rng.integers(0, SIZE.words, ROWS * SIZE.tokens), device=device)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(model, loss.backward())
        return loss

    run: Any = step
    if kind != "as written":
        run = burn.capture(step, state=(model, optimizer), rematerialise=kind == "again")
    pool = device.resource.backend.inner.engine.client.pool
    for _ in range(9):
        run(x, y)
    device.sync()
    first = pool.report().peak
    device.memory_cleanup()
    pool.forget_peak()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        loss = run(x, y)
        device.sync()
        times.append((time.perf_counter() - start) * 1e3)
    state = 12 * sum(p.numel() for p in model.parameters())
    return {
        "state": state, "peak": pool.report().peak, "peak of the first steps": first,
        "ms": round(statistics.median(times), 2), "loss": loss.item(),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="fusion-cpu")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    device = burn.device(given.device)
    found: dict[str, Any] = {"device": given.device}
    jobs = {
        "flat as written": lambda: flat(device, given.steps, False),
        "flat captured": lambda: flat(device, given.steps, True),
        "peak as written": lambda: peaks(device, "as written"),
        "peak captured": lambda: peaks(device, "captured"),
        "peak captured, again": lambda: peaks(device, "again"),
    }
    for name, job in jobs.items():
        if given.only in name:
            found[name] = job()
            print(name, found[name], flush=True)
            gc.collect()
            device.memory_cleanup()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
