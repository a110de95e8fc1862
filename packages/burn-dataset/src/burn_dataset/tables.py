"""Rows from files: JSON lines, SQLite tables, Parquet and Arrow files; an item is a dict."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from burn_dataset.dataset import check_index
from burn_std import ArgumentError, StoreError

Row = dict[str, Any]
PathLike = str | os.PathLike[str]


class JsonLinesDataset:
    r"""A JSON value per line; lines are found once and read when asked for.

    Args:
        path: the file; one that ends in `.gz` is read at once.

    Raises:
        StoreError: the file cannot be read; on access, a line is no JSON.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "rows.jsonl")
        ...     _ = path.write_text('{"x": 1}\n\n{"x": 2}\n')
        ...     data = JsonLinesDataset(path)
        ...     len(data), data[1]
        (2, {'x': 2})
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self._lines: list[bytes] | None = None
        self._spans: list[tuple[int, int]] = []
        try:
            if self.path.suffix == ".gz":
                with gzip.open(self.path, "rb") as packed:
                    self._lines = [line for line in packed if line.strip()]
                return
            with self.path.open("rb") as file:
                start = 0
                for line in file:
                    if line.strip():
                        self._spans.append((start, len(line)))
                    start += len(line)
        except (OSError, EOFError) as cause:
            raise StoreError(
                "JsonLinesDataset", "the file cannot be read", got=f"{self.path.name}: {cause}"
            ) from cause

    def __len__(self) -> int:
        return len(self._spans if self._lines is None else self._lines)

    def __getitem__(self, index: int) -> Any:
        k = check_index(index, len(self), "JsonLinesDataset")
        try:
            if self._lines is not None:
                line = self._lines[k]
            else:
                start, length = self._spans[k]
                with self.path.open("rb") as file:
                    file.seek(start)
                    line = file.read(length)
            return json.loads(line)
        except (OSError, ValueError) as cause:
            raise StoreError(
                "JsonLinesDataset", "every line is a JSON value",
                got=f"line {k + 1} with content of {self.path.name}: {cause}",
            ) from cause  # fmt: skip


