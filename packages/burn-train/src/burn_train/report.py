"""The HTML page of a training: a table and curves drawn as SVG, in one file without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, isfinite, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn_train.summary import Summary

_COLORS = {"train": "#c2410c", "valid": "#1d4ed8"}
_OTHERS = ("#047857", "#7e22ce", "#b91c1c", "#0e7490", "#a16207")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 460, 240, 58, 28, 12

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem;
       color: #1c1917; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #e7e5e4; }
th:first-child, td:first-child { text-align: left; }
.curves { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; }
figcaption { font-weight: 600; }
svg text { font-size: 11px; fill: #57534e; }
"""


def page(summary: Summary) -> str:
    """Return the page.

    Args:
        summary: of the training.
    """
    rows = "".join(
        f"<tr><td>{escape(e.name)}</td><td>{e.lowest:.5g}</td><td>{e.lowest_epoch}</td>"
        f"<td>{e.highest:.5g}</td><td>{e.highest_epoch}</td><td>{e.last:.5g}</td></tr>"
        for e in summary.extremes()
    )
    facts = "".join(
        f"<tr><td>{escape(k)}</td><td>{escape(str(v))}</td></tr>" for k, v in summary.facts.items()
    )
    figures = "".join(
        f"<figure><figcaption>{escape(name)}</figcaption>{curve(lines)}</figure>"
        for name, lines in _grouped(summary).items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(summary.title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(summary.title)}</h1><p>{len(summary.rows)} epochs</p>"
        + (f"<table>{facts}</table>" if facts else "")
        + "<table><tr><th>column</th><th>lowest</th><th>epoch</th><th>highest</th><th>epoch</th>"
        f"<th>last</th></tr>{rows}</table>"
        f'<div class="curves">{figures}</div></body></html>\n'
    )


Line = tuple[str, list[tuple[float, float]]]


def _grouped(summary: Summary) -> dict[str, list[Line]]:
    """Return per metric one line per split."""
    out: dict[str, list[Line]] = {}
    for column in summary.columns():
        split, _, metric = column.partition(" ")
        if split not in _COLORS or not metric:
            split, metric = "", column
        points = [
            (float(r["epoch"]), float(r[column]))
            for r in summary.rows
            if isinstance(r.get(column), (int, float)) and isfinite(r[column])
        ]
        if points:
            out.setdefault(metric, []).append((split, points))
    return out


def curve(lines: Sequence[Line]) -> str:
    """Return lines over the epochs as SVG.

    Args:
        lines: name and points of each.

    Example:
        >>> curve([("train", [(1.0, 2.0), (2.0, 1.0)])]).count("<polyline")
        1
    """
    xs = [x for _, points in lines for x, _ in points]
    ys = [y for _, points in lines for _, y in points]
    left, right = min(xs), max(xs)
    low, high = min(ys), max(ys)
    if low == high:
        low, high = low - 0.5, high + 0.5
    ticks = ticks_of(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (y - low) / (high - low)
        wide, tall = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - _TOP
        return _LEFT + across * wide, _TOP + (1 - up) * tall

    parts = []
    for tick in ticks:
        y = at(left, tick)[1]
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e7e5e4"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    parts += [
        f'<text x="{at(x, low)[0]:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{x:g}</text>'
        for x in dict.fromkeys((left, right))
    ]
    for k, (name, points) in enumerate(lines):
        color = _COLORS.get(name) or _OTHERS[k % len(_OTHERS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in points))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
            f'<text x="{_WIDTH - 14}" y="{_TOP + 12 + 14 * k}" text-anchor="end" '
            f'style="fill:{color}">{escape(name)}</text>'
        )
        if len(points) == 1:
            x, y = at(*points[0])
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f"{''.join(parts)}</svg>"
    )


def ticks_of(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers that span a range.

    Args:
        low: lower end.
        high: upper end, above it.
        count: about how many.

    Example:
        >>> ticks_of(0.0, 1.0)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = floor(low / step)
    last = -floor(-high / step)
    return [round(k * step, 12) for k in range(first, last + 1)]
