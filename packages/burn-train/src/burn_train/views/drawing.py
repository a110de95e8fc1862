"""Curves and bars in a terminal's letters: braille dots, two by four to a cell."""

from __future__ import annotations

from collections.abc import Mapping

from burn_train.report import ticks_of
from burn_train.views.board import Points

# Bit of each dot in a braille letter, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LABEL = 9

# A letter and the line it belongs to, None for axes and empty places.
Cell = tuple[str, str | None]


def curves(lines: Mapping[str, Points], width: int, height: int) -> list[list[Cell]]:
    """Return rows of cells with an axis at the left and one below.

    Args:
        lines: points by name.
        width: cells per row.
        height: rows.

    Example:
        >>> rows = curves({"train": [(0.0, 0.0), (1.0, 1.0)]}, 20, 5)
        >>> len(rows), {len(r) for r in rows}
        (5, {20})
    """
    points = [p for found in lines.values() for p in found]
    wide, tall = width - _LABEL - 1, height - 1
    if not points or wide < 2 or tall < 2:
        return _words("nothing yet", width, height)
    left, right = min(p[0] for p in points), max(p[0] for p in points)
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    if low == high:
        low, high = low - 0.5, high + 0.5
    ticks = ticks_of(low, high, max(2, tall // 4))
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    grid: list[list[list[int | str | None]]] = [
        [[0, None] for _ in range(wide)] for _ in range(tall)
    ]
    for name, found in lines.items():
        last: tuple[int, int] | None = None
        for x, y in sorted(found):
            across = (x - left) / (right - left) if right > left else 0.5
            dot = (
                round(across * (2 * wide - 1)),
                round((high - y) / (high - low) * (4 * tall - 1)),
            )
            for column, row in _between(last or dot, dot):
                cell = grid[row // 4][column // 2]
                cell[0] = int(cell[0] or 0) | _DOTS[row % 4][column % 2]
                cell[1] = name
            last = dot
    rows = _with_axis(grid, ticks, low, high)
    ends = [f"{left:g}", f"{right:g}"]
    space = max(width - _LABEL - 1 - sum(map(len, ends)), 1)
    foot = " " * (_LABEL + 1) + ends[0] + " " * space + ends[1]
    return [*rows, [(letter, None) for letter in foot.ljust(width)[:width]]]


def _between(a: tuple[int, int], b: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the dots of a line."""
    steps = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    return [
        (round(a[0] + (b[0] - a[0]) * k / steps), round(a[1] + (b[1] - a[1]) * k / steps))
        for k in range(steps + 1)
    ]


def _with_axis(
    grid: list[list[list[int | str | None]]], ticks: list[float], low: float, high: float
) -> list[list[Cell]]:
    tall = len(grid)
    labels = {round((high - t) / (high - low) * (tall - 1)): f"{t:g}" for t in ticks}
    rows: list[list[Cell]] = []
    for k, cells in enumerate(grid):
        label = labels.get(k, "").rjust(_LABEL)[-_LABEL:]
        mark = "┤" if k in labels else "│"
        row: list[Cell] = [(letter, None) for letter in label + mark]
        for dots, name in cells:
            row.append((chr(0x2800 + int(dots or 0)) if dots else " ", str(name) if name else None))
        rows.append(row)
    return rows


def bars(values: Mapping[str, float], width: int, height: int) -> list[list[Cell]]:
    """Return rows of cells with one lying bar per value.

    Args:
        values: by name.
        width: cells per row.
        height: rows.

    Example:
        >>> rows = bars({"train": 2.0, "valid": 1.0}, 30, 4)
        >>> "".join(letter for letter, _ in rows[0]).split()[0]
        'train'
    """
    if not values:
        return _words("nothing yet", width, height)
    longest = max(abs(v) for v in values.values()) or 1.0
    room = max(width - 2 * _LABEL - 4, 1)
    rows: list[list[Cell]] = []
    for name, value in values.items():
        filled = round(abs(value) / longest * room)
        row: list[Cell] = [(letter, None) for letter in name[:_LABEL].rjust(_LABEL) + " "]
        row += [("█", name)] * filled
        row += [(letter, None) for letter in f" {value:.4g}"]
        rows += [(row + [(" ", None)] * width)[:width], [(" ", None)] * width]
    return (rows + [[(" ", None)] * width for _ in range(height)])[:height]


def _words(text: str, width: int, height: int) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[(" ", None)] * width for _ in range(height)]
    if height and width:
        rows[height // 2] = [(letter, None) for letter in text.center(width)[:width]]
    return rows
