"""Every test on every backend, nothing sampled, in parts that can be resumed.

    python -m tests.matrix --backend cpu --seconds 90   # parts that are still owed, for a while
    python -m tests.matrix --state                      # what is owed, and what is older than what
    python -m tests.matrix --write                      # benchmarks/results/matrix.json

A part is every n-th test that crosses packages, on one backend, in a process of its own. What came
of it stands in `.nox/matrix` with a digest of the sources, so one of other sources is owed again.
`--write` needs all parts and makes one dated file of them, which is committed; `tests/repo` lists
which sources have changed since.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "matrix.json"
STATE = ROOT / ".nox" / "matrix"
# Into how many parts the tests of a backend are cut: each takes a minute or less on two cores.
PARTS = {
    "flex": 6, "fusion-flex": 6, "cpu": 40, "eager-cpu": 40, "opencl": 60, "eager-opencl": 60,
}  # fmt: skip
# Where kernels, plans and the rules that lead to them stand.
PACKAGES = (
    "burn-autodiff", "burn-backend", "burn-cube", "burn-cube-backend", "burn-dispatch", "burn-flex",
    "burn-fusion", "burn-ir",
)  # fmt: skip
CROSSING = (
    "tests", "packages/burn-testing/src/burn_testing/conformance",
    "--ignore=tests/repo", "--ignore=tests/plugins", "--ignore=tests/installs",
)  # fmt: skip


# --- what the results are of ----------------------------------------------------------------------


def digest_of(source: str) -> str:
    """Return a digest of what a Python file does: comments, docstrings and layout are left out.

    Example:
        >>> digest_of("x = 1  # one") == digest_of('"What it holds."' + chr(10) + "x = (1)")
        True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body or isinstance(node, ast.Lambda):
            continue
        first = body[0]
        text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if text and isinstance(first.value.value, str):
            body[:1] = [] if body[1:] else [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def sources() -> dict[str, str]:
    """Return the digest of every source of kernels and plans, by `package/file`."""
    out = {}
    for package in PACKAGES:
        folder = ROOT / "packages" / package / "src"
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            out[name] = digest_of(path.read_text())
    return out


def total(digests: dict[str, str]) -> str:
    """Return one digest of all."""
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]


def changed(since: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return the sources that differ, appeared or went, sorted."""
    return sorted(name for name in {*since, *now} if since.get(name) != now.get(name))


def commit() -> str:
    """Return the commit of the tree, with a plus where files differ from it."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")


# --- parts ----------------------------------------------------------------------------------------


def place(backend: str, part: int) -> Path:
    """Return where the result of a part stands."""
    return STATE / f"{backend}-{part}of{PARTS[backend]}.json"


def held(backend: str, part: int, digest: str) -> dict[str, Any] | None:
    """Return the result of a part if it is of these sources."""
    path = place(backend, part)
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found if found["sources"] == digest else None


def owed(backend: str, digest: str) -> list[int]:
    """Return the parts of a backend without a result of these sources."""
    return [k for k in range(1, PARTS[backend] + 1) if held(backend, k, digest) is None]


def run(backend: str, part: int, digest: str) -> dict[str, Any]:
    """Run a part, keep its result and return it."""
    STATE.mkdir(parents=True, exist_ok=True)
    report = STATE / f"{backend}-{part}.xml"
    report.unlink(missing_ok=True)
    # What names its devices itself runs once, with the processor's.
    given = [*CROSSING, *([] if backend == "cpu" else ["--burn-dependent=only"])]
    start = time.monotonic()
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", *given,
            f"--burn-backend={backend}", f"--burn-part={part}/{PARTS[backend]}",
            f"--junitxml={report}",
        ],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (0, 1) or not report.exists():
        said = done.stdout[-3000:] + done.stderr[-2000:]
        raise SystemExit(f"{backend} {part}: pytest ended with {done.returncode}\n{said}")
    out = {
        "backend": backend, "part": f"{part}/{PARTS[backend]}", **counted(report),
        "seconds": round(time.monotonic() - start, 1), "commit": commit(), "sources": digest,
        "date": datetime.now(tz=UTC).date().isoformat(),
    }  # fmt: skip
    report.unlink()
    written = place(backend, part).with_suffix(".tmp")
    written.write_text(json.dumps(out, indent=1) + "\n")
    written.replace(place(backend, part))
    return out


