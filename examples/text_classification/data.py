"""What Python's standard library says about itself: docstrings, and the field they belong to.

The texts are read from the sources of the Python that runs this, so there is nothing to fetch.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from burn.dataset import ArrayDataset

# Modules and packages of the standard library by field.
FIELDS = {
    "network": [
        "http", "urllib", "email", "smtplib.py", "ftplib.py", "imaplib.py", "poplib.py",
        "socket.py", "ssl.py", "socketserver.py", "xmlrpc", "ipaddress.py",
    ],
    "concurrency": [
        "asyncio", "threading.py", "multiprocessing", "concurrent", "queue.py", "subprocess.py",
        "selectors.py", "sched.py", "contextvars.py",
    ],
    "numbers and time": [
        "statistics.py", "fractions.py", "random.py", "_pydecimal.py", "numbers.py", "datetime.py",
        "_pydatetime.py", "calendar.py", "zoneinfo", "colorsys.py",
    ],
    "files and archives": [
        "pathlib.py", "pathlib", "shutil.py", "tempfile.py", "zipfile.py", "zipfile", "tarfile.py",
        "gzip.py", "bz2.py", "lzma.py", "csv.py", "glob.py", "fileinput.py", "os.py", "_pyio.py",
    ],
}  # fmt: skip
_WORD = re.compile(r"[a-z]+(?:_[a-z]+)*|[0-9]+")


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a source file, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            text = ast.get_docstring(node)
            if text:
                yield text


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def texts() -> list[tuple[str, int]]:
    """Return (docstring, number of its field), each text once."""
    library = Path(sysconfig.get_paths()["stdlib"])
    found: dict[str, int] = {}
    for number, names in enumerate(FIELDS.values()):
        for name in names:
            place = library / name
            files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
            for path in files:
                if path.is_file() and "test" not in path.parts:
                    for text in docstrings(path):
                        if len(words(text)) >= 4:
                            found.setdefault(text, number)
    return list(found.items())


def is_held_out(text: str) -> bool:
    """Return whether a text is for testing, a fifth of them; the same one on every machine."""
    return zlib.crc32(text.encode()) % 5 == 0


class Vocabulary:
    """Words, each with a number; 0 is padding, 1 any word that is not known.

    Args:
        known: the words.
        length: words of a text that are looked at.
    """

    def __init__(self, known: list[str], length: int = 32) -> None:
        self.known = known
        self.length = length
        self._numbers = {word: k for k, word in enumerate(known, 2)}

    @classmethod
    def of(cls, texts: list[str], most: int = 3000) -> Vocabulary:
        """Return the words that stand in several texts, the most frequent first."""
        counts: dict[str, int] = {}
        for text in texts:
            for word in set(words(text)):
                counts[word] = counts.get(word, 0) + 1
        ranked = sorted((word for word in counts if counts[word] > 1), key=lambda w: -counts[w])
        return cls(ranked[:most])

    def __len__(self) -> int:
        return len(self.known) + 2

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text's words, [length], padded with 0."""
        out = np.zeros(self.length, np.int64)
        numbers = [self._numbers.get(word, 1) for word in words(text)[: self.length]]
        out[: len(numbers)] = numbers
        return out

    def dataset(self, pairs: list[tuple[str, int]]) -> ArrayDataset:
        """Return texts and fields as arrays."""
        return ArrayDataset(
            np.stack([self.encode(text) for text, _ in pairs]),
            np.array([field for _, field in pairs], np.int64),
        )