class SqliteDataset:
    """The rows of a table of a SQLite file, in the order of their row ids.

    The file is opened for reading only, in each process anew.

    Args:
        path: the file.
        table: name of a table.

    Raises:
        StoreError: the file or the table cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "rows.db")
        ...     SqliteDataset.write(path, "train", [{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        ...     SqliteDataset(path, "train")[1]
        {'x': 2, 'name': 'b'}
    """

    def __init__(self, path: PathLike, table: str) -> None:
        self.path = Path(path)
        self.table = table
        self._open: tuple[int, sqlite3.Connection] | None = None
        # Row ids may have gaps, so they are read once.
        self._ids = [int(r[0]) for r in self._query(f"SELECT rowid FROM {_name(table)}")]

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            if self._open is None or self._open[0] != os.getpid():
                # A connection does not survive a fork.
                uri = f"{self.path.resolve().as_uri()}?mode=ro"
                made = sqlite3.connect(uri, uri=True, check_same_thread=False)
                made.row_factory = sqlite3.Row
                self._open = (os.getpid(), made)
            return self._open[1].execute(sql, values).fetchall()
        except sqlite3.Error as cause:
            raise StoreError(
                "SqliteDataset", "the table cannot be read",
                got=f"{self.table} of {self.path.name}: {cause}",
            ) from cause  # fmt: skip

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> Row:
        k = self._ids[check_index(index, len(self), "SqliteDataset")]
        rows = self._query(f"SELECT * FROM {_name(self.table)} WHERE rowid = ?", (k,))
        if not rows:
            raise StoreError("SqliteDataset", "a row is gone since the file was opened", got=k)
        return dict(rows[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def close(self) -> None:
        """Close the file; the next access opens it again."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def __del__(self) -> None:
        if getattr(self, "_open", None) is not None:
            self.close()

    @staticmethod
    def write(path: PathLike, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to a table, which is made with the first row's columns if it is missing.

        Args:
            path: the file, made if missing.
            table: name of the table.
            rows: numbers, strings, bytes and None by column; all with the same columns.

        Raises:
            StoreError: the file cannot be written, or a row has other columns; nothing is added.
        """
        found = list(rows)
        if not found:
            return
        columns = list(found[0])
        if any(list(r) != columns for r in found):
            raise StoreError("SqliteDataset.write", "rows have one set of columns", got=columns)
        names = ", ".join(map(_name, columns))
        marks = ", ".join("?" for _ in columns)
        try:
            connection = sqlite3.connect(Path(path))
            try:
                with connection:
                    connection.execute(f"CREATE TABLE IF NOT EXISTS {_name(table)} ({names})")
                    connection.executemany(
                        f"INSERT INTO {_name(table)} ({names}) VALUES ({marks})",
                        [tuple(r.values()) for r in found],
                    )
            finally:
                connection.close()
        except sqlite3.Error as cause:
            raise StoreError(
                "SqliteDataset.write", "the table cannot be written", got=f"{table}: {cause}"
            ) from cause


def _name(text: str) -> str:
    """Return a name as SQL quotes it."""
    if not text or "\0" in text:
        raise ArgumentError("SqliteDataset", "a name is a text", got=repr(text))
    return '"' + text.replace('"', '""') + '"'


class ArrowDataset:
    """The rows of a Parquet, Feather or Arrow IPC file (the extra `arrow` brings pyarrow).

    Args:
        path: the file; its ending says what it is, `.parquet`, `.feather` or `.arrow`.
        columns: which; all if None.

    Raises:
        StoreError: pyarrow is missing, or the file cannot be read.
    """

    def __init__(self, path: PathLike, columns: Sequence[str] | None = None) -> None:
        try:
            import pyarrow
            import pyarrow.feather
            import pyarrow.parquet
        except ImportError as cause:
            raise StoreError(
                "ArrowDataset", "needs the package pyarrow",
                remedy="Install it: uv sync --inexact --package burn-dataset --extra arrow.",
            ) from cause  # fmt: skip
        self.path = Path(path)
        wanted = None if columns is None else list(columns)
        try:
            if self.path.suffix == ".parquet":
                self._table: Any = pyarrow.parquet.read_table(self.path, columns=wanted)
            else:
                self._table = pyarrow.feather.read_table(self.path, columns=wanted)
        except (OSError, ValueError, KeyError, pyarrow.ArrowException) as cause:
            raise StoreError(
                "ArrowDataset", "the file cannot be read", got=f"{self.path.name}: {cause}"
            ) from cause
        self.columns: list[str] = self._table.column_names
        missing = sorted(set(wanted or ()) - set(self.columns))
        if missing:
            raise StoreError(
                "ArrowDataset", "the file has these columns", got=missing,
                remedy=f"There are {', '.join(self._table.column_names)}.",
            )  # fmt: skip

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, index: int) -> Row:
        k = check_index(index, len(self), "ArrowDataset")
        return {name: self._table.column(name)[k].as_py() for name in self.columns}


class HuggingFaceDataset:
    """A data set of the Hugging Face `datasets` package; an item is a dict.

    Args:
        dataset: an object of that package with a length, or a path or name it can load.
        split: `train`, `test`, ... for a name.
        **options: for `datasets.load_dataset`.

    Raises:
        StoreError: the package is missing, or cannot load it.

    Example:
        >>> rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}]
        >>> HuggingFaceDataset(rows)[1]
        {'text': 'b', 'label': 1}
    """

    def __init__(self, dataset: Any, split: str | None = None, **options: Any) -> None:
        if isinstance(dataset, (str, os.PathLike)):
            try:
                from datasets import load_dataset
            except ImportError as cause:
                raise StoreError(
                    "HuggingFaceDataset", "needs the package datasets",
                    remedy="Install it: uv sync --inexact --package burn-dataset "
                    "--extra huggingface; or pass a data set.",
                ) from cause  # fmt: skip
            try:
                dataset = load_dataset(os.fspath(dataset), split=split, **options)
            except Exception as cause:  # that package raises errors of many others
                raise StoreError(
                    "HuggingFaceDataset", "the data set cannot be loaded", got=str(cause)
                ) from cause
        if not hasattr(dataset, "__len__") or hasattr(dataset, "keys"):
            raise StoreError(
                "HuggingFaceDataset", "is one split with a length", got=type(dataset).__name__,
                remedy="Pass split='train', or wrap a streaming one in IterableDataset.",
            )  # fmt: skip
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Row:
        row: Row = dict(self.dataset[check_index(index, len(self), "HuggingFaceDataset")])
        return row
