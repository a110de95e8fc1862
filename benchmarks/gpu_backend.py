"""The cube backend on a GPU beside PyTorch, medians of one run.

    python benchmarks/gpu_backend.py [--device NAME] [--only TEXT] [--json FILE]

`ms` is the time of one call in a queue of many, the device waited for at the end: the slower of
host and device. `host us` is what a call costs the host while the queue is short. The first calls
compile and are left out. Values are not looked at here, but by `gpu_check.py`.

The part `chains` measures the device that records, as programs use it: sixteen products of which
each takes the last one's result, by themselves and with bias and gelu; times are of one product.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import burn
from burn import functional as F

DEVICE = "eager-cuda"
RECORDING = "cuda"
CHAIN = 16
# Calls that are left out: what compiles, and what makes native code of a plan that comes again.
WARM = 12
Fn = Callable[[], Any]
TF = torch.nn.functional


def median_ms(fn: Fn, wait: Fn, calls: int, rounds: int = 5) -> float:
    """Return the median over rounds of the time of one call, in milliseconds."""
    for _ in range(WARM):
        fn()
    wait()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        wait()
        times.append((time.perf_counter() - start) / calls * 1e3)
    return statistics.median(times)


def host_us(fn: Fn, wait: Fn, rounds: int = 9) -> float:
    """Return the median host time of a call in a queue that never fills, in microseconds."""
    times = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(20):
            fn()
        times.append((time.perf_counter() - start) / 20 * 1e6)
    wait()
    return statistics.median(times)


class Pair:
    """Makes the same tensors for both sides."""

    def __init__(self, device: burn.Device) -> None:
        self.device = device

    def rand(self, *shape: int, half: bool = False) -> tuple[Any, Any]:
        """Return random tensors in [-1, 1)."""
        ours = burn.rand(*shape, device=self.device) * 2 - 1
        theirs = torch.rand(*shape, device="cuda") * 2 - 1
        return (ours.to(burn.bfloat16), theirs.bfloat16()) if half else (ours, theirs)

    def ints(self, high: int, *shape: int) -> tuple[Any, Any]:
        """Return random int32 tensors below a bound."""
        ours = burn.randint(0, high, shape, device=self.device).to(burn.int32)
        return ours, torch.randint(0, high, shape, device="cuda", dtype=torch.int32)


Row = tuple[str, Fn, Fn, int]


def maps(p: Pair) -> Iterator[Row]:
    """Yield elementwise operations: name, ours, PyTorch's, calls of a round."""
    s, st = p.rand(8)
    yield "add of 8 elements", lambda: s + 1.0, lambda: st + 1.0, 1000
    yield "add of two of 8", lambda: s + s, lambda: st + st, 1000
    x, xt = p.rand(1 << 26)
    y, yt = p.rand(1 << 26)
    yield "add 64 M", lambda: x + y, lambda: xt + yt, 20
    yield "tanh 64 M", lambda: x.tanh(), lambda: xt.tanh(), 20
    yield "gelu 64 M", lambda: F.gelu(x), lambda: TF.gelu(xt), 20


def reductions(p: Pair) -> Iterator[Row]:
    """Yield reductions and what works on rows."""
    a, at = p.rand(16384, 4096)
    yield "sum of the last dim", lambda: a.sum(1), lambda: at.sum(1), 20
    yield "sum of the first dim", lambda: a.sum(0), lambda: at.sum(0), 20
    yield "sum of all", lambda: a.sum(), lambda: at.sum(), 20
    yield "max of the last dim", lambda: a.amax(1), lambda: at.amax(1), 20
    yield "max of the first dim", lambda: a.amax(0), lambda: at.amax(0), 20
    yield "argmax of the last dim", lambda: a.argmax(1), lambda: at.argmax(1), 20
    yield "argmax of the first dim", lambda: a.argmax(0), lambda: at.argmax(0), 20
    b, bt = p.rand(1 << 22, 16)
    yield "sum of rows of 16", lambda: b.sum(1), lambda: bt.sum(1), 20
    c, ct = p.rand(64, 256, 4096)
    yield "sum of a middle dim", lambda: c.sum(1), lambda: ct.sum(1), 20
    yield "sum of two first dims", lambda: c.sum((0, 1)), lambda: ct.sum((0, 1)), 20
    s, st = p.rand(64, 64)
    yield "sum of 64 x 64", lambda: s.sum(1), lambda: st.sum(1), 500
    w, wt = p.rand(4096)
    yield "softmax", lambda: a.softmax(1), lambda: at.softmax(1), 20
    yield (
        "layer norm",
        lambda: F.layer_norm(a, (4096,), w, w),
        lambda: TF.layer_norm(at, (4096,), wt, wt),
        20,
    )
    yield "transposed copy", lambda: a.T.contiguous(), lambda: at.T.contiguous(), 20


