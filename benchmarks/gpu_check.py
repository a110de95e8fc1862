"""Every operator case, forward and backward, on a device with hardware: cut into resumable parts.

    python benchmarks/gpu_check.py --backend cuda --part 1/4 [--out benchmarks/results]
    python benchmarks/gpu_check.py --backend eager-cuda --summary

`cuda` records and fuses, `eager-cuda` calls one kernel for each operation: both are worth a run.

A part writes one JSON file, `gpu_check-<backend>-<i>of<n>.json`, and is left alone when it is
there already; `--summary` adds up what was measured and says which parts are missing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

from burn_dispatch import device
from burn_testing.cases.read import load, names
from burn_testing.cases.run import run_case

ROOT = Path(__file__).resolve().parent.parent


def run_part(backend: str, index: int, count: int) -> dict[str, Any]:
    """Return what came of every `count`-th case file, beginning with the `index`-th."""
    target = device(backend)
    folder = ROOT / "tests" / "cases" / "ops"
    failed: dict[str, str] = {}
    passed = 0
    start = time.perf_counter()
    for name in names(folder)[index - 1 :: count]:
        for case in load(folder, name):
            wrong = run_case(case, target)
            if wrong:
                failed[case.id] = wrong[0][:300]
            else:
                passed += 1
    return {
        "backend": backend,
        "part": f"{index}/{count}",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "hardware": target.memory_report().get("name", target.name),
        "passed": passed,
        "failed": failed,
        "seconds": round(time.perf_counter() - start, 1),
    }


def summary(backend: str, out: Path) -> int:
    """Print the sum over the measured parts; return how many parts are missing or wrong."""
    found = [json.loads(p.read_text()) for p in sorted(out.glob(f"gpu_check-{backend}-*.json"))]
    if not found:
        print(f"{backend}: nothing measured")
        return 1
    count = int(found[0]["part"].split("/")[1])
    done = {int(f["part"].split("/")[0]) for f in found}
    missing = [f"{i}/{count}" for i in range(1, count + 1) if i not in done]
    failed = {k: v for f in found for k, v in f["failed"].items()}
    print(f"{backend}: {sum(f['passed'] for f in found)} passed, {len(failed)} failed")
    for name, why in failed.items():
        print(f"    {name}: {why}")
    if missing:
        print(f"still unmeasured: {', '.join(missing)}")
    return len(missing)


def main() -> int:
    """Run one part or sum up."""
    parser = argparse.ArgumentParser(description="Operator cases on a device, in parts.")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--part", default="1/1", help="i/n")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--summary", action="store_true")
    args = parser.parse_args()
    if args.summary:
        return summary(args.backend, args.out)
    index, count = map(int, args.part.split("/"))
    path = args.out / f"gpu_check-{args.backend}-{index}of{count}.json"
    if path.exists():
        print(f"{path.name} is there already")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    result = run_part(args.backend, index, count)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{path.name}: {result['passed']} passed, {len(result['failed'])} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
