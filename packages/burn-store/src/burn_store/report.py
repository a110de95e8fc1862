"""What a load did: applied, missing, unused and mismatched names."""

from __future__ import annotations

from difflib import get_close_matches


class LoadReport:
    """The outcome of `load`.

    Attributes:
        applied: names that were loaded.
        missing: names of the model that the file lacks.
        unused: names of the file that the model lacks.
        mismatched: names with (shape in the model, shape in the file).
    """

    __slots__ = ("applied", "mismatched", "missing", "unused")

    def __init__(
        self, applied: list[str], missing: list[str], unused: list[str],
        mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]],
    ) -> None:  # fmt: skip
        self.applied = applied
        self.missing = missing
        self.unused = unused
        self.mismatched = mismatched

    @property
    def complete(self) -> bool:
        """True when every name of both sides was applied."""
        return not (self.missing or self.unused or self.mismatched)

    def problems(self) -> str:
        """Return what is wrong, with near names of the file for missing ones."""
        parts = []
        for name in self.missing:
            near = get_close_matches(name, self.unused, 1)
            parts.append(f"missing {name}" + (f" (did you mean {near[0]}?)" if near else ""))
        parts += [f"unused {name}" for name in self.unused]
        parts += [f"{name} has shape {list(f)} in the file, {list(m)} here" for name, (m, f) in self.mismatched.items()]
        return "; ".join(parts)

    def __repr__(self) -> str:
        return (
            f"LoadReport(applied={len(self.applied)}, missing={self.missing}, unused={self.unused}, "
            f"mismatched={list(self.mismatched)})"
        )
