"""Text as numbers: one per character."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


class Alphabet:
    """The characters of a text, each with a number.

    Args:
        characters: without repetition; the first stands for those that are not among them.
    """

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._numbers = {c: k for k, c in enumerate(characters)}

    @classmethod
    def of(cls, text: str) -> Alphabet:
        """Return the alphabet of a text, sorted."""
        return cls("".join(sorted(set(text))))

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text, [L]."""
        return np.array([self._numbers.get(c, 0) for c in text], np.int64)

    def decode(self, numbers: list[int]) -> str:
        """Return the text of numbers."""
        return "".join(self.characters[k] for k in numbers)

    def save(self, path: Path) -> None:
        """Write the characters."""
        path.write_text(json.dumps(self.characters))

    @classmethod
    def load(cls, path: Path) -> Alphabet:
        """Read what `save` wrote."""
        return cls(json.loads(path.read_text()))


def read(path: Path | None) -> str:
    """Return a file's text, or that of Python's own reference, which is part of every Python."""
    if path is not None:
        return path.read_text(encoding="utf-8")
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


class Windows:
    """All pieces of a text of one length, each with the piece one character further on.

    Args:
        numbers: the text, [N].
        length: characters of a piece.
        count: pieces of an epoch.
        seed: decides where they begin.
    """

    def __init__(self, numbers: np.ndarray, length: int, count: int, seed: int) -> None:
        self.numbers = numbers
        self.length = length
        self.starts = np.random.default_rng(seed).integers(0, len(numbers) - length - 1, count)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        start = self.starts[index]
        return (
            self.numbers[start : start + self.length],
            self.numbers[start + 1 : start + self.length + 1],
        )
