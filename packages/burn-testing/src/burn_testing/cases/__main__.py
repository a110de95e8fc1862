"""Runs the case files: `python -m burn_testing.cases [--backend flex] [--fn conv]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from burn_dispatch import device
from burn_testing.cases.read import load, names
from burn_testing.cases.run import run_case


def main() -> int:
    """Run the cases that the options name and print counts and first failures."""
    parser = argparse.ArgumentParser(prog="python -m burn_testing.cases", description=__doc__)
    parser.add_argument("--backend", action="append", help="device name, repeatable (flex)")
    parser.add_argument("--fn", default="", help="only functions with this in their name")
    parser.add_argument("--id", default="", help="only cases with this in their id")
    parser.add_argument("--cases", type=Path, default=Path("tests/cases"), help="folder of cases")
    parser.add_argument("--first", type=int, default=3, help="failures shown per function")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failure")
    parser.add_argument("--all", action="store_true", help="list functions that pass as well")
    options = parser.parse_args()
    failed = 0
    for backend in options.backend or ["flex"]:
        failed += _run(backend, options)
    return 1 if failed else 0


def _run(backend: str, options: argparse.Namespace) -> int:
    target = device(backend)
    folder = options.cases / "ops"
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    shown: dict[str, list[str]] = {}
    start = time.perf_counter()
    for name in names(folder):
        for case in load(folder, name):
            if options.fn not in case.fn or options.id not in case.id:
                continue
            wrong = run_case(case, target)
            if not wrong:
                good[case.fn] += 1
                continue
            bad[case.fn] += 1
            shown.setdefault(case.fn, []).append(f"{case.id}: {wrong[0]}")
            if options.fail_fast:
                print(*shown[case.fn], *wrong[1:], sep="\n  ")
                return 1
    for fn in sorted(set(good) | set(bad)):
        if bad[fn] or options.all:
            print(f"{fn}: {good[fn]} passed, {bad[fn]} failed")
            for line in shown.get(fn, [])[: options.first]:
                print(f"    {line[:400]}")
    seconds = time.perf_counter() - start
    print(f"{backend}: {good.total()} passed, {bad.total()} failed, {seconds:.1f} s")
    return bad.total()


if __name__ == "__main__":
    sys.exit(main())
