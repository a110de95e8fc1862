"""Says where a loop makes another plan in every round, and what differs.

Looked at only when a plan is made. The line of the program that made the recorder flush stands for
the loop; a warning wants many plans at one line, most of its flushes, and programs that are alike.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from burn_ir import CATALOG
from burn_std import PlanChurnWarning, user_place, warn_user

# Plans at one line before anything is said, and flushes that may lie between the first of the last
# so many and the newest.
PLANS, FLUSHES = 16, 48
# Operations of a program that is worth a word: the plan of a smaller one is made soon.
LEAST = 6
# Lines that are remembered.
PLACES = 256

_FULL = CATALOG["full"].code
Program = tuple[tuple[Any, ...], tuple[Any, ...]]


class _Line:
    """What was planned at one line of the user's program."""

    __slots__ = ("flushes", "live", "plans", "program", "said")

    def __init__(self) -> None:
        self.plans = 0
        self.flushes: deque[int] = deque(maxlen=PLANS)
        self.program: Program | None = None
        self.live: tuple[int, ...] = ()
        self.said = False


class Churn:
    """The plans of one recorder by line."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], _Line] = {}

    def made(self, program: Program, live: tuple[int, ...], flushes: int) -> None:
        """Hear of a new plan, and warn where a loop keeps making them.

        Args:
            program: codes by slot, and dtype and axis classes of each external.
            live: slots that are held.
            flushes: how many there were on the device.
        """
        place = user_place()
        key = (place.file, place.line)
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= PLACES:
                del self._lines[next(iter(self._lines))]
            line = self._lines[key] = _Line()
        former, held = line.program, line.live
        line.plans += 1
        line.flushes.append(flushes)
        line.program, line.live = program, live
        if line.said or former is None or len(line.flushes) < PLANS or len(program[0]) < LEAST:
            return
        if flushes - line.flushes[0] > FLUSHES or not alike(former[0], program[0]):
            return
        line.said = True
        warn_user(PlanChurnWarning(*difference(former, held, program, live), line.plans))


def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether most operations of two programs are the same, in order from both ends."""
    a, b = [c[0] for c in one], [c[0] for c in other]
    least, most = sorted((len(a), len(b)))
    same = 0
    while same < least and a[same] == b[same]:
        same += 1
    end = 0
    while end < least - same and a[-1 - end] == b[-1 - end]:
        end += 1
    return 2 * (same + end) > most


def difference(
    one: Program, held: tuple[int, ...], other: Program, live: tuple[int, ...]
) -> tuple[str, str, str, str]:
    """Return operation, kind, old and new of the first difference between two programs."""
    slots = zip(one[0], other[0], strict=False)
    at = next((k for k, (a, b) in enumerate(slots) if a != b), None)
    outside = _outside(one, other, len(other[0]) if at is None else at)
    if outside is not None:
        return outside
    if at is not None or len(one[0]) != len(other[0]):
        return _operation(min(len(one[0]), len(other[0])) if at is None else at, one[0], other[0])
    first = next(iter(sorted(set(held) ^ set(live))), 0)
    words = ("a result that is held", "one that nobody holds")
    old, new = words if first in held else words[::-1]
    return _name(one[0], first), "kept", old, new


def _outside(one: Program, other: Program, upto: int) -> tuple[str, str, str, str] | None:
    """Return the first input from outside that differs, if an operation before `upto` reads it."""
    for k, (a, b) in enumerate(zip(one[1], other[1], strict=False)):
        if a == b:
            continue
        reader = next((s for s, code in enumerate(other[0]) if -1 - k in _reads(code)), None)
        if reader is None or reader > upto:
            return None
        kind = "shape" if a[0] is b[0] else "dtype"
        return _name(other[0], reader), kind, _external(a), _external(b)
    return None


def _operation(at: int, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[str, str, str, str]:
    a, b = _behind_numbers(one, at), _behind_numbers(other, at)
    if a == len(one) and b == len(other):
        return "full", "op", f"{len(one) - at} numbers at the end", f"{len(other) - at}"
    if a == len(one) or b == len(other):
        name = _name(*((one, a) if b == len(other) else (other, b)))
        words = (f"an end before {name}", name)
        return name, "op", *(words if a == len(one) else words[::-1])
    old, new = one[a], other[b]
    name = _name(other, b)
    if old == new:  # so the numbers before it differ
        return name, "dtype", _number(one[at]), _number(other[at])
    if old[0] != new[0]:
        return name, "op", _name(one, a), name
    if new[0] == -1:
        return name, "op", "another number of results", "this one"
    entry = CATALOG.by_code[new[0]]
    count = 1 + len(entry.inputs)
    if old[1:count] != new[1:count]:
        which = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b) - 1
        title = entry.inputs[which].name
        return name, "inputs", f"{title} is {_slot(old[which + 1])}", _slot(new[which + 1])
    static = [a.name for a in entry.attrs if a.kind == "static"]
    for title, a, b in zip(static, old[count:], new[count:], strict=False):
        if a != b:
            return name, "attribute", f"{title}={a!r}", f"{title}={b!r}"
    return name, "shape", _classes(old[-1]), _classes(new[-1])


def _number(code: Any) -> str:
    made = code[0] == _FULL and code[-1] == ()
    return f"a number of {code[1].name}" if made else "no number"


def _behind_numbers(codes: tuple[Any, ...], at: int) -> int:
    """Return the next operation that makes no number: the user wrote that with its number."""
    while at < len(codes) and codes[at][0] == _FULL and codes[at][-1] == ():
        at += 1
    return at


def _reads(code: Any) -> list[int]:
    if code[0] == -1:
        return []
    out: list[int] = []
    for i in code[1 : 1 + len(CATALOG.by_code[code[0]].inputs)]:
        out += [] if i is None else i if isinstance(i, tuple) else [i]
    return out


def _name(codes: tuple[Any, ...], at: int) -> str:
    while codes[at][0] == -1:
        at -= 1
    name: str = CATALOG.by_code[codes[at][0]].name
    return name


def _slot(slot: Any) -> str:
    if slot is None:
        return "left out"
    if isinstance(slot, tuple):
        return f"a list of {len(slot)}"
    return f"result {slot}" if slot >= 0 else f"input {-1 - slot}"


def _external(spec: Any) -> str:
    return f"{spec[0].name}{_classes(spec[1])}"


def _classes(classes: Any) -> str:
    if classes and isinstance(classes[0], tuple):
        return ", ".join(map(_classes, classes))
    return f"[{', '.join('01n'[c] for c in classes)}]"
