"""Whose states a copy of an optimizer has, until it is seen which model it is used with.

A model that is copied together with its optimizer, before it or after, has the copied parameters.
An optimizer that is copied alone is for the same model still, or for a copy of it that was made
apart; that one has the ids of its parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from burn_core import Parameter


class Loans:
    """States that may still be for other parameters than those they are kept under.

    Args:
        pairs: the parameter that a state was of, None if it is not known, and the one that it is
            kept under.
    """

    def __init__(self, pairs: Iterable[tuple[Parameter | None, Parameter]] = ()) -> None:
        self._sources = {own: source for source, own in pairs}
        # Copies inside one model share an id; none of them is meant by it.
        ids = Counter(own.id for own in self._sources)
        self._by_source = {s: own for own, s in self._sources.items() if s is not None}
        self._by_id = {own.id: own for own in self._sources if ids[own.id] == 1}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def source(self, own: Parameter) -> Parameter:
        """Return the parameter that a state was of, as far as it is known."""
        source = self._sources.get(own)
        return own if source is None else source

    def settle(self, own: Parameter) -> None:
        """Keep a state where it is: its parameter was met, and nothing else is asked for by it."""
        source = self._sources.pop(own, None)
        if source is not None and self._by_source.get(source) is own:
            del self._by_source[source]
        if self._by_id.get(own.id) is own:
            del self._by_id[own.id]

    def lender(self, p: Parameter) -> Parameter | None:
        """Return the parameter whose state is that of another one, None if there is none."""
        found = self._by_source.get(p)
        return self._by_id.get(p.id) if found is None else found