def orders(p: Pair) -> Iterator[Row]:
    """Yield sorting and additions at indices."""
    k, kt = p.ints(1 << 30, 1 << 24)
    yield "sort 16 M int32", lambda: k.sort()[0], lambda: kt.sort()[0], 5
    f, ft = p.rand(1 << 24)
    yield "sort 16 M float32", lambda: f.sort()[0], lambda: ft.sort()[0], 5
    r, rt = p.rand(4096, 4096)
    yield "sort rows of 4096", lambda: r.sort(1)[0], lambda: rt.sort(1)[0], 5
    q, qt = p.rand(16384, 1024)
    yield "sort rows of 1024", lambda: q.sort(1)[0], lambda: qt.sort(1)[0], 5
    table, table_t = p.rand(50257, 768)
    rows, rows_t = p.rand(8192, 768)
    at, at_t = p.ints(50257, 8192)
    far, far_t = at.to(burn.int64), at_t.long()

    def strict() -> Any:
        torch.use_deterministic_algorithms(True)
        made = table_t.index_add(0, far_t, rows_t)
        torch.use_deterministic_algorithms(False)
        return made

    ours = lambda: table.index_add(0, far, rows)  # noqa: E731
    yield "index_add 8192 x 768", ours, lambda: table_t.index_add(0, far_t, rows_t), 20
    yield "index_add, PyTorch deterministic", ours, strict, 20


SHAPES = {
    "1024": (1, 1024, 1024, 1024), "2048": (1, 2048, 2048, 2048), "4096": (1, 4096, 4096, 4096),
    "8192": (1, 8192, 8192, 8192), "64": (1, 64, 64, 64), "256": (1, 256, 256, 256),
    "skinny 16 x 4096 x 4096": (1, 16, 4096, 4096), "gemv 4096": (1, 1, 4096, 4096),
    "deep 64 x 64 x 262144": (1, 64, 64, 1 << 18), "batch 512 of 64": (512, 64, 64, 64),
    "batch 4096 of 16": (4096, 16, 16, 16), "batch 96 of 1024 x 1024 x 64": (96, 1024, 1024, 64),
}  # fmt: skip


def products(p: Pair) -> Iterator[Row]:
    """Yield matrix products: batch, rows, columns, depth."""
    for name, (b, m, n, k) in SHAPES.items():
        x, xt = p.rand(*([b] if b > 1 else []), m, k)
        y, yt = p.rand(*([b] if b > 1 else []), k, n)
        h, ht, g, gt = x.to(burn.bfloat16), xt.bfloat16(), y.to(burn.bfloat16), yt.bfloat16()
        calls = 200 if m * n * k * b < 1 << 31 else 20
        yield f"matmul bf16 {name}", lambda h=h, g=g: h @ g, lambda h=ht, g=gt: h @ g, calls
        if name in ("256", "1024", "4096", "batch 512 of 64"):
            yield f"matmul f32 {name}", lambda x=x, y=y: x @ y, lambda x=xt, y=yt: x @ y, calls


