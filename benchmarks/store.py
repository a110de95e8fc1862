"""Loading and saving 1 GB of weights: ours beside safetensors.numpy and PyTorch, in one run.

    python benchmarks/store.py [--json FILE] [--megabytes 1024] [--rounds 5]

Each round runs every reader once, in turn, over the same files in the page cache; ratios are of
medians, and of the best times, which a busy machine disturbs less. The marks: a safetensors file
loads into a model in at most 1.3 times what `safetensors.numpy.load_file` takes, a `.pt` file in at
most 1.3 times `torch.load(mmap=True)` plus a copy (into new tensors, and into those of a model),
and the peak of memory is the model and one tensor. Peers that are not installed are left out.
Memory is the growth of the resident set, measured in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import burn_store
import burn_tensor as bt
from burn_core import Module, Parameter

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None  # type: ignore[assignment]
try:
    from safetensors.numpy import load_file, save_file
except ImportError:
    load_file = save_file = None  # type: ignore[assignment]

ROWS, COLUMNS = 1024, 4096
PART = ROWS * COLUMNS * 4


class Parts(Module):
    """Parameters of 16 MiB each."""

    def __init__(self, count: int) -> None:
        self.parts = [Parameter(bt.full((ROWS, COLUMNS), k + 1.0)) for k in range(count)]


_PEAK = """
import sys
import benchmarks_store as b
def kib(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field))
warm = b.Parts(1)
b.burn_store.save(warm, sys.argv[1] + ".warm.safetensors")
b.burn_store.load(warm, sys.argv[1] + ".warm.safetensors")
model = b.Parts(int(sys.argv[2]))
before = kib("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
b.burn_store.load(model, sys.argv[1])
print((kib("VmHWM") - before) * 1024)
"""


def peak_growth(path: Path, count: int) -> int | None:
    """Return by how many bytes a load lifts the resident set of a process that has the model."""
    if sys.platform != "linux":
        return None
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('benchmarks_store', {__file__!r})\n"
        "sys.modules['benchmarks_store'] = m = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(m)\n" + _PEAK
    )
    command = [sys.executable, "-c", code, str(path), str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def timed(fn: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    made = fn()
    passed = time.perf_counter() - start
    del made
    return passed


def readers(folder: Path, count: int) -> dict[str, Callable[[], object]]:
    """Write the files; return what reads or writes them, by name."""
    model = Parts(count)
    ours = {s: folder / f"ours.{s}" for s in ("safetensors", "bpk", "npz")}
    for path in ours.values():
        burn_store.save(model, path)
    fns: dict[str, Callable[[], object]] = {
        f"burn_store.load {suffix}": lambda path=path: burn_store.load(model, path)  # type: ignore[misc]
        for suffix, path in ours.items()
    }
    fns["burn_store.save safetensors"] = lambda: burn_store.save(model, folder / "w.safetensors")
    if load_file is not None:
        fns["safetensors.numpy load_file"] = lambda: load_file(ours["safetensors"])
        arrays = {k: t.numpy() for k, t in model.state_dict().items()}

        def save() -> None:
            # The library does not wait for the disk; ours does, and renames, so this one does too.
            save_file(arrays, folder / "v.tmp")
            with (folder / "v.tmp").open("rb") as handle:
                os.fsync(handle.fileno())
            os.replace(folder / "v.tmp", folder / "v.safetensors")

        fns["safetensors.numpy save_file, fsync, rename"] = save
    if torch is not None:
        twin = torch.nn.Module()
        twin.parts = torch.nn.ParameterList(
            torch.full((ROWS, COLUMNS), k + 1.0) for k in range(count)
        )
        for name, options in (("zip", {}), ("legacy", {"_use_new_zipfile_serialization": False})):
            torch.save(twin.state_dict(), folder / f"{name}.pt", **options)
        fns["burn_store.load pt"] = lambda: burn_store.load(model, folder / "zip.pt")
        fns["burn_store.load legacy pt"] = lambda: burn_store.load(model, folder / "legacy.pt")
        fns["torch.load mmap and load_state_dict"] = lambda: twin.load_state_dict(
            torch.load(folder / "zip.pt", mmap=True, weights_only=True)
        )
        fns["torch.load mmap and clone"] = lambda: [
            t.clone() for t in torch.load(folder / "zip.pt", mmap=True, weights_only=True).values()
        ]
        fns["torch.load and load_state_dict"] = lambda: twin.load_state_dict(
            torch.load(folder / "zip.pt", weights_only=True)
        )
    return fns


PAIRS = (
    ("burn_store.load safetensors", "safetensors.numpy load_file", 1.3),
    ("burn_store.load pt", "torch.load mmap and clone", 1.3),
    ("burn_store.load pt", "torch.load mmap and load_state_dict", 1.3),
    ("burn_store.save safetensors", "safetensors.numpy save_file, fsync, rename", None),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    count = max(1, args.megabytes * 1024 * 1024 // PART)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fns = readers(folder, count)
        times: dict[str, list[float]] = {key: [] for key in fns}
        for round_ in range(args.rounds + 1):
            for key, fn in fns.items():
                passed = timed(fn)
                # The first round brings the files into the page cache.
                if round_:
                    times[key].append(passed)
        peaks = {
            p.name: peak_growth(p, count)
            for p in (folder / "ours.safetensors", folder / "zip.pt")
            if p.exists()
        }
    medians = {key: statistics.median(t) for key, t in times.items()}
    size = count * PART
    print(f"{size / 1e9:.2f} GB in {count} tensors; median of {args.rounds} rounds")
    for key, passed in medians.items():
        best = min(times[key])
        print(f"  {key:40} {passed * 1e3:8.0f} ms, best {best * 1e3:6.0f} ms")
    ratios: dict[str, Any] = {}
    for ours, peer, mark in PAIRS:
        if peer in medians:
            ratio = medians[ours] / medians[peer]
            best = min(times[ours]) / min(times[peer])
            key = f"{ours} / {peer}"
            ratios[key] = {"medians": round(ratio, 3), "bests": round(best, 3), "mark": mark}
            print(
                f"  {key}: {ratio:.2f}, of bests {best:.2f}" + (f" (mark {mark})" if mark else "")
            )
    for file, growth in peaks.items():
        if growth is not None:
            print(f"  peak of {file} above the model: {growth / PART:.2f} tensors")
    if args.json:
        record = {
            "date": time.strftime("%Y-%m-%d"), "machine": platform.machine(),
            "python": platform.python_version(), "cpus": os.cpu_count(), "load": os.getloadavg(),
            "torch": getattr(torch, "__version__", None), "bytes": size, "tensors": count,
            "seconds": {k: [round(x, 4) for x in t] for k, t in times.items()},
            "ratios": ratios,
            "peak_above_model_in_tensors": {k: g and round(g / PART, 3) for k, g in peaks.items()},
        }  # fmt: skip
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
