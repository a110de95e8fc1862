"""Prints the audit and fails on a gap: `python -m burn_testing.audit` in the repository's root."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from burn_testing.audit.operations import audit
from burn_testing.audit.torch_names import check_names

COLUMNS = (
    "called by",
    "kernel",
    "rule",
    "samples",
    "error samples",
    "first order",
    "second order",
    "docs",
    "example",
)


def main() -> int:
    """Print operations, reported failures and PyTorch's names; return 1 on a gap."""
    parser = argparse.ArgumentParser(prog="python -m burn_testing.audit", description=__doc__)
    parser.add_argument("--tests", type=Path, default=Path("tests"), help="folder of the tests")
    parser.add_argument("--quick", action="store_true", help="leave the gradient checks out")
    options = parser.parse_args()
    gaps = _operations(not options.quick)
    gaps += _failures(options.tests)
    gaps += _names(options.tests)
    print(f"{gaps} gaps")
    return 1 if gaps else 0


def _operations(gradients: bool) -> int:
    lines = audit(gradients)
    print(" | ".join(("operation", *COLUMNS)))
    for line in lines:
        print(" | ".join((line.entry, *(line.cells.get(c, "-") for c in COLUMNS))))
    open_ = [line for line in lines if line.gaps]
    for line in open_:
        print(f"GAP {line.entry}: {'; '.join(line.gaps)}")
    print(f"{len(lines)} operations, {len(open_)} with gaps\n")
    return len(open_)


def _failures(tests: Path) -> int:
    listed = tomllib.loads((tests / "bugs.toml").read_text())
    gaps = 0
    for entry, places in listed.items():
        for place in places:
            file, _, name = place.partition("::")
            missing = f"def {name}(" not in (tests / "bugs" / file).read_text()
            gaps += missing
            print(f"{entry}: {name}{' MISSING' if missing else ''}")
    print(f"{len(listed)} reported failures, each with its tests\n")
    return gaps


def _names(tests: Path) -> int:
    found = check_names(tests / "torch_names.txt")
    print("work: " + " ".join(found.works))
    for name, answer in found.answered.items():
        print(f"{name}: {answer}")
    for name in found.open:
        print(f"GAP {name}: neither works nor says what to write instead")
    print(
        f"{len(found.works)} names of torch.Tensor work, {len(found.answered)} say what to write "
        f"instead, {len(found.excepted)} excepted, {len(found.open)} open\n"
    )
    return len(found.open)


if __name__ == "__main__":
    sys.exit(main())
