"""Draws what `workloads.py` or `gpu_programs.py` wrote: how fast each side is beside PyTorch eager.

    python benchmarks/plot.py [FILE.json ...]

A picture (SVG) lies beside each file afterwards; without files those of `benchmarks/results` are
drawn. The axis is logarithmic, PyTorch eager is the line at one: a bar to its right is faster.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
BASE = "torch"
SIDES = {
    "ours": ("burn, as written", "#d9622b"),
    "captured": ("burn, captured", "#a63d10"),
    "compile": ("torch.compile", "#8d5aa5"),
    "jax": ("jax.jit", "#3b6fb6"),
    "tinygrad": ("tinygrad", "#4f9a6b"),
}
NAMES, WIDTH, BAR, GAP = 250, 560, 13, 12
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def rows_of(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the times of each program by side, PyTorch's among them."""
    given = found.get("medians", found)
    return {
        name: {s: t for s, t in times.items() if s == BASE or s in SIDES}
        for name, times in given.items()
        if isinstance(times, dict) and BASE in times
    }


def took(seconds: float) -> str:
    """Return a time with the unit that a person would choose."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def picture(title: str, rows: dict[str, dict[str, float]], unit: float) -> str:
    """Return bars for every program and side, as SVG; `unit` is that of the times, in seconds."""
    speeds = {name: {s: times[BASE] / times[s] for s in SIDES if s in times}
              for name, times in rows.items()}  # fmt: skip
    every = [r for sides in speeds.values() for r in sides.values()]
    # tenths of a decade, so that the longest bar keeps room for its figure
    low = floor(log10(min([*every, 0.8])) * 10) / 10
    high = ceil(log10(max([*every, 2.0])) * 10) / 10

    def place(speed: float) -> float:
        return NAMES + (log10(speed) - low) / (high - low) * WIDTH

    bars, y = [], 60
    for name, sides in speeds.items():
        middle = y + BAR * len(sides) / 2 + 4
        bars.append(
            f'<text x="{NAMES - 76}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<text x="{NAMES - 10}" y="{middle:.1f}" text-anchor="end" fill="#777">'
            f"{took(rows[name][BASE] * unit)}</text>"
        )
        for side, speed in sides.items():
            left, right = sorted((place(1), place(speed)))
            bars.append(
                f'<rect x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" '
                f'height="{BAR - 2}" fill="{SIDES[side][1]}"/>'
                f'<text x="{right + 4:.1f}" y="{y + 10}">{speed:.2f}</text>'
            )
            y += BAR
        y += GAP
    grid = [
        f'<path d="M{place(t):.1f} 54V{y}" stroke="{"#333" if t == 1 else "#ddd"}"/>'
        f'<text x="{place(t):.1f}" y="50" text-anchor="middle" fill="#777">{t:g}x</text>'
        for t in TICKS
        if low <= log10(t) <= high
    ]
    seen = [s for s in SIDES if any(s in sides for sides in speeds.values())]
    keys = [
        f'<rect x="{NAMES + 130 * k}" y="24" width="10" height="10" fill="{SIDES[s][1]}"/>'
        f'<text x="{NAMES + 130 * k + 14}" y="33">{SIDES[s][0]}</text>'
        for k, s in enumerate(seen)
    ]
    head = (
        f'<text x="8" y="15" font-weight="bold">{escape(title)}</text>'
        f'<text x="{NAMES - 10}" y="50" text-anchor="end" fill="#777">PyTorch eager took</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{NAMES + WIDTH + 60}" height="{y + 6}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        + "".join([head, *keys, *grid, *bars])
        + "</svg>\n"
    )


def main() -> None:
    """Draw every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args().files
    names = ("workloads", "gpu_programs-h200", "gpu_programs-h200-tf32")
    for file in given or [RESULTS / f"{name}.json" for name in names]:
        found = json.loads(file.read_text())
        facts = found.get("facts", found)
        where = facts.get("hardware") or f"{facts['cpus']} cores, {facts['machine']}"
        unit = {"us": 1e-6, "ms": 1e-3}[facts.get("unit", "ms")]
        target = file.with_suffix(".svg")
        target.write_text(picture(f"{file.stem}, {where}, {facts['date']}", rows_of(found), unit))
        print(target)


if __name__ == "__main__":
    main()