def attentions(p: Pair) -> Iterator[Row]:
    """Yield attention forward, and forward with backward."""
    sdpa, ours = TF.scaled_dot_product_attention, F.scaled_dot_product_attention
    for name, shape, kv in (
        ("B8 H12 T1024 D64", (8, 12, 1024, 64), 12),
        ("B8 H12 T1024 D128", (8, 12, 1024, 128), 12),
        ("grouped 32:8 T2048 D128", (2, 32, 2048, 128), 8),
    ):
        q, qt = p.rand(*shape, half=True)
        k, kt = p.rand(shape[0], kv, *shape[2:], half=True)
        v, vt = p.rand(shape[0], kv, *shape[2:], half=True)
        gqa = {"enable_gqa": True} if kv != shape[1] else {}
        yield (
            f"attention causal {name}",
            lambda q=q, k=k, v=v, o=gqa: ours(q, k, v, is_causal=True, **o),
            lambda q=qt, k=kt, v=vt, o=gqa: sdpa(q, k, v, is_causal=True, **o),
            20,
        )
        tracked = [t.to_device(p.device.autodiff()).require_grad() for t in (q, k, v)]
        leaves = [t.clone().requires_grad_() for t in (qt, kt, vt)]

        def back(t: Any = tracked, o: Any = gqa) -> Any:
            return ours(*t, is_causal=True, **o).sum().backward()

        def back_torch(t: Any = leaves, o: Any = gqa) -> Any:
            return torch.autograd.grad(sdpa(*t, is_causal=True, **o).sum(), t)

        yield f"attention and gradients {name}", back, back_torch, 10


def chains(p: Pair) -> Iterator[Row]:
    """Yield products that follow one another, on the device that records."""
    p = Pair(burn.device(RECORDING))
    for kind, sizes in (("bf16", (256, 1024, 2048, 4096)), ("f32", (256, 1024))):
        for n in sizes:
            # Of a size that neither grows nor dies out.
            scale = (3 / n) ** 0.5
            w, wt = p.rand(n, n)
            x, xt = p.rand(n, n)
            b, bt = p.rand(n)
            given = [w * scale, x, b]
            theirs = [wt * scale, xt, bt]
            if kind == "bf16":
                given = [t.to(burn.bfloat16) for t in given]
                theirs = [t.bfloat16() for t in theirs]

            def product(x: Any, w: Any, b: Any) -> Any:
                return x @ w

            def layer(x: Any, w: Any, b: Any) -> Any:
                return F.gelu(F.linear(x, w, b), approximate="tanh")

            def torch_layer(x: Any, w: Any, b: Any) -> Any:
                return TF.gelu(TF.linear(x, w, b), approximate="tanh")

            ours = chained(product, given, p.device.flush)
            yield f"chain of matmul {kind} {n}", ours, chained(product, theirs), 4
            ours = chained(layer, given, p.device.flush)
            yield f"chain of linear, gelu {kind} {n}", ours, chained(torch_layer, theirs), 4


def chained(step: Callable[..., Any], given: list[Any], end: Fn = lambda: None) -> Fn:
    """Return what does a step again and again on its own result."""
    w, x, b = given

    def run() -> Any:
        y = x
        for _ in range(CHAIN):
            y = step(y, w, b)
        end()
        return y

    return run


PARTS = (maps, reductions, orders, products, attentions, chains)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default=DEVICE)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--part", choices=[f.__name__ for f in PARTS], action="append")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    device = burn.device(args.device)
    rows = {}
    print(f"{'workload':40}{'burn ms':>10}{'torch ms':>10}{'torch/burn':>12}{'host us':>9}{'':>9}")
    for part in PARTS:
        if args.part and part.__name__ not in args.part:
            continue
        for name, ours, theirs, calls in part(Pair(device)):
            if args.only not in name:
                continue
            # Both queues are one device's, whoever fills them.
            wait, each = torch.cuda.synchronize, CHAIN if part is chains else 1
            try:
                b = median_ms(ours, wait, calls) / each
                host = host_us(ours, wait) / each
            except Exception as error:  # noqa: BLE001 - the other rows are wanted too
                print(f"{name:40} {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            t = median_ms(theirs, wait, calls) / each
            host_t = host_us(theirs, wait) / each
            rows[name] = {
                "burn ms": b, "torch ms": t, "torch/burn": t / b, "burn host us": host,
                "torch host us": host_t,
            }  # fmt: skip
            print(f"{name:40}{b:10.4f}{t:10.4f}{t / b:12.2f}{host:9.1f}{host_t:9.1f}", flush=True)
    if args.json:
        facts = {
            "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        }  # fmt: skip
        args.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
