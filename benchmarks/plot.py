"""Draws what `workloads.py` or `gpu_programs.py` wrote: times of each side as multiples of ours.

    python benchmarks/plot.py [FILE.json ...]

A picture (SVG) lies beside each file afterwards; without files those of `benchmarks/results` are
drawn. The axis is logarithmic: a bar to the right of the line took longer than we did.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
COLORS = {"captured": "#7a9e3f", "torch": "#d9622b", "compile": "#8d5aa5", "jax": "#3b6fb6"}
NAMES, WIDTH, BAR, GAP = 190, 560, 13, 12


def rows_of(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the times of each program by side, ours among them."""
    given = found.get("medians", found)
    return {
        name: {s: t for s, t in times.items() if s == "ours" or s in COLORS}
        for name, times in given.items()
        if isinstance(times, dict) and "ours" in times
    }


def picture(title: str, rows: dict[str, dict[str, float]]) -> str:
    """Return bars for every program and side, as SVG."""
    ratios = {n: {s: t / times["ours"] for s, t in times.items() if s != "ours"}
              for n, times in rows.items()}  # fmt: skip
    every = [r for sides in ratios.values() for r in sides.values()]
    low, high = floor(log10(min([*every, 1.0]))), log10(max([*every, 2.0])) * 1.08

    def place(ratio: float) -> float:
        return NAMES + (log10(ratio) - low) / (high - low) * WIDTH

    parts, y = [], 44
    for name, sides in ratios.items():
        parts.append(f'<text x="{NAMES - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>')
        for side, ratio in sides.items():
            left, right = sorted((place(1), place(ratio)))
            parts.append(
                f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{BAR - 2}" '
                f'fill="{COLORS[side]}"/><text x="{right + 4:.1f}" y="{y + 10}">{ratio:.2f}</text>'
            )
            y += BAR
        y += GAP
    seen = [s for s in COLORS if any(s in sides for sides in ratios.values())]
    keys = [
        f'<rect x="{NAMES + 110 * k}" y="24" width="10" height="10" fill="{COLORS[s]}"/>'
        f'<text x="{NAMES + 110 * k + 14}" y="33">{s} / ours</text>'
        for k, s in enumerate(seen)
    ]
    line = f'<path d="M{place(1):.1f} 40V{y}" stroke="#555" stroke-dasharray="3 3"/>'
    head = f'<text x="8" y="15" font-weight="bold">{escape(title)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{NAMES + WIDTH + 60}" height="{y + 6}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        + "".join([head, *keys, line, *parts])
        + "</svg>\n"
    )


def main() -> None:
    """Draw every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args().files
    for file in given or [RESULTS / "workloads.json", RESULTS / "gpu_programs-h200.json"]:
        found = json.loads(file.read_text())
        facts = found.get("facts", found)
        where = facts.get("hardware") or f"{facts['cpus']} cores, {facts['machine']}"
        target = file.with_suffix(".svg")
        target.write_text(picture(f"{file.stem}, {where}, {facts['date']}", rows_of(found)))
        print(target)


if __name__ == "__main__":
    main()
