"""What a load did: applied, missing, unused and mismatched names, and what was probably meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

# Texts stay readable, and comparing names takes time that grows with their product.
_SHOWN = 20
_COMPARED = 2000


class LoadReport:
    """The outcome of `load`.

    Attributes:
        applied: names of the model that were loaded.
        missing: names of the model that the file lacks.
        unused: names of the file, as renamed, that the model lacks.
        mismatched: names of the model with (what it needs, what the file has).
        skipped: names of the model that a filter or the file's layout leaves out.
    """

    __slots__ = ("applied", "mismatched", "missing", "skipped", "unused")

    def __init__(
        self,
        applied: list[str],
        missing: list[str],
        unused: list[str],
        mismatched: dict[str, tuple[str, str]],
        skipped: list[str] | None = None,
    ) -> None:
        self.applied = applied
        self.missing = missing
        self.unused = unused
        self.mismatched = mismatched
        self.skipped = skipped or []

    @property
    def complete(self) -> bool:
        """True when every name of both sides was applied, apart from the skipped."""
        return not (self.missing or self.unused or self.mismatched)

    def did_you_mean(self) -> dict[str, str]:
        """Return for missing names the unused name that is probably meant.

        Example:
            >>> LoadReport([], ["fc.weight"], ["fc.weigth"], {}).did_you_mean()
            {'fc.weight': 'fc.weigth'}
        """
        candidates = self.unused[:_COMPARED]
        found = {}
        for name in self.missing[:_SHOWN]:
            near = get_close_matches(name, candidates, 1)
            if near:
                found[name] = near[0]
        return found

    def hint(self) -> str | None:
        r"""Return what to pass so that names fit, where one prefix is what they differ by.

        Names that fit already are left alone by it.

        Example:
            >>> LoadReport([], ["fc.w", "fc.b"], ["module.fc.w", "module.fc.b"], {}).hint()
            "Every name has the prefix 'module.': pass rename=[('^module\\\\.', '')]."
        """
        more = _prefix(self.unused, self.missing)
        if more is not None:
            prefix, count = more
            if not any(name.startswith(prefix) for name in self.applied):
                who = _who(count, len(self.unused), "has", "have")
                rest = _rest(len(self.missing) - count, "are not in the file")
                pattern = "^" + re.escape(prefix)
                return f"{who} the prefix {prefix!r}: pass rename=[({pattern!r}, '')].{rest}"
        less = _prefix(self.missing, self.unused)
        if less is not None:
            prefix, count = less
            own = [name.startswith(prefix) for name in self.applied]
            if all(own):
                pattern = f"^(?!{re.escape(prefix)})" if own else "^"
                who = _who(count, len(self.unused), "lacks", "lack")
                who = "The file lacks" if count == len(self.unused) else who
                rest = _rest(len(self.missing) - count, "are not in the file")
                return (
                    f"{who} the prefix {prefix!r}: pass rename=[({pattern!r}, {prefix!r})].{rest}"
                )
        return None

    def problems(self, most: int = _SHOWN) -> str:
        """Return what is wrong, with near names of the file for missing ones.

        Args:
            most: names of one kind that are listed; the others are counted.
        """
        near = self.did_you_mean()
        parts = [
            f"missing {n}" + (f" (did you mean {near[n]}?)" if n in near else "")
            for n in self.missing[:most]
        ]
        parts += _more(self.missing, "missing", most)
        parts += [f"unused {name}" for name in self.unused[:most]]
        parts += _more(self.unused, "unused", most)
        parts += [
            f"{name} is {has} in the file, {needs} here"
            for name, (needs, has) in list(self.mismatched.items())[:most]
        ]
        parts += _more(self.mismatched, "mismatched", most)
        return "; ".join(parts)

    def __repr__(self) -> str:
        return (
            f"LoadReport(applied={len(self.applied)}, missing={self.missing}, "
            f"unused={self.unused}, mismatched={list(self.mismatched)}, skipped={self.skipped})"
        )


def _more(names: Iterable[str], what: str, most: int) -> list[str]:
    rest = len(list(names)) - most
    return [f"{rest} more {what}"] if rest > 0 else []


def _prefix(longer: list[str], shorter: list[str]) -> tuple[str, int] | None:
    """Return the prefix by which most long names become short ones, and how many do."""
    wanted = set(shorter)
    found: Counter[str] = Counter()
    for name in longer:
        at = name.find(".")
        while at >= 0:
            if name[at + 1 :] in wanted:
                found[name[: at + 1]] += 1
            at = name.find(".", at + 1)
    # Of several that do as well the shorter: a prefix of names that stand deeper is chance.
    best = max(found.items(), key=lambda item: (item[1], -len(item[0])), default=None)
    return best


def _who(count: int, total: int, one: str, many: str) -> str:
    if count == total:
        return f"Every name {one}"
    return f"{count} name{'' if count == 1 else 's'} {one if count == 1 else many}"


def _rest(count: int, what: str) -> str:
    return f" {count} more {what}." if count else ""