def counted(report: Path) -> dict[str, Any]:
    """Return how many tests of a report passed and were skipped, and which failed."""
    tests = skipped = 0
    failed = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        tests += 1
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        skipped += case.find("skipped") is not None
    return {"passed": tests - skipped - len(failed), "failed": sorted(failed), "skipped": skipped}


# --- the committed file ---------------------------------------------------------------------------


def write(backends: list[str]) -> None:
    """Make one file of all parts.

    Raises:
        SystemExit: a part is missing.
    """
    digests = sources()
    digest = total(digests)
    missing = {b: owed(b, digest) for b in backends if owed(b, digest)}
    if missing:
        words = ", ".join(f"{b}: {len(parts)} of {PARTS[b]}" for b, parts in missing.items())
        raise SystemExit(f"parts are still owed: {words}")
    rows = [held(b, k, digest) for b in backends for k in range(1, PARTS[b] + 1)]
    kept = [{k: v for k, v in row.items() if k != "sources"} for row in rows if row is not None]
    result = {
        "date": max(row["date"] for row in kept), "commit": kept[-1]["commit"],
        "python": platform.python_version(), "machine": platform.machine(),
        "backends": {b: _sum([r for r in kept if r["backend"] == b]) for b in backends},
        "parts": kept, "sources": digests,
    }  # fmt: skip
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    for line in lines(result, digests):
        print(line)


def _sum(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "passed": sum(r["passed"] for r in rows), "skipped": sum(r["skipped"] for r in rows),
        "failed": [name for r in rows for name in r["failed"]],
        "seconds": round(sum(r["seconds"] for r in rows), 1),
    }  # fmt: skip


def lines(result: dict[str, Any], now: dict[str, str]) -> list[str]:
    """Return in words what a committed file says, and which sources have changed since."""
    out = [f"matrix of {result['date']}, commit {result['commit']}"]
    for backend, row in result["backends"].items():
        out.append(
            f"  {backend}: {row['passed']} passed, {len(row['failed'])} failed, "
            f"{row['skipped']} skipped, {row['seconds'] / 60:.0f} minutes"
        )
    later = changed(result["sources"], now)
    by = {name.partition("/")[0] for name in later}
    out.append(
        f"  {len(later)} sources of kernels and plans have changed since: "
        + ", ".join(f"{p} ({sum(n.startswith(p + '/') for n in later)})" for p in sorted(by))
        if later else "  no source of kernels and plans has changed since"
    )  # fmt: skip
    return out


def state(backends: list[str]) -> None:
    """Print which parts are owed, and what the committed file says."""
    digests = sources()
    digest = total(digests)
    for backend in backends:
        parts = owed(backend, digest)
        print(f"{backend}: {PARTS[backend] - len(parts)} of {PARTS[backend]} parts are done")
    if RESULT.exists():
        print("\n".join(lines(json.loads(RESULT.read_text()), digests)))


def main() -> None:
    """Run parts that are owed, print the state, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", action="append", choices=PARTS, help="all, if not given")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no part after so long")
    parser.add_argument("--state", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    backends, start = args.backend or list(PARTS), time.monotonic()
    if args.state:
        state(backends)
        return
    digest = total(sources())
    for backend in [] if args.write else backends:
        for part in owed(backend, digest):
            if time.monotonic() - start > args.seconds:
                print("time is over; the same command goes on")
                return
            row = run(backend, part, digest)
            print(
                f"{backend} {row['part']}: {row['passed']} passed, {len(row['failed'])} failed, "
                f"{row['skipped']} skipped, {row['seconds']} s",
                *row["failed"], sep="\n    ", flush=True,
            )  # fmt: skip
    if args.write or args.backend is None:
        write(list(PARTS))


if __name__ == "__main__":
    main()
