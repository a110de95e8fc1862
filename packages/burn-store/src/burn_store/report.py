"""What a load did: applied, missing, unused and mismatched names, and what was probably meant."""

from __future__ import annotations

import re
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
        r"""Return what to pass so that the names fit, where one prefix is all that differs.

        Example:
            >>> LoadReport([], ["fc.w", "fc.b"], ["module.fc.w", "module.fc.b"], {}).hint()
            "Every name has the prefix 'module.': pass rename=[('^module\\\\.', '')]."
        """
        if not self.missing or not self.unused:
            return None
        unused, missing = set(self.unused), set(self.missing)
        first = self.missing[0]
        for name in self.unused[:_COMPARED]:
            prefix = name.removesuffix(first)
            if (
                prefix
                and prefix != name
                and prefix.endswith(".")
                and all(prefix + m in unused for m in missing)
            ):
                pattern = "^" + re.escape(prefix)
                return f"Every name has the prefix {prefix!r}: pass rename=[({pattern!r}, '')]."
        first = self.unused[0]
        for name in self.missing[:_COMPARED]:
            prefix = name.removesuffix(first)
            if (
                prefix
                and prefix != name
                and prefix.endswith(".")
                and all(prefix + u in missing for u in unused)
            ):
                return f"The file lacks the prefix {prefix!r}: pass rename=[('^', {prefix!r})]."
        return None

    def problems(self) -> str:
        """Return what is wrong, with near names of the file for missing ones."""
        near = self.did_you_mean()
        parts = [
            f"missing {n}" + (f" (did you mean {near[n]}?)" if n in near else "")
            for n in self.missing[:_SHOWN]
        ]
        parts += _more(self.missing, "missing")
        parts += [f"unused {name}" for name in self.unused[:_SHOWN]]
        parts += _more(self.unused, "unused")
        parts += [
            f"{name} is {has} in the file, {needs} here"
            for name, (needs, has) in list(self.mismatched.items())[:_SHOWN]
        ]
        parts += _more(self.mismatched, "mismatched")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return (
            f"LoadReport(applied={len(self.applied)}, missing={self.missing}, "
            f"unused={self.unused}, mismatched={list(self.mismatched)}, skipped={self.skipped})"
        )


def _more(names: Iterable[str], what: str) -> list[str]:
    rest = len(list(names)) - _SHOWN
    return [f"{rest} more {what}"] if rest > 0 else []
